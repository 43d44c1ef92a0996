// SPDX-License-Identifier: MIT
// An engine that crashes, hangs, disappears or may not start (group W), in Chromium under the strict policy: every
// promise settles with its code, no worker remains, and the next engine works in the same page. Cases without a
// browser: tests/js; policies that forbid workers: policy.test.mjs.
//
// Not tested: a browser without WebAssembly or SIMD (W01), as there is none here (tests/js pretends); service workers
// (W13), which have no Worker, like the shared ones that are tested.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soon } from '../js/support/soon.mjs';
import { length, some } from '../fixtures/lengths.mjs';
import { PROJECT, eventually, station } from './browser.mjs';

const MODEL = '/tests/fixtures/golden/nano.Q8_0.gguf';
const FAULTS = '/build/faults/worker.js';
const SHORT = { hang: 1500, look: 100 };

// A trap in wasm ends the whole process in Chromium without windows.
const isolated = station({ root: PROJECT, whole: true });
const plain = station({ root: PROJECT, whole: true, isolate: false });

/**
 * A page with the tests' helpers: `open(limits, options)` is load() with limits of the watchdog, and `codeOf(promise)`.
 */
async function openPage(where, options) {
  const visit = await where.open('tests/web/library.html', { expected: /worker sent an error|uncaught: .*(unwind|unreachable|out of bounds|call stack|boom)/, ...options });
  const { page } = visit;
  await page.waitForFunction(() => globalThis.quern);
  await page.evaluate(async (source) => {
    const [{ openModel }, { platform }] = await Promise.all([import('/js/page/model.js'), import('/js/page/platform-web.js')]);
    globalThis.open = (limits, wanted) => openModel({ ...platform, watch: { limits } }, source, { threads: 3, variant: 'simd', workerUrl: '/dist/worker.js', ...wanted });
    globalThis.codeOf = (promise) => promise.then(() => 'no error', ({ code, name }) => code ?? name);
  }, MODEL);
  return visit;
}

/** Runs in the page. Breaks an engine with three requests. @returns the end of each, with its time */
async function breakEngine({ limits, fault, workerUrl }) {
  const { open, codeOf } = globalThis;
  const model = await open(limits, { workerUrl });
  const start = performance.now();
  const codes = await Promise.all([model.tokenize(`fault ${fault}`), model.chat('Hello').result, model.complete('the').result].map(codeOf));
  const took = performance.now() - start;
  codes.push(await codeOf(model.tokenize('x')));
  await model.dispose();
  return { codes, took };
}

/** Runs in the page. */
async function chats(options) {
  const model = await globalThis.open(undefined, options);
  const { usage } = await model.complete('the', { maxTokens: 3, temperature: 0 }).result;
  await model.dispose();
  return usage.completionTokens;
}

const four = (code) => [code, code, code, code];

test('W07, W08: a crash in any thread rejects everything within 5 s, no worker stays, and the next engine works', async () => {
  const visit = await openPage(isolated);
  for (const fault of some(['trap 0', 'stack 0', 'trap 1', 'stack 2', 'trap 2'], 3)) {
    await soon(5000, async () => {
      const { codes, took } = await visit.page.evaluate(breakEngine, { fault, workerUrl: FAULTS });
      assert.deepEqual(codes, four('engine/trap'), fault);
      return took;
    });
  }
  assert.equal(await visit.page.evaluate(chats), 3);
  await eventually(() => visit.page.workers().length === 0, 'all workers have ended');
  await visit.close();
});

test('W10: whichever thread spins; with shared memory and without', async () => {
  for (const [where, faults] of some([[isolated, length(['spin 2'], ['spin 0', 'spin 2'])], [plain, ['spin 0']]], 2)) {
    const visit = await openPage(where);
    for (const fault of faults) {
      const { codes, took } = await visit.page.evaluate(breakEngine, { limits: SHORT, fault, workerUrl: FAULTS });
      assert.deepEqual(codes, four('engine/hung'), fault);
      assert.ok(took >= SHORT.hang, `${took} ms`);
    }
    assert.equal(await visit.page.evaluate(chats), 3);
    await eventually(() => visit.page.workers().length === 0, 'all workers have ended');
    await visit.close();
  }
});

test('W07: a crash without shared memory', async () => {
  const visit = await openPage(plain);
  const { codes } = await visit.page.evaluate(breakEngine, { fault: 'bounds 0', workerUrl: FAULTS });
  assert.deepEqual(codes, four('engine/trap'));
  await visit.close();
});

/** Serves the engine's worker with another script before it. */
async function prefixWorker(page, script) {
  await page.route('**/odd-worker.js', async (route) => {
    const response = await route.fetch({ url: route.request().url().replace('odd-worker', 'worker') });
    await route.fulfill({ response, body: `${script};${await response.text()}` });
  });
  return '/dist/odd-worker.js';
}

test('W09: a worker that disappears without a word is noticed within 5 s', async () => {
  const visit = await openPage(isolated);
  const workerUrl = await prefixWorker(visit.page, "addEventListener('message', (event) => { if (event.data.text === 'vanish') close(); else return; event.stopImmediatePropagation(); })");
  await soon(5000, async () => {
    const { codes, took } = await visit.page.evaluate(async (url) => {
      const { open, codeOf } = globalThis;
      const model = await open(undefined, { workerUrl: url });
      const start = performance.now();
      const found = await Promise.all([model.chat('Hello', { maxTokens: 1e6, temperature: 0 }).result, model.tokenize('vanish')].map(codeOf));
      return { codes: found, took: performance.now() - start };
    }, workerUrl);
    assert.deepEqual(codes, ['engine/lost', 'engine/lost']);
    return took;
  });
  assert.equal(await visit.page.evaluate(chats), 3);
  await visit.close();
});

test('W11: what nobody handles in the worker ends the engine', async () => {
  const visit = await openPage(isolated);
  const workerUrl = await prefixWorker(visit.page, "addEventListener('message', ({ data }) => { if (data.text === 'reject') Promise.reject(new Error('boom')); })");
  const code = await visit.page.evaluate(async (url) => {
    const { open, codeOf } = globalThis;
    const model = await open(undefined, { workerUrl: url });
    const endless = model.complete('the', { maxTokens: 1e6, temperature: 0 }).result;
    model.tokenize('reject').catch(() => {});
    return codeOf(endless);
  }, workerUrl);
  assert.equal(code, 'engine/trap');
  await visit.close();
});

test('W08: what a thread throws is said in its words', async () => {
  const visit = await openPage(isolated, { expected: /boom/ });
  const workerUrl = await prefixWorker(visit.page, `const Real = Worker;
    globalThis.Worker = function (url, options) {
      const worker = new Real(url, options);
      if (/thread/.test(url)) addEventListener('message', ({ data }) => { if (data.text === 'throw') worker.dispatchEvent(new ErrorEvent('error', { message: 'boom', cancelable: true })); });
      return worker;
    }`);
  const message = await visit.page.evaluate((url) => globalThis.open(undefined, { workerUrl: url, threads: 2 }).then((model) => {
    model.tokenize('throw').catch(() => {});
    return model.complete('the', { maxTokens: 1e6, temperature: 0 }).result;
  }).catch((error) => error.message), workerUrl);
  assert.match(message, /\(Uncaught Error: in a thread: boom\)/);
  await visit.close();
});

test('W02: cross-origin isolated, but without shared memory, as WebKitGTK is: one thread, and a sentence of its own', async () => {
  const visit = await openPage(isolated, { init: () => { delete globalThis.SharedArrayBuffer; } });
  const workerUrl = await prefixWorker(visit.page, 'delete globalThis.SharedArrayBuffer');
  const { support, threads, text } = await visit.page.evaluate(async (url) => {
    const model = await globalThis.open(undefined, { workerUrl: url });
    const reply = await model.chat('Hello', { maxTokens: 3, temperature: 0 }).result;
    await model.dispose();
    return { support: globalThis.quern.support(), threads: model.info.threads, text: reply.text };
  }, workerUrl);
  assert.deepEqual([support.ok, support.isolated, support.threads, support.defaultThreads, threads], [true, true, false, 1, 1]);
  assert.match(support.reason, /SharedArrayBuffer/);
  assert.ok(text && visit.console.includes(`quern: ${support.reason}`), visit.console.join());
  await visit.close();
});

test('W03, W06: files that are missing, of a wrong type or broken', async () => {
  const odd = {
    '/odd/missing.js': [404, 'text/javascript', ''], '/odd/html.js': [200, 'text/html', '<p>hello'], '/odd/syntax.js': [200, 'text/javascript', 'this is no script'],
    '/odd/stuck.js': [200, 'text/javascript', 'for (;;);'], '/odd/cut.wasm': [200, 'application/wasm', '\0asm'], '/odd/missing.wasm': [404, 'text/plain', 'no'],
  };
  const visit = await openPage(isolated, { expected: /404|MIME|Uncaught|wasm|SyntaxError/ });
  const headers = { 'Cross-Origin-Embedder-Policy': 'require-corp', 'Cross-Origin-Resource-Policy': 'same-origin' };
  await visit.context.route('**/odd/*', (route) => {
    const [status, contentType, body] = odd[new URL(route.request().url()).pathname];
    return route.fulfill({ status, contentType, body, headers });
  });
  const codes = await visit.page.evaluate((all) => Promise.all(all.map(({ limits, ...options }) => globalThis.codeOf(globalThis.open(limits, options)))), [
    { workerUrl: '/odd/missing.js' }, { workerUrl: '/odd/html.js' }, { workerUrl: '/odd/syntax.js' }, { workerUrl: '/odd/stuck.js', limits: { start: 1000, look: 100 } },
    { wasmUrl: '/odd/missing.wasm' }, { wasmUrl: '/odd/cut.wasm' },
  ]);
  assert.deepEqual(codes, ['env/worker', 'env/worker', 'env/worker', 'env/worker', 'env/worker', 'env/version']);
  await visit.close();
});

test('W06: a wasm file with a wrong type is compiled all the same', async () => {
  const visit = await openPage(isolated);
  await visit.context.route('**/dist/quern-simd-text.wasm', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, headers: { ...response.headers(), 'content-type': 'text/plain' } });
  });
  assert.equal(await visit.page.evaluate(chats), 3);
  await visit.close();
});

test('W13: in a worker it works; in a shared worker the reason has a name', async () => {
  const visit = await openPage(isolated);
  const script = (answer) => `import { load } from '/dist/index.js';
    const work = async () => {
      const model = await load('${MODEL}', { threads: 2, workerUrl: '/dist/worker.js' });
      const { usage } = await model.complete('the', { maxTokens: 2, temperature: 0 }).result;
      await model.dispose();
      return String(usage.completionTokens);
    };
    const ended = work().catch(({ code, message }) => [code, message]);
    ${answer}`;
  const headers = { 'Cross-Origin-Embedder-Policy': 'require-corp', 'Cross-Origin-Resource-Policy': 'same-origin' };
  const bodies = { dedicated: script('postMessage(await ended);'), shared: script('onconnect = async ({ ports: [port] }) => port.postMessage(await ended);') };
  await visit.context.route('**/own-*.js', (route) => route.fulfill({ contentType: 'text/javascript', headers, body: bodies[/own-(\w+)/.exec(route.request().url())[1]] }));
  const answers = await visit.page.evaluate(() => {
    const policy = globalThis.trustedTypes.createPolicy('quern-page', { createScriptURL: (url) => url });
    return Promise.all([
      new Promise((resolve) => { new Worker(policy.createScriptURL('/own-dedicated.js'), { type: 'module' }).onmessage = ({ data }) => resolve(data); }),
      new Promise((resolve) => { new SharedWorker(policy.createScriptURL('/own-shared.js'), { type: 'module' }).port.onmessage = ({ data }) => resolve(data); }),
    ]);
  });
  assert.deepEqual(answers, ['2', ['env/worker', 'A shared worker of this browser starts no workers: load the model in a page.']]);
  await visit.close();
});

test('W15: frozen in the middle of a reply for longer than the limit, it goes on', async () => {
  const visit = await openPage(isolated);
  await visit.page.evaluate(async (limits) => {
    const model = await globalThis.open(limits, { variant: 'scalar' });
    globalThis.reply = model.complete('the', { maxTokens: 500, temperature: 0 }).result;
  }, { hang: 1000, look: 100 });
  assert.equal(await visit.page.evaluate(() => Promise.race([globalThis.reply, 'at work'])), 'at work');
  const session = await visit.context.newCDPSession(visit.page);
  for (const state of ['frozen', 'active']) {
    await session.send('Page.setWebLifecycleState', { state });
    await new Promise((done) => { setTimeout(done, 2000); });
  }
  assert.equal(await visit.page.evaluate(() => globalThis.reply.then(({ usage }) => usage.completionTokens)), 500);
  await visit.close();
});

test('W16: left in the middle of a reply and come back to, no worker stays and the page works; so does loading twice', async () => {
  const visit = await openPage(isolated);
  await visit.page.evaluate(async () => {
    const models = await Promise.all([globalThis.open(), globalThis.open()]);
    for (const model of models) model.complete('the', { maxTokens: 1e6, temperature: 0 }).result.catch(() => {});
  });
  await visit.page.goto(`${isolated.url}web/icons/icon.svg`);
  await eventually(() => visit.page.workers().length === 0, 'all workers have ended');
  await visit.page.goBack();
  await visit.page.waitForFunction(() => globalThis.quern);
  assert.equal(await visit.page.evaluate((source) => globalThis.quern.load(source).then(async (model) => (await model.complete('the', { maxTokens: 3, temperature: 0 }).result).usage.completionTokens), MODEL), 3);
  await visit.close();
});
