// SPDX-License-Identifier: MIT
// New files of `quern quantize` and `quern logits` where something goes wrong: killed at any moment, two writers, links, no room. The file is
// whole or absent (or the older one), nothing else in its folder is touched, and the next run makes it and leaves nothing behind.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, linkSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { length, some } from '../../fixtures/lengths.mjs';
import { random } from '../../fixtures/random.mjs';
import { patchSpec, tinySpec } from '../../fixtures/tiny.mjs';
import { CLI, NANO, until } from '../support/helper.mjs';

const PROGRAMS = { Node: [process.execPath, CLI], native: [join(PROJECT, 'build/release/quern')] };
const BUSY = /^quern: storage\/busy: Process \d+ is writing this file already: wait until it is done, or stop it\./;
const QUOTA = 'quern: storage/quota: There is not enough room on the disk for the new file; nothing was kept of it.\n';
const LOCK = '.out.gguf.quern-lock';

let base;   // of all folders
let whole;  // what the new file is
let long;   // a model that takes seconds to convert
before(() => {
  base = mkdtempSync(join(tmpdir(), 'quantize-faults-'));
  const { input, out } = place();
  execFileSync(PROGRAMS.native[0], ['quantize', input, out, '--type', 'q6_k']);
  whole = readFileSync(out);
  long = longFile();
});
const children = new Set();
after(() => {
  for (const child of children) child.kill('SIGKILL');   // one that is left would keep the runner waiting
  rmSync(base, { recursive: true });
});

/** Zeros, which take no room on the disk. */
function longFile() {
  const rows = 2 ** 20;
  const tensors = Object.fromEntries(['gate', 'up', 'down'].map((role) => [`blk.0.ffn_${role}.weight`, { dims: role === 'down' ? [rows, 256] : [256, rows], data: undefined }]));
  const { header, layout } = writeHeader(patchSpec(tinySpec({ type: 'F32', hidden: 256 }), { kv: { 'qwen3.feed_forward_length': ['u32', rows] }, tensors }));
  const path = join(base, 'long.gguf');
  writeFileSync(path, header);
  truncateSync(path, header.length + Math.max(...layout.map(({ at, size }) => at + size)));
  return path;
}

/** A new folder with a model under two names and a letter. */
function place() {
  const folder = mkdtempSync(join(base, 'place-'));
  const path = (name) => join(folder, name);
  copyFileSync(join(PROJECT, GOLDEN, 'nano.F32.gguf'), path('in.gguf'));
  linkSync(path('in.gguf'), path('twin.gguf'));
  writeFileSync(path('letter.txt'), 'Dear reader');
  return { folder, path, input: path('in.gguf'), out: path('out.gguf'), lock: path(LOCK) };
}

function content(path) {
  const info = lstatSync(path);
  if (info.isSymbolicLink()) return readlinkSync(path);
  if (info.isDirectory()) return readdirSync(path).join();
  return info.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
}

/** What a folder holds besides the new file. */
const others = ({ folder }) => readdirSync(folder).filter((name) => name !== 'out.gguf').sort()
  .map((name) => ({ name, mode: lstatSync(join(folder, name)).mode, content: content(join(folder, name)) }));

/** Of the new file: its content, or the path of the link there; null: none. */
function now({ out }) {
  try {
    return lstatSync(out).isSymbolicLink() ? readlinkSync(out) : readFileSync(out);
  } catch {
    return null;
  }
}

const isWhole = (spot) => Buffer.isBuffer(now(spot)) && whole.equals(now(spot));

/** The name of the file that grows, while it does. */
const growing = ({ folder }) => readdirSync(folder, { withFileTypes: true }).find((entry) => entry.isFile() && /^out\.gguf\..*part$/.test(entry.name))?.name;

/** @param {number} blocks the most KiB a file may have */
function start(program, args, blocks) {
  const [command, ...words] = [...(blocks === undefined ? [] : ['bash', '-c', 'ulimit -f "$0"; exec "$@"', String(blocks)]), ...program, ...args];
  const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child.once('close', () => children.delete(child)));
  const [err, out, closed] = [child.stderr.toArray(), child.stdout.toArray(), once(child, 'close')];
  const ended = closed.then(async ([code, signal]) => ({ code, signal, err: Buffer.concat(await err).toString(), out: Buffer.concat(await out) }));
  return { child, ended };
}

const conversion = ({ input, out }) => ['quantize', input, out, '--type', 'q6_k', '--threads', '1'];

async function succeeds(program, spot) {
  const { code, err } = await start(program, conversion(spot)).ended;
  assert.deepEqual([code, err], [0, '']);
  assert.ok(isWhole(spot));
}

/** A run that has begun to write and is held there. */
async function held(program, spot) {
  for (;;) {
    const { child, ended } = start(program, conversion(spot));
    await until(() => growing(spot) || child.exitCode !== null);
    child.kill('SIGSTOP');
    await until(() => child.exitCode !== null || /^\d+ \(.*\) T/.test(readFileSync(`/proc/${child.pid}/stat`)));
    if (growing(spot)) return { child, ended };
  }
}

/** What a run leaves that is killed while it writes. @returns {Promise<string>} the name of the file that grew */
async function leftovers(program, spot) {
  const { child, ended } = start(program, conversion({ ...spot, input: long }));
  await until(() => growing(spot));
  child.kill('SIGKILL');
  await ended;
  return growing(spot);
}

let played = 0;

/** By both programs, or by one of them in turn. */
const both = (name, run) => {
  for (const [which, program] of some(Object.entries(PROGRAMS), 2, played++)) test(`${name} (${which})`, { timeout: 120_000 }, (t) => run(program, t));
};

both('links are replaced, not followed; the model\'s own names are refused', async (program) => {
  const spot = place();
  symlinkSync('letter.txt', spot.path('out.gguf.part'));   // what the file that grows was called once
  const before = others(spot);
  await succeeds(program, spot);
  assert.deepEqual(others(spot), before);
  for (const target of ['letter.txt', 'nowhere']) {
    unlinkSync(spot.out);
    symlinkSync(target, spot.out);
    await succeeds(program, spot);
    assert.deepEqual(others(spot), before, target);
  }
  for (const link of [linkSync, symlinkSync]) {
    unlinkSync(spot.out);
    link(spot.path('twin.gguf'), spot.out);
    assert.match((await start(program, conversion(spot)).ended).err, /^quern: use\/param: The new file would replace the model/);
    assert.deepEqual(others(spot), before);
  }
});

both('one writer at a time: the second one is refused, the first one goes on', async (program) => {
  const spot = place();
  const before = others(spot);
  const { child, ended } = await held(program, spot);
  const meanwhile = others(spot);
  for (const other of Object.values(PROGRAMS)) {
    const { code, err } = await start(other, conversion(spot)).ended;
    assert.equal(code, 1);
    assert.match(err, BUSY);
    assert.ok(err.includes(`Process ${child.pid} `));
    assert.deepEqual(others(spot), meanwhile);
  }
  child.kill('SIGCONT');
  assert.equal((await ended).code, 0);
  assert.ok(isWhole(spot));
  assert.deepEqual(others(spot), before);
});

test('of several that start at once, beside what a dead one left, one makes the file', { timeout: 120_000 }, async (t) => {
  const spot = place();
  const before = others(spot);
  let made = 0;
  for (let round = 0; round < 6; round++) {
    await leftovers(PROGRAMS.native, spot);
    const all = await Promise.all(Array.from({ length: 6 }, (_, i) => start(Object.values(PROGRAMS)[i % 3 ? 1 : 0], conversion(spot)).ended));
    for (const { code, err } of all) if (code !== 0) assert.match(err, BUSY);
    made += all.filter(({ code }) => code === 0).length;
    assert.ok(isWhole(spot));
    assert.deepEqual(others(spot), before);
  }
  t.diagnostic(`${made} of 36 made it, one after the other`);
  assert.ok(made >= 6);
});

both('an interrupt, an end by another program, a terminal that closes: status, a sentence, an older file stays', async (program) => {
  const spot = { ...place(), input: long };
  writeFileSync(spot.out, 'older');
  const before = others(spot);
  for (const [signal, status] of [['SIGINT', 130], ['SIGTERM', 143], ['SIGHUP', 129]]) {
    const { child, ended } = start(program, conversion(spot));
    await until(() => growing(spot) && lstatSync(spot.path(growing(spot))).size > 2 ** 20);
    child.kill(signal);
    const { code, err } = await ended;
    assert.deepEqual([code, err], [status, 'quern: use/aborted: The conversion was stopped; nothing was kept of it.\n']);
    assert.equal(now(spot).toString(), 'older');
    assert.deepEqual(others(spot), before);
  }
});

both('what dead runs left is removed, whoever has their number by now', async (program) => {
  const spot = place();
  const before = others(spot);
  for (const other of Object.values(PROGRAMS)) {
    await leftovers(other, spot);
    await succeeds(program, spot);
    assert.deepEqual(others(spot), before);
  }
  const left = await leftovers(program, spot);
  const reused = left.replace(/gguf\.\d+/, `gguf.${process.pid}`);
  renameSync(spot.path(left), spot.path(reused));
  unlinkSync(spot.lock);
  symlinkSync(reused, spot.lock);
  await succeeds(program, spot);
  assert.deepEqual(others(spot), before);
  unlinkSync(spot.out);
  symlinkSync(left, spot.lock);   // the process ended between its file and its lock
  await succeeds(program, spot);
  assert.deepEqual(others(spot), before);
});

both('a dead process that nobody has buried is dead', async (program) => {
  const spot = place();
  const before = others(spot);
  const parent = spawn('bash', ['-c', '"$@" & echo $!; exec sleep 100', 'bash', ...program, ...conversion({ ...spot, input: long })]);
  try {
    const [child] = await once(parent.stdout, 'data');
    await until(() => growing(spot));
    process.kill(Number(child), 'SIGKILL');
    await until(() => /\) Z/.test(readFileSync(`/proc/${Number(child)}/stat`)));
    await succeeds(program, spot);
    assert.deepEqual(others(spot), before);
  } finally {
    parent.kill('SIGKILL');
  }
});

both('what is not provably a dead run\'s is left alone and does not hinder', async (program) => {
  const spot = place();
  const left = await leftovers(program, spot);
  const elsewhere = left.replace(/-[0-9a-f]{8}-/, '-00000000-');
  const kinds = {
    'a file': () => writeFileSync(spot.lock, 'mine'),
    'an empty file': () => writeFileSync(spot.lock, ''),
    'a folder': () => mkdirSync(spot.lock),
    'a link to somewhere': () => symlinkSync('letter.txt', spot.lock),
    'a link to a name almost like it': () => symlinkSync(left.replace('out.gguf.', 'out.gguf.0'), spot.lock),
    'the lock of another machine': () => {
      symlinkSync(elsewhere, spot.lock);
      writeFileSync(spot.path(elsewhere), 'theirs');
    },
    'a lock with a folder': () => {
      symlinkSync(left, spot.lock);
      mkdirSync(spot.path(left));
    },
    'a lock with a link': () => {
      symlinkSync(left, spot.lock);
      symlinkSync('letter.txt', spot.path(left));
    },
  };
  for (const [kind, make] of Object.entries(kinds)) {
    for (const name of [LOCK, left, elsewhere]) rmSync(spot.path(name), { recursive: true, force: true });
    make();
    const before = others(spot);
    await succeeds(program, spot);
    assert.deepEqual(others(spot), before, kind);
    unlinkSync(spot.out);
  }
});

both('no room: an older file stays, and so does none', async (program) => {
  const spot = place();
  const before = others(spot);
  for (const older of [null, 'older']) {
    if (older) writeFileSync(spot.out, older);
    const { code, err } = await start(program, conversion(spot), 100).ended;
    assert.deepEqual([code, err], [1, QUOTA]);
    assert.equal(now(spot)?.toString() ?? null, older);
    assert.deepEqual(others(spot), before);
  }
});

const logitsTo = (path) => ['logits', NANO, '--tokens', '1 2 3', '--threads', '1', '--out', path];
const LOGITS = 3 * 320 * 4;

both('logits: whole or absent, straight into pipes and devices', async (program) => {
  const spot = place();
  const before = others(spot);
  for (const older of [null, 'older']) {
    if (older) writeFileSync(spot.out, older);
    const { code, err } = await start(program, logitsTo(spot.out), 1).ended;
    assert.deepEqual([code, err], [1, QUOTA]);
    assert.equal(now(spot)?.toString() ?? null, older);
    assert.deepEqual(others(spot), before);
  }
  unlinkSync(spot.out);
  symlinkSync('letter.txt', spot.out);
  assert.equal((await start(program, logitsTo(spot.out)).ended).code, 0);
  const logits = now(spot);
  assert.equal(logits.length, LOGITS);
  assert.deepEqual(others(spot), before);

  const shell = (line) => start(['bash', '-c', line, spot.path('redirected'), ...program], logitsTo('/dev/stdout')).ended;
  assert.ok((await shell('"$@" | cat')).out.equals(logits));
  assert.equal((await shell('"$@" > "$0"')).code, 0);
  assert.ok(readFileSync(spot.path('redirected')).equals(logits));
  execFileSync('mkfifo', [spot.path('pipe')]);
  const reader = start(['cat'], [spot.path('pipe')]);
  assert.equal((await start(program, logitsTo(spot.path('pipe'))).ended).code, 0);
  assert.ok((await reader.ended).out.equals(logits));
  assert.ok(lstatSync(spot.path('pipe')).isFIFO());
  const { code, err } = await start(program, logitsTo('/dev/full')).ended;
  assert.deepEqual([code, err], [1, QUOTA]);
});

test('a disk that is full', { timeout: 120_000 }, async (t) => {
  const folder = join(base, 'small');
  mkdirSync(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return t.skip('only root can mount one; limits of files stand in for it above');
  }
  try {
    for (const program of Object.values(PROGRAMS)) {
      for (const args of [conversion({ input: join(base, 'long.gguf'), out: join(folder, 'out.gguf') }), ['logits', NANO, '--tokens', '1 '.repeat(100), '--out', join(folder, 'out')]]) {
        const { code, err } = await start(program, args).ended;
        assert.deepEqual([code, err], [1, QUOTA]);
        assert.deepEqual(readdirSync(folder), []);
      }
    }
  } finally {
    execFileSync('umount', [folder]);
  }
});

/** What befalls a run. Each fulfils with whether the new file was made. */
const FAULTS = {
  ...Object.fromEntries(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'].map((signal) => [signal, async ({ child, ended }) => {
    child.kill(signal);
    return (await ended).code === 0;
  }])),
  twice: async ({ ended }, spot, draw) => {
    const all = await Promise.all([ended, start(PROGRAMS[draw() < 0.3 ? 'Node' : 'native'], conversion(spot)).ended]);
    for (const { code, err } of all) if (code !== 0) assert.match(err, BUSY);
    return all.some(({ code }) => code === 0);
  },
  'twice, and killed': async (run, spot) => {
    const second = start(PROGRAMS.native, conversion(spot));
    run.child.kill('SIGKILL');
    const [first, other] = await Promise.all([run.ended, second.ended]);
    if (other.code !== 0) assert.match(other.err, BUSY);
    return first.code === 0 || other.code === 0;
  },
  full: async ({ ended }) => {
    const { code, err } = await ended;
    if (code !== 0) assert.equal(err, QUOTA);
    return code === 0;
  },
};

/** A run, its fault, and a later run, which must make the file. */
async function moment(program, spot, i, draw, span) {
  const fault = Object.keys(FAULTS)[i % Object.keys(FAULTS).length];
  const older = [null, 'older', 'letter.txt'][Math.floor(3 * draw())];
  rmSync(spot.out, { force: true });
  if (older === 'older') writeFileSync(spot.out, older);
  if (older === 'letter.txt') symlinkSync(older, spot.out);
  const before = others(spot);
  const run = start(program, conversion(spot), fault === 'full' ? Math.floor(draw() * 1.2 * whole.length / 1024) : undefined);
  const early = draw() < 0.2;
  await until(() => early || growing(spot) || run.child.exitCode !== null);
  await new Promise((done) => { setTimeout(done, draw() * span); });
  const made = await FAULTS[fault](run, spot, draw);
  const label = `moment ${i}: ${fault}, ${older} before`;
  assert.ok(isWhole(spot) || (!made && String(now(spot)) === String(older)), label);
  const left = others(spot).filter(({ name }) => before.every((one) => one.name !== name));
  assert.deepEqual(others(spot).filter((one) => !left.some(({ name }) => name === one.name)), before, label);
  if (!/KILL|killed/.test(fault) && !early) assert.deepEqual(left, [], label);
  await succeeds(PROGRAMS[i % 10 ? 'native' : 'Node'], spot);
  assert.deepEqual(others(spot), before, label);
}

/** How long a run goes on after it has begun to write, in milliseconds. */
async function spanOf(program, spot) {
  const { child, ended } = start(program, conversion(spot));
  await until(() => growing(spot) || child.exitCode !== null);
  const begun = performance.now();
  await ended;
  return performance.now() - begun;
}

const MOMENTS = length(12, 60);

test('killed at many moments', { timeout: 300_000 }, async (t) => {
  await Promise.all(Object.entries({ Node: Math.ceil(MOMENTS / 4), native: MOMENTS }).map(async ([which, moments], lane) => {
    const [spot, draw] = [place(), random(1000 + lane)];
    symlinkSync('letter.txt', spot.path('out.gguf.part'));
    const span = await spanOf(PROGRAMS[which], spot);
    t.diagnostic(`${which}: ${Math.round(span)} ms`);
    for (let i = 0; i < moments; i++) await moment(PROGRAMS[which], spot, i, draw, span);
  }));
});
