// SPDX-License-Identifier: MIT
// A device that computes with WebGPU gives the bits of the scalar kernels, for each layout of weights, for experts, and
// for both sizes of chunks: those that tiles multiply, and those of few rows.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ON_DEVICES, names } from '../../fixtures/golden.mjs';
import { LONG } from '../../fixtures/lengths.mjs';
import { withDevice } from './place.mjs';

test('logits on a device', async () => {
  const wanted = LONG ? [...names, 'nano.F16:f32'] : ON_DEVICES;
  const found = await withDevice('golden.mjs', wanted);
  assert.equal(found.length, 2 * wanted.length);
  for (const { name, kv, chunk, differ, rows, variant } of found) {
    assert.equal(variant, 'webgpu');
    assert.equal(rows, chunk < 8 ? 24 : 192);
    assert.equal(differ, 0, `${name}, cache ${kv}, chunks of ${chunk}`);
  }
});
