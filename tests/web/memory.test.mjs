// SPDX-License-Identifier: MIT
// The engine that a page fetches: only the one with 32-bit addresses for small models, only the one with 64-bit
// addresses for a large file, and both only if the header, not the size, shows that 4 GiB are too little; the text build
// for GGUF files, the full build for a folder, and both only if no name tells what a file is. The files are headers
// without weights.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { tinyFolder } from '../fixtures/folder.mjs';
import { writeHeader } from '../fixtures/gguf-writer.mjs';
import { modelSpec } from '../fixtures/make-model.mjs';
import { PROJECT, station } from './browser.mjs';

const LIBRARY = 'tests/web/library.html';
const isolated = station({ root: PROJECT });
const FOLDER = ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors'];
/** Positions that take nearly 4 GiB in a tiny model. */
const WIDE = 523_000;
const MODELS = { '/four.gguf': { preset: 'qwen3-4b', type: 'q6_k' }, '/eight.gguf': { preset: 'qwen3-8b', type: 'q4_k_m' } };

let models;
before(async () => {
  const headers = Object.fromEntries(Object.entries(MODELS).map(([path, options]) => [path, writeHeader(modelSpec(options))]));
  const wide = tinyFolder({ spec: { layers: 4, heads: 16, kvHeads: 16, context: WIDE }, file: { tail: new Uint8Array(1) } });
  const whole = Object.fromEntries(FOLDER.map((name, i) => [`/wide/${name}`, wide[i]]));
  headers['/name'] = { header: Buffer.concat([wide[3], Buffer.alloc(8e6)]), layout: [{ at: 0, size: 5e9 }] };
  models = createServer(({ url }, response) => {
    const [path, known] = url.split('?');
    const answer = (length) => response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin', ...length });
    if (whole[path]) return void answer().end(whole[path]);
    if (!headers[path]) return void response.writeHead(404, { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin' }).end();
    const { header, layout } = headers[path];
    const { at, size } = layout.at(-1);
    answer(known && { 'Content-Length': header.length + at + size }).write(header);
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
  ['a folder', '/tests/fixtures/hf/f16/', {}, ['quern-relaxed.wasm'], undefined],
  ['a folder and a large context', '/wide/', { contextSize: WIDE, kv: 'f32' }, ['quern-relaxed.wasm', 'quern-relaxed64.wasm'], 'model/format'],
  ['weights alone, and a name that does not tell', '/name', {}, ['quern-relaxed-text.wasm', 'quern-relaxed.wasm'], 'model/format'],
  ['5 GB of them', '/name?known', {}, ['quern-relaxed-text.wasm', 'quern-relaxed64-text.wasm', 'quern-relaxed64.wasm'], 'model/format'],
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
