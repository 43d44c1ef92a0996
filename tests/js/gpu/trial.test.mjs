// SPDX-License-Identifier: MIT
// The trial of a device finds each fault that is built into it, and none in one that computes rightly. A device that
// flushes subnormal numbers may be used, but is not called exact. The trial of fast kernels allows rounding, and nothing
// else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDevice } from './place.mjs';

test('the trial of a device', async (t) => {
  const [right, flushing, wrong, ...rest] = await withDevice('trial.mjs');
  await t.test('a device is taken, one that flushes is not called exact, and one that computes wrongly is refused', () => {
    assert.equal(right.code, null, right.message);
    assert.deepEqual([flushing.code, flushing.exact], [null, false]);
    assert.equal(wrong.code, 'env/gpu');
    assert.match(wrong.message, /other numbers than the processor \(root\); gpu: 'fast'/);
  });
  const asked = rest.findIndex(({ fast }) => fast);
  const [{ fast, rounded }] = rest.splice(asked, 1);
  const [plain, ...tried] = rest.splice(0, asked);
  await t.test('fast kernels may round, and nothing else', () => {
    assert.deepEqual([plain.code, plain.exact, plain.message], [null, false, '']);
    assert.ok(fast.length > 8 && rounded.length > 4);
    assert.equal(tried.length, fast.length + rounded.length);
    for (const [i, name] of fast.entries()) assert.deepEqual([tried[i].code, tried[i].message.includes(`(${name})`)], ['env/gpu', true], tried[i].message);
    for (const [i, name] of rounded.entries()) assert.deepEqual([tried[fast.length + i].code, tried[fast.length + i].exact], [null, false], name);
  });
  const { without } = rest.pop();
  await t.test('each case finds its faults', () => {
    assert.deepEqual(without, [], 'cases without a fault that they find');
    assert.equal(rest.length, 14);
    for (const { expected, found } of rest) {
      assert.ok(expected.length > 0);
      assert.deepEqual(expected.filter((name) => !found.includes(name)), []);
    }
  });
});
