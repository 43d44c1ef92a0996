// SPDX-License-Identifier: MIT
// The engine that a page fetches: only the one with 32-bit addresses for small models, only the one with 64-bit
// addresses for a large file, and both only if the header, not the size, shows that 4 GiB are too little. The files are
// headers without weights.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { writeHeader } from '../fixtures/gguf-writer.mjs';
import { modelSpec } from '../fixtures/make-model.mjs';
import { PROJECT, station } from './browser.mjs';

const LIBRARY = 'tests/web/library.html';
const isolated = station({ root: PROJECT });
const MODELS = { '/four.gguf': { preset: 'qwen3-4b', type: 'q6_k' }, '/eight.gguf': { preset: 'qwen3-8b', type: 'q4_k_m' } };

let models;
before(async () => {
  const headers = Object.fromEntries(Object.entries(MODELS).map(([path, options]) => [path, writeHeader(modelSpec(options))]));
  models = createServer(({ url }, response) => {
    const [path, known] = url.split('?');
    const { header, layout } = headers[path];
    const { at, size } = layout.at(-1);
    const length = known && { 'Content-Length': header.length + at + size };
    response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin', ...length }).write(header);
    setTimeout(() => (known ? response.destroy() : response.end()), 500);
  });
  await new Promise((done) => { models.listen(0, '127.0.0.1', done); });
});
after(() => {
  models.closeAllConnections();
  models.close();
});

const CASES = [
  ['a small model', '/tests/fixtures/golden/nano.Q8_0.gguf', {}, ['quern-relaxed-text.wasm'], undefined],
  ['3.3 GB and a small context', '/four.gguf', { contextSize: 1024 }, ['quern-relaxed-text.wasm'], 'model/format'],
  ['3.3 GB and a large context', '/four.gguf', { contextSize: 16384 }, ['quern-relaxed-text.wasm', 'quern-relaxed64-text.wasm'], 'model/format'],
  ['5 GB, which the server says', '/eight.gguf?known', {}, ['quern-relaxed-text.wasm', 'quern-relaxed64-text.wasm'], 'net/truncated'],
  ['more than the device is said to have', '/eight.gguf', { memoryLimit: 3e9 }, ['quern-relaxed-text.wasm'], 'mem/plan'],
];

for (const [name, path, options, expected, code] of CASES) {
  test(`${name}: ${expected.join(', then ')}`, async () => {
    const base = `http://127.0.0.1:${models.address().port}`;
    const visit = await isolated.open(LIBRARY, { origins: [base], expected: /ERR_|Failed to load/ });
    const fetched = [];
    visit.context.on('request', (request) => { if (request.url().endsWith('.wasm')) fetched.push(request.url().split('/').at(-1)); });
    await visit.page.waitForFunction(() => globalThis.quern);
    const source = path.startsWith('/tests') ? path : base + path;
    const got = await visit.page.evaluate(([from, wanted]) => globalThis.quern.tryLoad(from, wanted), [source, options]);
    assert.equal(got.code, code, got.message);
    assert.deepEqual(fetched, expected);
    await visit.close();
  });
}
