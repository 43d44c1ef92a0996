// SPDX-License-Identifier: MIT
// Operations on texts for filters and methods. A filter and a method that do the same share one function; `how` has
// their differences, such as a side, or whether only texts are allowed. Offsets here are units of a string; where
// Python's arguments count letters, they are letters.

import { countSearch, truth, walk } from './compare.js';
import { changeCase, isSpace } from './letters.js';
import { TemplateError } from './meter.js';
import { str } from './repr.js';
import { Safe, Tuple, integer, isPlain, isText, letterCount, letters, table, textOf, typeName } from './values.js';

export const isGiven = (v) => v !== undefined && v !== null;
export const isYes = (v) => v !== undefined && truth(v);
export const intOr = (v, otherwise) => (isGiven(v) ? integer(v) : otherwise);

/** @returns {never} */
export function fail(why) {
  throw new TemplateError(why);
}

/** @returns {string} */
export const wantText = (v) => (isText(v) ? textOf(v) : fail(`a text is needed here, not '${typeName(v)}'`));

/** Makes a table of builtins that have the same first parameter. @param {any[][]} rows */
export const tableOf = (first, rows) =>
  table(rows.map(([name, params, ...rest]) => [name, `${first} ${params}`, ...rest]));

/** Converts a value to a text, and counts it as work. */
export function worked(meter, v) {
  const text = str(meter, v);
  meter.count(text.length >> 8);
  return text;
}

/** Makes a text safe, or the texts in a list or tuple. */
function asSafe(v) {
  if (typeof v === 'string') return new Safe(v);
  return v instanceof Tuple ? new Tuple(v.items.map(asSafe)) : Array.isArray(v) ? v.map(asSafe) : v;
}

/**
 * Wraps a function so that its result is safe if its first argument is.
 * @param {(meter: any, args: any[], how?: any) => any} run
 */
export const keeping = (run) => (meter, args, how) =>
  args[0] instanceof Safe ? asSafe(run(meter, args, how)) : run(meter, args, how);

/** Refuses a safe text: values filled into it would have to be escaped. */
export const plainText = (v) => (v instanceof Safe ? fail('a safe text is not supported as a format') : v);

const HTML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', "'": '&#39;', '"': '&#34;' };

/** Escapes a text for HTML, unless it is safe already. @param {any} v a text */
export const escapeHtml = (v) => (v instanceof Safe ? v.text : v.replace(/[&<>'"]/g, (letter) => HTML[letter]));

/** Cases that JavaScript supports itself. */
const OWN_CASES = ['upper', 'lower', 'capitalize'];

export function runCase(meter, [v], how) {
  const text = str(meter, v);
  meter.count(text.length / (OWN_CASES.includes(how) ? 16 : 1));
  return changeCase(text, how);
}

// --- strip and split ---

export function runStrip(meter, [v, chars], sides) {
  const text = worked(meter, v);
  const among = isGiven(chars) ? new Set(letters(meter, wantText(chars))) : undefined;
  const all = among && !isPlain(meter, text) ? letters(meter, text) : text;
  const isGone = (letter) => {
    meter.count(0.25);
    return among ? among.has(letter) : isSpace(letter);
  };
  let [from, to] = [0, all.length];
  if (sides !== 'right') while (from < to && isGone(all[from])) from++;
  if (sides !== 'left') while (from < to && isGone(all[to - 1])) to--;
  const rest = all.slice(from, to);
  return typeof rest === 'string' ? rest : rest.join('');
}

/** Splits at white space; after `most` words the rest is the last one. */
function words(text, most) {
  const out = [];
  let at = 0;
  const skip = (isGap) => {
    while (at < text.length && isSpace(text[at]) === isGap) at++;
    return at;
  };
  while (skip(true) < text.length) {
    const from = at;
    if (most-- === 0) at = text.length;
    else skip(false);
    out.push(text.slice(from, at));
  }
  return out;
}

/** Splits at a separator; after `most` parts the rest is the last one. */
export function parts(meter, text, separator, most = -1) {
  countSearch(meter, text, separator);
  const out = [];
  let from = 0;
  for (let at = 0; out.length !== most && (at = text.indexOf(separator, from)) >= 0; from = at + separator.length) {
    meter.count(0.5);
    out.push(text.slice(from, at));
  }
  return [...out, text.slice(from)];
}

export const separatorOf = (v) => wantText(v) || fail('an empty separator cannot split a text');
const turned = (text) => text.split('').reverse().join('');
const same = (text) => text;

/** From the right, the same is done with everything reversed. */
export function runSplit(meter, [v, given, most], isRight) {
  const text = worked(meter, v);
  const n = most === undefined ? -1 : integer(most);
  const turn = isRight ? turned : same;
  meter.count(text.length / (isRight ? 2 : isGiven(given) ? 256 : 4));
  const all = isGiven(given) ? parts(meter, turn(text), turn(separatorOf(given)), n) : words(turn(text), n);
  return isRight ? all.map(turned).reverse() : all;
}

// --- find ---

/** The offset of letter number n. */
export function placeOf(meter, text, n) {
  if (isPlain(meter, text)) return Math.min(n, text.length);
  let at = 0;
  for (const letter of text) {
    if (n-- <= 0) break;
    at += letter.length;
  }
  return at;
}

/** text[start:end] and its start; undefined if the text ends before that. */
export function within(meter, text, start, end) {
  const n = letterCount(meter, text);
  const bound = (v, otherwise) => {
    const at = intOr(v, otherwise);
    return at < 0 ? Math.max(0, at + n) : at;
  };
  const [from, to] = [bound(start, 0), Math.min(n, bound(end, n))];
  return from > to ? undefined : { from, part: text.slice(placeOf(meter, text, from), placeOf(meter, text, to)) };
}

export function runFind(meter, [text, given, start, end], { isLast, fails }) {
  const [part, all] = [wantText(given), within(meter, textOf(text), start, end)];
  countSearch(meter, all?.part ?? '', part);
  const at = all ? (isLast ? all.part.lastIndexOf(part) : all.part.indexOf(part)) : -1;
  if (at < 0) return fails ? fail('index() does not find the text') : -1n;
  return BigInt(all.from + letterCount(meter, all.part.slice(0, at)));
}

export function runEnds(meter, [text, given, start, end], method) {
  const all = within(meter, textOf(text), start, end);
  const ends = (given instanceof Tuple ? given.items : [given]).map(wantText);
  meter.count(ends.reduce((sum, end) => sum + 1 + (end.length >> 6), 0));
  return ends.some((end) => all !== undefined && all.part[method](end));
}

export function runWithout(meter, [v, given], isRight) {
  const [text, part] = [worked(meter, v), wantText(given)];
  if (isRight) return text.endsWith(part) ? text.slice(0, text.length - part.length) : text;
  return text.startsWith(part) ? text.slice(part.length) : text;
}

// --- new texts ---

export function runReplace(meter, [v, given, other, most], isStrict) {
  const [text, old, by] = [v, given, isStrict && v instanceof Safe ? escapeHtml(other) : other].map(
    isStrict ? wantText : (one) => str(meter, one),
  );
  const n = isStrict && most !== undefined ? integer(most) : intOr(most, -1);
  if (old) return joined(meter, parts(meter, text, old, n), by);
  const all = ['', ...letters(meter, text), ''];
  return n < 0 || n >= all.length
    ? joined(meter, all, by)
    : joined(meter, all.slice(0, n + 1), by) + all.slice(n + 1).join('');
}

function joined(meter, all, separator) {
  meter.count(all.reduce((sum, one) => sum + (one.length + separator.length) / 64, all.length / 2));
  return all.join(separator);
}

export function runJoin(meter, [v, items], isStrict) {
  const [separator, all] = [
    textOf(v),
    walk(meter, items).map(!isStrict ? (one) => str(meter, one) : v instanceof Safe ? escapeHtml : wantText),
  ];
  return joined(meter, all, separator);
}
