// SPDX-License-Identifier: MIT
// JSON that stays text. JSON from a client is passed to a chat template in this form: numbers keep their text (1.0,
// 1e-5, 9223372036854775807) and members their order ("10" before "2"), which JavaScript values would lose. All texts
// here have been parsed once, so they are not checked again. The time of walking through a text depends on its length
// only, not on its depth.

import { isObject, isRecord } from './kinds.js';
import { PART, atOnce, mapParts } from './steps.js';

/** The value of a JSON text; undefined if it is not valid. @param {string} text */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** JSON text that stands for a value in the arguments of jsonSteps() and mapSteps(). */
export class RawJson {
  /** @param {string} text valid JSON */
  constructor(text) {
    this.text = text;
  }
}

/** Converts a text to a JSON string. */
function* quoted(text) {
  return `"${yield* mapParts(text, (part) => JSON.stringify(part).slice(1, -1))}"`;
}

/**
 * Converts a value to JSON in steps; RawJson is inserted as it is.
 * @returns {Generator<void, string | undefined>} undefined where JSON.stringify() returns it
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

/** Does the same at once. @returns {string | undefined} */
export const jsonText = (value) => atOnce(jsonSteps(value));

// --- walking through a text ---

/**
 * Finds the end of a string that begins at a position: the position after its closing quote; 0 if it does not end.
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

/** Does the same at once. */
const endOfString = (text, at) => atOnce(stringEnd(text, at));

/** The position in the JSON of a string, or one shortly before it, where no escape is cut. */
function cutOfJson(json, from, at) {
  const slash = json.lastIndexOf('\\', at - 1);
  if (slash < Math.max(from, at - 6)) return at;
  let first = slash;
  while (first > from && json[first - 1] === '\\') first--;
  const isEscape = (slash - first) % 2 === 0;
  return isEscape && slash + (json[slash + 1] === 'u' ? 6 : 2) > at ? slash : at;
}

/** Parses the JSON of a string. Throws if it is not valid. @param {string} json @returns {Generator<void, string>} */
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

/** Converts all strings of a JSON text, including names of members, and the text between them. */
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
 * Converts all texts in a JSON value, including names of fields, in steps.
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

/** JSON with spaces as Python and chat templates write it. */
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

/** The elements of an array, or the members of an object. @param {string} json @returns {string[]} */
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
 * The value of an object's member as written; undefined if there is none. If there are several, the last one counts.
 * @param {string} json
 */
export function memberOf(json, name) {
  const found = partsOf(json).findLast((part) => JSON.parse(part.slice(0, endOfString(part, 0))) === name);
  return found?.slice(endOfString(found, 0)).replace(/^[ \t\r\n]*:/, '').trim();
}
