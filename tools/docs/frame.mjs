// SPDX-License-Identifier: MIT
// The frame of every page: the head with a policy that allows only the site's own files, the bar, the list of all
// pages, and the page's own headings. All addresses are relative, so the site works under any path.

import { escape } from './html.mjs';
import { addressFrom } from './names.mjs';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "require-trusted-types-for 'script'; trusted-types 'none'";

const ICONS = {
  mark: '<circle cx="12" cy="12" r="10"/><circle cx="12" cy="12" r="2.2"/><path d="M16.1 12Q18.1 12.8 18.3 16.9M14.9 14.9Q15.8 16.9 13 19.9M12 16.1Q11.2 18.1 7.1 18.3M9.1 14.9Q7.1 15.8 4.1 13M7.9 12Q5.9 11.2 5.7 7.1M9.1 9.1Q8.3 7.1 11 4.1M12 7.9Q12.8 5.9 16.9 5.7M14.9 9.1Q16.9 8.3 19.9 11"/><circle class="peg" cx="19" cy="5" r="2.3"/>',
  menu: '<path d="M4 7h16M4 12h16M4 17h16"/>',
  search: '<circle cx="10.5" cy="10.5" r="6"/><path d="m15 15 5 5"/>',
  theme: '<circle cx="12" cy="12" r="8.5"/><path class="solid" d="M12 3.5a8.5 8.5 0 0 1 0 17z"/>',
  copy: '<rect x="8.5" y="8.5" width="11.5" height="11.5" rx="2.5"/><path d="M15.5 5.5A2 2 0 0 0 13.5 4H6.5A2.5 2.5 0 0 0 4 6.5v7a2 2 0 0 0 1.5 2"/>',
  check: '<path d="m5 12.5 4.5 4.5L19 7.5"/>',
  alert: '<circle cx="12" cy="12" r="8.8"/><path d="M12 7.5v5.5M12 16.4v.1"/>',
};

const sprite = Object.entries(ICONS)
  .map(([name, shapes]) => `<symbol id="i-${name}" viewBox="0 0 24 24">${shapes}</symbol>`)
  .join('\n  ');
const icon = (name, extra = '') => `<svg class="icon${extra}" aria-hidden="true"><use href="#i-${name}"/></svg>`;

function listOfPages(page, groups) {
  const item = ({ path, title }) =>
    `<li><a href="${addressFrom(page.path, path)}"${path === page.path ? ' aria-current="page"' : ''}>${escape(title)}</a></li>`;
  return groups
    .map(({ title, pages }) => `<h2>${escape(title)}</h2>\n<ul>${pages.map(item).join('\n')}</ul>`)
    .join('\n');
}

function listOfHeadings({ headings }) {
  if (headings.length < 2) return '';
  const item = ({ id, text, isCode }) =>
    `<li><a href="#${id}">${isCode ? `<code>${escape(text)}</code>` : escape(text)}</a></li>`;
  return `<nav class="here" aria-labelledby="here"><h2 id="here">On this page</h2>\n<ul>${headings.map(item).join('\n')}</ul></nav>`;
}

const SEARCH = `<dialog class="search" id="search" aria-label="Search">
<div role="search">
<div class="search-field">${icon('search')}<input id="search-input" type="search" placeholder="An option, an error, a word" aria-label="Search the documentation" autocomplete="off" spellcheck="false" aria-controls="search-results">
<button type="button" class="button" id="search-close">Close</button></div>
<p class="search-count" id="search-count" role="status"></p>
<ol id="search-results"></ol>
</div>
</dialog>`;

/**
 * @param {object} page path, title, description, html, headings; `kind` for the looks
 * @param {{title: string, pages: object[]}[]} groups every page there is, in order
 */
export function frame(page, groups) {
  const to = (path) => addressFrom(page.path, path);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="theme-color" content="#f5f1ea" media="(prefers-color-scheme: light)">
<meta name="theme-color" content="#1a1714" media="(prefers-color-scheme: dark)">
<meta name="description" content="${escape(page.description)}">
<title>${page.path === 'index.html' ? 'quern' : `${escape(page.title)} · quern`}</title>
<link rel="icon" href="${to('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${to('docs.css')}">
<script src="${to('boot.js')}"></script>
<script type="module" src="${to('docs.js')}"></script>
</head>
<body class="${page.kind}">

<svg class="sprite" aria-hidden="true">
  ${sprite}
</svg>

<a class="skip" href="#content">Skip to the content</a>

<header class="bar">
<button type="button" class="icon-button menu-button" popovertarget="pages" aria-label="All pages" title="All pages">${icon('menu')}</button>
<a class="brand" href="${to('index.html')}">${icon('mark', ' mark')}<span>quern</span></a>
<div class="bar-actions">
<button type="button" class="search-button" id="search-open" hidden>${icon('search', ' small')}<span>Search</span><kbd>/</kbd></button>
<a class="button playground-button" href="${to('playground/index.html')}">Playground</a>
<button type="button" class="icon-button" id="theme" aria-label="Light or dark" title="Light or dark" hidden>${icon('theme')}</button>
</div>
</header>

<div class="layout">
<nav class="pages" id="pages" popover aria-label="All pages">
${listOfPages(page, groups)}
</nav>

<main id="content" tabindex="-1">
<article>
${page.html}
</article>
</main>
${listOfHeadings(page)}
</div>

${SEARCH}
<p class="visually-hidden" id="announcer" role="status"></p>
</body>
</html>
`;
}
