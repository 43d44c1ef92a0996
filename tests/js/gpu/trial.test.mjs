// SPDX-License-Identifier: MIT
// The trial of a device finds each fault that is built into it, and none in one that computes rightly. A device that
// flushes subnormal numbers may be used, but is not called exact.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDevice } from './place.mjs';

test('the trial of a device', async () => {
  const [none, ...faults] = await withDevice('trial.mjs');
  assert.equal(none.code, null, none.message);
  assert.equal(faults.length, 12);
  for (const { name, code, message, exact } of faults) {
    if (name === 'flushed') assert.deepEqual([code, exact], [null, false]);
    else assert.equal(code, 'env/gpu', `${name}: ${message}`);
  }
});
