// SPDX-License-Identifier: MIT
// A thousand random schemas over Qwen3-0.6B's dimensions and vocabulary, random weights, sixteen replies at once, as wild as it gets: any of all tokens
// that a schema allows, at temperature 1.5. Whatever ends by itself parses, and ajv finds it valid.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { PROJECT, bigModel } from '../bench/fixtures.mjs';
import { playSchemas } from '../fixtures/random-limits.mjs';
import { record } from './results.mjs';

const COUNT = 1000;
const TYPE = 'q4_0';
const HOW = { atOnce: 16, maxTokens: 48, topK: 0 };
const CONTEXT = 64;     // of each; the prompt has 5 tokens

test(`${COUNT} schemas`, async (t) => {
  const model = await load(join(PROJECT, bigModel(TYPE)), { threads: 2, contextSize: CONTEXT, parallel: HOW.atOnce, kvPositions: CONTEXT * HOW.atOnce });
  const began = performance.now();
  const seen = await playSchemas(model, { count: COUNT, ...HOW });
  await model.dispose();
  t.diagnostic(JSON.stringify(seen));
  record('limits', [{ type: TYPE, schemas: COUNT, ...HOW, ...seen, ms: performance.now() - began }], '');
  assert.ok(seen.stop >= 0.15 * COUNT, JSON.stringify(seen));
});
