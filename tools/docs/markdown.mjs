// SPDX-License-Identifier: MIT
// Markdown of docs/ as the inside of a page: headings that can be linked to, code in colours with its file's name,
// tables that scroll on their own. Code that is a name of the package links to where it is described, so the sources
// need no addresses.

import { Marked } from 'marked';
import { escape, highlight, plain, slug } from './html.mjs';

/** ` ```js main.js ` is the file main.js, complete; without a name it is a part of one. */
function codeBlock({ text, lang = '' }) {
  const [language, name] = lang.split(' ');
  const caption = name ? `<figcaption>${escape(name)}</figcaption>` : '';
  return `<figure class="code">${caption}<pre><code>${highlight(text, language)}</code></pre></figure>\n`;
}

/** Links may not stand within links. */
const unlinked = (html) => html.replace(/<\/?a\b[^>]*>/g, '');

/** A heading and the link to itself. */
export const heading = (level, id, html) =>
  `<h${level} id="${id}">${html}${level > 1 ? ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>` : ''}</h${level}>\n`;

/**
 * @param {string} text
 * @param {object} links
 *   code: (code) => the address of what an inline code names, or undefined
 *   page: (href) => the address of a page that the sources name by its Markdown file
 * @returns {{html: string, headings: {level: number, id: string, text: string}[]}}
 */
export function renderMarkdown(text, links) {
  const headings = [];
  const renderer = {
    heading({ depth, tokens }) {
      const html = unlinked(this.parser.parseInline(tokens));
      const id = slug(plain(html));
      headings.push({ level: depth, id, text: plain(html) });
      return heading(depth, id, html);
    },
    code: codeBlock,
    codespan({ text: code }) {
      const href = links.code(code);
      const html = `<code>${escape(code)}</code>`;
      return href === undefined ? html : `<a href="${href}">${html}</a>`;
    },
    link({ href, tokens }) {
      return `<a href="${escape(links.page(href))}">${unlinked(this.parser.parseInline(tokens))}</a>`;
    },
    table(token) {
      const cell = ({ tokens, align }, tag) =>
        `<${tag}${align === 'right' ? ' class="number"' : ''}>${this.parser.parseInline(tokens)}</${tag}>`;
      const row = (cells, tag) => `<tr>${cells.map((one) => cell(one, tag)).join('')}</tr>`;
      const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
      return `<div class="wide"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`;
    },
  };
  return { html: new Marked({ renderer }).parse(text), headings };
}
