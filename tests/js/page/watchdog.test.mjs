// SPDX-License-Identifier: MIT
// The watchdog with a clock that the test moves: what counts as silence, and what as a sign of life (group W).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Rpc } from '../../../js/page/rpc.js';
import { deadline, every } from '../../../js/shared/clock.js';
import { VirtualClock } from '../../fixtures/virtual-clock.mjs';
import { rejectsWith } from '../support/helper.mjs';

/** A worker that the test plays, and time. */
class Scene {
  sent = [];
  terminated = 0;
  clock = Object.assign(new VirtualClock(), { visible: () => this.visible });
  visible = true;

  constructor() {
    const port = {
      post: (message) => this.sent.push(message.type), onMessage: (receive) => { this.say = receive; }, onError() {},
      keepAlive() {}, terminate: () => { this.terminated++; },
    };
    this.rpc = new Rpc(port, { clock: this.clock });
  }

  get watched() {
    return this.clock.pending > 0;
  }

  /** The worker runs and is asked something. */
  begin() {
    this.say({ type: 'ready' });
    this.end = this.rpc.call('a', {}).promise.then((value) => value, (error) => error.code);
    return this;
  }

  /** Looks `n` times, each a second after the one before, or so many ms where it is late. */
  pass(n, late = 0) {
    for (let i = 0; i < n && this.watched; i++) {
      const before = this.clock.now();
      this.clock.jump(late);
      this.clock.step();
      assert.equal(this.clock.now() - before, Math.max(late, 1000));
    }
  }
}

test('W03: a worker that never starts is given up after 10 s', async () => {
  const scene = new Scene();
  const ready = scene.rpc.ready();
  scene.pass(9);
  assert.equal(scene.terminated, 0);
  scene.pass(1);
  await rejectsWith(ready, 'env/worker', /10 seconds/);
  assert.deepEqual([scene.terminated, scene.watched, scene.sent], [1, false, []]);
});

// A debugger that pauses the worker looks the same: nothing tells the page.
test('W10: a worker that falls silent is given up after 30 s, and was asked once', async () => {
  const scene = new Scene().begin();
  scene.pass(29);
  assert.equal(scene.terminated, 0);
  scene.pass(1);
  assert.equal(await scene.end, 'engine/hung');
  assert.deepEqual([scene.terminated, scene.watched, scene.sent], [1, false, ['a', 'ping']]);
  await rejectsWith(scene.rpc.call('b', {}).promise, 'engine/hung');
});

test('nobody looks while nothing is awaited', async () => {
  const scene = new Scene();
  assert.ok(scene.watched);
  scene.begin();
  assert.ok(scene.watched);
  scene.say({ type: 'done', id: 1, value: 5 });
  assert.equal(await scene.end, 5);
  assert.ok(!scene.watched);
  scene.rpc.call('b', {}).promise.catch(() => {});
  assert.ok(scene.watched);
  await scene.rpc.close(new Error('end'));
  assert.ok(!scene.watched);
});

test('W10: every answer to a ping is a sign of life, and followed by another ping', () => {
  const scene = new Scene().begin();
  for (let i = 0; i < 5; i++) {
    scene.pass(29);
    scene.say({ type: 'pong' });
  }
  assert.deepEqual([scene.terminated, scene.sent.filter((type) => type === 'ping').length], [0, 5]);
});

test('W15: time in which the page is hidden does not count', async () => {
  const scene = new Scene().begin();
  scene.pass(20);
  scene.visible = false;
  scene.pass(10_000);
  scene.visible = true;
  scene.pass(9);
  assert.equal(scene.terminated, 0);
  scene.pass(1);
  assert.equal(await scene.end, 'engine/hung');
});

test('W14, W15: a page that was frozen, asleep or busy counts one second for each look', async () => {
  const scene = new Scene().begin();
  scene.pass(29, 3_600_000);
  assert.equal(scene.terminated, 0);
  scene.pass(1, 3_600_000);
  assert.equal(await scene.end, 'engine/hung');
});

test('a deadline is counted in ticks, none of which is worth more for being late, and can be cancelled', () => {
  const clock = new VirtualClock();
  const ticks = [];
  const end = every(clock, 300, () => ticks.push(clock.now()));
  const start = clock.now();
  while (ticks.length < 3) clock.step();
  assert.deepEqual(ticks.map((at) => at - start), [300, 600, 900]);
  clock.jump(10_000);
  clock.step();
  clock.step();
  assert.deepEqual(ticks.slice(3).map((at) => at - start), [10_900, 11_200], 'what is late moves what follows');
  end();
  assert.equal(clock.pending, 0);

  let late = 0;
  const cancel = deadline(2000, () => { late++; }, clock);
  for (let i = 0; i < 3; i++) {
    clock.jump(3_600_000);
    clock.step();
  }
  assert.deepEqual([late, clock.pending], [0, 1]);
  clock.step();
  assert.deepEqual([late, clock.pending], [1, 0]);
  cancel();
  deadline(2000, () => { late++; }, clock)();
  assert.deepEqual([late, clock.pending], [1, 0]);
});

