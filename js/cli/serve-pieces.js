// SPDX-License-Identifier: MIT
// Makes the JSON of an answer in pieces, each when the one before it has been sent. An answer of 40 MB never exists as
// one text, and each piece is made quickly.

import { isObject } from '../shared/kinds.js';

/** Least letters of a piece. */
const PIECE = 2 ** 16;

/** Most values that are written at once, and letters that count as one value. */
const RUN = 2 ** 12;
const LETTERS = 16;

const isRow = (value) => Array.isArray(value) || ArrayBuffer.isView(value);

/**
 * The rest of `most` values after these; less than 0, and no more is counted, if there are more. Typed arrays and
 * iterables count as too many.
 */
function leftOf(value, most) {
  if (!isObject(value)) return most - 1 - (typeof value === 'string' ? value.length / LETTERS : 0);
  let left = most - 1 - (isRow(value) ? value.length : 0);
  if (left < 0 || ArrayBuffer.isView(value) || Symbol.iterator in value !== Array.isArray(value)) return -1;
  for (const key in value) if ((left = leftOf(value[key], left)) < 0) break;
  return left;
}

/** Parts of a long text. Surrogate pairs are not split. */
function* partsOfText(text) {
  yield '"';
  for (let at = 0; at < text.length;) {
    const isCut = (text.charCodeAt(at + PIECE - 1) & 0xfc00) === 0xd800;
    const end = at + PIECE + Number(isCut);
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

/** Parts of an object. Members that JSON omits are omitted. */
function* partsOfObject(value) {
  let before = '{';
  for (const key in value) {
    const member = value[key];
    if (member === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    yield* partsOf(member);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/**
 * Parts of an array, each with as many values as fit.
 * @param {Iterable<any>} values
 * @returns {Generator<string>}
 */
function* partsOfArray(values) {
  let before = '[';
  let run = [];
  let left = RUN;
  const written = () => {
    const text = run.length ? before + JSON.stringify(run).slice(1, -1) : '';
    if (run.length) before = ',';
    run = [];
    left = RUN;
    return text;
  };
  for (const value of values) {
    const rest = leftOf(value, left);
    if (rest >= 0) {
      run.push(value);
      left = rest;
      continue;
    }
    yield written();
    left = leftOf(value, RUN);
    if (left >= 0) run = [value];
    else {
      yield before;
      yield* partsOf(value);
      before = ',';
      left = RUN;
    }
  }
  yield written();
  yield before === '[' ? '[]' : ']';
}

/** Parts of a typed array. @param {ArrayLike<any>} row */
function* partsOfNumbers(row) {
  for (let at = 0; at < row.length; at += RUN)
    yield (at ? ',' : '[') + Array.prototype.slice.call(row, at, at + RUN).join(',');
  yield row.length ? ']' : '[]';
}

/** Parts of a value, of any length. @returns {Generator<string>} */
function* partsOf(value) {
  if (typeof value === 'string' && value.length > PIECE) yield* partsOfText(value);
  else if (leftOf(value, RUN) >= 0) yield JSON.stringify(value) ?? 'null';
  else if (ArrayBuffer.isView(value)) yield* partsOfNumbers(/** @type {any} */ (value));
  else if (Symbol.iterator in value) yield* partsOfArray(value);
  else yield* partsOfObject(value);
}

/**
 * The text of JSON.stringify() for a JSON value, in pieces of a little over 64 KiB. Arrays may also be typed ones, or
 * iterables that make their values when they are written.
 * @returns {Generator<string>}
 */
export function* jsonPieces(value) {
  let piece = '';
  for (const part of partsOf(value)) {
    piece += part;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  if (piece) yield piece;
}
