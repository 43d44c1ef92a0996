// SPDX-License-Identifier: MIT
// A store of the caller's own that answers anything at all: the load gets the model's bytes, and `models` says what is wrong. Each
// call of a store is spoiled by each answer of fixtures/bad-stores.mjs, directly and over the port by which a page's store is used.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mock, test } from 'node:test';
import { load, models } from '../../../dist/node.js';
import { guarded } from '../../../js/store/guard.js';
import { PortStore, serveStore } from '../../../js/store/store-port.js';
import { keyOf } from '../../../js/store/store.js';
import { ANSWERS, CALLS, spoiled } from '../../fixtures/bad-stores.mjs';
import { length, some } from '../../fixtures/lengths.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { noise } from '../../fixtures/noise.mjs';
import { random } from '../../fixtures/random.mjs';
import { CHUNK, Site, session } from '../../fixtures/sessions.mjs';
import { DEMO, rejectsWith, rejectsWithAbort, until } from '../support/helper.mjs';

const BYTES = noise(3 * CHUNK + 300);

/** Ways to a store: itself, and what a worker has of it. */
const WAYS = {
  directly: (store) => ({ store, end() {} }),
  'over a port': (store, clock) => {
    const { port, end } = serveStore(store, clock);
    return { store: new PortStore(port), end };
  },
};

/** Which calls are spoiled, by a seed: all, those from one on, or one. */
function when(seed) {
  const draw = random(seed);
  const at = Math.floor(3 * draw());
  return [() => true, (n) => n >= at, (n) => n === at][Math.floor(3 * draw())];
}

/** What the disk has before: nothing, the whole model, a part of it; and then somebody may be writing who stores nothing more. */
async function makeDisks() {
  const [full, part] = [new Disk(), new Disk()];
  assert.equal((await session(new Site(BYTES), full)).code, null);
  await session(new Site(BYTES), part, { faults: { at: (n) => (n === 20 ? { crash: true } : {}) } });
  const [key] = [...part.files.keys()].map((name) => name.slice(0, 32));
  return { nothing: { files: [] }, everything: { files: full.files }, 'a part': { files: part.files }, 'a part, being written': { files: part.files, held: key, calls: ['read', 'wait'] } };
}

function copyOf({ files, held }) {
  const disk = new Disk();
  for (const [name, bytes] of files) disk.files.set(name, bytes.slice());
  if (held) disk.locks.set(held, []);
  return disk;
}

async function play(way, disk, call, answer, seed) {
  const site = new Site(BYTES);
  const { store, end } = WAYS[way](spoiled(new MemoryStore(disk), call, answer, when(seed)), site.clock);
  try {
    return { site, ...await session(site, disk, { store, real: way !== 'directly' }) };
  } finally {
    end();
  }
}

for (const way of Object.keys(WAYS)) {
  test(`every call of a store, spoiled by every answer, ${way}: the model all the same`, async () => {
    let given = 0;
    let played = 0;
    let seed = 0;
    for (const [i, [name, before]] of Object.entries(await makeDisks()).entries()) {
      for (const call of before.calls ?? CALLS) {
        for (const [what, answer] of Object.entries(ANSWERS)) {
          const row = `${name}: ${call}: ${what} (seed ${++seed})`;
          if ((seed + i) % length(3, way === 'directly' ? 1 : 2)) continue;     // a port changes nothing of what is on a disk
          const disk = copyOf(before);
          const { code, bytes, notices, site, error } = await play(way, disk, call, answer, seed);
          assert.deepEqual([code, Buffer.compare(bytes, BYTES)], [null, 0], `${row}: ${error}`);
          for (const notice of notices) assert.match(`${notice.code} ${notice.message}`, /^storage\/(unavailable|busy|quota) [^\p{Cc}\p{Cf}]+$/u, row);
          given += notices.length > 0;
          played++;
          if (way !== 'directly') continue;
          assert.equal(site.clock.pending, 0, row);
          assert.equal(Buffer.compare((await session(new Site(BYTES), disk)).bytes, BYTES), 0, `${row}, and the next one`);
        }
      }
    }
    assert.ok(given > played / 4, `${given} of ${played} stores were given up`);
  });
}

test('what is answered too late is let go of, and overwrites nothing', async () => {
  for (const [way, open] of Object.entries(WAYS)) {
    for (const call of way === 'directly' ? ['open', 'lock', 'wait'] : ['open', 'lock', 'wait', 'fetch']) {
      const disk = new Disk();
      const { clock } = new Site(BYTES);
      const honest = new MemoryStore(disk);
      disk.files.set('a', new Uint8Array(10).fill(1));
      if (call === 'wait') disk.locks.set('k', []);
      const late = (work) => new Promise((done) => { clock.after(20_000, () => done(work())); });
      const { store, end } = open(spoiled(honest, call, late), clock);
      const target = new Uint8Array(10);
      const leave = new AbortController();
      if (call === 'wait') clock.after(15_000, () => { leave.abort(new Error('enough')); disk.locks.delete('k'); });
      const guard = guarded(store, clock);
      const asked = {
        open: () => guard.open('a', { write: false }), lock: () => guard.lock('k', { wait: false }), wait: () => guard.lock('k', { wait: true, signal: leave.signal }),
        fetch: async () => { const file = await guard.open('a', { write: false }); return file.read(0, target).finally(() => file.close()); },
      }[call];
      const { code } = await clock.run(asked().catch((error) => error), () => true);
      assert.equal(code, 'storage/unavailable', `${call} ${way}`);
      await clock.run(new Promise((done) => { clock.after(30_000, done); }), () => true);
      assert.deepEqual([honest.opened, disk.locks.size, [...target]], [0, 0, Array(10).fill(0)], `${call} ${way}`);
      end();
    }
  }
});

/** Serves the demo model while `use(url)` runs. */
async function withModel(use, script) {
  const server = await new LyingServer({ bytes: readFileSync(DEMO) }, script).start();
  const info = mock.method(console, 'warn', () => {});
  try {
    return await use(`${server.base}/demo-q8_0.gguf`);
  } finally {
    info.mock.restore();
    await server.close();
  }
}

test('in a worker: the model answers, whatever the store does', () => withModel(async (url) => {
  for (const [call, what] of some([
    ['usage', 'null'], ['list', 'a number'], ['lock', 'a text'], ['wait', 'null'], ['open', 'a number'], ['release', 'a throw'], ['release', 'a rejection of what throws'],
    ['read', 'a function'], ['read', 'bytes of a pool'], ['read', 'bytes of shared memory'], ['fetch', 'too many bytes'], ['write', 'a symbol'], ['close', 'a throw of nothing'],
  ], 2)) {
    const disk = new Disk();
    if (call === 'wait') disk.locks.set(await keyOf(url), []);
    const model = await load(url, { threads: 1, store: spoiled(new MemoryStore(disk), call, ANSWERS[what]) });
    assert.match((await model.chat('What is the capital of Kenya?', { temperature: 0 }).result).text, /Nairobi/, `${call}: ${what}`);
    await model.dispose();
  }
}));

test('a store keeps the bytes that it gave', () => withModel(async (url) => {
  const disk = new Disk();
  const own = spoiled(new MemoryStore(disk), '', null);
  own.read = (name) => disk.files.get(name) ?? null;
  for (let i = 0; i < 2; i++) await (await load(url, { threads: 1, store: own })).dispose();
  for (const bytes of disk.files.values()) assert.ok(bytes.length > 0);
  assert.equal(await models.has(url, { store: own }), true);
}));

test('a load that is aborted lets go of a store of the page', () => withModel(async (url) => {
  const store = new MemoryStore(new Disk());
  const abort = new AbortController();
  const loading = load(url, { threads: 1, store, signal: abort.signal });
  loading.catch(() => {});
  await until(() => store.opened > 0 && store.disk.locks.size > 0);
  abort.abort();
  await rejectsWithAbort(loading);
  await until(() => store.opened === 0 && store.disk.locks.size === 0);
}, () => ({ stallAt: 2_500_000 })));

test('models: a bad store is storage/unavailable', () => withModel(async (url) => {
  const calls = {
    list: (cache) => models.list({ store: cache }), read: (cache) => models.has(url, { store: cache }), wait: (cache) => models.remove(url, { store: cache }), usage: (cache) => models.usage({ store: cache }),
    write: (cache) => models.download(url, { store: cache }), persist: (cache) => models.persist({ store: cache }),
  };
  for (const [call, ask] of Object.entries(calls)) {
    for (const what of ['a symbol', 'a throw', 'a rejection of what throws', 'an object that throws']) {
      const cache = spoiled(new MemoryStore(), call, ANSWERS[what]);
      if (call === 'persist') cache.persist = () => { throw new Error('no'); };
      await rejectsWith(ask(cache), 'storage/unavailable');
    }
  }
  await rejectsWith(models.download(url, { store: spoiled(new MemoryStore(), 'read', () => null) }), 'storage/unavailable', /not there/);
  await rejectsWith(models.remove(url, { store: { ...spoiled(new MemoryStore(), '', null), lock: (_, { wait }) => (wait ? new Promise(() => {}) : null) } }), 'storage/busy');
  assert.equal(await models.persist({ store: new MemoryStore() }), false);
  for (const name of ['list', 'lock']) {
    const cache = spoiled(new MemoryStore(), '', null);
    Object.defineProperty(cache, name, { get() { throw new Error('no'); } });
    await rejectsWith(load(url, { store: cache }), 'use/param', new RegExp(`options.store.${name}`));
  }
}));
