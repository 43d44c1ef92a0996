// SPDX-License-Identifier: MIT
// Encoders of images on a device give the rows of the scalar kernels, and language models read them alike.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from '../../fixtures/lengths.mjs';
import { withDevice } from './place.mjs';

/** With layers whose rows are added later, in both types; and of a model with states. SwiftShader takes minutes for all. */
const MODELS = LONG ? ['dense/f16', 'dense/q8_0', 'hybrid/f16'] : ['dense/q8_0'];

test('images on a device', async () => {
  const found = await withDevice('images.mjs', [LONG ? '2' : '1', ...MODELS]);
  assert.deepEqual(found.map(({ name }) => name), MODELS);
  for (const { name, looks, rows, logits, of } of found) {
    assert.ok(rows > (LONG ? 12_000 : 1000) && of > (LONG ? 60_000 : 3000), name);
    assert.deepEqual({ looks, logits }, { looks: 0, logits: 0 }, name);
  }
});
