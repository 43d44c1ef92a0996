// SPDX-License-Identifier: MIT
// Switching between two stored models, back and forth, leaves the page with the memory of one of them.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { MODELS, heavyModel } from '../fixtures/tiny.mjs';
import { eventually, rendererMemory, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

const MODEL = heavyModel();
const LEAST = 90e6;

let server;
let host;
before(async () => {
  server = createServer((_, response) => { response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Content-Length': MODEL.length }).end(MODEL); });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  host = `http://localhost:${server.address().port}`;
});
after(() => server.close());

test('two stored models, back and forth', async (t) => {
  const { page, chat, close } = await openChat(here, { origins: [host] });
  const memory = () => rendererMemory(here.browser);
  const toy = await memory();
  for (const name of ['one', 'two']) {
    await chat.loadUrl(`${host}/${name}.gguf`);
    await chat.modelName(name);
  }
  await eventually(async () => await memory() < toy + 2 * LEAST, 'the memory of the first is given back');
  const first = await memory();
  assert.ok(first > toy + LEAST, `${toy} bytes, then ${first}: a model is seen`);
  for (let i = 0; i < MODELS; i++) {
    const name = ['one', 'two'][i % 2];
    await page.locator('#model-button').click();
    await page.getByRole('button', { name: `Load ${name}`, exact: true }).click();
    await chat.modelName(name);
  }
  await eventually(async () => await memory() < 1.15 * first, `as much as with one model, ${first} bytes`)
    .finally(async () => t.diagnostic(`the toy ${toy} bytes, one of two models ${first}, after ${MODELS} changes ${await memory()}`));
  await close();
});
