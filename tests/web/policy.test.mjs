// SPDX-License-Identifier: MIT
// Pages whose Content-Security-Policy forbids what the package needs (N12, W03, W05), in Chromium: the code is env/csp,
// and the sentence names the directive. A failure with another cause keeps its own code.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, test } from 'node:test';
import { PROJECT, station } from './browser.mjs';

const PAGE = '/tests/web/library.html';
const WORKER = '/dist/worker.js';
const MODEL = '/tests/fixtures/golden/nano.Q8_0.gguf';
const isolated = station({ root: PROJECT });

const servers = [];
after(() => { for (const server of servers) server.close(); });

/**
 * Starts a server of its own, since Playwright does not check requests that it changes when they are redirected.
 * @returns {Promise<string>} its origin
 */
async function listen(answer) {
  const server = createServer(answer);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** Serves the project's files, one of them with another policy, which `change` makes of the usual one. */
const serveChanged = (path, change) => listen(async ({ url }, response) => {
  const answer = await fetch(new URL(url, isolated.url));
  const headers = Object.fromEntries(answer.headers);
  delete headers['content-length'];
  response.writeHead(answer.status, { ...headers, ...(url === path && change(headers['content-security-policy'])) }).end(Buffer.from(await answer.arrayBuffer()));
});

/** The result of some work in a page where a file has another policy. */
async function inPage(path, change, work, argument) {
  const visit = await isolated.open('', { expected: /./ });
  await visit.page.goto(await serveChanged(path, change) + PAGE);
  await visit.page.waitForFunction(() => globalThis.quern);
  const found = await visit.page.evaluate(work, argument);
  await visit.close();
  return found;
}

/** The end of a load in such a page. */
const outcome = (path, change, source = MODEL, options = { threads: 1 }) => inPage(path, change, ([where, wanted]) => globalThis.quern.tryLoad(where, wanted), [source, options]);

/** The policy with another value of a directive. */
const having = (name, value) => (policy) => {
  const changed = policy.replace(new RegExp(`${name} [^;]*`), `${name} ${value}`);
  assert.notEqual(changed, policy);
  return { 'content-security-policy': changed };
};

test('N12: a policy that forbids the model\'s host, or the one it redirects to', async () => {
  const origin = await listen((_, response) => response.writeHead(302, { Location: 'https://models.example/m.gguf', 'Access-Control-Allow-Origin': '*' }).end());
  for (const [allowed, source] of [["'self'", `${origin}/m.gguf`], ["'self'", 'https://models.example/m.gguf'], [`'self' ${origin}`, `${origin}/m.gguf`]]) {
    const { code, message, hint } = await outcome(WORKER, having('connect-src', allowed), source);
    assert.deepEqual([code, message], ['env/csp', `The page's policy (connect-src) forbids requests to ${new URL(source).host}.`]);
    assert.match(hint, /connect-src for the model's host and those that it redirects to/);
  }
});

test('N12: a host that is only not there, under a policy that allows it or only reports it', async () => {
  for (const change of [() => ({}), () => ({ 'content-security-policy-report-only': "connect-src 'none'" })]) {
    assert.equal((await outcome(WORKER, change, 'http://127.0.0.1:1/m.gguf')).code, 'net/unreachable');
  }
});

test('W05: a policy that forbids WebAssembly, or to fetch it', async () => {
  for (const [name, value, sentence] of [['script-src', "'self'", /\(script-src without 'wasm-unsafe-eval'\)/], ['connect-src', "'none'", /\(connect-src\)/]]) {
    const { code, message } = await outcome(WORKER, having(name, value));
    assert.equal(code, 'env/csp');
    assert.match(message, sentence);
  }
});

test('W05: support() knows a policy of the page that forbids WebAssembly', async () => {
  const { ok, reason } = await inPage(PAGE, having('script-src', "'self'"), () => globalThis.quern.support());
  assert.deepEqual([ok, reason], [false, "The page's policy (script-src without 'wasm-unsafe-eval') forbids WebAssembly."]);
});

/** Serves the project's files without a policy. */
const serveOpenly = () => listen(async ({ url }, response) => {
  const answer = await fetch(new URL(url, isolated.url));
  response.writeHead(200, { 'Content-Type': answer.headers.get('content-type'), 'Access-Control-Allow-Origin': '*' }).end(Buffer.from(await answer.arrayBuffer()));
});

test('the package on another origin: two threads, or what the policy lacks', async () => {
  const origin = await serveOpenly();
  const withWorkers = (allowed) => (policy) => having('worker-src', allowed)(having('script-src', `'self' 'wasm-unsafe-eval' ${origin}`)(policy)['content-security-policy']);
  const load = async ([from, source]) => {
    const quern = await import(`${from}/dist/index.js`);
    return quern.load(source, { threads: 2 }).then(async (model) => {
      await model.dispose();
      return model.info.threads;
    }, ({ code, message }) => [code, message]);
  };
  assert.equal(await inPage(PAGE, withWorkers(`blob: ${origin}`), load, [origin, MODEL]), 2);
  assert.deepEqual(await inPage(PAGE, withWorkers(origin), load, [origin, MODEL]), ['env/csp', "The page's policy (worker-src without blob:) forbids the engine's worker."]);
});

test('a sandboxed frame, to which every origin is another one', async () => {
  const visit = await isolated.open('', { expected: /./ });
  const origin = await serveOpenly();
  await visit.page.goto(origin + PAGE);
  const inFrame = ([from, source]) => new Promise((done) => {
    addEventListener('message', ({ data }) => done(data));
    const frame = document.createElement('iframe');
    frame.sandbox = 'allow-scripts';
    frame.srcdoc = `<script type="module">
      import { load } from '${from}/dist/index.js';
      const model = await load('${from}${source}').catch(({ code }) => parent.postMessage(code, '*'));
      parent.postMessage((await model.complete('the', { maxTokens: 3, temperature: 0 }).result).usage.completionTokens, '*');
    </script>`;
    document.body.append(frame);
  });
  assert.equal(await visit.page.evaluate(inFrame, [origin, MODEL]), 3);
  await visit.close();
});

test('W03, W05: a policy that forbids workers', async () => {
  const { code, message } = await outcome(PAGE, having('worker-src', "'none'"));
  assert.equal(code, 'env/csp');
  assert.match(message, /\(worker-src\)/);
});

const TRUST = 'trusted-types';

test('Trusted Types that leave the package\'s policy out, in the page or where the worker starts its threads', async () => {
  for (const [path, threads] of [[PAGE, 1], [PAGE, 2], [WORKER, 2]]) {
    const { code, message, hint } = await outcome(path, having(TRUST, 'default'), MODEL, { threads });
    assert.deepEqual([code, message], ['env/csp', 'The page\'s policy (trusted-types without \'quern\') forbids the package\'s workers.'], `${path}, ${threads}`);
    assert.match(hint, /trusted-types the name quern/);
  }
});

test('Trusted Types that leave it out in the worker: chats need no worker of their own', async () => {
  const codes = await inPage(WORKER, having(TRUST, 'default'), async (source) => {
    const codeOf = (promise) => promise.then(() => 'fine', ({ code }) => code);
    const model = await globalThis.quern.load(source, { threads: 1 });
    const found = [await codeOf(model.chat('Hello').result), await codeOf(model.complete('the', { maxTokens: 2 }).result)];
    await model.dispose();
    return found;
  }, MODEL);
  assert.deepEqual(codes, ['fine', 'fine']);
});

test('Trusted Types with a default policy that knows the worker, and with several copies of the package', async () => {
  const load = async ({ source, defaults, copies }) => {
    const codes = [];
    if (defaults) globalThis.trustedTypes.createPolicy('default', { createScriptURL: (url) => url });
    for (let i = 0; i < copies; i++) {
      const quern = await import(`/dist/index.js?copy=${i}`);
      codes.push(await quern.load(source, { threads: 1 }).then(async (model) => model.dispose(), ({ code }) => code) ?? 'fine');
    }
    return codes;
  };
  const ends = (names, wanted) => inPage(PAGE, having(TRUST, names), load, { source: MODEL, ...wanted });
  assert.deepEqual(await ends('default', { defaults: true, copies: 1 }), ['fine']);
  assert.deepEqual(await ends('quern default', { defaults: true, copies: 2 }), ['fine', 'fine']);
  assert.deepEqual(await ends("quern 'allow-duplicates'", { copies: 2 }), ['fine', 'fine']);
  assert.deepEqual(await ends('quern', { copies: 2 }), ['fine', 'env/csp']);
});
