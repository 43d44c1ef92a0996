// SPDX-License-Identifier: MIT
// Folders that other programs quantised have the processor's logits and fingerprint on a device: codes whose scales,
// biases and zero points come apart from them, columns in another order, floats of 8 bits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONG } from '../../fixtures/lengths.mjs';
import { QUANTISED } from '../../fixtures/quantised.mjs';
import { withDevice } from './place.mjs';

const NAMES = LONG ? QUANTISED : ['gptq4-act', 'mlx8', 'ct-fp8dyn'];

test('quantised folders on a device', async () => {
  const found = await withDevice('quantised.mjs', NAMES);
  const rows = NAMES.flatMap((name) => [32, 3].map((chunk) => ({ name, chunk, isAlike: true, differ: 0, of: 5440 })));
  assert.deepEqual(found, rows);
});
