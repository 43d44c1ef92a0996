// SPDX-License-Identifier: MIT
// Random schemas, and a model of random weights with Qwen3's own vocabulary, as wild as it gets: whatever ends by itself parses, and ajv finds it
// valid. tests/big/limits.test.mjs has a thousand of them, and more layers.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { load } from '../../dist/node.js';
import { modelBytes } from '../fixtures/make-model.mjs';
import { randomSchema } from '../fixtures/random-schemas.mjs';
import './helper.mjs';

const COUNT = Number(process.env.QUERN_LIMITS ?? 20);
const MOST_TOKENS = Number(process.env.QUERN_LIMITS_TOKENS ?? 100);
const AT_ONCE = Number(process.env.QUERN_LIMITS_AT_ONCE ?? 8);
const LAYERS = Number(process.env.QUERN_LIMITS_LAYERS ?? 1);
const SMALL = { layers: LAYERS, hidden: 64, ffn: 64, heads: 1, kvHeads: 1, headDim: 64, type: 'q8_0', context: 256, pure: true };

let model;
before(async () => { model = await load(new Blob([...modelBytes(SMALL)]), { threads: 2, contextSize: 256, parallel: AT_ONCE }); });
after(() => model.dispose());

/** ajv's judge of a schema; undefined where it cannot say. */
function judgeOf(schema) {
  const ajv = new Ajv.default({ strict: false });
  addFormats.default(ajv);
  try {
    return ajv.compile(schema);
  } catch {
    return undefined;
  }
}

/** `contains` beside `prefixItems` is what ajv itself gets wrong. */
const isAjvWrong = (schema) => /"contains"/.test(JSON.stringify(schema));

/** As many schemas as are wanted that ajv can judge. */
function* judged() {
  for (let n = 0, seed = 5001; n < COUNT; seed++) {
    const schema = randomSchema(seed);
    const judge = isAjvWrong(schema) ? undefined : judgeOf(schema);
    if (!judge) continue;
    n++;
    yield { seed, schema, judge };
  }
}

const seen = { stop: 0, length: 0, refused: 0 };

async function tryOne({ seed, schema, judge }) {
  const reply = model.complete('Say it as JSON:', { schema, temperature: 1.5, topK: 50, topP: 1, seed, maxTokens: MOST_TOKENS });
  const { text, value, finishReason } = await reply.result.catch((error) => {
    assert.equal(error.code, 'use/schema', `seed ${seed}: ${error.stack}`);
    return { finishReason: 'refused' };
  });
  seen[finishReason]++;
  if (finishReason !== 'stop') return assert.equal(value, undefined);
  assert.deepEqual(value, JSON.parse(text));
  assert.ok(judge(value), `seed ${seed}: ${JSON.stringify(schema)} let through ${text}`);
}

test(`${COUNT} schemas`, async (t) => {
  const all = judged();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => { for (const one of all) await tryOne(one); }));
  t.diagnostic(JSON.stringify(seen));
  assert.equal(seen.stop + seen.length + seen.refused, COUNT);
  assert.ok(seen.stop >= 0.25 * COUNT, JSON.stringify(seen));
});
