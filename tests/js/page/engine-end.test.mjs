// SPDX-License-Identifier: MIT
// An engine that crashes, hangs or is cut off (group W), in Node: everything pending settles in the promised time with its
// code, threads and memory of the dead engine are gone, and the next engine works. `make faults` builds the engine that
// breaks on demand. W05, W13 and W16 are of browsers: tests/web/engine-end.test.mjs.
//
// Not tested: Bun and Deno (W13), which are not here; `require` (W17): the package has modules only, as its exports say.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { load } from '../../../dist/node.js';
import { openModel } from '../../../js/page/model.js';
import { platform } from '../../../js/page/platform-node.js';
import { defaultThreads } from '../../../js/shared/variant.js';
import { length, some } from '../../fixtures/lengths.mjs';
import { NANO, rejectsWith, until } from '../support/helper.mjs';
import { stopwatch } from '../support/soon.mjs';

const FAULTS = fileURLToPath(new URL('../../../build/faults/worker.node.mjs', import.meta.url));
const DIST = new URL('../../../dist/', import.meta.url);
const THREADS = length(3, 4);

let folder;
let longHang;     // takes half a minute, during which other tests run
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quern-'));
  longHang = breakable().then((model) => breakEngine(model, `halt ${THREADS - 1}`, 'engine/hung'));
  longHang.catch(() => {});
});
after(() => rm(folder, { recursive: true }));

/** An engine that breaks on demand; without `limits` the watchdog has its real ones. */
const breakable = (limits, options) => openModel({ ...platform, watch: { limits } }, NANO, { threads: THREADS, variant: 'simd', workerUrl: FAULTS, ...options });

const SHORT = { hang: 2000, look: 100 };

/** For what hangs anyway. */
const SHORTEST = { hang: 700, look: 100 };

const countThreads = () => readdirSync('/proc/self/task').length;

/** Breaks an engine that has three things to do, and checks how they end. @returns {Promise<number>} seconds it took */
async function breakEngine(model, fault, code) {
  const elapsed = stopwatch();
  const pending = [model.tokenize(`fault ${fault}`), model.chat('Hello').result, model.complete('the').result];
  for (const promise of pending) await rejectsWith(promise, code);
  const took = elapsed();
  await rejectsWith(model.tokenize('x'), code);
  await model.dispose();
  return took;
}

async function chats(model) {
  assert.equal((await model.complete('the', { maxTokens: 3, temperature: 0 }).result).usage.completionTokens, 3);
  await model.dispose();
}

/** A worker script that does something else before it becomes the engine's. */
async function workerThat(name, script) {
  const file = join(folder, name);
  await writeFile(file, `${script}\nawait import(${JSON.stringify(new URL('worker.node.mjs', DIST).href)});`);
  return file;
}

test('W07: a crash in the engine\'s worker rejects everything at once', async () => {
  for (const fault of ['trap', 'bounds', 'stack']) {
    const took = await breakEngine(await breakable(), `${fault} 0`, 'engine/trap');
    assert.ok(took < 5, `${fault}: ${took} s`);
  }
});

test('W08: a crash in any thread rejects everything within 5 s, by the real limits', async () => {
  for (const fault of some(['trap 1', 'trap 2', 'stack 1', `trap ${THREADS - 1}`], 2)) {
    const took = await breakEngine(await breakable(), fault, 'engine/trap');
    assert.ok(took < 5, `${fault}: ${took} s`);
  }
  const next = await breakable();
  assert.equal(next.info.threads, THREADS);
  await chats(next);
});

test('W10: a signal ends a call to an engine that hangs, and dispose() the engine', async () => {
  const model = await breakable();
  const abort = new AbortController();
  const hanging = model.tokenize('fault spin 1', { signal: abort.signal });
  const waiting = model.chat('Hello').result;
  abort.abort(new Error('enough'));
  await assert.rejects(hanging, /enough/);
  await model.dispose();
  await rejectsWith(waiting, 'engine/disposed');
});

test('W10: a worker that hangs before there is an engine', async () => {
  const silent = await workerThat('silent.mjs', `
    import { parentPort } from 'node:worker_threads';
    parentPort.on('message', ({ type }) => { while (type === 'load'); });`);
  await rejectsWith(breakable(SHORT, { workerUrl: silent }), 'engine/hung');
  const stuck = await workerThat('stuck.mjs', 'for (;;);');
  await rejectsWith(breakable({ start: 500, look: 100 }, { workerUrl: stuck }), 'env/worker', /0\.5 seconds/);
});

test('W14: the page\'s thread may be busy for longer than the limit', async () => {
  const model = await breakable(SHORT);
  const reply = model.complete('the', { maxTokens: 50, temperature: 0 });
  const expected = reply.result.then(({ text }) => text);
  const again = model.complete('the', { maxTokens: 50, temperature: 0 });
  for (let i = 0; i < 2; i++) {
    const end = performance.now() + 1.25 * SHORT.hang;
    while (performance.now() < end);
    await new Promise(setImmediate);
  }
  assert.equal((await again.result).text, await expected);
  await model.dispose();
});

test('W11: foreign messages to the worker, and a flood of them, change nothing', async () => {
  let port;
  const startWorker = (url) => (port = platform.startWorker(url));
  const model = await openModel({ ...platform, startWorker }, NANO, { workerUrl: new URL('worker.node.mjs', DIST).href });
  const foreign = [null, undefined, 5, 'x', [], {}, { type: '__proto__', id: 1 }, { type: 'constructor' }, { type: 'stop' }, { type: 'stop', target: 99 }];
  for (let i = 0; i < 10_000; i++) port.post(foreign[i % foreign.length]);
  await chats(model);
});

test('W12: as many threads as are good, whatever the machine says it has', () => {
  assert.deepEqual([undefined, 0, NaN, 1, 2, 8, 256].map(defaultThreads), [1, 1, 1, 1, 2, 8, 8]);
});

test('W01: without SIMD', async () => {
  await rejectsWith(load(NANO, { workerUrl: await workerThat('old.mjs', 'WebAssembly.validate = () => false;') }), 'env/simd');
});

test('W13: where no worker can be started, support() and load() say why', async () => {
  const page = await import('../../../dist/index.js');
  for (const [scope, reason] of [['ServiceWorkerGlobalScope', 'A service worker of this browser starts no workers: load the model in a page.'], ['Other', 'This browser is too old: it has no Web Workers.']]) {
    globalThis[scope] = class {};
    assert.deepEqual([page.support().ok, page.support().reason], [false, reason]);
    await assert.rejects(page.load('https://localhost/x.gguf'), { code: 'env/worker', message: reason });
    delete globalThis[scope];
  }
});

test('W06: a wasm file that is cut off or of another version', async () => {
  const bytes = await readFile(new URL('quern-simd.wasm', DIST));
  const cut = join(folder, 'cut.wasm');
  await writeFile(cut, bytes.subarray(0, bytes.length / 2));
  await rejectsWith(load(NANO, { variant: 'simd', wasmUrl: cut }), 'env/version');
  const other = join(folder, 'old.wasm');
  const at = bytes.indexOf('\x05quern') + 6;    // a custom section's name, then its content
  await writeFile(other, Buffer.concat([bytes.subarray(0, at), Buffer.from('0'), bytes.subarray(at + 1)]));
  await rejectsWith(load(NANO, { variant: 'simd', wasmUrl: other }), 'env/version', /interface 0/);
});

test('W13: in a worker of somebody\'s own', async () => {
  const file = join(folder, 'own.mjs');
  await writeFile(file, `
    import { parentPort } from 'node:worker_threads';
    import { load } from ${JSON.stringify(new URL('node.js', DIST).href)};
    const model = await load(${JSON.stringify(NANO)}, { threads: 2 });
    parentPort.postMessage((await model.complete('the', { maxTokens: 2, temperature: 0 }).result).usage.completionTokens);
    await model.dispose();`);
  const worker = new Worker(file);
  const tokens = await new Promise((resolve, reject) => { worker.once('message', resolve).once('error', reject); });
  assert.equal(tokens, 2);
  await worker.terminate();
});

test('W17: a process may end with an engine at work, and says nothing', async () => {
  const script = `
    const { load } = await import(${JSON.stringify(new URL('node.js', DIST).href)});
    const model = await load(${JSON.stringify(NANO)}, { threads: 3 });
    model.complete('the', { maxTokens: 1e6, temperature: 0 });
    setTimeout(() => process.exit(0), 50);`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 60_000 });
  assert.deepEqual([stdout, stderr], ['', '']);
});

test('W18: a model is disposed of as soon as it is loaded, and after one call, without the process noticing', async () => {
  const script = `
    const { load } = await import(${JSON.stringify(new URL('node.js', DIST).href)});
    const { tinyModel } = await import(${JSON.stringify(new URL('../../fixtures/tiny.mjs', import.meta.url).href)});
    const file = new Blob([tinyModel()]);
    for (let i = 0; i < 12; i++) {
      const model = await load(file, { threads: 1, contextSize: 64 });
      if (i % 3 === 2) await model.tokenize('a');
      await model.dispose();
    }
    process.stdout.write('all');`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 60_000 });
  assert.deepEqual([stdout, stderr], ['all', '']);
});

test('W10: a thread that never comes back is given up after 30 s, by the real limits', async () => {
  const took = await longHang;
  assert.ok(took > 24 && took < 36, `${took} s`);
});

test('W10: whichever thread spins; its processor is free again, its thread gone, and the next engine works', async () => {
  await chats(await breakable());
  const threads = countThreads();
  for (let thread = 0; thread < THREADS; thread += length(THREADS - 1, 1)) {
    await breakEngine(await breakable(SHORTEST), `spin ${thread}`, 'engine/hung');
    await until(() => countThreads() <= threads);
  }
  const before = process.cpuUsage();
  await new Promise((done) => { setTimeout(done, 500); });
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 250_000, `${(user + system) / 1000} ms of processor time`);
  await chats(await load(NANO, { threads: THREADS }));
});
