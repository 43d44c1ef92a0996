// SPDX-License-Identifier: MIT
// Filters that compare items by a key, which is the value at a path. Upper and lower case are the same by default. A
// part of template-rare.js.

import { compare, equal, walk } from './compare.js';
import { atPath } from './filters.js';
import { changeCase } from './letters.js';
import { wantDict } from './methods.js';
import { fail, isYes } from './texts.js';
import { Dict, Generator, Tuple, Undefined, View, isText, textOf } from './values.js';

function folded(meter, v) {
  if (!isText(v)) return v;
  meter.count(textOf(v).length >> 4);
  return changeCase(textOf(v), 'lower');
}

/** Returns all items with their keys. @returns {{key: any, item: any}[]} */
function keyed(meter, v, keyOf, isSensitive) {
  const all = walk(meter, v);
  meter.count(all.length);
  return all.map((one) => ({ key: isYes(isSensitive) ? keyOf(one) : folded(meter, keyOf(one)), item: one }));
}

/** Sorts; equal items keep their order, also in reverse. */
function sorted(meter, list, isReverse) {
  const order = (a, b) => compare(meter, a.key, b.key, '<');
  return list.sort(isYes(isReverse) ? (a, b) => order(b, a) : order).map((one) => one.item);
}

/** Sorts by a list of keys; only keys that differ must be comparable. */
export function runSort(meter, [v, isReverse, isSensitive, attribute]) {
  const paths = isText(attribute) ? textOf(attribute).split(',') : [attribute];
  meter.count(paths.length);
  const one = (found) => (isYes(isSensitive) ? found : folded(meter, found));
  return sorted(meter, keyed(meter, v, (each) => paths.map((path) => one(atPath(meter, each, path))), true), isReverse);
}

export function runDictSort(meter, [v, isSensitive, by = 'key', isReverse]) {
  const place = ['key', 'value'].indexOf(isText(by) ? textOf(by) : '');
  if (place < 0) fail("dictsort sorts by 'key' or by 'value'");
  return sorted(
    meter,
    keyed(meter, new View(wantDict(v), 'items'), (pair) => pair.items[place], isSensitive),
    isReverse,
  );
}

export function runUnique(meter, [v, isSensitive, attribute]) {
  const seen = new Dict();
  return new Generator(keyed(meter, v, (one) => atPath(meter, one, attribute), isSensitive).filter(({ key }) => {
    meter.count(1);
    const before = seen.size;
    return seen.set(key, null).size > before;
  }).map((one) => one.item));
}

/** Returns the first one of the least (sign -1) or of the greatest. */
export function runMost(meter, [v, isSensitive, attribute], sign) {
  const list = keyed(meter, v, (one) => atPath(meter, one, attribute), isSensitive);
  if (!list.length) return new Undefined('an item of an empty sequence');
  return list.reduce((best, one) => (compare(meter, one.key, best.key, sign < 0 ? '<' : '>') === sign ? one : best))
    .item;
}

export function runGroupBy(meter, [v, attribute, otherwise, isSensitive]) {
  const path = (one) => atPath(meter, one, attribute, otherwise);
  const list = keyed(meter, v, path, isSensitive);
  const groups = [];
  for (const one of sorted(meter, list.map((each) => ({ key: each.key, item: each })))) {
    const last = groups.at(-1);
    if (last && equal(meter, last.key, one.key)) last.items.push(one.item);
    else groups.push({ key: one.key, items: [one.item] });
  }
  return groups.map(({ key, items }) => new Tuple([isYes(isSensitive) ? key : path(items[0]), items], true));
}
