// SPDX-License-Identifier: MIT
// A file that becomes another one on its server while it is loaded (N05, N06): what came is dropped, the load begins anew, once.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { openParts } from '../../../js/store/loader.js';
import { Progress } from '../../../js/worker/progress.js';
import { storeModel, startEngine } from '../../../js/worker/start.js';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { ADDRESS, Site } from '../../fixtures/sessions.mjs';
import { logitsOf, testHost } from '../support/engine-host.mjs';
import { DEMO } from '../support/helper.mjs';

/** Two versions of a file: other weights. */
const before = await readFile(DEMO);
const after = Buffer.from(before);
for (let at = after.length - 500_000; at < after.length; at += 34) after[at + 2] ^= 64;

const SOURCE = { kind: 'urls', urls: [ADDRESS], id: ADDRESS };
const CHUNK = 65536;

/** A server whose file becomes another one so many times, whenever 20 chunks are there. */
function siteOf(changes) {
  const site = new Site(before, (_, n) => {
    if (n % 3 === 1 && n < 3 * changes) Object.assign(site.file, { bytes: after, etag: `"${n}"` });
    return n % 3 === 0 && n < 3 * changes ? { chunk: CHUNK, dropAt: 20 * CHUNK } : { chunk: CHUNK };
  });
  return site;
}

/** A load from this server. @returns {{events: object[], notices: string[], started: string[], engine: object | undefined, error: object | undefined}} */
async function loaded(site, store, start) {
  const events = [];
  const notices = [];
  const host = testHost({ post: ({ text }) => notices.push(text), rest() {} });
  host.openParts = (source, options) => openParts(source, { ...options, store, chunkSize: CHUNK, fetch: site.fetch, clock: site.clock, parallel: 1 });
  const ends = start(host, events).then((engine) => ({ engine }), (error) => ({ error }));
  const end = await site.clock.run(ends, () => true);
  for (const [i, event] of events.entries()) assert.ok(i === 0 || event.loaded >= events[i - 1].loaded, 'progress went back');
  assert.equal(site.fetch.open, 0);
  return { events, notices, started: host.started, ...end };
}

const load = (host, events) => startEngine(host, SOURCE, { variant: 'simd' }, (event) => events.push(event));
const download = (host, events) => storeModel(host, SOURCE, {}, (event) => events.push(event));

const IDS = [1, 2, 3, 4];

test('N06: it is loaded again from the start, by another engine, and kept', async () => {
  const disk = new Disk();
  const { engine, events, notices, started } = await loaded(siteOf(1), new MemoryStore(disk), load);
  assert.deepEqual(started, ['simd-text', 'simd-text']);
  assert.equal(notices.length, 1);
  assert.match(notices[0], /has changed.*loaded again/);
  assert.deepEqual(events.at(-1), { type: 'progress', phase: 'load', loaded: after.length, total: after.length, cached: false });
  const still = new Site(after);
  const warm = await loaded(still, new MemoryStore(disk), load);
  assert.deepEqual([still.requests.length, warm.notices], [0, []]);
  assert.equal(Buffer.compare(logitsOf(engine, IDS), logitsOf(warm.engine, IDS)), 0);
});

test('progress waits while what was there comes again', () => {
  const seen = [];
  const progress = new Progress(({ loaded }) => seen.push(loaded));
  for (const bytes of [100, 60, 120]) {
    progress.begin({ phase: 'download', total: 120, cached: false });
    progress.add(bytes);
    progress.end();
  }
  assert.deepEqual(seen, [100, 100, 120]);
});

test('N06: when it changes a second time: net/changed', async () => {
  const { error, started, notices } = await loaded(siteOf(2), undefined, load);
  assert.deepEqual([error.code, error.retryable, started, notices.length], ['net/changed', true, ['simd-text', 'simd-text'], 1]);
});

test('N06: a download begins anew too, once', async () => {
  const disk = new Disk();
  const { error, events } = await loaded(siteOf(1), new MemoryStore(disk), download);
  assert.equal(error, undefined);
  assert.deepEqual(events.at(-1), { type: 'progress', phase: 'download', loaded: after.length, total: after.length, cached: false });
  assert.equal((await loaded(siteOf(2), new MemoryStore(new Disk()), download)).error.code, 'net/changed');
});

test('O05: damage in a copy of what the server no longer has: the new version is loaded', async () => {
  const disk = new Disk();
  assert.equal((await loaded(new Site(before), new MemoryStore(disk), load)).error, undefined);
  disk.files.get(disk.data[0])[25 * CHUNK] ^= 1;
  const site = new Site(after);
  site.file.etag = '"two"';
  const { engine, started } = await loaded(site, new MemoryStore(disk), load);
  assert.deepEqual([engine.fileSize(), started], [after.length, ['simd-text', 'simd-text']]);
});
