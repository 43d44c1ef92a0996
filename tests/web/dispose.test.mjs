// SPDX-License-Identifier: MIT
// dispose() returns the engine's memory as soon as the browser has ended its threads, and not only at a garbage
// collection, even if the page keeps the Model: a renderer uses the same memory after several models as after one. In
// Chromium; Firefox and Node: firefox.test.mjs, tests/js/page/dispose.test.mjs.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { some } from '../fixtures/lengths.mjs';
import { modelBytes } from '../fixtures/make-model.mjs';
import { MODELS } from '../fixtures/tiny.mjs';
import { PROJECT, eventually, rendererMemory, station } from './browser.mjs';

const isolated = station({ root: PROJECT });
const plain = station({ root: PROJECT, isolate: false });

/** 55 MB of weights, and as much for a context of 4,096 positions. */
const MODEL = Buffer.concat([...modelBytes({ layers: 8, hidden: 256, ffn: 1024, heads: 8, kvHeads: 4, context: 40960 })]);
const LEAST = 90e6;

let server;
let source;
before(async () => {
  server = createServer((_, response) => {
    response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Cross-Origin-Resource-Policy': 'cross-origin', 'Content-Length': MODEL.length }).end(MODEL);
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  source = `http://127.0.0.1:${server.address().port}/model.gguf`;
});
after(() => server.close());

for (const [where, here, threads] of some([['cross-origin isolated, two threads', isolated, 2], ['without shared memory', plain, 1]], 2)) {
  test(`models one after the other, ${where}`, async (t) => {
    const visit = await here.open('tests/web/library.html', { origins: [new URL(source).origin] });
    const memory = () => rendererMemory(here.browser);
    await visit.page.waitForFunction(() => globalThis.quern);
    const loadAndDispose = (count) => visit.page.evaluate(([from, wanted, n]) => globalThis.quern.loadAndDispose(from, wanted, n), [source, { threads, store: false }, count]);
    const empty = await memory();
    const { wasm, threads: ran } = await loadAndDispose(1);
    assert.equal(ran, threads);
    assert.ok(wasm > LEAST, `${wasm} bytes`);
    await eventually(async () => await memory() < empty + LEAST, 'the memory of one model is given back');
    const first = await memory();
    await loadAndDispose(MODELS - 1);
    await eventually(async () => await memory() < 1.1 * first, `as much as after one model, ${first} bytes`).finally(async () => t.diagnostic(`${empty} bytes, then ${first}, then ${await memory()}`));
    await visit.close();
  });
}
