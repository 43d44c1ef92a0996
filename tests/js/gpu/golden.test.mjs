// SPDX-License-Identifier: MIT
// A device that computes with WebGPU gives the bits of the scalar kernels, for each layout of weights, for experts, and
// for both sizes of chunks: those that tiles multiply, and those of few rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { names } from '../../fixtures/golden.mjs';
import { LONG } from '../../fixtures/lengths.mjs';
import { withDevice } from './place.mjs';

/** SwiftShader takes seconds for each shader, so `npm test` has one model of each kind of layout. */
const FEW = ['nano.Q8_0', 'nano.Q4_K_M', 'moe-nano.Q4_K_M', 'nano.IQ4_XS', 'nano.F16:f32', 'hybq.Q4_K_M', 'nano.NVFP4'];

test('logits on a device', async () => {
  const wanted = LONG ? [...names, 'nano.F16:f32'] : FEW;
  const found = await withDevice('golden.mjs', wanted);
  assert.equal(found.length, 2 * wanted.length);
  for (const { name, kv, chunk, differ, rows, variant } of found) {
    assert.equal(variant, 'webgpu');
    assert.equal(rows, chunk < 8 ? 24 : 192);
    assert.equal(differ, 0, `${name}, cache ${kv}, chunks of ${chunk}`);
  }
});
