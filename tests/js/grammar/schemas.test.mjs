// SPDX-License-Identifier: MIT
// Random schemas against ajv: whatever their grammars let through is valid, and of values near them exactly the valid ones are accepted.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { length } from '../../fixtures/lengths.mjs';
import { randomSchema, valuesNear } from '../../fixtures/random-schemas.mjs';
import { SchemaLines } from '../../fixtures/schema-lines.mjs';

const COUNT = length(60, 10_000);
const FIRST = 20001;
const VALUES = 10;
const WALKS = 5;

/** What ajv itself gets wrong: `contains` beside `prefixItems`, or within `items`, and empty arrays. */
const isAjvWrong = (schema, value) => JSON.stringify(schema).includes('"contains"') && JSON.stringify(value).includes('[]');

/** ajv's judge of a schema; null where it cannot say (references that lead round in circles). */
function judgeOf(schema) {
  const ajv = new Ajv.default({ strict: false });
  addFormats.default(ajv);
  try {
    const validate = ajv.compile(schema);
    return (value) => {
      try {
        return validate(value);
      } catch (error) {
        assert.ok(error instanceof RangeError || error instanceof TypeError, error);   // its recursion has no end, or a variable of its own is missing
        return null;
      }
    };
  } catch {
    return null;
  }
}

describe('random schemas', () => {
  const lines = new SchemaLines();
  const seen = { schemas: 0, refused: 0, valid: 0, invalid: 0, walks: 0 };
  after(() => lines.end());

  const tryValues = async (schema, judge, seed, never) => {
    for (const value of valuesNear(schema, seed + 7, VALUES)) {
      const valid = judge(value);
      if (valid === null || isAjvWrong(schema, value)) continue;
      seen[valid ? 'valid' : 'invalid']++;
      assert.equal(!never && await lines.accepts(value), valid, `seed ${seed}: ${JSON.stringify(schema)} and ${JSON.stringify(value)}`);
    }
  };

  const tryWalks = async (schema, judge, seed) => {
    for (let i = 0; i < WALKS; i++) {
      const text = await lines.walk(seed * WALKS + i + 1);
      const value = text === null ? null : JSON.parse(text);
      if (text === null || judge(value) === null || isAjvWrong(schema, value)) continue;
      seen.walks++;
      assert.equal(judge(value), true, `seed ${seed}: ${JSON.stringify(schema)} lets through ${text}`);
    }
  };

  test(`${COUNT} of them`, async () => {
    for (let seed = FIRST; seed < FIRST + COUNT; seed++) {
      const schema = randomSchema(seed);
      const judge = judgeOf(schema);
      if (!judge || (JSON.stringify(schema).includes('"prefixItems"') && JSON.stringify(schema).includes('"contains"'))) continue;
      const refusal = await lines.compile(schema);
      const never = refusal?.rule === 'nothing';
      seen.schemas++;
      if (refusal && !never) {
        seen.refused++;
        continue;
      }
      await tryValues(schema, judge, seed, never);
      if (!never) await tryWalks(schema, judge, seed);
    }
    assert.ok(seen.refused < 0.15 * seen.schemas, JSON.stringify(seen));
    assert.ok(seen.valid > COUNT && seen.invalid > COUNT && seen.walks > COUNT, JSON.stringify(seen));
  });
});
