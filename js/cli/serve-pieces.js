// SPDX-License-Identifier: MIT
// JSON of an answer in pieces, each made when the one before it has gone out: an answer of 40 MB is never there as one
// text, and none of its pieces takes long to make.

import { isObject } from '../shared/kinds.js';

/** Letters of a piece, at least. */
const PIECE = 2 ** 16;

/** Values that are written at once, and letters that weigh as much as one. */
const RUN = 2 ** 12;
const LETTERS = 16;

const isRow = (value) => Array.isArray(value) || ArrayBuffer.isView(value);

/**
 * What is left of so many values; less than 0, and it is not looked at any further, where there are more. Only arrays
 * of JSON's are looked into.
 */
function leftOf(value, most) {
  if (!isObject(value)) return most - 1 - (typeof value === 'string' ? value.length / LETTERS : 0);
  let left = most - 1 - (isRow(value) ? value.length : 0);
  if (left < 0 || ArrayBuffer.isView(value) || Symbol.iterator in value !== Array.isArray(value)) return -1;
  for (const key in value) if ((left = leftOf(value[key], left)) < 0) break;
  return left;
}

/** Parts of a long text. Characters stay whole. */
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

/** Members that JSON leaves out are left out. */
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
 * Values of an array, as many at once as there is room for.
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

/** A row of numbers. @param {ArrayLike<any>} row */
function* partsOfNumbers(row) {
  for (let at = 0; at < row.length; at += RUN)
    yield (at ? ',' : '[') + Array.prototype.slice.call(row, at, at + RUN).join(',');
  yield row.length ? ']' : '[]';
}

/** Parts of any length. @returns {Generator<string>} */
function* partsOf(value) {
  if (typeof value === 'string' && value.length > PIECE) yield* partsOfText(value);
  else if (leftOf(value, RUN) >= 0) yield JSON.stringify(value) ?? 'null';
  else if (ArrayBuffer.isView(value)) yield* partsOfNumbers(/** @type {any} */ (value));
  else if (Symbol.iterator in value) yield* partsOfArray(value);
  else yield* partsOfObject(value);
}

/**
 * What JSON.stringify() says of a value that is none but JSON's, in pieces of 64 KiB and a bit. Arrays of numbers may
 * be typed ones, and any array an iterable that makes its values when they are written.
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
