// SPDX-License-Identifier: MIT
// Methods of texts that few templates use. A part of template-rare.js.

import { countSearch } from './compare.js';
import { fail, parts, separatorOf, wantText, within, worked } from './texts.js';
import { str } from './repr.js';
import { Tuple, integer, letterCount, textOf } from './values.js';

export function runPartition(meter, [v, given], isRight) {
  const [text, separator] = [worked(meter, v), separatorOf(given)];
  countSearch(meter, text, separator);
  const at = isRight ? text.lastIndexOf(separator) : text.indexOf(separator);
  if (at < 0) return new Tuple(isRight ? ['', '', text] : [text, '', '']);
  return new Tuple([text.slice(0, at), separator, text.slice(at + separator.length)]);
}

/** @returns {string[]} */
export function runLines(meter, [v, keep = false]) {
  const isKept = integer(keep) !== 0;
  meter.count(str(meter, v).length >> 2);
  // eslint-disable-line no-control-regex
  const all = str(meter, v).split(/(\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029])/);
  meter.count(all.length);
  const lines = [];
  for (let i = 0; i < all.length; i += 2)
    if (all[i] || i + 1 < all.length) lines.push(isKept ? all[i] + (all[i + 1] ?? '') : all[i]);
  return lines;
}

export function runCount(meter, [text, given, start, end]) {
  const [part, all] = [wantText(given), within(meter, textOf(text), start, end)];
  if (!all) return 0n;
  return BigInt(part ? parts(meter, all.part, part).length - 1 : letterCount(meter, all.part) + 1);
}

const LETTER = 'a text is padded with one letter';

/** Pads a text, which is at the left, right or middle; 'zero': digits at the right. */
export function runPad(meter, [v, width, filled], how) {
  const text = worked(meter, v);
  const fill = how === 'zero' ? '0' : filled === undefined ? ' ' : wantText(filled);
  if (letterCount(meter, fill) !== 1) fail(LETTER);
  const wanted = width === undefined ? 80 : integer(width);
  const n = Math.max(0, wanted - letterCount(meter, text));
  meter.count(n >> 6);
  const left = how === 'left' ? 0 : how === 'middle' ? (n >> 1) + (n & wanted & 1) : n;
  const sign = how === 'zero' && /^[+-]/.test(text) ? 1 : 0;
  return text.slice(0, sign) + fill.repeat(left) + text.slice(sign) + fill.repeat(n - left);
}

export function runTabs(meter, [v, given]) {
  const size = given === undefined ? 8 : integer(given);
  let [out, column] = ['', 0];
  for (const letter of worked(meter, v)) {
    const n = letter !== '\t' ? 1 : size > 0 ? size - column % size : 0;
    meter.count(n);
    out += letter === '\t' ? ' '.repeat(n) : letter;
    column = letter === '\n' || letter === '\r' ? 0 : column + n;
  }
  return out;
}
