// SPDX-License-Identifier: MIT
// The trial of a device finds each fault that is built into it, and none in one that computes rightly. A device that
// flushes subnormal numbers may be used, but is not called exact. The trial of fast kernels allows rounding, and nothing
// else.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { withDevice } from './place.mjs';

let all;
before(async () => { all = await withDevice('trial.mjs'); });

test('the trial of a device', () => {
  const [none, ...faults] = all.filter(({ fast }) => !fast);
  assert.equal(none.code, null, none.message);
  assert.equal(faults.length, 12);
  for (const { name, code, message, exact } of faults) {
    if (name === 'flushed') assert.deepEqual([code, exact], [null, false]);
    else assert.deepEqual([code, /gpu: 'fast'/.test(message)], ['env/gpu', true], `${name}: ${message}`);
  }
});

test('the trial of fast kernels', () => {
  const tried = all.filter(({ fast }) => fast);
  const refused = tried.filter(({ code }) => code === 'env/gpu').map(({ name }) => name);
  const wrong = ['product', 'quotient', 'root', 'another power', 'rounding down', 'half', 'half that flushes', 'to half', 'dot'];
  assert.deepEqual(refused, wrong);
  const taken = tried.filter(({ code }) => !code);
  assert.deepEqual(taken.map(({ name, exact }) => [name, exact]),
    ['none', 'fused', 'order', 'approximate root', 'power', 'flushed'].map((name) => [name, false]));
});
