// SPDX-License-Identifier: MIT
// A device that answers late is nudged until it answers, at most once a millisecond; one that answers at once is not.
// The clock and the devices are played.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answersLate, nudge } from '../../../js/gpu/nudge.js';

/** A clock that the test moves. */
function play(t) {
  const clock = { ms: 1000 };
  t.mock.method(performance, 'now', () => clock.ms);
  return clock;
}

/** A device whose answers take some milliseconds each. */
function deviceOf(clock, times) {
  const answers = times[Symbol.iterator]();
  const buffer = { mapAsync: async () => { clock.ms += answers.next().value; }, unmap() {}, destroy() {} };
  const queue = { submit() {} };
  return { createBuffer: () => buffer, createCommandEncoder: () => ({ finish() {} }), queue };
}

for (const [times, isLate] of [[[0.5], false], [[60, 3], false], [[60, 100], true], [[21, 21], true]])
  test(`answers after ${times.join(' and ')} ms are ${isLate ? 'late' : 'prompt'}`, async (t) => {
    const clock = play(t);
    assert.equal(await answersLate(deviceOf(clock, times)), isLate);
    assert.equal(clock.ms, 1000 + times.reduce((sum, ms) => sum + ms));
  });

for (const [how, finish] of [['answers', 'resolve'], ['is lost', 'reject']])
  test(`nudges end when the device ${how}`, async (t) => {
    const clock = play(t);
    const work = {};
    work.promise = new Promise((resolve, reject) => { Object.assign(work, { resolve, reject }); });
    const submits = [];
    let looks = 0;
    t.mock.method(performance, 'now', () => {
      looks++;
      return (clock.ms += 0.25);
    });
    const submit = (commands) => {
      submits.push([commands.length, clock.ms]);
      if (submits.length === 30) work[finish]();
    };
    let scopes = 0;
    const pushErrorScope = () => assert.equal(++scopes, 1, 'one nudge at a time');
    const popErrorScope = async () => {
      await new Promise(setImmediate);
      scopes--;
      if (submits.length === 30 && finish === 'reject') throw new Error('the device is lost');
    };
    await nudge({ queue: { submit }, pushErrorScope, popErrorScope }, work.promise);
    assert.equal(submits.length, 30);
    assert.ok(submits.every(([n, ms], i) => n === 0 && (!i || ms - submits[i - 1][1] >= 1)));
    assert.equal(looks, 1 + 4 * 30, 'no more than the loop takes');
  });
