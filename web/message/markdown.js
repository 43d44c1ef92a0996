// SPDX-License-Identifier: MIT
// Tokens of Markdown (tokens.js) -> DOM nodes, one case per type of token, text as text nodes. What the model writes
// can therefore never become markup, load anything or run anything: HTML stays visible text, an image is a note that
// names its host, a link is a link only to http, https or mail. A node follows its token in place: what has not changed
// keeps its nodes, so a growing block costs what is new in it. What few replies need (late/) is fetched with the first
// of them; until it is there, and without it, formulas stand as they were typed, and code has no colours.
import { element, copyButton } from '../shell/dom.js';
import { say } from '../shell/words.js';

const MAX_COLUMNS = 64;

/** Cells with at most this many characters are not broken into lines: the table scrolls sideways. */
const SHORT_CELL = 32;

const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };

/** Decodes the character references that models really write; others stay as typed. */
function decodeEntities(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w{2,6}));/gi, (all, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? all;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code > 31 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : all;
  });
}

/** A link target that may be followed, or null. Relative addresses mean nothing in a reply. */
function safeUrl(href) {
  if (!URL.canParse(href)) return null;
  const url = new URL(href);
  return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url : null;
}

/**
 * Makes the last children of a node those of some tokens. Nodes of unchanged tokens stay, and a node that can follow
 * its token does so.
 * @param {(token: object) => (Node | string)[]} make @param {object[]} [parts] {raw, type, nodes} of those children
 */
export function fill(node, tokens, make, parts = node.parts ??= []) {
  for (const [i, token] of tokens.entries()) {
    const { raw, type, level } = token;
    const old = parts[i];
    const isLike = old && old.type === type && old.level === level;
    if (isLike && old.raw === raw) continue;
    if (isLike && old.nodes[0]?.follow) {
      old.nodes[0].follow(token);
      old.raw = raw;
      continue;
    }
    const nodes = make(token);
    for (const gone of old?.nodes ?? []) gone.remove();
    const next = parts.slice(i + 1).find((part) => part.nodes.length)?.nodes[0] ?? null;
    for (const one of nodes) node.insertBefore(one, next);
    parts[i] = { raw, type, level, nodes };
  }
  for (const { nodes } of parts.splice(tokens.length)) for (const gone of nodes) gone.remove();
}

/** A text node that grows with its token. (To set the data costs Chromium a quarter of what appendData costs.) */
function text(words) {
  const node = document.createTextNode(words);
  node.follow = (token) => { node.data = wordsOf(token); };
  return node;
}

const wordsOf = (token) => (token.literal || token.type !== 'text' ? token.text : decodeEntities(token.text));

/** A node that follows its token. @param {(token: object) => void} follow @returns {Node[]} */
function live(node, token, follow) {
  node.follow = follow;
  follow(token);
  return [node];
}

/** A node whose children follow the token's inline tokens. */
const filled = (node, token) => live(node, token, ({ tokens }) => fill(node, tokens, inline));

/** @returns {(token: object) => Element[]} */
const inside = (tag, attributes) => (token) => filled(element(tag, attributes), token);

/** A link shows its host whenever its words do not. `host` is in ASCII form, so look-alike letters are visible. */
function link(token) {
  const url = safeUrl(token.href);
  const label = token.tokens.flatMap(inline);
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
  const { text: about } = token;
  const words = host
    ? (about ? say`[image from ${host} not loaded: ${about}]` : say`[image from ${host} not loaded]`)
    : (about ? say`[image not loaded: ${about}]` : say`[image not loaded]`);
  return [element('span', { className: 'image', title: token.href.slice(0, 300) }, words)];
}

let mathematics = null;

/** The source as it was typed, which becomes mathematics once the code for it is there. */
function formula({ raw, tex, display }) {
  const node = element(display ? 'div' : 'span', { className: 'formula', dir: 'ltr' }, raw.trim());
  if (mathematics) mathematics.show(node, tex, display);
  else
    import('./late/mathematics.js').then((code) => {
      mathematics = code;
      code.show(node, tex, display);
    }, () => {});
  return [node];
}

/** The number of a footnote, which leads to its text if that is there. */
function note(token) {
  const find = ({ target }) => target.closest('.prose').querySelector(`[data-note="${token.text}"]`);
  const onclick = (event) => find(event)?.scrollIntoView({ block: 'nearest' });
  const about = { type: 'button', className: 'link-button', 'aria-label': say`Footnote ${token.text}`, onclick };
  const button = element('button', about, token.text);
  return [element('sup', {}, button)];
}

const checkbox = ({ checked }) => [
  element('input', { type: 'checkbox', checked, disabled: true, 'aria-label': checked ? say`Done` : say`To do` }),
  ' ',
];

const INLINE = {
  text: (t) => (t.tokens ? t.tokens.flatMap(inline) : [text(wordsOf(t))]),
  escape: (t) => [t.text],
  strong: inside('strong'),
  em: inside('em'),
  del: inside('del'),
  sub: inside('sub'),
  sup: inside('sup'),
  codespan: (t) => [element('code', { dir: 'ltr' }, text(t.text))],
  br: () => [element('br')],
  link,
  image,
  checkbox,
  note,
  formula,
};

const nodesOf = (list) => list.map((one) => (typeof one === 'string' ? document.createTextNode(one) : one));

const inline = (token) => nodesOf(INLINE[token.type]?.(token) ?? [token.raw]);

/**
 * Characters that change the order of shown text: code with them may mean something else than it shows (Trojan Source).
 */
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/;

/** A code block. It grows in place, so that it keeps its buttons and what is selected. */
function code(token) {
  const grown = document.createTextNode('');
  const language = element('span', { className: 'language' });
  const pre = element('pre', { tabIndex: 0, 'aria-label': say`Code` }, element('code', {}, grown));
  const node = element('div', { className: 'code', dir: 'ltr' },
    element('div', { className: 'code-head' }, language, copyButton(() => node.token.text, say`Copy code`)), pre);
  node.done = '';     // the beginning that code-tools.js has coloured; the text node has the rest
  import('./late/code-tools.js').then((tools) => tools.addTo(node, grown), () => {});
  return live(node, token, (next) => {
    const warning = BIDI_CONTROLS.test(next.text) ? ` · ${say`contains hidden direction marks`}` : '';
    language.textContent = (next.lang ?? '').slice(0, 40) + warning;
    if (!next.text.startsWith(node.done)) {
      node.done = '';
      grown.parentNode.replaceChildren(grown);
    }
    grown.data = next.text.slice(node.done.length);
    node.token = next;
    node.colour?.();
  });
}

/** Inside a tight list, text stands without a paragraph of its own. Blocks inside others take their direction. */
const inItem = (isLoose) => (token) => {
  if (token.type === 'text' && !isLoose) return nodesOf(INLINE.text(token));
  const nodes = BLOCK[token.type] ? block(token) : INLINE[token.type] ? inline(token) : [];
  for (const node of nodes) if (node.dir === 'auto') node.removeAttribute('dir');
  return nodes;
};

/** The tokens of an item, with those of its texts in their place if it is tight: they grow one by one. */
const partsOf = ({ tokens }, isLoose) =>
  tokens.flatMap((token) => (token.type === 'text' && token.tokens && !isLoose ? token.tokens : [token]));

function list(token) {
  const node = element(token.ordered ? 'ol' : 'ul', { dir: 'auto' });
  const item = (first) => {
    const li = element('li', { className: first.task ? 'task' : '' });
    return live(li, first, ({ loose, ...next }) => fill(li, partsOf(next, loose), inItem(loose)));
  };
  return live(node, token, ({ ordered, start, loose, items }) => {
    if (ordered && start !== 1) node.start = start;
    fill(node, items.map((one) => ({ ...one, type: `${loose} ${one.task}`, loose })), item);
  });
}

function table(token) {
  const cell = (tag) => ({ align, text: words, ...first }) => {
    const [node] = inside(tag, { className: words.length <= SHORT_CELL ? 'short' : '' })(first);
    if (align) node.style.textAlign = align;
    return [node];
  };
  const row = (tag) => (first) => {
    const node = element('tr');
    return live(node, first, ({ cells }) => fill(node, cells, cell(tag)));
  };
  const cellsOf = (cells) => cells.slice(0, MAX_COLUMNS).map((one) => (
    { ...one, raw: one.text, type: `${one.align} ${one.text.length <= SHORT_CELL}` }
  ));
  const rowOf = (cells) => ({ type: 'row', raw: cells.map((one) => one.text).join('|'), cells: cellsOf(cells) });
  const [head, body] = [element('thead'), element('tbody')];
  const about = { className: 'table', tabIndex: 0, role: 'group', dir: 'auto', 'aria-label': say`Table` };
  const node = element('div', about, element('table', {}, head, body));
  return live(node, token, ({ header, rows }) => {
    fill(head, [rowOf(header)], row('th'));
    fill(body, rows.map(rowOf), row('td'));
  });
}

function blockquote(token) {
  const node = element('blockquote', { dir: 'auto' });
  return live(node, token, ({ tokens }) => fill(node, tokens, inItem(true)));
}

function footnote(token) {
  const label = element('sup', {}, token.label);
  return filled(element('p', { dir: 'auto', className: 'footnote', 'data-note': token.label }, label, ' '), token);
}

const BLOCK = {
  paragraph: inside('p', { dir: 'auto' }),
  text: (t) => (t.tokens ? BLOCK.paragraph(t) : [element('p', { dir: 'auto', className: 'literal' }, text(t.text))]),
  heading: (t) => filled(element(`h${t.level}`, { dir: 'auto' }), t),
  code,
  list,
  table,
  blockquote,
  footnote,
  display: formula,
  cut: () => [element('p', { className: 'aside' }, say`The model began to call a tool here and has not finished the call.`)],
  hr: () => [element('hr')],
};

/** The nodes of one block token; none for blank space. @returns {Node[]} */
export const block = (token) => (Object.hasOwn(BLOCK, token.type) ? BLOCK[token.type](token) : []);
