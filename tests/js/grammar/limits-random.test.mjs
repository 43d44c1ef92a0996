// SPDX-License-Identifier: MIT
// Random schemas, and a small model of random weights with Qwen3's own vocabulary. tests/big/limits.test.mjs has a thousand of them, and Qwen3-0.6B's
// dimensions.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { modelBytes } from '../../fixtures/make-model.mjs';
import { playSchemas } from '../../fixtures/random-limits.mjs';
import '../support/helper.mjs';

const AT_ONCE = 8;
const SMALL = { layers: 1, hidden: 64, ffn: 64, heads: 1, kvHeads: 1, headDim: 64, type: 'q8_0', context: 256, pure: true };

let model;
before(async () => { model = await load(new Blob([...modelBytes(SMALL)]), { threads: 2, contextSize: 256, parallel: AT_ONCE }); });
after(() => model.dispose());

/** [tokens that are looked at, 0 for all; schemas; tokens of a reply] */
for (const [topK, count, maxTokens] of [[50, 20, 100], [0, 10, 40]]) {
  test(`${count} schemas, ${topK || 'all'} tokens`, async (t) => {
    const seen = await playSchemas(model, { count, atOnce: AT_ONCE, maxTokens, topK });
    t.diagnostic(JSON.stringify(seen));
    assert.ok(seen.stop >= 0.1 * count, JSON.stringify(seen));     // random weights hardly ever end a number, which may have any digits
  });
}
