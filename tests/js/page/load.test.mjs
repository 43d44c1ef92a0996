// SPDX-License-Identifier: MIT
// What can go wrong on the way in: sources, servers, files, workers, aborts (N, G, W03). Every failure is typed and leaves
// nothing behind.

import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFile } from 'node:child_process';
import { after, before, mock, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { load, models, support } from '../../../dist/node.js';
import { instantiate } from '../../../js/engine/instance.js';
import { CLI, DEMO, NANO, rejectsWith, rejectsWithAbort, withServer } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

let bytes;
let folder;
before(async () => {
  bytes = await readFile(NANO);
  folder = await mkdtemp(join(tmpdir(), 'quern-'));
});
after(() => rm(folder, { recursive: true }));

const blob = (...parts) => new Blob(parts);

test('sources that are none', async () => {
  for (const source of [undefined, null, 5, {}, [], '', { file: 'b' }, ['a.gguf']]) await rejectsWith(load(source), 'use/param', /source/);
  await rejectsWith(load('/no/such/file.gguf'), 'use/param', /no such file/);
  await rejectsWith(load(folder), 'use/param', /folder without a model/);
  await rejectsWith(load(NANO, { thread: 2 }), 'use/param', /options\.thread /);
});

test('paths that are none, or cannot be read: a sentence, for everything that takes a source', async () => {
  const at = (name) => join(folder, name);
  await symlink(at('nowhere'), at('dangling'));
  await symlink(at('circle'), at('circle'));
  await mkdir(at('closed'), 0);
  const rows = [
    ['file://host/x', /not the address of a file/], ['file:///a%2Fb', /not the address of a file/], ['file:///%zz', /not the address of a file/], [new URL('file://host/x'), /not the address/],
    ['\0', /character 0/], ['a\0b', /character 0/], ['file:///%00', /character 0/], ['x'.repeat(5000), /too long/], [`${folder}/${'x/'.repeat(3000)}`, /too long/],
    [at('circle'), /in a circle/], [at('circle/m.gguf'), /in a circle/], [join(NANO, 'm.gguf'), /through a file/], ['ftp://host/\x1b[31m', /must begin with http/], ['https://\x1b[31m', /not an address/],
  ];
  const files = [['~', /no such file/], ['~/m.gguf', /no such file/], [at('dangling'), /no such file/], [at('\x1b[31mred\u202e.gguf'), /no such file/]];
  const check = async (promise, words) => {
    const { message } = await rejectsWith(promise, 'use/param', words);
    assert.doesNotMatch(message, /[\p{Cc}\p{Cf}]/u);
  };
  for (const [source, words] of [...rows, ...files]) await check(load(source), words);
  for (const [source, words] of rows) for (const ask of ['has', 'remove', 'download']) await check(models[ask](source), words);
  for (const [source] of files) for (const ask of ['has', 'remove', 'download']) await check(models[ask](source), /must be on a server/);
  const root = process.getuid?.() === 0;     // who reads everything
  if (root) process.seteuid(65534);
  try {
    await check(load(at('closed')), /may not be read/);
  } finally {
    if (root) process.seteuid(0);
  }
  for (const [source, words] of [rows[0], rows[7], rows[9], files[0]]) {
    const { code, stderr } = await promisify(execFile)(process.execPath, [CLI, 'info', String(source)]).catch((error) => error);
    assert.deepEqual([code, words.test(stderr), stderr.includes('ERR_')], [1, true, false], stderr);
  }
});

test('files that are no models', async () => {
  await rejectsWith(load(blob()), 'model/format');
  await rejectsWith(load(blob('<!doctype html><title>Sign in</title>'.padEnd(500))), 'model/format', /page|HTML/i);
  await rejectsWith(load(blob('x'.repeat(5000))), 'model/format');
  const cut = await rejectsWith(load(blob(bytes.subarray(0, 3000))), 'model/format');
  assert.equal(cut.detail.rule, 'truncated');
  assert.equal(cut.phase, 'load');
  await rejectsWith(load(blob(bytes.subarray(0, bytes.length - 100))), 'model/format');
});

test('answers of servers', async () => {
  const answers = {
    '/404': [404, 'not here'], '/403': [403, ''], '/429': [429, '', { 'Retry-After': '3600' }], '/html': [200, '<html>hello</html>'.padEnd(300)],
  };
  await withServer((request, response) => {
    const [status, body, headers] = answers[request.url] ?? [200, bytes];
    const from = Number(/\d+/.exec(request.headers.range)[0]);
    if (request.url === '/cut') {
      response.writeHead(206, { 'Content-Range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` });
      response.flushHeaders();
      if (from < 100_000) response.write(bytes.subarray(from, 100_000));
      setTimeout(() => response.destroy(), 20);
    } else if (request.url === '/wrong-range') {
      response.writeHead(206, { 'Content-Range': `bytes 5-99/${bytes.length}` }).end(bytes.subarray(5, 100));
    } else if (request.url === '/range') {
      response.writeHead(206, { 'Content-Range': `bytes 0-${bytes.length - 1}/${bytes.length}` }).end(bytes);
    } else if (request.url === '/chunked') {
      response.writeHead(200);
      response.write(bytes.subarray(0, 1000));
      response.end(bytes.subarray(1000));
    } else if (request.url === '/private') {
      response.writeHead(request.headers.authorization === 'Bearer t' ? 200 : 401).end(bytes);
    } else response.writeHead(status, headers).end(body);
  }, async (base) => {
    for (const [path, retryable] of [['/404', false], ['/403', false], ['/429', true]]) {
      const error = await rejectsWith(load(base + path), 'net/http', new RegExp(path.slice(1)));
      assert.deepEqual([error.detail.status, error.retryable], [Number(path.slice(1)), retryable]);
    }
    await rejectsWith(load(`${base}/html`), 'model/format');
    const cut = await rejectsWith(load(`${base}/cut`), 'net/truncated', /after 100000 bytes/);
    assert.equal(cut.retryable, true);
    await rejectsWith(load(`${base}/wrong-range`), 'net/range');
    await rejectsWith(load(`${base}/private`), 'net/http');
    for (const path of ['/range', '/chunked', '/private']) await (await load(base + path, { headers: { Authorization: 'Bearer t' } })).dispose();
  });
  await rejectsWith(load('http://127.0.0.1:1/x.gguf'), 'net/unreachable', /127\.0\.0\.1:1/);
});

test('an abort at any point of a load', async () => {
  await rejectsWithAbort(load(NANO, { signal: AbortSignal.abort() }));
  for (const ms of [0, 5, 20, 40, 60]) {
    const abort = new AbortController();
    const loading = load(DEMO, { signal: abort.signal });
    setTimeout(() => abort.abort(), ms);
    await loading.then((model) => model.dispose(), (error) => assert.equal(error.name, 'AbortError'));
  }
  await withServer((request, response) => { response.write(bytes.subarray(0, 5000)); }, (base) => soon(450, () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 150);
    return timed(() => rejectsWithAbort(load(base, { signal: abort.signal })));
  }));
});

test('a listener that throws ends the load', async () => {
  await assert.rejects(load(NANO, { onProgress() { throw new Error('mine'); } }), /mine/);
});

test('W03, W06: workers and engines that do not start', async () => {
  await rejectsWith(load(NANO, { workerUrl: new URL('missing.js', import.meta.url) }), 'env/worker');
  const broken = join(folder, 'broken.mjs');
  await writeFile(broken, 'this is no script');
  await rejectsWith(load(NANO, { workerUrl: broken }), 'env/worker');
  await rejectsWith(load(NANO, { wasmUrl: join(folder, 'missing.wasm') }), 'env/worker');
  await writeFile(join(folder, 'other.wasm'), Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  await rejectsWith(load(NANO, { wasmUrl: join(folder, 'other.wasm') }), 'env/version');
});

// Not as many as did start: what stops one (a policy, a missing file) stops all, and the glue does not tell which.
test('what is compiled is compiled once: a later load needs no file of the engine; a file that was no good is read again', async () => {
  const wasmUrl = pathToFileURL(join(folder, 'engine.wasm'));
  const options = { variant: 'simd', threads: 2, wasmUrl };
  await writeFile(wasmUrl, 'no engine');
  await rejectsWith(load(NANO, options), 'env/version');
  await copyFile(new URL('../../../dist/quern-simd.wasm', import.meta.url), wasmUrl);
  const first = await load(NANO, options);
  await rm(wasmUrl);
  const second = await load(NANO, options);
  const [[logits, threads], [again]] = await Promise.all([first, second].map(async (model) => [await model.logits([1, 2, 3]), model.info.threads]));
  assert.equal(threads, 2);
  assert.deepEqual(again, logits);
  await Promise.all([first, second].map((model) => model.dispose()));
  await rejectsWith(load(NANO, { ...options, wasmUrl: pathToFileURL(join(folder, 'another.wasm')) }), 'env/worker', /cannot be read/);
});

test('W04: threads that do not start cost speed only', async () => {
  const file = join(folder, 'silent.mjs');
  await writeFile(file, `
    import { createRequire } from 'node:module';
    import { EventEmitter } from 'node:events';
    const threads = createRequire(import.meta.url)('node:worker_threads');
    threads.Worker = class extends EventEmitter { postMessage() {} ref() {} unref() {} terminate() {} };
    const every = setInterval;
    globalThis.setInterval = (work, ms) => every(work, ms / 50);
    await import(${JSON.stringify(new URL('../../../dist/worker.node.mjs', import.meta.url).href)});`);
  const notices = mock.method(console, 'warn', () => {});
  const model = await load(NANO, { workerUrl: file, threads: 3 });
  notices.mock.restore();
  assert.equal(model.info.threads, 1);
  assert.match(notices.mock.calls[0].arguments[0], /threads did not start/);
  assert.equal((await model.complete('the', { maxTokens: 2, temperature: 0 }).result).usage.completionTokens, 2);
  await model.dispose();
});

test('W04: a thread that fails late leaves alone the engine that has none', async (t) => {
  const scope = new EventTarget();
  const sayError = () => scope.dispatchEvent(new Event('error', { cancelable: true }));
  for (const name of ['addEventListener', 'removeEventListener']) {
    const before = globalThis[name];
    globalThis[name] = scope[name].bind(scope);
    t.after(() => { globalThis[name] = before; });
  }
  const module = await WebAssembly.compile(await readFile(new URL('../../../dist/quern-simd.wasm', import.meta.url)));
  const start = (threads, glue) => instantiate(async () => glue(), module, threads, 32);
  await rejectsWith(start(3, () => { sayError(); return new Promise(() => {}); }), 'env/worker');
  const { wasm } = await start(1, () => { sayError(); return 'started'; });
  assert.equal(wasm, 'started');
});

test('support()', () => {
  const able = support();
  assert.ok(able.ok && able.simd && able.relaxed && able.threads && able.isolated);
  assert.equal(able.reason, '');
  assert.equal(able.variant, 'relaxed');
});

test('W17: loads and failures can be repeated, and a process with a loaded model ends by itself', async () => {
  const script = `
    import { load } from ${JSON.stringify(new URL('../../../dist/node.js', import.meta.url).href)};
    for (let i = 0; i < 5; i++) {
      await load(new Blob(['no model'.repeat(100)])).catch(() => {});
      const model = await load(${JSON.stringify(NANO)}, { threads: 3 });
      await model.chat('x', { maxTokens: 2 }).result;
      if (i < 4) await model.dispose();
    }
    console.log('end');`;
  await soon(20_000, () => timed(async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 30_000 });
    assert.deepEqual([stdout, stderr], ['end\n', '']);
  }));
});

test('W07, W09: an engine that crashes or disappears rejects what is pending', async () => {
  const worker = async (name, onLoad) => {
    const file = join(folder, name);
    await writeFile(file, `
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', ({ type, id }) => {
        if (type === 'load') parentPort.postMessage({ type: 'done', id, value: { tokens: 5, vocabSize: 5 } });
        else { ${onLoad} }
      });
      parentPort.postMessage({ type: 'ready' });`);
    return load(NANO, { workerUrl: file });
  };
  const crashing = await worker('crash.mjs', 'throw new Error("boom");');
  await rejectsWith(crashing.tokenize('x'), 'engine/trap', /boom/);
  await rejectsWith(crashing.chat('x').result, 'engine/trap');
  const ending = await worker('end.mjs', 'process.exit(3);');
  const pending = ending.chat('x').result;
  await rejectsWith(ending.tokenize('x'), 'engine/lost', /exit code 3/);
  await rejectsWith(pending, 'engine/lost');
  await ending.dispose();
});
