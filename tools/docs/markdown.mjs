// SPDX-License-Identifier: MIT
// Renders Markdown of docs/ as the body of a page: headings with links, coloured code with its file name, tables that
// scroll. Code that is a name of the package links to its description, so the sources need no addresses.

import { Marked } from 'marked';
import { escape, highlight, plain, slug } from './html.mjs';

/** ` ```js main.js ` is the complete file main.js; without a name the code is a fragment. */
function codeBlock({ text, lang = '' }) {
  const [language, name] = lang.split(' ');
  const caption = name ? `<figcaption>${escape(name)}</figcaption>` : '';
  return `<figure class="code">${caption}<pre><code>${highlight(text, language)}</code></pre></figure>\n`;
}

/** A link must not contain links. */
const unlinked = (html) => html.replace(/<\/?a\b[^>]*>/g, '');

/** A heading with a link to itself. */
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
