// SPDX-License-Identifier: MIT
// Numbers, cases of letters and formats of templates against Python 3.11: tests/fixtures/jinja/numbers.txt, which make_numbers.py writes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { formatBraces } from '../../../js/template/braces.js';
import { compare } from '../../../js/template/compare.js';
import { roundTo } from '../../../js/template/digits.js';
import { changeCase } from '../../../js/template/letters.js';
import { Meter, TemplateError } from '../../../js/template/meter.js';
import { arithmetic, floatText, readFloat, readInt } from '../../../js/template/numbers.js';
import { formatPercent } from '../../../js/template/percent.js';
import { Tuple } from '../../../js/template/values.js';

const rows = readFileSync(new URL('../../fixtures/jinja/numbers.txt', import.meta.url), 'utf8').split('\n').filter(Boolean).map((line) => line.split('\t'));
const meter = new Meter(1e12);

const doubleOf = (hex) => Buffer.from(hex, 'hex').readDoubleBE();
const wholeOf = (hex) => (hex[0] === '-' ? -BigInt(`0x${hex.slice(1)}`) : BigInt(`0x${hex}`));

/** A value as the file writes it; '!' is an error. */
const VALUES = { i: wholeOf, f: (hex) => (hex === 'nan' ? NaN : doubleOf(hex)), b: (bit) => bit === '1', s: (text) => text, '!': () => '!' };
const valueOf = (text) => VALUES[text[0]](text.slice(1));

function orError(run) {
  try {
    return run() ?? '!';
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return '!';
  }
}

const SIGNS = { d: '//', p: '**' };
const CASES = ['upper', 'lower', 'title', 'swapcase', 'capitalize', 'casefold'];

/** Of a line of each kind: what we make of it, and what it should be. */
const KINDS = {
  r: ([bits, text]) => [floatText(doubleOf(bits)), text],
  p: ([text, value]) => [readFloat(text) ?? '!', valueOf(value)],
  i: ([base, text, value]) => [orError(() => readInt(text, Number(base))), valueOf(value)],
  w: ([value, ...texts]) => [[10, 2, 8, 16].map((base) => valueOf(value).toString(base).toUpperCase()), texts],
  a: ([sign, a, b, value]) => [orError(() => arithmetic(meter, SIGNS[sign] ?? sign, valueOf(a), valueOf(b))), valueOf(value)],
  o: ([value, digits, rounded]) => [orError(() => roundTo(valueOf(value), Number(digits))), valueOf(rounded)],
  c: ([a, b, order]) => [compare(meter, valueOf(a), valueOf(b), '<'), order === '2' ? NaN : Number(order)],
  F: ([spec, value, text]) => [orError(() => formatBraces(meter, `{:${spec}}`, [valueOf(value)])), valueOf(text)],
  B: ([text, ...more]) => [orError(() => formatBraces(meter, text, more.slice(0, -1).map(valueOf))), valueOf(more.at(-1))],
  '%': ([text, ...more]) => [orError(() => formatPercent(meter, text, new Tuple(more.slice(0, -1).map(valueOf)))), valueOf(more.at(-1))],
  case: ([text, ...wanted]) => [CASES.map((how) => changeCase(text, how)), wanted],
};

/** Powers of floats are JavaScript's, right to the last digit but one. */
const isNear = (a, b) => typeof a === 'number' && typeof b === 'number' && Math.abs(a - b) <= Math.abs(b) * 4e-16;

for (const [kind, made] of Object.entries(KINDS)) {
  test(`lines of the kind ${kind}`, () => {
    const mine = rows.filter(([name]) => name === kind);
    assert.ok(mine.length > 10);
    for (const [, ...fields] of mine) {
      const [got, wanted] = made(fields);
      if (kind === 'a' && fields[0] === 'p' && isNear(got, wanted)) continue;
      assert.deepEqual(got, wanted, fields.join(' '));
    }
  });
}

test('no line is left out', () => assert.deepEqual([...new Set(rows.map(([kind]) => kind))].filter((kind) => !KINDS[kind]), []));
