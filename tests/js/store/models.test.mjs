// SPDX-License-Identifier: MIT
// The store in Node as callers see it: `load` with a cache, `models`, the command line, the folder and its locks.

import assert from 'node:assert/strict';
import { execFile, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, mock, test } from 'node:test';
import { promisify } from 'node:util';
import { load, models } from '../../../dist/node.js';
import { FolderStore, defaultFolder } from '../../../js/store/store-node.js';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CLI, DEMO, NANO, rejectsWith, rejectsWithAbort, until } from '../support/helper.mjs';

const BYTES = readFileSync(DEMO);
/** What a signed address has, which is different each time. */
const SIGNED = 'X-Amz-Signature=SECRET&X-Amz-Credential=SECRET&X-Amz-Date=20261101';
const QUESTION = ['What is the capital of Kenya?', { temperature: 0 }];

let folder;
let server;
let url;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quern-models-'));
  server = await new LyingServer({ bytes: BYTES }, () => ({ chunk: 200_000 })).start();
  url = `${server.base}/dir/demo-q8_0.gguf`;
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** An empty folder, and what a load from it says. */
const newCache = () => mkdtempSync(join(folder, 'cache-'));

async function answer(source, options) {
  const events = [];
  const model = await load(source, { threads: 1, onProgress: (event) => events.push(event), ...options });
  const { text } = await model.chat(...QUESTION).result;
  await model.dispose();
  return { text, events };
}

async function requestsOf(work) {
  const before = server.requests.length;
  const value = await work();
  return { ...value, requests: server.requests.length - before };
}

test('the first load downloads, the second asks nobody', async () => {
  const cache = newCache();
  const cold = await requestsOf(() => answer(`${url}?${SIGNED}`, { store: cache }));
  const warm = await requestsOf(() => answer(url, { store: cache }));
  assert.deepEqual([cold.requests, warm.requests], [1, 0]);
  assert.match(cold.text, /Nairobi/);
  assert.equal(warm.text, cold.text);
  const last = { phase: 'load', loaded: BYTES.length, total: BYTES.length };
  assert.deepEqual([cold.events.at(-1), warm.events.at(-1)], [{ ...last, cached: false }, { ...last, cached: true }]);
  for (const { events } of [cold, warm]) for (const [i, { loaded }] of events.entries()) assert.ok(i === 0 || loaded >= events[i - 1].loaded);
  const without = await requestsOf(() => answer(url, { store: false }));
  assert.deepEqual([without.requests, without.text], [1, cold.text]);
});

test('files of this machine are stored under an address, and loaded by it without a request', async () => {
  const cache = newCache();
  const address = 'https://this-device.invalid/my%20model.gguf';
  const events = [];
  const stored = await models.download(address, { store: cache, files: new Blob([BYTES]), onProgress: (event) => events.push(event) });
  assert.deepEqual([stored.url, stored.size, stored.complete, stored.name], [address, BYTES.length, true, 'my model.gguf']);
  assert.deepEqual([events[0].phase, events.at(-1).loaded], ['download', BYTES.length]);
  const { text, requests } = await requestsOf(() => answer(address, { store: cache }));
  assert.match(text, /Nairobi/);
  assert.equal(requests, 0);
  await rejectsWith(models.download(address, { store: cache, files: [new Blob(['a']), new Blob(['b'])] }), 'use/param');
  await rejectsWith(models.download(address, { store: cache, files: 'a.gguf' }), 'use/param');
  await rejectsWith(models.download(address, { store: cache, files: [] }), 'use/param');
  await assert.rejects(models.download('https://this-device.invalid/other.gguf', { store: cache, files: [new Blob(['no model'])] }), { code: 'model/format' });
  assert.equal((await models.list({ store: cache })).length, 1, 'what is no model does not stay');
});

test('a download of files that was aborted goes on, and only what is missing is read', async () => {
  const cache = newCache();
  const address = 'https://this-device.invalid/part.gguf';
  const abort = new AbortController();
  await rejectsWithAbort(models.download(address, { store: cache, files: [new Blob([BYTES])], signal: abort.signal, onProgress: ({ loaded }) => { if (loaded > 0) abort.abort(); } }));
  await models.download(address, { store: cache, files: [new Blob([BYTES])] });
  assert.equal(await models.has(address, { store: cache }), true);
});

test('by default in the user\'s folder for caches', async () => {
  const { requests } = await requestsOf(() => answer(url));
  const again = await requestsOf(() => answer(url));
  assert.deepEqual([requests, again.requests, await models.has(url)], [1, 0, true]);
  assert.equal(readdirSync(join(process.env.XDG_CACHE_HOME, 'quern')).length, 2);
  await models.remove(url);
  assert.deepEqual([await models.list(), await models.has(url)], [[], false]);
});

test('where that folder is', () => {
  const of = (platform, env) => defaultFolder({ platform, env });
  assert.equal(of('linux', { XDG_CACHE_HOME: '/x/cache' }), '/x/cache/quern');
  assert.match(of('linux', {}), /\/\.cache\/quern$/);
  assert.match(of('linux', { XDG_CACHE_HOME: 'relative' }), /\/\.cache\/quern$/);
  assert.match(of('darwin', {}), /Library\/Caches\/quern$/);
  assert.match(of('win32', { LOCALAPPDATA: '/local' }), /^\/local\/quern\/Cache$/);
});

test('a damaged file is repaired with one request for one chunk', async () => {
  const cache = newCache();
  const { text } = await answer(url, { store: cache });
  const file = join(cache, readdirSync(cache).find((name) => name.endsWith('.0')));
  const bytes = readFileSync(file);
  bytes[1_000_000] ^= 1;
  writeFileSync(file, bytes);
  const repaired = await requestsOf(() => answer(url, { store: cache }));
  assert.deepEqual([repaired.requests, repaired.text], [1, text]);
  assert.equal(Buffer.compare(readFileSync(file), BYTES), 0);
});

test('models: download, list, has, usage, persist, remove', async () => {
  const cache = newCache();
  const events = [];
  const start = Date.now();
  assert.deepEqual([await models.list({ store: cache }), await models.has(url, { store: cache })], [[], false]);
  const entry = await models.download(url, { store: cache, onProgress: (event) => events.push(event) });
  const expected = { id: url, name: 'demo-q8_0.gguf', url, files: 1, size: BYTES.length, loaded: BYTES.length, complete: true };
  assert.deepEqual(entry, { ...expected, lastUsed: entry.lastUsed });
  assert.ok(entry.lastUsed >= start && entry.lastUsed <= Date.now());
  assert.deepEqual(events.at(-1), { phase: 'download', loaded: BYTES.length, total: BYTES.length, cached: false });
  assert.deepEqual([await models.list({ store: cache }), await models.has(url, { store: cache })], [[entry], true]);
  const { used, quota, persisted } = await models.usage({ store: cache });
  assert.ok(used > BYTES.length && used < BYTES.length + 1000 && quota > used && persisted);
  assert.equal(await models.persist({ store: cache }), true);
  const loaded = await requestsOf(() => answer(url, { store: cache }));
  assert.equal(loaded.requests, 0);
  const again = await requestsOf(() => models.download(url, { store: cache }));
  assert.deepEqual([again.requests, again.complete], [0, true]);
  await models.remove(entry.id, { store: cache });
  assert.deepEqual([await models.list({ store: cache }), readdirSync(cache)], [[], []]);
  await models.remove(url, { store: cache });
});

test('models.download: aborted, it keeps what has come; refused, it says why', async () => {
  const cache = newCache();
  const big = tinyModel({ layers: 2, hidden: 512, ffn: 4096, heads: 8, headDim: 64 });
  const slow = await new LyingServer({ bytes: big }, (_, n) => (n === 0 ? { stallAt: 4_500_000 } : {})).start();
  const source = `${slow.base}/big.gguf`;
  const abort = new AbortController();
  const downloading = models.download(source, { store: cache, signal: abort.signal });
  downloading.catch(() => {});
  for (const end = Date.now() + 20_000; Date.now() < end && (await models.list({ store: cache }))[0]?.loaded !== (4 << 20);) await new Promise((done) => { setTimeout(done, 20); });
  await rejectsWith(models.remove(source, { store: cache }), 'storage/busy');
  abort.abort();
  await rejectsWithAbort(downloading);
  const [partial] = await models.list({ store: cache });
  assert.deepEqual([partial.loaded, partial.complete, partial.size, await models.has(source, { store: cache })], [4 << 20, false, big.length, false]);
  const done = await models.download(source, { store: cache });
  assert.equal(done.complete, true);
  assert.deepEqual(slow.requests.map(({ headers }) => headers.range).slice(0, 2), ['bytes=0-', `bytes=${4 << 20}-`]);
  assert.equal(slow.requests.length, 2);
  await slow.close();
  await rejectsWith(models.download(NANO, { store: cache }), 'use/param', /on a server/);
  await rejectsWith(models.download(url, { store: false }), 'use/param', /store/);
  await rejectsWith(models.download(url, { store: cache, sha: 1 }), 'use/param', /options\.sha /);
  await rejectsWith(models.download(url, { store: join(NANO, 'no-folder') }), 'storage/unavailable');
});

test('sha256 is checked, of files of this machine too', async () => {
  const cache = newCache();
  const right = createHash('sha256').update(BYTES).digest('hex');
  const wrong = `0${right.slice(1, 63)}0`;
  for (const source of [url, DEMO, new Blob([BYTES])]) {
    await rejectsWith(load(source, { store: cache, sha256: wrong }), 'model/integrity');
    const { text } = await answer(source, { store: cache, sha256: right.toUpperCase() });
    assert.match(text, /Nairobi/);
  }
  for (const bad of ['', 'abc', 5, [], [right, 'x']]) await rejectsWith(load(url, { sha256: bad }), 'use/param', /sha256/);
});

test('what is no model is not kept', async () => {
  const cache = newCache();
  const portal = await new LyingServer({ bytes: Buffer.from('<!doctype html><title>Sign in</title>'.padEnd(5000)) }).start();
  await rejectsWith(load(`${portal.base}/m.gguf`, { store: cache }), 'model/format');
  await portal.close();
  const cut = await new LyingServer({ bytes: BYTES.subarray(0, BYTES.length - 1000) }).start();
  await rejectsWith(load(`${cut.base}/m.gguf`, { store: cache }), 'model/format');
  await cut.close();
  assert.deepEqual(readdirSync(cache), []);
});

test('a folder that cannot be used: a notice, and the model', async () => {
  const info = mock.method(console, 'warn', () => {});
  const { text } = await answer(url, { store: join(NANO, 'no-folder') });
  info.mock.restore();
  assert.match(text, /Nairobi/);
  assert.match(info.mock.calls[0].arguments[0], /storage\/unavailable/);
  for (const bad of ['', 5, {}, { list() {} }]) await rejectsWith(load(url, { store: bad }), 'use/param', /options\.store/);
});

test('a store of one\'s own, which the worker uses over a port', async () => {
  const store = new MemoryStore(new Disk());
  const cold = await requestsOf(() => answer(url, { store }));
  const warm = await requestsOf(() => answer(url, { store }));
  assert.deepEqual([cold.requests, warm.requests, warm.text, store.opened, store.disk.locks.size], [1, 0, cold.text, 0, 0]);
  assert.equal(Buffer.compare(store.disk.files.get(store.disk.data[0]), BYTES), 0);
  const [entry] = await models.list({ store });
  assert.deepEqual([entry.id, entry.complete], [url, true]);
  store.disk.files.get(store.disk.data[0])[5] ^= 1;
  const repaired = await requestsOf(() => answer(url, { store }));
  assert.deepEqual([repaired.requests, repaired.text], [1, cold.text]);
  await models.remove(url, { store });
  assert.equal(store.disk.size, 0);
  const info = mock.method(console, 'warn', () => {});
  const full = await requestsOf(() => answer(url, { store: new MemoryStore(new Disk(), { quota: 100_000, told: false }) }));
  info.mock.restore();
  assert.deepEqual([full.text, info.mock.calls.length], [cold.text, 1]);
  assert.match(info.mock.calls[0].arguments[0], /storage\/quota/);
});

test('two loads at once: one download', async () => {
  const cache = newCache();
  const info = mock.method(console, 'warn', () => {});
  const both = await requestsOf(async () => ({ results: await Promise.all([answer(url, { store: cache }), answer(url, { store: cache })]) }));
  info.mock.restore();
  assert.deepEqual([both.requests, both.results[0].text], [1, both.results[1].text]);
});

test('locks of a folder: one at a time, free when their holder ends, however it ends', async () => {
  const cache = newCache();
  const [a, b] = [new FolderStore(cache), new FolderStore(cache)];
  const release = await a.lock('k', { wait: false });
  assert.equal(await b.lock('k', { wait: false }), null);
  assert.notEqual(await b.lock('other', { wait: false }).then((free) => free?.()), null);
  const abort = new AbortController();
  const aborted = b.lock('k', { wait: true, signal: abort.signal });
  abort.abort();
  await rejectsWithAbort(aborted);
  const order = [];
  const waiting = b.lock('k', { wait: true }).then((next) => { order.push('b'); return next; });
  order.push('a');
  release();
  const next = await waiting;
  assert.deepEqual(order, ['a', 'b']);
  next();

  const script = join(folder, 'holder.mjs');
  writeFileSync(script, `import { FolderStore } from ${JSON.stringify(new URL('../../../js/store/store-node.js', import.meta.url).href)};
    await new FolderStore(${JSON.stringify(cache)}).lock('k', { wait: true });
    process.send('held');
    setInterval(() => {}, 1000);`);
  for (const signal of ['SIGKILL', 'SIGTERM']) {
    const holder = fork(script);
    await once(holder, 'message');
    assert.equal(await a.lock('k', { wait: false }), null);
    const taken = a.lock('k', { wait: true });
    holder.kill(signal);
    (await taken)();
  }
  await until(() => true);
});

test('the command line keeps what it downloads, unless it is told not to', async () => {
  const run = promisify(execFile);
  const env = { ...process.env, XDG_CACHE_HOME: newCache() };
  const say = async (...flags) => requestsOf(async () => ({ ...await run(process.execPath, [CLI, 'run', url, 'Hi', '--max-tokens', '4', '--temperature', '0', ...flags], { env }) }));
  const without = await say('--no-store');
  assert.deepEqual([without.requests, existsSync(join(env.XDG_CACHE_HOME, 'quern'))], [1, false]);
  const cold = await say();
  const warm = await say();
  assert.deepEqual([cold.requests, warm.requests, warm.stdout, warm.stderr], [1, 0, without.stdout, '']);
});
