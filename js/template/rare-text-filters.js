// SPDX-License-Identifier: MIT
// Filters for texts beyond Python's own methods that few templates use. A part of template-rare.js.

import { isWordLetter } from './classes.js';
import { lengthOf, walk } from './compare.js';
import { fixedText } from './digits.js';
import { runEscape } from './filters.js';
import { pairOf } from './functions.js';
import { wantDict } from './methods.js';
import { readFloat } from './numbers.js';
import { runLines } from './rare-texts.js';
import { str } from './repr.js';
import { fail, intOr, isYes, placeOf, runJoin, runSplit, wantText } from './texts.js';
import { Dict, Undefined, View, isNumber, isText, textOf } from './values.js';

export function runWordCount(meter, [v]) {
  const text = str(meter, v);
  meter.count(2 * text.length);
  let [n, isInside] = [0n, false];
  for (const letter of text) {
    const isWord = letter === '_' || isWordLetter(letter);
    if (isWord && !isInside) n++;
    isInside = isWord;
  }
  return n;
}

export function runIndent(meter, [v, width, first, blank]) {
  const n = isText(width) ? 0 : intOr(width, 4);
  meter.count(Math.max(0, n) >> 6);
  const by = isText(width) ? textOf(width) : ' '.repeat(Math.max(0, n));
  const lines = runLines(meter, [`${wantText(v)}\n`]);
  meter.count((by.length * lines.length) / 64 + lines.length);
  return lines.map((line, i) => ((i ? isYes(blank) || line : isYes(first)) ? by + line : line)).join('\n');
}

export function runTruncate(meter, [v, length, killWords, end = '...', leeway]) {
  const [most, more] = [intOr(length, 255), isNumber(leeway) ? Number(leeway) : intOr(leeway, 5)];
  const kept = most - lengthOf(meter, end);
  if (kept < 0 || more < 0) fail('truncate needs a length that its end fits in');
  if (lengthOf(meter, v) <= most + more) return v;
  const text = wantText(v);
  const part = text.slice(0, placeOf(meter, text, kept));
  const at = isYes(killWords) ? -1 : part.lastIndexOf(' ');
  return (at < 0 ? part : part.slice(0, at)) + wantText(end);
}

const SIZES = ['kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB', 'YB'];

export function runFileSize(meter, [v, binary]) {
  meter.count(isText(v) ? 4 * Math.min(textOf(v).length, 5000) : 32);
  const size = isText(v) ? readFloat(textOf(v)) : isNumber(v) ? Number(v) : undefined;
  if (typeof size !== 'number') fail('filesizeformat needs a number');
  const base = isYes(binary) ? 1024 : 1000;
  if (size === 1) return '1 Byte';
  if (size < base) return `${Math.trunc(size) + 0} Bytes`;
  const unit = (i) => (base === 1024 ? 1024 ** (i + 2) : Number(`1e${3 * (i + 2)}`));
  const found = SIZES.findIndex((_, i) => size < unit(i));
  const place = found < 0 ? SIZES.length - 1 : found;
  const name = base === 1000 ? SIZES[place] : `${SIZES[place][0].toUpperCase()}iB`;
  return `${fixedText((base * size) / unit(place), 1)} ${name}`;
}

/** Quotes as Python does: five more letters than encodeURIComponent(). */
function urlText(meter, v, isQuery) {
  const text = str(meter, v);
  meter.count(text.length >> 1);
  if (/[\ud800-\udfff]/u.test(text)) fail('half a surrogate pair cannot be in a URL');
  const quoted = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return isQuery ? quoted.replaceAll('%20', '+') : quoted.replaceAll('%2F', '/');
}

export function runUrlEncode(meter, [v]) {
  if (isText(v) || v === null || isNumber(v)) return urlText(meter, v, false);
  const pairs = walk(meter, v instanceof Dict ? new View(v, 'items') : v);
  return pairs.map((pair) => pairOf(meter, pair).map((one) => urlText(meter, one, true)).join('=')).join('&');
}

export function runXmlAttributes(meter, [v, space]) {
  const all = wantDict(v)
    .entries()
    .filter(([, value]) => value !== null && !(value instanceof Undefined))
    .map(([name, value]) => {
      if (/[ \t\n\v\f\r/>=]/.test(wantText(name))) fail('xmlattr got a name with a letter that no attribute may have');
      return `${runEscape(meter, [name]).text}="${runEscape(meter, [value]).text}"`;
    })
    .join(' ');
  return all && (space === undefined || isYes(space)) ? ` ${all}` : all;
}

/** Removes everything between such marks; the remaining text may begin with one again. */
function without(meter, text, open, close) {
  for (;;) {
    const from = text.indexOf(open);
    const to = from < 0 ? -1 : text.indexOf(close, from);
    if (to < 0) return text;
    meter.count(1 + (text.length >> 6));
    text = text.slice(0, from) + text.slice(to + close.length);
  }
}

export function runStripTags(meter, [v]) {
  const text = without(meter, without(meter, str(meter, v), '<!--', '-->'), '<', '>');
  if (text.includes('&')) fail("striptags is not supported for texts with '&'");
  return runJoin(meter, [' ', runSplit(meter, [text])]);
}
