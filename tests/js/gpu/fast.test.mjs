// SPDX-License-Identifier: MIT
// Fast kernels are as near to exact logits as the processor, and nearer to the processor than that. What they have saved
// nobody takes for the processor's.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GOLDEN, PROJECT, names } from '../../fixtures/golden.mjs';
import { LONG } from '../../fixtures/lengths.mjs';
import { withDevice } from './place.mjs';

const FEW = ['nano.Q8_0', 'nano.Q4_K_M', 'moe-nano.Q4_K_M', 'nano.F16', 'hybq.Q4_K_M'];

/** The bars of the CPU's own tests (tests/c/test_engine.c), with a cache in f16. */
const bar = JSON.parse(readFileSync(join(PROJECT, GOLDEN, 'bar.json')));
const barOf = (name) => Math.max(bar.factor * bar.kl[name], bar.floor.f16);

/** Of the divergence from the processor. If rounding falls the other way, a code of the activations changes by one. */
const nearBarOf = (name) => (/F32|F16/.test(name) ? 1e-6 : barOf(name) / 4);

test('logits by fast kernels', async () => {
  const wanted = LONG ? names : FEW;
  const found = await withDevice('fast.mjs', wanted);
  assert.equal(found.length, 2 * wanted.length);
  for (const { name, chunk, isSame, fromExact, fromProcessor } of found) {
    const what = `${name}, chunks of ${chunk}: ${JSON.stringify({ fromExact, fromProcessor })}`;
    assert.equal(isSame, false, what);
    if (chunk === 48) assert.ok(fromExact.kl <= barOf(name) && fromExact.tops === 0, what);    // the bar is of all rows
    assert.ok(fromProcessor.kl <= nearBarOf(name) && fromProcessor.tops === 0, what);
  }
});
