// SPDX-License-Identifier: MIT
// jinja2's filters that most templates use; rare-filters.js has the others. Filters that return iterators in Python
// compute all items at once here: templates cannot tell the difference, since they cannot change values.

import { lengthOf, truth, walk } from './compare.js';
import { jsonWrite } from './json.js';
import { find } from './late.js';
import { changeCase, isSpace } from './letters.js';
import { call, item, useOf } from './lookup.js';
import { wantDict } from './methods.js';
import { readFloat, readInt } from './numbers.js';
import { str } from './repr.js';
import { TESTS, isKnown } from './tests.js';
import { escapeHtml, fail, isGiven, isYes, keeping, runCase, runJoin, runReplace, runStrip, tableOf } from './texts.js';
import { Generator, Safe, Undefined, View, asNumber, isInt, isNumber, isText, textOf, typeName } from './values.js';

// --- one item after the other ---

const partOf = (text) => (/^\p{Nd}+$/u.test(text) ? readInt(text, 10) ?? fail(`'${text}' is not a number`) : text);

/** The value at a path like 'a.b.0'; `otherwise`, if given, replaces an undefined one. */
export function atPath(meter, v, path, otherwise) {
  if (!isGiven(path)) return v;
  const parts = isText(path) ? textOf(path).split('.').map(partOf) : [path];
  meter.count(isText(path) ? textOf(path).length : 1);
  return parts.reduce((now, part) => {
    const found = item(meter, now, part);
    return found instanceof Undefined && isGiven(otherwise) ? otherwise : found;
  }, v);
}

/** Most arguments that map('map', ...) passes on: each of them may be a call inside the last one. */
const MOST_HANDED_ON = 16;

/** Calls a filter or test by name. */
function callByName(meter, builtins, v, [name, ...rest], named) {
  const builtin = isText(name) ? find(builtins === TESTS ? 'test' : 'filter', builtins, textOf(name)) : undefined;
  if (!builtin) fail(`there is no filter or test '${str(meter, name).slice(0, 40)}'`);
  if (rest.length > MOST_HANDED_ON) fail(`map and select pass on at most ${MOST_HANDED_ON} arguments`);
  return call(meter, builtin, v, rest, named);
}

function runMap(meter, [v, args, named]) {
  if (!truth(v)) return new Generator([]);
  if (args.length) return new Generator(walk(meter, v).map((one) => callByName(meter, FILTERS, one, args, named)));
  const [path, otherwise] = [named.get('attribute'), named.get('default')];
  const known = (path !== undefined) + (otherwise !== undefined);
  if (path === undefined || named.size > known) fail('map needs the name of a filter, or attribute (and default)');
  return new Generator(walk(meter, v).map((one) => atPath(meter, one, path, otherwise)));
}

function runSelect(meter, [v, args, named], { isReject = false, byAttribute = false }) {
  if (!truth(v)) return new Generator([]);
  const [path, test] = byAttribute ? [args[0], args.slice(1)] : [undefined, args];
  if (byAttribute && !args.length) fail('selectattr and rejectattr need the name of an attribute');
  return new Generator(walk(meter, v).filter((one) => {
    const asked = atPath(meter, one, path);
    return truth(test.length ? callByName(meter, TESTS, asked, test, named) : asked) !== isReject;
  }));
}

function joinItems(meter, [v, separator = '', path]) {
  return runJoin(meter, [str(meter, separator), walk(meter, v).map((one) => atPath(meter, one, path))]);
}

// --- lists ---

const isEmpty = (items) => (items.length ? undefined : new Undefined('an item of an empty sequence'));

export function runFirst(meter, [v]) {
  if (v instanceof Generator) return v.at < v.items.length ? v.items[v.at++] : isEmpty([]);
  const items = walk(meter, v);
  return isEmpty(items) ?? items[0];
}

function runLast(meter, [v]) {
  if (v instanceof Generator) fail('last needs a sequence, not a generator');
  const items = walk(meter, v);
  return isEmpty(items) ?? items.at(-1);
}

function runItems(meter, [v]) {
  return new Generator(v instanceof Undefined ? [] : walk(meter, new View(wantDict(v), 'items')));
}

// --- values ---

const runDefault = (meter, [v, otherwise = '', orFalse]) =>
  v instanceof Undefined || (isYes(orFalse) && !truth(v)) ? otherwise : v;

export const wantNumber = (v) => (isNumber(v) ? asNumber(v) : fail(`a number is needed here, not '${typeName(v)}'`));

function runAbs(meter, [v]) {
  const n = wantNumber(v);
  return typeof n === 'number' ? Math.abs(n) : n < 0n ? -n : n;
}

/** Longer texts are not numbers. */
const countDigits = (meter, text) => meter.count(4 * Math.min(text.length, 5000));

function runInt(meter, [v, otherwise = 0n, base = 10n]) {
  if (v instanceof Undefined) useOf(v);
  if (isInt(v)) return asNumber(v);
  if (typeof v === 'number') return v === v ? wholeOf(v) : otherwise;
  if (!isText(v)) return otherwise;
  countDigits(meter, textOf(v));
  const n = isInt(base) ? Number(base) : 1;
  const whole = n === 0 || (n >= 2 && n <= 36) ? readInt(textOf(v), n) : undefined;
  if (isGiven(whole)) return whole;
  const real = readFloat(textOf(v));
  return isGiven(real) && Number.isFinite(real) ? wholeOf(real) : otherwise;
}

export const wholeOf = (x) => (Number.isFinite(x) ? BigInt(Math.trunc(x)) : fail('infinity is not a whole number'));

function runFloat(meter, [v, otherwise = 0]) {
  if (v instanceof Undefined) useOf(v);
  if (isNumber(v)) return realOf(v);
  if (!isText(v)) return otherwise;
  countDigits(meter, textOf(v));
  return readFloat(textOf(v)) ?? otherwise;
}

/** float(v) of a number. */
export function realOf(v) {
  const x = Number(v);
  return Number.isFinite(x) || typeof v === 'number' ? x : fail('a whole number is too large for a float');
}

function runJson(meter, [v, ascii, indent, separators, sorted]) {
  return jsonWrite(meter, v, { ascii: isYes(ascii), indent, separators, sorted: isYes(sorted) });
}

// --- texts ---

/** Escapes a text; `isForced` escapes safe texts again. */
export function runEscape(meter, [v], isForced) {
  const text = str(meter, v);
  meter.count(text.length >> 2);
  return new Safe(escapeHtml(v instanceof Safe && !isForced ? v : text));
}

/** Whether a letter separates words in jinja2. */
const isGap = (letter) => isSpace(letter) || '-({[<'.includes(letter);

export function runTitle(meter, [v]) {
  const text = str(meter, v);
  meter.count(text.length);
  let [out, word] = ['', ''];
  const close = () => {
    const [first = ''] = word;
    out += changeCase(first, 'upper') + changeCase(word.slice(first.length), 'lower');
    word = '';
  };
  for (const letter of text) {
    if (!isGap(letter)) word += letter;
    else {
      close();
      out += letter;
    }
  }
  close();
  return out;
}

export const FILTERS = tableOf('value!', [
  ['abs', '', runAbs],
  ['capitalize', '', keeping(runCase), 'capitalize'],
  ...['count', 'length'].map((name) => [name, '', (meter, [v]) => BigInt(lengthOf(meter, v))]),
  ...['d', 'default'].map((name) => [name, 'default_value boolean', runDefault]),
  ...['e', 'escape'].map((name) => [name, '', runEscape]),
  ['first', '', runFirst],
  ['float', 'default', runFloat],
  ['int', 'default base', runInt],
  ['items', '', runItems],
  ['join', 'd attribute', joinItems],
  ['last', '', runLast],
  ['list', '', (meter, [v]) => [...walk(meter, v)]],
  ['lower', '', keeping(runCase), 'lower'],
  ['map', '* **', runMap],
  ['reject', '* **', runSelect, { isReject: true }],
  ['rejectattr', '* **', runSelect, { isReject: true, byAttribute: true }],
  ['replace', 'old! new! count', runReplace],
  ['safe', '', (meter, [v]) => new Safe(str(meter, v))],
  ['select', '* **', runSelect, {}],
  ['selectattr', '* **', runSelect, { byAttribute: true }],
  ['string', '', (meter, [v]) => (isText(v) ? v : str(meter, v))],
  ['title', '', runTitle],
  ['tojson', 'ensure_ascii indent separators sort_keys', runJson],
  ['trim', 'chars', keeping(runStrip)],
  ['upper', '', keeping(runCase), 'upper'],
]);

/** The only test that uses the table of filters. */
for (const [name, builtin] of tableOf('value!', [['filter', '', (_, [v]) => isKnown(FILTERS, v)]]))
  TESTS.set(name, builtin);
