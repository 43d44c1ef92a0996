// SPDX-License-Identifier: MIT
// Memory for images that are decoded: never more than there is, one image of a guest at a time, and turns among keys and their connections.

import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { Room } from '../../../js/worker/room.js';

const NEVER = new AbortController().signal;

/** Images that wait for room: who was let in, in order, and how each is let go. */
function played(most) {
  const room = new Room(most);
  const order = [];
  const leave = new Map();
  const ask = (name, [scope, guest], bytes, signal = NEVER) => room.enter({ scope, guest }, bytes, signal).then((left) => { order.push(name); leave.set(name, left); });
  const end = async (name) => { leave.get(name)(); await turn(); };
  return { room, order, ask, end };
}

test('as many as there is room for; one that is too large alone is refused by its size', async () => {
  const { room, order, ask, end } = played(100);
  ['a', 'b', 'c'].forEach((name, i) => ask(name, [i, 0], 50));
  await turn();
  assert.deepEqual([order, room.held], [['a', 'b'], 100]);
  await end('a');
  assert.deepEqual([order, room.held], [['a', 'b', 'c'], 100]);
  await assert.rejects(ask('d', [9, 0], 101), { code: 'image/size', detail: { found: 101, limit: 100 } });
});

test('one image of a guest at a time; another key comes before the second of the first one', async () => {
  const { order, ask, end } = played(100);
  for (const name of ['a1', 'a2', 'a3']) ask(name, [1, 0], 10);
  ask('b', [2, 0], 10);
  ask('c', [1, 7], 10);
  await turn();
  assert.deepEqual(order, ['a1', 'b', 'c']);
  await end('a1');
  assert.deepEqual(order, ['a1', 'b', 'c', 'a2']);
});

test('a key with many connections waits for one with a single one', async () => {
  const { order, ask, end } = played(10);
  for (let i = 0; i < 4; i++) ask(`a${i}`, [1, i], 10);
  ask('b', [2, 0], 10);
  await turn();
  for (let i = 0; i < 4; i++) await end(order.at(-1));
  assert.deepEqual(order, ['a0', 'b', 'a1', 'a2', 'a3']);
});

test('small ones do not overtake the large one whose turn it is', async () => {
  const { order, ask, end } = played(100);
  ask('small', [1, 0], 10);
  ask('large', [2, 0], 100);
  ask('other', [3, 0], 10);
  await turn();
  assert.deepEqual(order, ['small']);
  await end('small');
  await end('large');
  assert.deepEqual(order, ['small', 'large', 'other']);
});

test('who gives up, waiting or just let in, takes nobody\'s room', async () => {
  const { room, order, ask, end } = played(100);
  const controller = new AbortController();
  ask('a', [1, 0], 100);
  const gone = ask('b', [2, 0], 100, controller.signal);
  ask('c', [3, 0], 100);
  await turn();
  controller.abort(new Error('enough'));
  await assert.rejects(gone, /enough/);
  await end('a');
  assert.deepEqual([order, room.held], [['a', 'c'], 100]);
  await end('c');
  await assert.rejects(ask('d', [4, 0], 10, controller.signal), /enough/);
  assert.equal(room.held, 0);
});
