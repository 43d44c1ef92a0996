// SPDX-License-Identifier: MIT
// Schemas as pydantic, Zod and Rust's schemars make them (tests/fixtures/schemas/common.mjs): as the form of a reply, and as a tool's parameters in both
// ways in which models write calls. Those that are refused are named here, with the keyword and the reason.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Grammars } from '../../../js/engine/grammar.js';
import { FORMS } from '../../../js/reply/calls.js';
import { BYTES } from '../../fixtures/byte-tokens.mjs';

const { versions, schemas } = JSON.parse(readFileSync(new URL('../../fixtures/schemas/common.json', import.meta.url), 'utf8'));

const MOST_REFUSED = 10;

/** Name -> the rule by which it is refused, and why. */
const REFUSED = {
  ...Object.fromEntries(['pydantic: set', 'pydantic: set_of', 'pydantic: frozenset_of', 'pydantic: few_set', 'schemars: hash_set'].map((name) => (
    [name, ['uniqueItems', 'any number of items, of too many values to remember which have been written']]))),
  'zod: float32': ['minimum', 'a bound of 3.4e38, while numbers are written without exponents'],
  'zod: float64': ['minimum', 'a bound of 1.8e308'],
};

const grammars = await Grammars.open(new WebAssembly.Module(readFileSync(new URL('../../../dist/grammar.wasm', import.meta.url))), /** @type {any} */ (BYTES));

/** The rule by which a text is refused; undefined: it is not. */
async function refusal(kind, text) {
  try {
    (await grammars.compile(kind, text)).users--;
    return undefined;
  } catch (error) {
    return `${error.detail?.rule}: ${error.message}`;
  }
}

const callOf = ({ before, after }, schema) => `${before('tool')}\0${JSON.stringify(schema)}\0${after}`;

test('there are 298 of them', () => {
  assert.equal(Object.keys(schemas).length, 298);
  assert.deepEqual(Object.keys(versions), ['pydantic', 'zod', 'schemars']);
});

for (const [what, kinds] of Object.entries({ 'as the form of a reply': ['schema'], 'as the parameters of a tool': ['calls', 'taggedCalls'] })) {
  test(`${what} all but those that are named here are kept`, async () => {
    const refused = {};
    for (const [name, schema] of Object.entries(schemas)) {
      const isTool = kinds[0] === 'calls';
      if (isTool && schema.type !== 'object') continue;      // arguments are an object
      for (const kind of kinds) {
        const form = Object.values(FORMS).find(({ grammar }) => grammar === kind);
        const why = await refusal(kind, form ? callOf(form, schema) : JSON.stringify(schema));
        if (why) refused[name] = why;
      }
    }
    const listed = Object.fromEntries(Object.entries(REFUSED).filter(([name]) => kinds[0] === 'schema' || schemas[name].type === 'object'));
    assert.deepEqual(Object.keys(refused).sort(), Object.keys(listed).sort(), JSON.stringify(refused, null, 1));
    for (const [name, [rule, reason]] of Object.entries(listed)) assert.ok(reason && refused[name].startsWith(`${rule}: `), refused[name]);
  });
}

test(`at most ${MOST_REFUSED} are refused`, () => {
  assert.ok(Object.keys(REFUSED).length <= MOST_REFUSED);
});
