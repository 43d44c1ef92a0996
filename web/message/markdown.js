// SPDX-License-Identifier: MIT
// Markdown -> DOM nodes, for text nobody has vouched for. `marked` only splits the text into tokens; the nodes are
// built here, one case per token type, text as text nodes. What the model writes can therefore never become
// markup, load anything or run anything: HTML stays visible text, an image is a note that names its host, a link
// is a link only to http, https or mail. Reference definitions are off: with them a late line would change
// paragraphs above it, and a growing text could not be rendered block by block (stream.js).
import { Lexer, Tokenizer } from 'marked';
import { element, copyButton } from '../shell/dom.js';

/** Nesting beyond this is shown as text: the lexer and the builder recurse once per level. */
const MAX_DEPTH = 12;

/**
 * Longer inline texts, and those with more marks, are shown unformatted, because emphasis takes quadratic time in the
 * marks, or worse.
 */
const MAX_INLINE = 4096;
const MAX_MARKS = 500;

/** Longest heading of the kind that is underlined by the next line, in characters. */
const MAX_HEADING = 256;

/**
 * Longest block, in characters. A longer block is cut (stream.js), and its content is not parsed before, since its
 * lines may take quadratic time.
 */
export const MAX_BLOCK = 4096;

const MAX_COLUMNS = 64;

class PlainTokenizer extends Tokenizer {
  #quotes = 0;

  // For lines that continue a quote, marked calls this once per level past blockTokens and its bound.
  blockquote(src) {
    if (this.#quotes > 2 * MAX_DEPTH) throw new RangeError('quotes nested too deeply');
    this.#quotes++;
    try {
      return super.blockquote(src);
    } finally {
      this.#quotes--;
    }
  }

  // Both are tried at every line, and would read all other lines each time.
  table(src) {
    const head = src.split('\n', 2).join('\n');
    return super.table(head) && super.table(src);
  }

  lheading(src) {
    return super.lheading(src.length > MAX_HEADING ? src.slice(0, src.lastIndexOf('\n', MAX_HEADING) + 1) : src);
  }

  html() { return undefined; }
  tag() { return undefined; }
  def() { return undefined; }
  reflink() { return undefined; }
}

class BoundedLexer extends Lexer {
  #depth = 0;

  constructor() {
    super({ gfm: true, tokenizer: new PlainTokenizer() });
  }

  blockTokens(src, tokens = [], clipped = false) {
    const depth = this.#depth > 0 && src.length > MAX_BLOCK ? 0 : MAX_DEPTH;
    return this.#bounded(src, tokens, depth, () => super.blockTokens(src, tokens, clipped));
  }

  inlineTokens(src, tokens = []) {
    const isSlow = src.length > MAX_INLINE || src.split(/[*_~]/, MAX_MARKS + 1).length > MAX_MARKS;
    const depth = isSlow ? 0 : MAX_DEPTH;
    return this.#bounded(src, tokens, depth, () => super.inlineTokens(src, tokens));
  }

  #bounded(src, tokens, limit, split) {
    if (this.#depth >= limit) {
      tokens.push({ type: 'text', raw: src, text: src, literal: true });
      return tokens;
    }
    this.#depth++;
    try {
      return split();
    } finally {
      this.#depth--;
    }
  }
}

/** Block tokens of a text with "\n" line ends; their `raw` parts joined are the text. */
export function blocks(text) {
  try {
    const tokens = new BoundedLexer().lex(text);
    if (tokens.reduce((sum, token) => sum + token.raw.length, 0) === text.length) return tokens;
  } catch {
    // The lexer gives up on this text: it is shown as written.
  }
  return [{ type: 'text', raw: text, text, literal: true }];
}

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

/** Decodes the character references that models really write; others stay as typed. */
function decodeEntities(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,6}));/gi, (all, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? all;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 31 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : all;
  });
}

/** A link target that may be followed, or null. Relative addresses are refused, since they mean nothing in a reply. */
function safeUrl(href) {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url : null;
}

/** A link shows its host whenever its words do not. `host` is in ASCII form, so look-alike letters are visible. */
function link(token) {
  const url = safeUrl(token.href);
  const label = inline(token.tokens);
  if (!url) return label;
  const anchor = element(
    'a',
    {
      href: url.href,
      target: '_blank',
      rel: 'noopener noreferrer nofollow',
      referrerPolicy: 'no-referrer',
      title: url.href.slice(0, 300),
    },
    ...label,
  );
  const host = url.host || url.pathname;
  return anchor.textContent.includes(host) ? [anchor] : [anchor, element('span', { className: 'host' }, ` (${host})`)];
}

function image(token) {
  const host = URL.canParse(token.href) ? new URL(token.href).host : '';
  const from = host ? ` from ${host}` : '';
  return element('span', { className: 'image', title: token.href.slice(0, 300) },
    `[image${from} not loaded${token.text ? `: ${token.text}` : ''}]`);
}

const INLINE = {
  text: (t) => (t.tokens ? inline(t.tokens) : [t.literal ? t.text : decodeEntities(t.text)]),
  escape: (t) => [t.text],
  strong: (t) => [element('strong', {}, ...inline(t.tokens))],
  em: (t) => [element('em', {}, ...inline(t.tokens))],
  del: (t) => [element('del', {}, ...inline(t.tokens))],
  codespan: (t) => [element('code', {}, t.text)],
  br: () => [element('br')],
  link,
  image: (t) => [image(t)],
  checkbox: (t) => [t.checked ? '☑ ' : '☐ '],
};

const inline = (tokens = []) => tokens.flatMap((token) => INLINE[token.type]?.(token) ?? [token.raw]);

/**
 * Characters that change the order of shown text: code with them may mean something else than it shows (Trojan Source).
 */
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/;

/** A code block; `update` replaces its text in place, so that a growing block keeps its button and selection. */
function code(token) {
  const text = document.createTextNode(token.text);
  const language = element('span', { className: 'language' });
  const pre = element('pre', { tabIndex: 0 }, element('code', {}, text));
  pre.setAttribute('aria-label', 'Code');
  const copy = copyButton(() => text.data, 'Copy code');
  const node = element(
    'div',
    { className: 'code', dir: 'ltr' },
    element('div', { className: 'code-head' }, language, copy),
    pre,
  );
  node.update = (next) => {
    const warning = BIDI_CONTROLS.test(next.text) ? ' · contains hidden direction marks' : '';
    language.textContent = (next.lang ?? '').slice(0, 40) + warning;
    if (next.text.startsWith(text.data)) text.appendData(next.text.slice(text.data.length));
    else text.data = next.text;
  };
  node.update(token);
  return node;
}

function list(token) {
  const node = element(token.ordered ? 'ol' : 'ul');
  if (token.ordered && token.start !== 1) node.start = token.start;
  for (const item of token.items) node.append(element('li', {}, ...children(item.tokens, token.loose)));
  return node;
}

/** Inside a tight list or a table cell, text stands without a paragraph of its own. */
const children = (tokens, loose = true) => tokens.flatMap((token) => {
  if (token.type === 'text' && !loose) return INLINE.text(token);
  return block(token) ?? INLINE[token.type]?.(token) ?? [];
});

function table(token) {
  const row = (cells, tag) => element('tr', {}, ...cells.slice(0, MAX_COLUMNS).map((cell, column) => {
    const node = element(tag, {}, ...inline(cell.tokens));
    if (token.align[column]) node.style.textAlign = token.align[column];
    return node;
  }));
  const body = element('tbody', {}, ...token.rows.map((cells) => row(cells, 'td')));
  const grid = element('table', {}, element('thead', {}, row(token.header, 'th')), body);
  const node = element('div', { className: 'table', tabIndex: 0, role: 'region' }, grid);
  node.setAttribute('aria-label', 'Table');
  return node;
}

const BLOCK = {
  paragraph: (t) => element('p', { dir: 'auto' }, ...inline(t.tokens)),
  text: (t) => element('p', { dir: 'auto', className: t.literal ? 'literal' : '' }, ...INLINE.text(t)),
  // The page's own headings are h1 and h2: a reply's start below them.
  heading: (t) => element(`h${Math.min(t.depth + 2, 6)}`, { dir: 'auto' }, ...inline(t.tokens)),
  code,
  list,
  table,
  blockquote: (t) => element('blockquote', {}, ...children(t.tokens)),
  hr: () => element('hr'),
};

/** The node of one block token; null for blank space. */
export const block = (token) => (Object.hasOwn(BLOCK, token.type) ? BLOCK[token.type](token) : null);
