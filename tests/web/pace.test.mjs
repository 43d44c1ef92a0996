// SPDX-License-Identifier: MIT
// The speed and the remaining time of a download, with a clock that the test moves. Needs no browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from '../../web/shell/pace.js';

function scene() {
  const time = { now: 0 };
  return { time, pace: new Pace(() => time.now) };
}

test('nothing is said before a second has passed', () => {
  const { time, pace } = scene();
  assert.equal(pace.read(100), null);
  pace.add(0);
  time.now = 900;
  pace.add(50);
  assert.equal(pace.read(100), null);
  time.now = 1000;
  assert.deepEqual(pace.read(100), { speed: 50, left: 1000, stalled: false });
});

test('the last seconds count, not the beginning', () => {
  const { time, pace } = scene();
  for (; time.now <= 20_000; time.now += 1000) pace.add(time.now < 10_000 ? time.now : 10_000 + 3 * (time.now - 10_000));
  time.now = 20_000;
  assert.deepEqual(pace.read(70_000), { speed: 3000, left: 10_000, stalled: false });
});

test('bytes from the disk do not count, and no total means no time left', () => {
  const { time, pace } = scene();
  pace.add(0);
  time.now = 2000;
  pace.add(1e9);
  pace.reset();
  assert.equal(pace.read(2e9), null);
  pace.add(1e9);
  time.now = 4000;
  pace.add(1e9 + 500);
  assert.deepEqual(pace.read(0), { speed: 250, left: 0, stalled: false });
});

test('when nothing comes it says so, and the speed falls', () => {
  const { time, pace } = scene();
  pace.add(0);
  time.now = 1000;
  pace.add(1000);
  time.now = 5000;
  assert.deepEqual(pace.read(2000), { speed: 200, left: 5000, stalled: true });
});
