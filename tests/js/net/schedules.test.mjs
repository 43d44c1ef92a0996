// SPDX-License-Identifier: MIT
// Schedules of up to twenty faults each (R10): the bytes are the source's, none lost or twice, at most a chunk
// is fetched again for each fault, progress only grows, what must fail fails with its code, and nothing is left running.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openRemote } from '../../../js/net/download.js';
import { length } from '../../fixtures/lengths.mjs';
import { LyingServer, lyingFetch } from '../../fixtures/lying-server.mjs';
import { random } from '../../fixtures/random.mjs';
import { schedule } from '../../fixtures/schedules.mjs';
import { VirtualClock } from '../../fixtures/virtual-clock.mjs';

const SCHEDULES = length(100, 1000);
const REAL = 60;          // of them once more over sockets

/** Reads a file as a loader does; compares each chunk with the source's as it comes. */
async function read(url, { bytes, chunkSize, parallel }, options) {
  const seen = [];
  const progress = { loaded: 0 };
  const remote = await openRemote(url, { chunkSize, parallel, ...options });
  remote.onBytes = (n) => {
    assert.ok(n > 0);
    progress.loaded += n;
  };
  for await (const { index, bytes: chunk } of remote.chunks()) {
    assert.equal(Buffer.compare(chunk, bytes.subarray(index * chunkSize, (index + 1) * chunkSize)), 0, `chunk ${index}`);
    seen.push(index);
    assert.ok(progress.loaded >= Math.min(bytes.length, (index + 1) * chunkSize));
  }
  assert.deepEqual(seen, Array.from({ length: Math.ceil(bytes.length / chunkSize) }, (_, i) => i));
  assert.equal(progress.loaded, bytes.length);
}

/** Runs one to its end, and says how it ended. */
async function outcome(work) {
  return work.then(() => null, (error) => {
    assert.equal(error.name, 'QuernError', error.stack);
    assert.ok(error.message.length > 10 && error.hint.length > 0);
    return error.code;
  });
}

test(`${SCHEDULES} schedules of faults, one seed each`, async () => {
  const totals = { faults: 0, failed: 0, requests: 0, again: 0 };
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const plan = schedule(seed);
    const clock = new VirtualClock(random(seed));
    // Lanes are added by measured speed, so where there are several, bytes take time.
    const pace = plan.parallel > 1 ? { perByteMs: 20, chunk: 500 } : {};
    const fetch = lyingFetch(plan, (_, n) => ({ ...pace, ...(plan.script[n] ?? plan.rest) }), clock);
    const code = await outcome(clock.run(read('http://a.example/m.gguf', plan, { fetch, clock }))).catch((error) => { throw new Error(`seed ${seed}: ${error.message}`, { cause: error }); });
    assert.equal(code, plan.code, `seed ${seed}`);
    assert.deepEqual([fetch.open, clock.pending], [0, 0], `seed ${seed}`);
    const again = fetch.sent - plan.bytes.length;
    assert.ok(again <= plan.again, `seed ${seed}: ${again} bytes again`);
    totals.faults += plan.script.length;
    totals.failed += code !== null;
    totals.requests += fetch.requests.length;
    totals.again += Math.max(0, again);
  }
  assert.ok(totals.failed > SCHEDULES / 20 && totals.failed < SCHEDULES / 2, JSON.stringify(totals));   // both ends are tested
});

test(`${REAL} of them over sockets`, async () => {
  const resources = () => process.getActiveResourcesInfo().filter((name) => name !== 'Immediate').length;
  const idle = resources();
  let done = 0;
  for (let seed = 1; done < REAL; seed++) {
    const plan = schedule(seed, { most: 8 });
    if (plan.parallel > 1 || plan.script.some(({ stallAt }) => stallAt !== undefined)) continue;
    const server = await new LyingServer(plan, (_, n) => plan.script[n] ?? plan.rest).start();
    const clock = new VirtualClock(random(seed));
    try {
      const code = await outcome(clock.run(read(`${server.base}/m.gguf`, plan, { clock }), () => server.quiet));
      assert.equal(code, plan.code, `seed ${seed}`);
      assert.equal(clock.pending, 0);
      done++;
    } finally {
      await server.close();
    }
  }
  for (let i = 0; i < 100 && resources() > idle; i++) await new Promise((done) => { setTimeout(done, 20); });
  assert.ok(resources() <= idle, process.getActiveResourcesInfo().join());
});
