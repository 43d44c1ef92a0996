// SPDX-License-Identifier: MIT
// Takes XML and HTML apart into tags and texts, in one pass and without a tree. It runs in a worker, where there is no
// DOMParser, so neither depth nor size can stop the page. Declarations are skipped unread, so no entity of a document's
// own exists, inside or outside of it. Nothing is ever fetched.

/** Elements of HTML whose content is text until their end tag. */
const RAW = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'iframe', 'noembed', 'noframes']);

const ENTITIES = { __proto__: null, amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

const fromCode = (code) => (code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd');

/** @param {string} text @param {Record<string, string>} [names] entities beside those of XML */
export function decode(text, names = ENTITIES) {
  if (!text.includes('&')) return text;
  return text.replaceAll(/&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|(\w{2,10}));/g, (whole, dec, hex, name) => {
    if (name) return names[name] ?? ENTITIES[name] ?? whole;
    return fromCode(dec ? Number(dec) : parseInt(hex, 16));
  });
}

const patterns = new Map();     // of attributes, by name

/** Value of an attribute, whatever the prefix of its name; '' if there is none. */
export function attribute(source, name) {
  if (!patterns.has(name))
    patterns.set(name, new RegExp(`(?:^|[\\s:])${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`, 'i'));
  const found = patterns.get(name).exec(source);
  return decode(found?.[1] ?? found?.[2] ?? found?.[3] ?? '');
}

/** The beginning of a tag: whether it ends an element, and the name without its prefix. */
const TAG = /<(\/?)(?:[\w.-]{1,50}:)?([a-z_][\w.-]{0,50})/iy;

/** Where a tag ends: its '>' outside of quotes, or the end of the text. */
function endOfTag(text, at) {
  const next = /[>"']/g;
  next.lastIndex = at;
  for (;;) {
    const found = next.exec(text);
    if (!found) return text.length;
    if (found[0] === '>') return found.index;
    const quote = text.indexOf(found[0], next.lastIndex);
    if (quote < 0) return text.length;
    next.lastIndex = quote + 1;
  }
}

const after = (text, what, at) => {
  const found = text.indexOf(what, at);
  return found < 0 ? text.length : found + what.length;
};

/** Where the text of a raw element ends. */
function endOfRaw(text, name, at) {
  const end = new RegExp(`</${name}`, 'gi');
  end.lastIndex = at;
  return end.exec(text)?.index ?? text.length;
}

/**
 * @param {string} text
 * @param {object} on
 * @param {(name: string, source: string) => boolean | void} on.open a tag: its name in small letters without a prefix,
 *   and its attributes (see `attribute`); false: everything in the element is skipped
 * @param {(name: string) => void} on.close the end of an element, also of an empty one
 * @param {(text: string) => void} on.text undecoded, apart from CDATA
 * @param {boolean} [isHtml]
 */
export function parse(text, on, isHtml = false) {
  let at = 0;
  let skipped = '';
  let depth = 0;
  const say = (from, to) => { if (!skipped && to > from) on.text(text.slice(from, to)); };
  const close = (name) => {
    if (!skipped) on.close(name);
    else if (name === skipped && --depth === 0) skipped = '';
  };
  const open = (name, source) => {
    const isEmpty = source.endsWith('/');
    if (skipped) depth += name === skipped && !isEmpty;
    else if (on.open(name, source) === false && !isEmpty) [skipped, depth] = [name, 1];
    else if (isEmpty) on.close(name);
    if (!isHtml || isEmpty || !RAW.has(name)) return;
    const end = endOfRaw(text, name, at);
    say(at, end);
    at = end;
  };
  while (at < text.length) {
    const tag = text.indexOf('<', at);
    say(at, tag < 0 ? text.length : tag);
    if (tag < 0) return;
    TAG.lastIndex = tag;
    const name = TAG.exec(text);
    if (name) {
      const end = endOfTag(text, tag + name[0].length);
      at = end + 1;
      if (name[1]) close(name[2].toLowerCase());
      else open(name[2].toLowerCase(), text.slice(tag + name[0].length, end));
    } else if (text.startsWith('<!--', tag)) at = after(text, '-->', tag + 4);
    else if (text.startsWith('<![CDATA[', tag)) {
      at = after(text, ']]>', tag + 9);
      say(tag + 9, at - 3);
    } else if (/[!?/]/.test(text[tag + 1] ?? '')) at = after(text, '>', tag);
    else {
      say(tag, tag + 1);
      at = tag + 1;
    }
  }
}
