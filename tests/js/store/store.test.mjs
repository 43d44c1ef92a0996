// SPDX-License-Identifier: MIT
// The store of models (group O of the catalogue): whatever fails in it, the bytes that reach the engine are the source's,
// what was stored is used again, and nothing that is damaged is. Chunks of 1000 bytes, a store in memory, a clock that is
// played. The stores of Node and of browsers are in models.test.mjs and tests/web/store.test.mjs.
// Not here: O13 and O15 are the page's (tests/web/offline, page), O14 is W06 in engine-end.test.mjs.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createXXHash128 } from 'hash-wasm';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { guarded } from '../../../js/store/guard.js';
import { Journal, headerLine, line } from '../../../js/store/journal.js';
import { locate } from '../../../js/page/source.js';
import { Entry, keyOf } from '../../../js/store/store.js';
import { OpfsStore } from '../../../js/store/store-opfs.js';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { noise } from '../../fixtures/noise.mjs';
import { ADDRESS, CHUNK, PIECE, Site, begin, idleEngine, session } from '../../fixtures/sessions.mjs';
import { compile, glue } from '../support/engine-host.mjs';
import { rejectsWith } from '../support/helper.mjs';

const BYTES = noise(5 * CHUNK + 300);
const COUNT = 6;

const same = (actual, expected = BYTES) => assert.equal(Buffer.compare(actual, expected), 0, `${actual.length} bytes of ${expected.length}`);
const codes = (notices) => notices.map(({ code }) => code);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** A disk with the model, complete. */
async function filled(bytes = BYTES) {
  const disk = new Disk();
  const site = new Site(bytes);
  const first = await session(site, disk);
  assert.deepEqual([first.code, codes(first.notices), site.requests.length], [null, [], 1]);
  return disk;
}

/** The complete copy is used, without a request. */
async function isComplete(disk, bytes = BYTES) {
  const site = new Site(bytes);
  const { opened, notices, ...found } = await session(site, disk);
  same(found.bytes, bytes);
  assert.deepEqual([found.code, codes(notices), site.requests, opened.cached, opened.phase, opened.total], [null, [], [], true, 'load', bytes.length]);
}

/** An engine that hashes by another thread. */
async function threadedEngine() {
  const instance = await instantiate(glue[32], await compile('simd'), 2, 32);
  return new Engine(instance, { threads: 2, memoryLimit: instance.maximum });
}

test('the engine hashes as another implementation of XXH3 does, on its own thread and on another one', async () => {
  const other = await createXXHash128();
  const threaded = await threadedEngine();
  const stagings = [idleEngine().staging, threaded.staging];
  for (const size of [0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 512, 1024, 1025, 65_536, 1 << 20]) {
    const bytes = noise(size, size);
    for (const one of stagings) assert.equal(one.hash(bytes), other.init().update(bytes).digest(), `${size} bytes`);
  }
  const bytes = noise(3500);
  for (const one of stagings) {
    for (const size of [1, 1000, 1001, 3500]) {
      const room = one.room(size, one.room());
      room.set(bytes.subarray(0, size));
      one.start(room, 1000);
      one.hash(bytes);    // of another place
      const expected = [0, 1000, 2000, 3000].filter((at) => at < size).map((at) => other.init().update(bytes.subarray(at, Math.min(size, at + 1000))).digest());
      assert.deepEqual(one.end(), expected, `${size} bytes by chunks`);
    }
  }
  threaded.close();
});

test('what was hashed is fed where it lies, unless something came in since', () => {
  const engine = idleEngine();
  const { staging } = engine;
  const [one, other] = [noise(1 << 20, 1), noise(1000, 2)];
  const at = staging.enter(one);
  const hash = staging.hash(one);
  one[5] ^= 1;    // nobody does that: it shows what was copied
  assert.equal(staging.enter(one), at);
  assert.notEqual(staging.hash(one), hash, 'it was fed: the next time it comes in anew');
  const changed = staging.hash(one);
  one[5] ^= 1;
  staging.hash(other);
  assert.equal(staging.hash(one), hash, 'another came in between');
  assert.notEqual(changed, hash);
  for (const needed of [undefined, staging.room()]) {
    const room = staging.room(1000, needed);
    room.set(other);
    assert.deepEqual([staging.enter(room), staging.hash(room)], [room.byteOffset, staging.hash(other)], 'what is here stays where it is');
  }
});

test('a model is stored on its way, and then needs no request', async () => {
  const disk = await filled();
  await isComplete(disk);
  same(disk.files.get(disk.data[0]));
});

/** How often something is copied into an engine's memory while `load` is done with these options. */
async function copies(load) {
  const { staging } = idleEngine();
  let count = 0;
  const { set } = Uint8Array.prototype;
  Uint8Array.prototype.set = function counted(...args) {
    count += this.buffer instanceof SharedArrayBuffer;
    return set.apply(this, args);
  };
  try {
    same((await load({ memory: () => staging, onChunk: (n, chunk) => staging.enter(chunk) })).bytes);
  } finally {
    Uint8Array.prototype.set = set;
  }
  return count;
}

test('a chunk that comes is copied into the engine\'s memory once, and is hashed and fed there', async () => {
  const disk = new Disk();
  const site = () => new Site(BYTES);
  assert.equal(await copies((options) => session(site(), disk, options)), COUNT);
  assert.equal(await copies((options) => session(site(), undefined, { ...options, store: null })), COUNT, 'one that is not kept, too');
  assert.equal(disk.files.size > 0, true);
});

test('another engine takes over in mid-load, wherever that is: the bytes are the source\'s, and all are kept', async () => {
  for (const stored of [0, 2, 4, COUNT]) {
    for (let at = 1; at < COUNT; at++) {
      const disk = new Disk();
      if (stored) await session(new Site(BYTES), disk, { onChunk: (n) => { if (n === stored && n < COUNT) throw Object.assign(new Error('left'), { code: 'left' }); } });
      const engines = [idleEngine(), idleEngine()];
      let engine = engines[0];
      const options = { memory: () => engine.staging, onChunk: (n) => { if (n >= at) [, engine] = engines; } };
      const { bytes, code, notices } = await session(new Site(BYTES), disk, options);
      same(bytes);
      assert.deepEqual([code, codes(notices)], [null, []], `${stored} stored, after ${at}`);
      await isComplete(disk);
    }
  }
});

test('without a store nothing is kept', async () => {
  const site = new Site(BYTES);
  const { bytes, code } = await session(site, undefined, { store: null });
  same(bytes);
  assert.equal(code, null);
});

test('O01: a store that is not there: a notice, and the model all the same', async () => {
  const error = Object.assign(new Error('The operation is insecure.'), { name: 'SecurityError' });
  const { bytes, notices } = await session(new Site(BYTES), new Disk(), { faults: { at: () => ({ error }) } });
  same(bytes);
  assert.deepEqual(codes(notices), ['storage/unavailable']);
  const failed = await session(new Site(BYTES), new Disk(), { faults: { at: () => ({ error }) }, mustStore: true });
  assert.equal(failed.code, 'storage/unavailable');
});

test('O02: no room, told at the start: a notice with numbers, nothing is kept', async () => {
  const disk = new Disk();
  const { bytes, notices } = await session(new Site(noise(3_000_000), []), disk, { faults: { quota: 1_900_000 } });
  same(bytes, noise(3_000_000));
  assert.deepEqual(codes(notices), ['storage/quota']);
  assert.match(notices[0].message, /needs 3 MB, and 1 MB are free/);    // never more than there is
  assert.equal(disk.size, 0);
});

test('O02: no room at byte k, wherever that is: the load goes on from memory, the part is dropped', async () => {
  const whole = await filled();
  const journal = Buffer.from(whole.files.get([...whole.files.keys()].find((name) => name.endsWith('.journal')))).toString();
  const needed = whole.size - journal.split('\n').at(-2).length - 1;    // the last line says when it was used, and is worth no failure
  for (let quota = 0; quota < BYTES.length + 1000; quota += 97) {
    const disk = new Disk();
    const site = new Site(BYTES);
    const { bytes, notices, store } = await session(site, disk, { faults: { quota, told: false } });
    same(bytes);
    const fits = disk.size > 0;
    assert.deepEqual(codes(notices), fits ? [] : ['storage/quota'], `quota ${quota}`);
    assert.deepEqual([site.sent, store.opened, disk.locks.size], [BYTES.length, 0, 0]);
    assert.equal(fits, quota >= needed, `${quota} of ${needed}`);
    const must = await session(new Site(BYTES), new Disk(), { faults: { quota, told: false }, mustStore: true });
    assert.equal(must.code, fits ? null : 'storage/quota');
  }
});

test('O02: codes of browsers that have no room and do not say so as others do', async (t) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  t.after(() => (before ? Object.defineProperty(globalThis, 'navigator', before) : delete globalThis.navigator));
  const firefox = () => { throw Object.assign(new Error(''), { name: 'NS_ERROR_FILE_NO_DEVICE_SPACE' }); };
  for (const access of [{ write: () => 2 ** 32 - 8 }, { write: firefox }]) {
    const handle = { createSyncAccessHandle: async () => access };
    const folder = { getDirectoryHandle: async () => folder, getFileHandle: async () => handle };
    Object.defineProperty(globalThis, 'navigator', { value: { storage: { getDirectory: async () => folder } }, configurable: true });
    const file = await guarded(new OpfsStore()).open('a', { write: true });
    await rejectsWith(file.write(0, new Uint8Array(9)), 'storage/quota');
  }
});

test('O03: short writes are continued', async () => {
  const disk = new Disk();
  const { notices } = await session(new Site(BYTES), disk, { faults: { at: (n, name) => (name === 'write' ? { short: 1 + n % 61 } : {}) } });
  assert.deepEqual(codes(notices), []);
  await isComplete(disk);
  const stuck = await session(new Site(BYTES), new Disk(), { faults: { at: (_, name) => (name === 'write' ? { short: 0 } : {}) } });
  assert.deepEqual(codes(stuck.notices), ['storage/quota']);
});

test('O04: a crash at every call of the store, with every kind of torn write: it resumes', async () => {
  let crashes = 0;
  for (const torn of [0, 1, 20, CHUNK - 1]) {
    for (let call = 0; ; call++) {
      const disk = new Disk();
      const first = await session(new Site(BYTES), disk, { faults: { at: (n) => (n === call ? { crash: true, torn } : {}) } });
      if (!first.store.crashed) break;
      crashes++;
      const site = new Site(BYTES);
      const again = await session(site, disk);
      same(again.bytes);
      assert.deepEqual([again.code, codes(again.notices), again.store.opened, disk.locks.size], [null, [], 0, 0], `call ${call}`);
      const chunksBefore = first.store.calls.filter((name) => name === 'write').length / 2 - 1;    // each is a write of its own and one of the journal
      assert.ok(site.sent <= BYTES.length - Math.max(0, Math.floor(chunksBefore) - 1) * CHUNK, `call ${call}: ${site.sent} bytes again`);
      await isComplete(disk);
    }
  }
  assert.ok(crashes > 100, String(crashes));
});

/** Damages that a disk can do, each to one chunk. */
const DAMAGES = {
  'a flipped bit': (bytes, at) => { bytes[at + 7] ^= 1; return bytes; },
  'the last bit': (bytes, at) => { bytes[Math.min(bytes.length, at + CHUNK) - 1] ^= 128; return bytes; },
  zeros: (bytes, at) => bytes.fill(0, at, Math.min(bytes.length, at + CHUNK)),
};

for (const [name, damage] of Object.entries(DAMAGES)) {
  test(`O05: ${name} in any chunk: that chunk alone is fetched again`, async () => {
    for (let index = 0; index < COUNT; index++) {
      const disk = await filled();
      damage(disk.files.get(disk.data[0]), index * CHUNK);
      const site = new Site(BYTES);
      const { bytes, notices, opened } = await session(site, disk);
      same(bytes);
      assert.deepEqual([codes(notices), opened.cached], [[], true]);
      assert.ok(site.sent <= CHUNK + PIECE, `${site.sent} bytes for chunk ${index}`);
      await isComplete(disk);
    }
  });
}

test('O05, G35: a byte in every chunk at once, a file cut short, one too long, one that is gone', async () => {
  const shapes = [
    (bytes) => { for (let i = 0; i < bytes.length; i += CHUNK) bytes[i] ^= 1; return bytes; },
    (bytes) => bytes.slice(0, 2 * CHUNK + 5), (bytes) => bytes.slice(0, 0),
    (bytes) => new Uint8Array([...bytes, ...noise(2 * CHUNK)]), () => null,
  ];
  for (const shape of shapes) {
    const disk = await filled();
    const [name] = disk.data;
    const bytes = shape(disk.files.get(name));
    if (bytes) disk.files.set(name, bytes);
    else disk.files.delete(name);
    const site = new Site(BYTES);
    const found = await session(site, disk);
    same(found.bytes);
    assert.deepEqual([found.code, codes(found.notices)], [null, []]);
    assert.ok(site.sent <= BYTES.length + COUNT * PIECE);
    await isComplete(disk);
  }
});

test('O05: damage without a connection is an error that can be repeated, and the copy stays', async () => {
  const disk = await filled();
  disk.files.get(disk.data[0])[3 * CHUNK] ^= 1;
  const off = new Site(BYTES, () => ({ dropAt: -1 }));
  const { code, error, bytes } = await session(off, disk);
  assert.deepEqual([code, error.retryable], ['storage/corrupt', true]);
  same(bytes, BYTES.subarray(0, 3 * CHUNK));
  const site = new Site(BYTES);
  same((await session(site, disk)).bytes);
  assert.ok(site.sent <= CHUNK + PIECE);
});

test('O07: another tab begins anew what this one follows: never parts of two versions', async () => {
  const disk = new Disk();
  const first = new Site(BYTES, (_, n) => ({ chunk: PIECE, dropAt: n ? -1 : 4 * CHUNK }));
  await session(first, disk);
  const other = new Disk();
  const second = new Site(noise(BYTES.length, 2));
  second.file.etag = '"two"';
  assert.equal((await session(second, other)).code, null);
  const key = disk.data[0].split('.')[0];
  const release = await new MemoryStore(disk).lock(key, { wait: false });
  const onChunk = (n) => {
    if (n === 1) for (const [name, bytes] of other.files) disk.files.set(name, bytes);
  };
  const { code, bytes } = await session(first, disk, { onChunk });
  release();
  assert.equal(code, 'net/changed');
  same(bytes, BYTES.subarray(0, bytes.length));
});

test('O05: damage in a copy of what the server no longer has: net/changed, then the new version', async () => {
  const disk = await filled();
  disk.files.get(disk.data[0])[3 * CHUNK] ^= 1;
  const site = new Site(noise(BYTES.length, 2));
  site.file.etag = '"two"';
  assert.equal((await session(site, disk)).code, 'net/changed');
  same((await session(site, disk)).bytes, noise(BYTES.length, 2));
  const liar = await filled();
  liar.files.get(liar.data[0])[3 * CHUNK] ^= 1;
  assert.equal((await session(new Site(noise(BYTES.length, 2)), liar)).code, 'net/changed', 'the same ETag for other bytes');
});

test('O06: a journal that is damaged anywhere costs requests, never a load', async () => {
  const whole = await filled();
  const name = [...whole.files.keys()].find((file) => file.endsWith('.journal'));
  const journal = whole.files.get(name);
  const changes = [
    () => new Uint8Array(0), () => noise(400), () => journal.slice(0, journal.length - 3), () => journal.slice(5), () => Uint8Array.of(10, 10),
    () => line('quern', 1, { id: ADDRESS, name: '', files: [{ url: ADDRESS, size: BYTES.length, etag: 'one', lastModified: '' }] }), () => Buffer.concat([line('quern', 2, { id: 5 }), line('chunk', 0, 0, 'x')]),
    () => Buffer.concat([headerLine({ id: ADDRESS, name: '', files: [] }), line('done', [], [])]), () => Buffer.concat([journal, noise(77)]),
    ...Array.from({ length: journal.length }, (_, at) => () => journal.map((byte, i) => (i === at ? byte ^ 4 : byte))),
  ];
  for (const change of changes) {
    const disk = new Disk();
    for (const [file, bytes] of whole.files) disk.files.set(file, bytes.slice());
    disk.files.set(name, Uint8Array.from(change()));
    const site = new Site(BYTES);
    const { code, bytes, notices } = await session(site, disk);
    same(bytes);
    assert.deepEqual([code, codes(notices)], [null, []]);
    assert.ok(site.sent <= BYTES.length);
    await isComplete(disk);
  }
});

test('O06: what has no journal is cleared away, unless somebody is writing it', async () => {
  const disk = await filled();
  const other = await keyOf('lost');
  disk.files.set(`${other}.0`, noise(100));
  disk.files.set('notes.txt', noise(10));
  const writer = new MemoryStore(disk);
  const release = await writer.lock(other, { wait: false });
  assert.equal((await Entry.all(new MemoryStore(disk))).length, 1);
  assert.ok(disk.files.has(`${other}.0`));
  release();
  await Entry.all(new MemoryStore(disk));
  assert.deepEqual([disk.files.has(`${other}.0`), disk.files.has('notes.txt')], [false, true]);
});

test('O07: two at once: one download, and both get it', async () => {
  const disk = new Disk();
  const site = new Site(BYTES, () => ({ perByteMs: 1, chunk: 250 }));
  const both = [begin(site, disk), begin(site, disk), begin(site, disk)];
  const results = await site.clock.run(Promise.all(both.map(({ done }) => done)));
  for (const { bytes, code } of results) {
    assert.equal(code, null);
    same(bytes);
  }
  assert.deepEqual(both.map(({ notices }) => codes(notices)), [[], ['storage/busy'], ['storage/busy']]);
  assert.deepEqual([site.requests.length, site.sent, disk.locks.size], [1, BYTES.length, 0]);
  await isComplete(disk);
});

test('O08: the writer crashes at any call: the other takes over and resumes', async () => {
  for (let call = 8; call < 40; call += 3) {
    const disk = new Disk();
    const site = new Site(BYTES, () => ({ perByteMs: 1, chunk: 250 }));
    const writer = begin(site, disk, { faults: { at: (n) => (n === call ? { crash: true, torn: 10 } : {}) } });
    const other = begin(site, disk);
    const [, { bytes, code }] = await site.clock.run(Promise.all([writer.done, other.done]));
    same(bytes);
    assert.equal(code, null);
    assert.ok(site.sent <= BYTES.length + CHUNK + PIECE, String(site.sent));
    await isComplete(disk);
  }
});

test('O08: the writer gives up its store: the other takes over', async () => {
  const disk = new Disk();
  const site = new Site(BYTES, () => ({ perByteMs: 1, chunk: 250 }));
  const error = Object.assign(new Error('no'), { name: 'UnknownError' });
  const writer = begin(site, disk, { faults: { at: (n) => (n > 20 ? { error } : {}) } });
  const other = begin(site, disk);
  const results = await site.clock.run(Promise.all([writer.done, other.done]));
  for (const { bytes } of results) same(bytes);
  assert.deepEqual(codes(writer.notices), ['storage/unavailable']);
});

/** A disk with a part of the model, or nothing, and the lock held by who will never do anything again. */
async function abandoned(calls) {
  const disk = new Disk();
  await session(new Site(BYTES), disk, { faults: { at: (n) => (n === calls ? { crash: true } : {}) } });
  disk.locks.set(await keyOf(ADDRESS), []);
  return disk;
}

test('O08: the writer is stopped: half a minute, then without the store, or not at all where the store is the purpose', async () => {
  for (const calls of [0, 20]) {
    const disk = await abandoned(calls);
    const site = new Site(BYTES);
    const start = site.clock.now();
    const { code, bytes, notices } = await session(site, disk);
    same(bytes);
    const waited = site.clock.now() - start;
    assert.ok(waited >= 30_000 && waited < 31_000, `${waited} ms`);
    assert.deepEqual([code, codes(notices), site.clock.pending, disk.locks.size], [null, ['storage/busy', 'storage/busy'], 0, 1]);
    assert.match(notices[1].message, /half a minute/);
    assert.deepEqual([...disk.locks.values()], [[]], 'nobody waits any more');
    assert.equal((await session(new Site(BYTES), await abandoned(calls), { mustStore: true })).code, 'storage/busy');
  }
});

test('O08: a writer that is slow is followed, and so is one while the machine sleeps', async () => {
  const disk = new Disk();
  const site = new Site(BYTES, () => ({ perByteMs: 25, chunk: 250 }));    // a chunk in 25 seconds
  site.clock.after(30_000, () => site.clock.jump(3_600_000));
  const both = [begin(site, disk), begin(site, disk)];
  for (const { bytes, code } of await site.clock.run(Promise.all(both.map(({ done }) => done)))) {
    assert.equal(code, null);
    same(bytes);
  }
  assert.deepEqual([site.sent, codes(both[1].notices)], [BYTES.length, ['storage/busy']]);
});

test('without a secure context there is no store, and the model all the same', async () => {
  const { subtle } = crypto;
  Object.defineProperty(crypto, 'subtle', { value: undefined, configurable: true });
  try {
    const { code, bytes, notices } = await session(new Site(BYTES), new Disk());
    same(bytes);
    assert.deepEqual([code, codes(notices)], [null, ['storage/unavailable']]);
    assert.match(notices[0].message, /https/);
    assert.equal((await session(new Site(BYTES), new Disk(), { mustStore: true })).code, 'storage/unavailable');
  } finally {
    Object.defineProperty(crypto, 'subtle', { value: subtle, configurable: true });
  }
});

test('O09: what is being written cannot be removed; what is gone in mid-read is fetched', async () => {
  const disk = new Disk();
  const site = new Site(BYTES, () => ({ perByteMs: 1, chunk: 250 }));
  const remove = async () => (await Entry.open(new MemoryStore(disk), ADDRESS)).remove();
  const { bytes } = await session(site, disk, { onChunk: async (n) => { if (n === 3) await assert.rejects(remove(), { code: 'storage/busy' }); } });
  same(bytes);
  const quick = new Site(BYTES);
  const reading = await session(quick, disk, { onChunk: (n) => { if (n === 2) disk.files.clear(); } });
  assert.equal(reading.code, null);
  same(reading.bytes);
  await remove();
  assert.deepEqual([...disk.files.keys()], []);
});

test('O10: evicted between sessions: as if it had never been there', async () => {
  const disk = await filled();
  disk.files.clear();
  const off = new Site(BYTES, () => ({ dropAt: -1 }));
  assert.equal((await session(off, disk)).code, 'net/unreachable');
  off.clock.isOnline = false;
  const { code, error } = await session(off, disk);
  assert.equal(code, 'net/offline');
  assert.match(error.hint, /has been deleted/);
  await session(new Site(BYTES), disk);
  await isComplete(disk);
});

test('O11: a call that never settles, whichever it is: 15 seconds, then without the store', async () => {
  let hung = 0;
  for (let call = 0; ; call++) {
    let met = false;
    const at = (n) => {
      met ||= n === call;
      return n === call ? { never: true } : {};
    };
    const site = new Site(BYTES);
    const start = site.clock.now();
    const { bytes, notices, code } = await session(site, new Disk(), { faults: { at } });
    if (!met) break;
    hung++;
    same(bytes);
    assert.equal(code, null);
    assert.ok(notices.length <= 1 && codes(notices).every((name) => name === 'storage/unavailable'));
    assert.ok(site.clock.now() - start <= 40_000, `call ${call}: ${site.clock.now() - start} ms`);
    assert.equal(site.clock.pending, 0);
  }
  assert.ok(hung > 20);
});

test('O12: names are hashes, and no token is stored', async () => {
  const disk = new Disk();
  const hostile = [
    'https://a.example/../../etc/m.gguf?X-Amz-Signature=SECRET&token=SECRET&version=1', 'https://a.example/m.gguf', 'https://b.example/m.gguf',
    `https://a.example/${'long/'.repeat(2000)}m.gguf#SECRET`, 'https://a.example/m.gguf?version=2', 'https://a.example/m-00001-of-00002.gguf?sig=SECRET',
  ];
  for (const address of hostile) {
    const source = locate(address, (url) => ({ url }));
    const { code } = await session(new Site(BYTES), disk, { source });
    assert.equal(code, null);
  }
  const names = [...disk.files.keys()];
  assert.ok(names.every((name) => /^[0-9a-f]{32}\.(\d|journal)$/.test(name)), names.join());
  assert.equal(new Set(names.map((name) => name.slice(0, 32))).size, hostile.length);
  for (const bytes of disk.files.values()) assert.ok(!Buffer.from(bytes).includes('SECRET'));
});

test('another version on the server in mid-download: started over, cleanly', async () => {
  for (const change of [{ etag: '"two"' }, { etag: null, modified: 'Fri, 05 Dec 2025 10:00:00 GMT' }, { length: BYTES.length - 1 }]) {
    const { length = BYTES.length, ...version } = change;
    const disk = new Disk();
    await session(new Site(BYTES), disk, { faults: { at: (n) => (n === 25 ? { crash: true } : {}) } });
    const site = new Site(noise(length, 3));
    Object.assign(site.file, version);
    const { code, bytes, notices } = await session(site, disk, { faults: { at: (n) => (n === 24 ? { crash: true } : {}) } });
    assert.equal(code, 'abort');
    same(bytes, noise(length, 3).subarray(0, bytes.length));
    const again = await session(site, disk);
    same(again.bytes, noise(length, 3));
    assert.deepEqual(codes([...notices, ...again.notices]).filter((name) => name !== 'storage/unavailable'), []);
    await isComplete(disk, noise(length, 3));
  }
});

test('a size that is not told: stored, complete at its end, resumed from the start', async () => {
  const untold = () => ({ ignoreRange: true, sized: false });
  for (const size of [BYTES.length, 2 * CHUNK]) {
    const bytes = noise(size, 4);
    const disk = new Disk();
    const site = new Site(bytes, (_, n) => (n === 0 ? { ...untold(), dropAt: Math.min(size, 1500) } : untold()));
    await session(site, disk);
    same((await session(site, disk)).bytes, bytes);
    await isComplete(disk, bytes);
  }
});

test('sha256: what does not match is removed, what matches is not hashed again, another one asked for is another model', async () => {
  const disk = new Disk();
  const right = sha256(BYTES);
  const wrong = await session(new Site(BYTES), disk, { sha256: ['0'.repeat(64)] });
  assert.equal(wrong.code, 'model/integrity');
  assert.deepEqual([...disk.files.keys()], []);
  const checked = await session(new Site(BYTES), disk, { sha256: [right] });
  assert.equal(checked.code, null);
  assert.deepEqual((await Entry.open(new MemoryStore(disk), ADDRESS)).sha256, [right]);
  const site = new Site(noise(BYTES.length, 5));
  const other = sha256(noise(BYTES.length, 5));
  assert.equal((await session(new Site(BYTES), disk, { sha256: [right] })).opened.cached, true);
  const renewed = await session(site, disk, { sha256: [other] });
  same(renewed.bytes, noise(BYTES.length, 5));
  assert.deepEqual([renewed.code, site.requests.length], [null, 1]);

  const unchecked = await filled();
  const late = await session(new Site(BYTES), unchecked, { sha256: [right] });
  assert.deepEqual([late.code, late.opened.cached], [null, true]);
  assert.deepEqual((await Entry.open(new MemoryStore(unchecked), ADDRESS)).sha256, [right], 'and noted');
  const refused = await session(new Site(BYTES), await filled(), { sha256: ['0'.repeat(64)] });
  assert.equal(refused.code, 'model/integrity');
  const told = new Site(BYTES, () => ({ headers: { 'X-Linked-Etag': `"${'1'.repeat(64)}"` } }));
  assert.equal((await session(told, new Disk(), { real: true })).code, 'model/integrity', 'the server\'s own hash');
});

test('a split model is one entry', async () => {
  const disk = new Disk();
  const urls = [1, 2, 3].map((i) => `https://models.example/m-0000${i}-of-00003.gguf`);
  const source = { urls, id: urls[0] };
  const site = new Site(BYTES);
  const all = Buffer.concat([BYTES, BYTES, BYTES]);
  const first = await session(site, disk, { source, faults: { at: (n) => (n === 50 ? { crash: true } : {}) } });
  assert.ok(first.bytes.length > BYTES.length && first.bytes.length < all.length);
  const again = await session(site, disk, { source });
  same(again.bytes, all);
  assert.equal(again.opened.total, all.length);
  const [entry] = await Entry.all(new MemoryStore(disk));
  assert.deepEqual([entry.header.id, entry.header.files.length, entry.total, entry.loaded, entry.complete], [urls[0], 3, all.length, all.length, true]);
  const warm = new Site(BYTES);
  same((await session(warm, disk, { source })).bytes, all);
  assert.equal(warm.requests.length, 0);
});

test('a page that is no model can be forgotten', async () => {
  const disk = new Disk();
  const { opened } = await session(new Site(BYTES), disk);
  await opened.discard();
  assert.deepEqual([...disk.files.keys()], []);
});

test('progress: every byte once, from wherever', async () => {
  const disk = await filled();
  disk.files.get(disk.data[0])[CHUNK] ^= 1;
  let loaded = 0;
  await session(new Site(BYTES), disk, { onBytes: (n) => { loaded += n; } });
  assert.equal(loaded, BYTES.length);
});

test('a journal keeps its numbers', () => {
  const files = [{ url: 'a', size: 2500, etag: '', lastModified: '' }, { url: 'b', size: 10, etag: '', lastModified: '' }];
  const hash = 'a'.repeat(32);
  const journal = new Journal().read(Buffer.concat([headerLine({ id: 'x', name: 'n', files }), line('chunk', 0, 2, hash), line('chunk', 1, 0, hash), line('chunk', 2, 0, hash), line('chunk', 0, 0, 'short')]));
  assert.deepEqual([journal.total, journal.loaded(1000), journal.hash(0, 2), journal.hash(0, 0), journal.hash(2, 0)], [2510, 510, hash, undefined, undefined]);
});
