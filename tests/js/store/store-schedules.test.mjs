// SPDX-License-Identifier: MIT
// Seeded schedules of faults of the network, the store and the machine together (R10, R11): whatever happens over
// a series of sessions, only the source's bytes reach the engine, in the end all of them do, and then no request is needed.
// In every second schedule the network is honest and the store never gives up; there the bytes fetched again are counted,
// in every fourth with several requests side by side.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { length } from '../../fixtures/lengths.mjs';
import { Disk } from '../../fixtures/memory-store.mjs';
import { random } from '../../fixtures/random.mjs';
import { schedule } from '../../fixtures/schedules.mjs';
import { Site, session } from '../../fixtures/sessions.mjs';

const SCHEDULES = length(100, 1000);

/** Chunks that a fault may cost. */
const MOST_AGAIN = 4;

const failure = (name) => Object.assign(new Error(name), { name });
const FAILURES = ['QuotaExceededError', 'NoModificationAllowedError', 'UnknownError', 'InvalidStateError'].map(failure);

/** Faults of a store for one session. `gentle`: none that makes a load give its store up. */
function storeFaults(draw, gentle, calls) {
  const when = draw(calls);
  const torn = draw(1200);
  const kinds = [
    () => ({}), (n) => (n === when ? { crash: true, torn } : {}), (n, name) => (name === 'write' && n % 3 === 0 ? { short: 1 + n % 50 } : {}),
    (n) => (n === when ? { never: true } : {}), (n) => (n === when ? { error: FAILURES[when % FAILURES.length] } : {}), null,
  ];
  const at = kinds[draw(gentle ? 3 : kinds.length)];
  return at ? { at } : { quota: draw(20_000), told: draw(2) === 0 };
}

/** Flips a bit somewhere on the disk. @returns {number} how many */
function rot(draw, disk) {
  const names = disk.data.filter((name) => disk.files.get(name).length > 0);
  if (names.length === 0 || draw(2)) return 0;
  const bytes = disk.files.get(names[draw(names.length)]);
  bytes[draw(bytes.length)] ^= 1 << draw(8);
  return 1;
}

function plan(seed) {
  const next = random(seed + 5000);
  const draw = (n) => Math.floor(next() * n);
  const gentle = seed % 2 === 0;
  const { bytes, parallel, script, rest, ...shape } = schedule(seed);
  const several = gentle && parallel > 1;
  const chunkSize = several ? Math.ceil(shape.chunkSize / 4) : shape.chunkSize;     // enough of them for several lanes
  const piece = Math.ceil(chunkSize / 8);
  const honest = () => ({ chunk: piece, ...(several && { perByteMs: 20 }) });
  const site = new Site(bytes, gentle ? honest : (_, n) => script[n] ?? rest);
  return { draw, gentle, bytes, chunkSize, parallel, piece, calls: several ? 240 : 60, sessions: 1 + draw(6), site, honest: new Site(bytes, honest) };
}

const isPrefix = (part, whole) => Buffer.compare(part, whole.subarray(0, part.length)) === 0;

/** @returns {Promise<number>} faults that may have cost something */
async function faulty({ draw, gentle, bytes, chunkSize, parallel, calls, sessions, site }, disk, seed) {
  let lost = 0;
  for (let i = 0; i < sessions; i++) {
    const found = await session(site, disk, { chunkSize, parallel, faults: storeFaults(draw, gentle, calls) });
    assert.ok(isPrefix(found.bytes, bytes), `seed ${seed}: wrong bytes`);
    assert.ok(found.code !== null || found.bytes.length === bytes.length, `seed ${seed}: ended early`);
    assert.match(String(found.code), /^(null|abort|net\/.*|storage\/corrupt)$/, `seed ${seed}`);
    assert.equal(disk.locks.size, 0, `seed ${seed}: a lock is left`);
    assert.deepEqual([site.fetch.open, site.clock.pending], [0, 0], `seed ${seed}: something is left running`);
    if (gentle) assert.ok(found.store.crashed || found.notices.length === 0, `seed ${seed}: ${found.notices}`);
    lost += (found.store.crashed ? 1 : 0) + rot(draw, disk);
  }
  return lost;
}

test(`${SCHEDULES} schedules of faults, one seed each`, async () => {
  const totals = { sessions: 0, lost: 0, again: 0 };
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const case_ = plan(seed);
    const { bytes, chunkSize, parallel, site, honest, piece } = case_;
    const disk = new Disk();
    const lost = await faulty(case_, disk, seed);
    const sent = site.sent;
    const last = await session(honest, disk, { chunkSize, parallel });
    assert.deepEqual([last.code, Buffer.compare(last.bytes, bytes), last.store.opened], [null, 0, 0], `seed ${seed}`);
    const again = sent + honest.sent - bytes.length;
    const cut = piece * (site.requests.length + honest.requests.length);    // what a request brings beyond the chunks that were left to it
    if (case_.gentle) assert.ok(again <= lost * MOST_AGAIN * chunkSize + cut, `seed ${seed}: ${again} bytes again, ${lost} faults`);
    const warm = new Site(bytes);
    const { opened, ...stored } = await session(warm, disk, { chunkSize });
    assert.deepEqual([Buffer.compare(stored.bytes, bytes), warm.requests, opened.cached], [0, [], true], `seed ${seed}: not complete`);
    totals.sessions += case_.sessions;
    totals.lost += lost;
    totals.again += case_.gentle ? again : 0;
  }
  assert.ok(totals.lost > SCHEDULES && totals.again > 0, JSON.stringify(totals));
});
