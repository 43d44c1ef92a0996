// SPDX-License-Identifier: MIT
// jinja2's filters that few templates use. pprint, urlize and wordwrap are missing: no chat template needs them, and
// one that uses them is refused. A part of template-rare.js.

import { lengthOf, walk } from './compare.js';
import { roundTo } from './digits.js';
import { atPath, runEscape, runFirst, wantNumber, wholeOf } from './filters.js';
import { formatPercent } from './percent.js';
import { attribute } from './lookup.js';
import { methodOf } from './methods.js';
import { arithmetic } from './numbers.js';
import { runDictSort, runGroupBy, runMost, runSort, runUnique } from './order.js';
import {
  runFileSize, runIndent, runStripTags, runTruncate, runUrlEncode, runWordCount, runXmlAttributes,
} from './rare-text-filters.js';
import { runPad } from './rare-texts.js';
import { str } from './repr.js';
import { fail, intOr, isGiven, keeping, plainText, tableOf, wantText } from './texts.js';
import {
  Dict, Generator, Tuple, Undefined, integer, isNumber, isSequence, isText, itemsOf, textOf, typeName,
} from './values.js';

function add(meter, a, b) {
  if (isNumber(a) && isNumber(b)) return arithmetic(meter, '+', a, b);
  if (!isSequence(a) || typeName(a) !== typeName(b)) fail(`sum cannot add '${typeName(b)}' to '${typeName(a)}'`);
  const both = [...itemsOf(a), ...itemsOf(b)];
  meter.count(both.length);
  return Array.isArray(a) ? both : new Tuple(both);
}

const runSum = (meter, [v, path, start = 0n]) =>
  walk(meter, v).reduce((sum, one) => add(meter, sum, atPath(meter, one, path)), start);

function runRandom(meter, [v]) {
  if (lengthOf(meter, v) > 1) fail('random is not supported: its result differs each time');
  return runFirst(meter, [v]);
}

function runReverse(meter, [v]) {
  const turned = [...walk(meter, v)].reverse();
  if (isText(v)) return turned.join('');
  return v instanceof Generator ? turned : new Generator(turned);
}

function runSlice(meter, [v, slices, filler]) {
  const [items, n] = [walk(meter, v), integer(slices)];
  if (n === 0) fail('slice cannot make 0 slices');
  meter.count(Math.max(0, n));
  const [least, more] = [Math.floor(items.length / n), items.length % n];
  const from = (i) => i * least + Math.min(i, more);
  return new Generator(Array.from({ length: Math.max(0, n) }, (_, i) => {
    const part = items.slice(from(i), from(i + 1));
    return isGiven(filler) && i >= more ? [...part, filler] : part;
  }));
}

function runBatch(meter, [v, size, filler]) {
  const n = isNumber(size) ? Number(size) : NaN;
  const out = [];
  let now = [];
  for (const one of walk(meter, v)) {
    meter.count(1);
    if (now.length === n) {
      out.push(now);
      now = [];
    }
    now.push(one);
  }
  const left = now.length && isGiven(filler) ? Math.max(0, integer(size) - now.length) : 0;
  meter.count(left >> 2);
  if (now.length) out.push([...now, ...Array(left).fill(filler)]);
  return new Generator(out);
}

/** Returns an attribute, but not an item of a dict. */
function runAttribute(meter, [v, name]) {
  const text = wantText(name);
  return v instanceof Dict ? methodOf(meter, v, text) ?? new Undefined(text) : attribute(meter, v, text);
}

const ROUNDING = { common: undefined, ceil: Math.ceil, floor: Math.floor };

function runRound(meter, [v, precision, method = 'common']) {
  const name = isText(method) ? textOf(method) : '';
  if (!Object.hasOwn(ROUNDING, name)) fail("round rounds by 'common', 'ceil' or 'floor'");
  const [n, digits] = [wantNumber(v), intOr(precision, 0)];
  meter.count(64 + Math.min(5000, Math.abs(digits)));
  if (name === 'common') return roundTo(n, digits);
  const power = arithmetic(meter, '**', 10n, BigInt(digits));
  const much = arithmetic(meter, '*', n, power);
  return arithmetic(meter, '/', typeof much === 'number' ? wholeOf(ROUNDING[name](much)) : much, power);
}

function runFormat(meter, [v, args, named]) {
  if (args.length && named.size) fail('format takes values with names or without, not both');
  return formatPercent(meter, str(meter, plainText(v)), named.size ? named : new Tuple(args));
}

export const RARE_FILTERS = tableOf('value!', [
  ['attr', 'name!', runAttribute],
  ['batch', 'linecount! fill_with', runBatch],
  ['center', 'width', keeping(runPad), 'middle'],
  ['dictsort', 'case_sensitive by reverse', runDictSort],
  ['filesizeformat', 'binary', runFileSize],
  ['forceescape', '', runEscape, true],
  ['format', '* **', runFormat],
  ['groupby', 'attribute! default case_sensitive', runGroupBy],
  ['indent', 'width first blank', keeping(runIndent)],
  ['max', 'case_sensitive attribute', runMost, 1],
  ['min', 'case_sensitive attribute', runMost, -1],
  ['random', '', runRandom],
  ['reverse', '', runReverse],
  ['round', 'precision method', runRound],
  ['slice', 'slices! fill_with', runSlice],
  ['sort', 'reverse case_sensitive attribute', runSort],
  ['striptags', '', runStripTags],
  ['sum', 'attribute start', runSum],
  ['truncate', 'length killwords end leeway', runTruncate],
  ['unique', 'case_sensitive attribute', runUnique],
  ['urlencode', '', runUrlEncode],
  ['wordcount', '', runWordCount],
  ['xmlattr', 'autospace', runXmlAttributes],
]);
