// SPDX-License-Identifier: MIT
// The folder in which Node keeps models, and its locks: who may read them, folders that cannot be made or used, sockets of others,
// long paths. What models do with it is in models.test.mjs.

import assert from 'node:assert/strict';
import { execFile, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync, chownSync, existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import net, { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, mock, test } from 'node:test';
import { promisify } from 'node:util';
import { load, models } from '../../../dist/node.js';
import { guarded } from '../../../js/store/guard.js';
import { FolderStore } from '../../../js/store/store-node.js';
import { Entry, keyOf } from '../../../js/store/store.js';
import { some } from '../../fixtures/lengths.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { noise } from '../../fixtures/noise.mjs';
import { Site, session } from '../../fixtures/sessions.mjs';
import { CLI, DEMO, rejectsWith, until } from '../support/helper.mjs';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;

let folder;
let server;
let url;
before(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'quern-folder-')));
  chmodSync(folder, 0o755);
  server = await new LyingServer({ bytes: readFileSync(DEMO) }).start();
  url = `${server.base}/demo-q8_0.gguf`;
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

let last = 0;
const place = () => join(folder, `place-${++last}`);
const newFolder = (mode = 0o700) => {
  const path = place();
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
};
const modeOf = (path) => (statSync(path).mode & 0o777).toString(8);

function setEnv(env) {
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}

/** Does something with another environment, and as this user, where there is a choice. */
async function within(env, work, { user = 0 } = {}) {
  const old = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  setEnv(env);
  if (isRoot) process.seteuid(user);
  try {
    return await work();
  } finally {
    if (isRoot) process.seteuid(0);
    setEnv(old);
  }
}

/** What a load says beside doing what it should. */
async function loadQuietly(options) {
  const info = mock.method(console, 'warn', () => {});
  try {
    const model = await load(url, { threads: 1, ...options });
    assert.match((await model.chat('What is the capital of Kenya?', { temperature: 0 }).result).text, /Nairobi/);
    await model.dispose();
    return info.mock.calls.map(({ arguments: [text] }) => text);
  } finally {
    info.mock.restore();
  }
}

// --- who may read it ---

test('what is made is open to nobody else, whatever the umask', () => within({ XDG_CACHE_HOME: join(place(), 'deep', 'er') }, async () => {
  const mask = process.umask(0);
  try {
    assert.deepEqual(await loadQuietly(), []);
  } finally {
    process.umask(mask);
  }
  const cache = join(process.env.XDG_CACHE_HOME, 'quern');
  for (const path of [cache, join(cache, '..'), join(cache, '../..')]) assert.equal(modeOf(path), '700', path);
  const names = readdirSync(cache);
  assert.equal(names.length, 2);
  for (const name of names) assert.equal(modeOf(join(cache, name)), '600', name);
}));

test('what an older version has left open in our own folder is closed', () => within({ XDG_CACHE_HOME: newFolder(0o755) }, async () => {
  const cache = join(process.env.XDG_CACHE_HOME, 'quern');
  const outside = place();
  mkdirSync(cache);
  for (const path of [join(cache, 'a.0'), join(cache, 'b.journal'), outside]) writeFileSync(path, 'x');
  symlinkSync(outside, join(cache, 'c.0'));
  for (const [path, mode] of [[cache, 0o755], [join(cache, 'a.0'), 0o644], [join(cache, 'b.journal'), 0o666], [outside, 0o644]]) chmodSync(path, mode);
  await models.list();
  assert.deepEqual(['.', 'a.0', 'b.journal', 'c.0'].map((name) => modeOf(join(cache, name))), ['700', '600', '600', '644']);
  assert.equal(modeOf(process.env.XDG_CACHE_HOME), '755');
}));

test('a folder that the caller named stays as open as it is; files that are written do not', async () => {
  const cache = newFolder(0o755);
  writeFileSync(join(cache, 'other'), 'x');
  const store = new FolderStore(cache);
  writeFileSync(join(cache, 'k.0'), 'x');
  for (const name of ['other', 'k.0']) chmodSync(join(cache, name), 0o644);
  await (await store.open('k.0', { write: true })).close();
  await (await store.open('other', { write: false })).close();
  assert.deepEqual(['.', 'k.0', 'other'].map((name) => modeOf(join(cache, name))), ['755', '600', '644']);
});

// --- folders that cannot be used ---

test('a cache folder that cannot be made or used: a notice, the model, and an end', async () => {
  const file = place();
  writeFileSync(file, 'x');
  const [dangling, circle] = [place(), place()];
  symlinkSync(join(folder, 'nowhere'), dangling);
  symlinkSync(circle, circle);
  for (const home of some(['/proc/nope', '/sys', file, '/proc/nope/deeper/still', dangling, circle], 2)) {
    const env = { ...process.env, XDG_CACHE_HOME: home };
    const { stdout } = await run(process.execPath, [CLI, 'run', url, 'Hi', '--max-tokens', '4', '--temperature', '0'], { env, timeout: 60_000 });
    assert.ok(stdout.length > 0, home);
    await within(env, async () => {
      await rejectsWith(models.usage(), 'storage/unavailable');
      await rejectsWith(models.download(url), 'storage/unavailable');
    });
  }
});

test('a folder of somebody else', { skip: !isRoot && 'only root can be two users' }, async () => {
  for (const mode of [0o755, 0o700]) {
    await within({ XDG_CACHE_HOME: newFolder(mode) }, async () => {
      const { code, notices } = await session(new Site(noise(5000)), null, { store: new FolderStore(), real: true });
      assert.deepEqual([code, notices.map((notice) => notice.code)], [null, ['storage/unavailable']]);
    }, { user: NOBODY });
  }
  await within({ XDG_CACHE_HOME: undefined, HOME: undefined }, async () => {
    const { code, notices } = await session(new Site(noise(5000)), null, { store: new FolderStore(), real: true });
    assert.deepEqual([code, notices.map((notice) => notice.code)], [null, ['storage/unavailable']]);
  }, { user: 54_321 });    // of whom the system knows no home
});

test('a complete model in a folder that cannot be written to is loaded without a word', async () => {
  const cache = newFolder(0o755);
  const bytes = noise(5000);
  assert.equal((await session(new Site(bytes), null, { store: new FolderStore(cache), real: true })).code, null);
  for (const name of readdirSync(cache)) chmodSync(join(cache, name), 0o444);
  chmodSync(cache, 0o555);
  await within({}, async () => {
    const site = new Site(bytes);
    const found = await session(site, null, { store: new FolderStore(cache), real: true });
    assert.deepEqual([found.code, Buffer.compare(found.bytes, bytes), found.opened.cached, found.notices, site.requests], [null, 0, true, [], []]);
  }, { user: NOBODY });
  chmodSync(cache, 0o755);
  rmSync(`/tmp/quern-${NOBODY}`, { recursive: true, force: true });    // TMPDIR means nothing to another user than the process's own
});

test('whatever else is in the folder is left alone', async () => {
  const cache = newFolder();
  symlinkSync(join(cache, 'circle'), join(cache, 'circle'));
  mkdirSync(join(cache, 'folder'));
  assert.deepEqual(await loadQuietly({ store: cache }), []);
  await models.remove(url, { store: cache });
  assert.deepEqual(readdirSync(cache).sort(), ['circle', 'folder']);
});

test('a link by the name of what is stored leads nothing elsewhere', async () => {
  for (const name of ['journal', '0']) {
    const cache = newFolder();
    const [letter, path] = [place(), join(cache, `${await keyOf(url)}.${name}`)];
    writeFileSync(letter, 'Dear reader', { mode: 0o644 });
    symlinkSync(letter, path);
    assert.match((await loadQuietly({ store: cache })).join(), /storage\/unavailable/);
    assert.deepEqual([String(readFileSync(letter)), modeOf(letter)], ['Dear reader', '644'], name);
    await models.remove(url, { store: cache });
    assert.deepEqual([existsSync(path), String(readFileSync(letter))], [false, 'Dear reader'], name);
  }
});

test('what is no file there but a pipe holds nobody up', { skip: process.platform === 'win32' }, async () => {
  for (const name of ['journal', '0']) {
    const cache = newFolder();
    if (name === '0') await models.download(url, { store: cache });
    const path = join(cache, `${await keyOf(url)}.${name}`);
    rmSync(path, { force: true });
    await run('mkfifo', [path]);
    assert.match((await loadQuietly({ store: cache })).join(), /storage\/unavailable/);
  }
});

// --- locks ---

/** Where a lock is, in a folder whose path is not too long. */
const socketIn = (cache, name) => join(cache, `.lock-${name}`);

/** Listens as a lock does. @returns {Promise<object>} the server */
async function listenAt(path) {
  const holder = createServer((socket) => socket.on('error', () => {})).unref();
  holder.listen(path);
  await once(holder, 'listening');
  return holder;
}

/** Leaves a socket on which nobody listens, as a process does that is killed. */
async function leaveDead(path) {
  const other = place();
  const holder = await listenAt(other);
  linkSync(other, path);
  holder.close();
  await once(holder, 'close');
}

test('a lock is in its folder, and needs no temporary one; dropping the model leaves it', () => within({ TMPDIR: '/proc/nope' }, async () => {
  const cache = place();
  const entry = new Entry(new FolderStore(cache), await keyOf('x'));
  const path = socketIn(cache, await keyOf('x'));
  const release = await entry.lock({ wait: false });
  assert.ok(existsSync(path));
  assert.equal(await new FolderStore(cache).lock(await keyOf('x'), { wait: false }), null);
  await entry.drop();
  assert.ok(existsSync(path));
  assert.deepEqual(await models.list({ store: cache }), []);
  release();
  await until(() => !existsSync(path));
  assert.deepEqual(await loadQuietly({ store: cache }), []);
}));

test('whoever listens in the temporary folder makes nobody wait', async () => {
  const cache = newFolder();
  const name = createHash('sha256').update(join(cache, await keyOf(url))).digest('hex').slice(0, 24);
  const holder = await listenAt(join(tmpdir(), `quern-${name}.sock`));
  assert.deepEqual(await loadQuietly({ store: cache }), []);
  holder.close();
});

test('a lock of somebody else is not believed', async () => {
  const cache = newFolder();
  const holder = await listenAt(socketIn(cache, 'k'));
  const getuid = mock.method(process, 'geteuid', () => 12_345);
  for (const wait of [true, false]) await rejectsWith(guarded(new FolderStore(cache)).lock('k', { wait, signal: new AbortController().signal }), 'storage/unavailable', /somebody else/);
  getuid.mock.restore();
  assert.equal(await new FolderStore(cache).lock('k', { wait: false }), null, 'our own is');
  holder.close();
  if (!isRoot) return;
  const other = await listenAt(socketIn(cache, await keyOf(url)));
  chownSync(socketIn(cache, await keyOf(url)), NOBODY, NOBODY);
  assert.match((await loadQuietly({ store: cache })).join(), /storage\/unavailable.*somebody else/);
  await rejectsWith(models.download(url, { store: cache }), 'storage/unavailable', /somebody else/);
  await rejectsWith(models.remove(url, { store: cache }), 'storage/unavailable', /somebody else/);
  other.close();
});

/** A process that takes a lock, says whether it has it, and holds it. */
async function holderOf(cache, name) {
  const script = join(folder, 'holder.mjs');
  writeFileSync(script, `import { FolderStore } from ${JSON.stringify(new URL('../../../js/store/store-node.js', import.meta.url).href)};
    const release = await new FolderStore(process.argv[2]).lock(process.argv[3], { wait: false });
    process.send(Boolean(release));
    setInterval(() => {}, 1000);`);
  const holder = fork(script, [cache, name]);
  const [has] = await once(holder, 'message');
  return { has, holder };
}

test('a folder whose path is too long for sockets: its locks are in a private one below the temporary folder', async () => {
  const temporary = newFolder();
  await within({ TMPDIR: temporary }, async () => {
    const cache = join(place(), 'long'.repeat(40));
    const { has, holder } = await holderOf(cache, 'k');
    assert.equal(has, true);
    const store = new FolderStore(cache);
    assert.equal(await store.lock('k', { wait: false }), null);
    const free = await store.lock('other', { wait: false });
    const twin = await new FolderStore(`${cache.slice(0, -1)}x`).lock('k', { wait: false });
    assert.deepEqual([typeof free, typeof twin], ['function', 'function'], 'names and folders are told apart to their ends');
    assert.deepEqual(readdirSync(temporary), [`quern-${process.getuid()}`]);
    const hidden = join(temporary, `quern-${process.getuid()}`);
    assert.deepEqual([modeOf(hidden), readdirSync(hidden).length, readdirSync(cache)], ['700', 3, []]);
    const taken = store.lock('k', { wait: true });
    holder.kill('SIGKILL');
    for (const release of [await taken, free, twin]) release();
    await until(() => readdirSync(hidden).length === 0);

    chmodSync(hidden, 0o777);
    await rejectsWith(guarded(store).lock('k', { wait: false }), 'storage/unavailable', /somebody else/);
    rmSync(hidden, { recursive: true });
    symlinkSync(newFolder(), hidden);
    await rejectsWith(guarded(store).lock('k', { wait: false }), 'storage/unavailable', /somebody else/);
  });
  await within({ TMPDIR: '/proc/nope' }, () => rejectsWith(guarded(new FolderStore(join(place(), 'long'.repeat(40)))).lock('k', { wait: false }), 'storage/unavailable'));
});

test('a holder who is killed while he is being asked is one who is gone', async (t) => {
  const cache = newFolder();
  const { holder } = await holderOf(cache, 'k');
  holder.kill('SIGSTOP');
  const { connect } = net;
  const set = (replacement) => {
    net.connect = replacement;
    syncBuiltinESMExports();
  };
  t.after(() => set(connect));
  set((path) => {
    const socket = connect(path);
    holder.kill('SIGKILL');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);    // he has ended before anything is heard of the connection
    set(connect);
    return socket;
  });
  const release = await new FolderStore(cache).lock('k', { wait: false });
  assert.equal(typeof release, 'function');
  release();
});

test('what a killed process has left is taken by one, of many at once', async () => {
  for (let round = 0; round < 20; round++) {
    const cache = newFolder();
    await leaveDead(socketIn(cache, 'k'));
    const releases = await Promise.all(Array.from({ length: 16 }, () => new FolderStore(cache).lock('k', { wait: false })));
    assert.equal(releases.filter(Boolean).length, 1, `round ${round}`);
    releases.find(Boolean)();
  }
});

test('what is no socket where a lock should be is removed, if it is ours', async () => {
  const cache = newFolder();
  const things = { file: (path) => writeFileSync(path, 'x'), 'dangling link': (path) => symlinkSync(join(folder, 'nowhere'), path), 'dead socket': leaveDead };
  for (const [what, make] of Object.entries(things)) {
    await make(socketIn(cache, what));
    for (const wait of [true, false]) {
      const release = await new FolderStore(cache).lock(what, { wait });
      assert.equal(typeof release, 'function', what);
      release();
      await until(() => !existsSync(socketIn(cache, what)));
    }
  }
  mkdirSync(socketIn(cache, 'folder'));
  await rejectsWith(guarded(new FolderStore(cache)).lock('folder', { wait: false }), 'storage/unavailable');
});
