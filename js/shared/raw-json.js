// SPDX-License-Identifier: MIT
// JSON that stays the text that it is. What a client has written as JSON goes to a chat template so: numbers keep their
// text (1.0, 1e-5, 9223372036854775807) and members their order ("10" before "2"), both of which JavaScript's values
// lose. All texts here have been parsed once, so nothing looks for mistakes again; what walks through them takes time
// by their length alone, however deep they are.

import { isObject, isRecord } from './kinds.js';
import { PART, atOnce, mapParts } from './steps.js';

/** The value of a JSON text; undefined: it is none. @param {string} text */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Stands for a value in what jsonSteps() and mapSteps() are given. */
export class RawJson {
  /** @param {string} text valid JSON */
  constructor(text) {
    this.text = text;
  }
}

/** A text as JSON. */
function* quoted(text) {
  return `"${yield* mapParts(text, (part) => JSON.stringify(part).slice(1, -1))}"`;
}

/**
 * JSON of a value, in which texts that stand for values are what they are, in steps.
 * @returns {Generator<void, string | undefined>} undefined where JSON.stringify() says so
 */
export function* jsonSteps(value) {
  if (value instanceof RawJson) return value.text;
  if (typeof value === 'string') return yield* quoted(value);
  if (!isObject(value)) return JSON.stringify(value);
  const parts = [];
  if (Array.isArray(value)) {
    for (const one of value) parts.push((yield* jsonSteps(one)) ?? 'null');
    yield;
    return `[${parts.join(',')}]`;
  }
  for (const [key, one] of Object.entries(value)) {
    const text = yield* jsonSteps(one);
    if (text !== undefined) parts.push(`${yield* quoted(key)}:${text}`);
  }
  yield;
  return `{${parts.join(',')}}`;
}

/** The same at once. @returns {string | undefined} */
export const jsonText = (value) => atOnce(jsonSteps(value));

// --- walking through a text ---

/**
 * Where a string that begins at a place ends: behind its second quote; 0: it does not.
 * @returns {Generator<void, number>}
 */
export function* stringEnd(text, at) {
  for (let end = at + 1, n = 1; ; n++) {
    end = text.indexOf('"', end);
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    end++;
    if (escapes % 2 === 0) return end;
    if (n % PART === 0) yield;
  }
}

/** The same at once. */
const endOfString = (text, at) => atOnce(stringEnd(text, at));

/** A place in a string's JSON, or one before it, where no escape is cut. */
function cutOfJson(json, from, at) {
  const slash = json.lastIndexOf('\\', at - 1);
  if (slash < Math.max(from, at - 6)) return at;
  let first = slash;
  while (first > from && json[first - 1] === '\\') first--;
  const isEscape = (slash - first) % 2 === 0;
  return isEscape && slash + (json[slash + 1] === 'u' ? 6 : 2) > at ? slash : at;
}

/**
 * The text that a string's JSON stands for. Throws where it is broken.
 * @param {string} json
 * @returns {Generator<void, string>}
 */
export function* unquoted(json) {
  if (json.length <= PART) return JSON.parse(json);
  const parts = [];
  const last = json.length - 1;
  for (let at = 1, end; at < last; at = end) {
    end = at + PART < last ? cutOfJson(json, at, at + PART) : last;
    parts.push(JSON.parse(`"${json.slice(at, end)}"`));
    yield;
  }
  return parts.join('');
}

/** A text with its strings, names of members too, made into others, and what stands between them. */
function* mapped(text, ofString, ofRest) {
  const parts = [];
  for (let at = 0; ;) {
    const begin = text.indexOf('"', at);
    if (begin < 0) return [...parts, ofRest(text.slice(at))].join('');
    const end = yield* stringEnd(text, begin);
    parts.push(ofRest(text.slice(at, begin)), yield* ofString(text.slice(begin, end)));
    at = end;
    yield;
  }
}

/**
 * A value as JSON knows them with its texts, names of fields too, made into others, in steps.
 * @param {(text: string) => Generator<void, string>} make
 * @returns {Generator<void, any>}
 */
export function* mapSteps(value, make) {
  if (typeof value === 'string') return yield* make(value);
  if (value instanceof RawJson) {
    const again = function* again(json) { return yield* quoted(yield* make(yield* unquoted(json))); };
    return new RawJson(yield* mapped(value.text, again, (rest) => rest));
  }
  if (!Array.isArray(value))
    return isRecord(value) ? Object.fromEntries(yield* mapSteps(Object.entries(value), make)) : value;
  const parts = [];
  for (const part of value) parts.push(yield* mapSteps(part, make));
  yield;
  return parts;
}

/** JSON spaced as Python writes it, and chat templates. */
export const spaced = (json) =>
  atOnce(
    mapped(
      json,
      function* same(text) {
        return yield* quoted(yield* unquoted(text));
      },
      (rest) => rest.replace(/[ \t\r\n]+/g, '').replace(/[,:]/g, '$& '),
    ),
  );

/** JSON without white space between its parts. */
export const dense = (json) =>
  atOnce(
    mapped(
      json,
      (text) => mapParts(text, (part) => part),
      (rest) => rest.replace(/[ \t\r\n]+/g, ''),
    ),
  );

/** What stands between the commas of an array or an object. @param {string} json @returns {string[]} */
export function partsOf(json) {
  const all = [];
  let depth = 0;
  let from = 0;
  const take = (to) => {
    const part = json.slice(from, to).trim();
    if (part) all.push(part);
    from = to + 1;
  };
  for (let at = 0; at < json.length; at++) {
    const letter = json[at];
    if (letter === '"') at = endOfString(json, at) - 1;
    else if (letter === '{' || letter === '[') { if (depth++ === 0) from = at + 1; }
    else if (letter === '}' || letter === ']') { if (--depth === 0) take(at); }
    else if (letter === ',' && depth === 1) take(at);
  }
  return all;
}

/**
 * The value of an object's member, as it is written; undefined: there is none. Of several the last one counts.
 * @param {string} json
 */
export function memberOf(json, name) {
  const found = partsOf(json).findLast((part) => JSON.parse(part.slice(0, endOfString(part, 0))) === name);
  return found?.slice(endOfString(found, 0)).replace(/^[ \t\r\n]*:/, '').trim();
}
