// SPDX-License-Identifier: MIT
// However many requests a download runs side by side, a crash at any moment costs at most four chunks (4 MiB) that are fetched
// again: each chunk is kept as soon as it is whole, before its lane begins another. Chunks of 1000 bytes stand for a MiB.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { length } from '../../fixtures/lengths.mjs';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { noise } from '../../fixtures/noise.mjs';
import { CHUNK, Site, session } from '../../fixtures/sessions.mjs';

const BYTES = noise(60 * CHUNK + 300);
const PIECE = CHUNK / 8;
const LANES = 3;
const MOST_AGAIN = 4 * CHUNK;

/** A server that gives each connection a byte in a millisecond or two, so that others help. */
const site = () => new Site(BYTES, (_, n) => ({ chunk: PIECE, perByteMs: [1, 1.3, 1.7][n % LANES] }));

/** @returns {Promise<{again: number, lanes: number}>} bytes fetched again after a crash, and requests that it met */
async function crashed(faults, ms) {
  const disk = new Disk();
  const first = site();
  const store = new MemoryStore(disk, faults);
  const { fetch } = first;
  let lanes = 0;
  const crash = store.crash.bind(store);
  store.crash = () => {
    lanes = fetch.open;
    crash();
  };
  if (ms) first.clock.after(ms, () => store.crash());
  await session(first, disk, { store, parallel: LANES });
  const second = site();
  const { bytes } = await session(second, disk, { parallel: LANES });
  assert.deepEqual([Buffer.compare(bytes, BYTES), disk.locks.size], [0, 0]);
  return { again: first.sent + second.sent - BYTES.length, lanes };
}

/** Crashes at each of some moments: none costs too much, and some cost what several lanes had begun. */
async function crashes(moments, crash) {
  const costs = [];
  for (const moment of moments) {
    const { again, lanes } = await crash(moment);
    assert.ok(again <= MOST_AGAIN, `${again} bytes again after a crash at ${moment} with ${lanes} lanes`);
    if (lanes === LANES) costs.push(again);
  }
  assert.ok(costs.length > moments.length / 4, `${costs.length} of ${moments.length}`);
  assert.ok(Math.max(...costs) > 2 * CHUNK, costs.join());
}

const every = (step, most) => Array.from({ length: Math.ceil(most / step) }, (_, i) => i * step);

test('a crash at any call of the store, whatever of a write arrives', async () => {
  const { store } = await session(site(), new Disk(), { parallel: LANES });
  await crashes(every(length(6, 3), store.calls.length), (call) => crashed({ at: (n) => (n === call ? { crash: true, torn: call % CHUNK } : {}) }));
});

test('a crash at any time', async () => {
  const whole = site();
  const start = whole.clock.now();
  await session(whole, new Disk(), { parallel: LANES });
  await crashes(every(length(662, 331), whole.clock.now() - start).slice(1), (ms) => crashed({}, ms));
});
