// SPDX-License-Identifier: MIT
// Readable text of HTML, and of books, which are archives of it (EPUB 3, Open Container Format). Nothing becomes
// elements, so nothing can run or be fetched.
import { attribute, decode, parse } from './markup.js';
import { LARGEST, Prose } from './prose.js';
import { Refusal } from './refusal.js';

const SKIPPED = new Set([
  'script', 'style', 'noscript', 'template', 'svg', 'math', 'object', 'iframe', 'select', 'button', 'textarea',
  'noframes', 'noembed', 'xmp',
]);

const BLOCKS = new Set([
  'p', 'div', 'section', 'article', 'main', 'header', 'footer', 'nav', 'aside', 'ul', 'ol', 'dl', 'dt', 'dd', 'form',
  'figure', 'figcaption', 'blockquote', 'address', 'details', 'summary', 'hr', 'body', 'title', 'fieldset', 'caption',
  'head',
]);

/** The entities of HTML 4 for the letters and signs from U+00A0 to U+00FF, in this order. */
const LATIN = `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3
acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig
Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave
Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave
iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml`;

/** Other frequent ones. */
const SIGNS = { OElig: 'Œ', oelig: 'œ', Scaron: 'Š', scaron: 'š', ndash: '–', mdash: '—', lsquo: '‘', rsquo: '’',
  sbquo: '‚', ldquo: '“', rdquo: '”', bdquo: '„', dagger: '†', bull: '•', hellip: '…', permil: '‰', prime: '′',
  lsaquo: '‹', rsaquo: '›', euro: '€', trade: '™', larr: '←', uarr: '↑', rarr: '→', darr: '↓', minus: '−', infin: '∞',
  ne: '≠', le: '≤', ge: '≥', ensp: ' ', emsp: ' ', thinsp: ' ', zwnj: '\u200c', zwj: '\u200d' };

const NAMES = {
  __proto__: null,
  ...Object.fromEntries(LATIN.split(/\s/).map((name, i) => [name, String.fromCharCode(0xa0 + i)])),
  ...SIGNS,
};

/** Writes hypertext into the prose. */
class Page {
  #prose;
  #mark = '';
  #lists = 0;
  #pre = 0;
  #isBlank = true;      // at the beginning of a line, or after a space
  #links = [];          // addresses of the links around the present place; '' for those inside the page
  #isChapter;

  /** @param {Prose} prose @param {boolean} isChapter of a book: its title is the book's */
  constructor(prose, isChapter) {
    this.#prose = prose;
    this.#isChapter = isChapter;
  }

  open(name, source) {
    if (SKIPPED.has(name) || (this.#isChapter && name === 'head')) return false;
    if (/^h[1-6]$/.test(name)) this.#block(`${'#'.repeat(Number(name[1]))} `);
    else if (BLOCKS.has(name)) this.#block(this.#mark.endsWith('- ') && name === 'p' ? this.#mark : '');
    this.#opening[name]?.(source);
    return true;
  }

  close(name) {
    if (/^h[1-6]$/.test(name) || BLOCKS.has(name)) this.#block('');
    this.#closing[name]?.();
  }

  text(text) {
    const words = decode(text, NAMES);
    const shown = this.#pre ? words : words.replaceAll(/[\t\n\f\r ]+/g, ' ');
    this.#say(this.#isBlank && !this.#pre ? shown.trimStart() : shown);
  }

  #opening = {
    __proto__: null,
    br: () => this.#say('\n'),
    li: () => {
      this.#end(1);
      this.#mark = `${'  '.repeat(Math.max(0, Math.min(8, this.#lists - 1)))}- `;
    },
    ul: () => { this.#lists++; },
    ol: () => { this.#lists++; },
    pre: () => {
      this.#block('');
      this.#say('```\n');
      this.#pre++;
    },
    a: (source) => {
      const address = attribute(source, 'href');
      this.#links.push(/^https?:\/\/[^\s()]+$/i.test(address) ? address : '');
      if (this.#links.at(-1)) this.#say('[');
    },
    table: () => {
      this.#block('');
      this.#prose.openTable();
    },
    tr: () => this.#prose.closeRow(),
    td: () => this.#prose.openCell(),
    th: () => this.#prose.openCell(),
  };

  #closing = {
    __proto__: null,
    li: () => this.#end(1),
    ul: () => { this.#lists--; },
    ol: () => { this.#lists--; },
    pre: () => {
      if (this.#pre > 0) this.#pre--;
      this.#say('\n```');
      this.#block('');
    },
    a: () => {
      const address = this.#links.pop();
      if (address) this.#say(`](${address})`);
    },
    table: () => this.#prose.closeTable(),
    tr: () => this.#prose.closeRow(),
    td: () => this.#prose.closeCell(),
    th: () => this.#prose.closeCell(),
  };

  #say(text) {
    if (!text) return;
    this.#prose.add(text);
    this.#isBlank = /\s$/.test(text);
  }

  #end(gap) {
    this.#prose.end(gap, this.#mark);
    this.#isBlank = true;
  }

  /** Ends a block, and begins one with a mark. */
  #block(mark) {
    this.#end(this.#lists ? 1 : 2);
    this.#mark = mark;
  }
}

const write = (prose, text, isChapter = false) => {
  parse(text, new Page(prose, isChapter), true);
  prose.end(2);
};

/** Most bytes of a page: its marks may take several times the bytes of its text. */
const MOST = 4 * LARGEST;

/** A page is in the encoding that its first bytes or its head name. */
async function decodePage(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const [a, b] = bytes;
  const head = new TextDecoder('latin1').decode(bytes.subarray(0, 1024));
  const [, named] = /<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i.exec(head) ?? [];
  const marked = (a === 0xff && b === 0xfe && 'utf-16le') || (a === 0xfe && b === 0xff && 'utf-16be');
  try {
    return new TextDecoder(marked || named || 'utf-8').decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

/** @param {File} file @returns {Promise<string>} */
export async function readPage(file) {
  if (file.size > MOST) throw new Refusal('{1} has more than {2} MB, which is the most for a page.', MOST / 1e6);
  const prose = new Prose();
  write(prose, await decodePage(file));
  return prose.toString();
}

/** Chapters of a book in the order of reading, as paths in the archive. */
async function chaptersOf(zip) {
  let root = '';
  const nothing = { close() {}, text() {} };
  parse(await zip.text('META-INF/container.xml'), {
    ...nothing,
    open(name, source) { if (name === 'rootfile') root ||= attribute(source, 'full-path'); },
  });
  const items = new Map();
  const spine = [];
  parse(await zip.text(root), {
    ...nothing,
    open(name, source) {
      if (name === 'item') items.set(attribute(source, 'id'), attribute(source, 'href'));
      if (name === 'itemref') spine.push(attribute(source, 'idref'));
    },
  });
  const path = (href) => decodeURIComponent(new URL(href, `https://book.invalid/${root}`).pathname.slice(1));
  return spine.map((id) => items.get(id)).filter(Boolean).map(path);
}

/** @param {import('./zip.js').Zip} zip @returns {Promise<string>} */
export async function readBook(zip, onPart) {
  if (zip.names.includes('META-INF/encryption.xml') && zip.names.includes('META-INF/rights.xml'))
    throw new Refusal('{1} is protected against copying, so only the program that bought it can read it.');
  const prose = new Prose();
  const chapters = await chaptersOf(zip);
  for (const [i, chapter] of chapters.entries()) {
    onPart(i, chapters.length, 'chapter');
    prose.place(`chapter ${i + 1}`);
    write(prose, await zip.text(chapter), true);
  }
  return prose.toString();
}
