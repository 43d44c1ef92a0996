// SPDX-License-Identifier: MIT
// JSON as text: what goes through it is neither parsed nor written anew, and no text of any form takes long.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawJson, dense, jsonText, mapSteps, memberOf, partsOf, spaced, unquoted } from '../../../js/shared/raw-json.js';
import { atOnce } from '../../../js/shared/steps.js';
import { random } from '../../fixtures/random.mjs';
import { soon, timed } from '../support/soon.mjs';

const mapTexts = (value, make) => atOnce(mapSteps(value, function* made(text) { return make(text); }));   // eslint-disable-line require-yield

const NUMBERS = '{"10": 1.0, "2": 1e-5, "n": 9223372036854775807, "m": -0, "s": "\\u00e9\\/\\"<\\\\"}';

test('values are written as JSON.stringify writes them, and texts stay what they are', () => {
  for (const value of [null, true, 1.5, 'a"\n\ud800', [], {}, [undefined, () => 1], { a: undefined, b: [{}], '"': 1 }]) assert.equal(jsonText(value), JSON.stringify(value));
  assert.equal(jsonText(undefined), undefined);
  assert.equal(jsonText({ a: [new RawJson(NUMBERS), new RawJson(' 1.0 ')], b: null }), `{"a":[${NUMBERS}, 1.0 ],"b":null}`);
});

test('strings change within a text, names too, and nothing else of it', () => {
  const seen = [];
  const { text } = mapTexts(new RawJson(NUMBERS), (one) => { seen.push(one); return one.toUpperCase(); });
  assert.deepEqual(seen, ['10', '2', 'n', 'm', 's', 'é/"<\\']);
  assert.equal(text, '{"10": 1.0, "2": 1e-5, "N": 9223372036854775807, "M": -0, "S": "É/\\"<\\\\"}');
  assert.deepEqual(mapTexts({ a: ['b', { c: 'd' }, 5, null], e: undefined }, (one) => `${one}!`), { 'a!': ['b!', { 'c!': 'd!' }, 5, null], 'e!': undefined });
});

test('spacing is Python\'s or none, outside of strings', () => {
  const text = ' {"a , b" :[ 1,2 ,\n{}],"c":"\\u0041 :" }';
  assert.equal(spaced(text), '{"a , b": [1, 2, {}], "c": "A :"}');
  assert.equal(dense(text), '{"a , b":[1,2,{}],"c":"\\u0041 :"}');
});

test('parts and members are found as they are written', () => {
  assert.deepEqual(partsOf(' [1.0, "],[" ,{"a":[1,2]}, [] ] '), ['1.0', '"],["', '{"a":[1,2]}', '[]']);
  assert.deepEqual([partsOf('{}'), partsOf('[ ]'), partsOf('5')], [[], [], []]);
  assert.equal(memberOf('{"a": {"b": 1}, "\\u0062" : 1.0 , "c":"}"}', 'b'), '1.0');
  assert.equal(memberOf('{"a": 1, "a": {"b" : [ 2 ]} }', 'a'), '{"b" : [ 2 ]}', 'the last one counts, as for JSON.parse');
  assert.equal(memberOf('{"a": {"b": 1}}', 'b'), undefined);
});

test('what random texts say stays, however they are written', () => {
  const draw = random(3);
  const pick = (list) => list[Math.floor(list.length * draw())];
  const value = (depth) => {
    const kind = depth > 4 ? 0 : Math.floor(5 * draw());
    if (kind === 3) return Array.from({ length: Math.floor(4 * draw()) }, () => value(depth + 1));
    if (kind === 4) return Object.fromEntries(Array.from({ length: Math.floor(4 * draw()) }, () => [pick(['a', '"', '\\', ',', '{', '']), value(depth + 1)]));
    return pick([null, true, -1.5, 'a', '\\"', ']', '\n', '"', '\\', '\\\\"']);
  };
  for (let round = 0; round < 500; round++) {
    const one = value(0);
    const text = JSON.stringify(one, null, pick([0, 1, '\t']));
    assert.deepEqual(JSON.parse(spaced(text)), one);
    assert.equal(dense(text), JSON.stringify(one));
    assert.deepEqual(JSON.parse(mapTexts(new RawJson(text), (each) => each).text), one);
    if (Array.isArray(one)) assert.deepEqual(partsOf(text).map((part) => JSON.parse(part)), one);
  }
});

test('long texts are read and written in parts, and stay what they are', () => {
  const draw = random(5);
  const bits = ['a', '"', '\\', '\n', 'é', '😀', '\ud800', '\u0001', 'xyzxyzxyz'];
  for (let round = 0; round < 20; round++) {
    const text = Array.from({ length: 20_000 }, () => bits[Math.floor(bits.length * draw())]).join('');
    const json = JSON.stringify(text);
    assert.equal(jsonText(text), json);
    assert.equal(atOnce(unquoted(json)), text);
    assert.equal(JSON.parse(mapTexts(new RawJson(`[${json}]`), (one) => `${one}!`).text)[0], `${text}!`);
  }
});

test('texts that are made to take long do not', () => soon(2000, () => timed(() => {
  const n = 100_000;
  for (const text of [`"${'\\\\'.repeat(n)}"`, `"${'\\"'.repeat(n)}"`, `[${'[]'.padStart(n, '[').padEnd(2 * n - 2, ']')}]`, `[${'1,'.repeat(n)}1]`, `{${'"a":1,'.repeat(n / 5)}"b":2}`]) {
    mapTexts(new RawJson(text), (one) => one);
    spaced(text);
    assert.ok(partsOf(text).length <= n + 1);
  }
})));
