// SPDX-License-Identifier: MIT
// A page over an insecure connection (http from another machine): the browser gives it no hashes, no store, no locks,
// no shared memory. A host name that Chromium resolves to this machine stands for another machine.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, SITE, eventually, howToStart, playwright } from './browser.mjs';
import { ChatPage } from './chat-page.mjs';

const DEMO = '/web/models/demo-q8_0.gguf';
const NAME = 'lan.example';

let site;
let chat;
let browser;
before(async () => {
  site = await serve({ root: PROJECT });
  chat = await serve({ root: SITE });
  const { args, ...how } = howToStart([]);
  browser = await playwright().chromium.launch({ ...how, args: [...args, `--host-resolver-rules=MAP ${NAME} 127.0.0.1`] });
});
after(async () => {
  await browser?.close();
  await site?.close();
  await chat?.close();
});

test('no store, and the model all the same', async () => {
  const page = await browser.newPage();
  const said = [];
  page.on('console', (message) => said.push(message.text()));
  await page.goto(`http://${NAME}:${new URL(site.url).port}/tests/web/library.html`);
  await eventually(() => page.evaluate(() => Boolean(globalThis.quern)), 'the library is there');
  const { secure, text, codes } = await page.evaluate(async (source) => {
    const { load, models } = globalThis.quern;
    const codeOf = (promise) => promise.then(() => 'none', ({ code }) => code);
    const model = await load(source);
    const { text } = await model.complete('The capital of Kenya is', { temperature: 0, maxTokens: 16 }).result;
    await model.dispose();
    const codes = await Promise.all([models.list(), models.has(source), models.download(source), models.remove(source), models.usage(), models.persist()].map(codeOf));
    return { secure: globalThis.isSecureContext, text, codes };
  }, DEMO);
  assert.equal(secure, false);
  assert.match(text, /Nairobi/);
  assert.deepEqual(new Set(codes), new Set(['storage/unavailable']));
  assert.ok(said.some((line) => /storage\/unavailable.*https/.test(line)), said.join('\n'));
  await page.close();
});

test('the chat page says why it keeps no models, in words, and answers', async () => {
  const page = await browser.newPage();
  await page.goto(`http://${NAME}:${new URL(chat.url).port}/`);
  const there = new ChatPage(page);
  await there.ready();
  assert.ok((await there.ask('Hello!')).length > 0);
  await page.locator('#model-button').click();
  await page.getByText('stores no models for this page: Models cannot be stored here (the browser gives this page no storage; it must be served over https).').waitFor();
  await page.close();
});
