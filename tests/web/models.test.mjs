// SPDX-License-Identifier: MIT
// Sources of models on the chat page (an address, the file picker, a drop), and failures: a card with the typed error's
// code, and a page that continues with the model it had.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { badFiles } from '../fixtures/bad-gguf.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station();
const FOLDER = fileURLToPath(new URL('../fixtures/hf/f32', import.meta.url));

/** Chromium writes a line of its own about every answer other than 200. */
const FAILED_FETCH = /Failed to load resource/;

/** Another origin that allows reading: a complete file, a cut one, and a download that stalls in the middle. */
const host = { asked: [] };
const PATHS = {
  '/tiny.gguf': (response) => response.end(tinyModel()),
  '/cut.gguf': (response) => {
    response.setHeader('Content-Length', talkativeModel().length);
    response.write(talkativeModel().subarray(0, 100_000), () => response.destroy());
  },
  '/stalled.gguf': (response) => {
    response.setHeader('Content-Length', talkativeModel().length);
    response.write(talkativeModel().subarray(0, 3_000_000));
  },
  '/forbidden.gguf': (response) => response.writeHead(403).end(),
};

before(async () => {
  host.server = createServer((request, response) => {
    host.asked.push(request.url);
    response.setHeader('Access-Control-Allow-Origin', '*');
    response.setHeader('Content-Type', 'application/octet-stream');
    const serve = PATHS[request.url];
    return serve ? serve(response) : response.writeHead(404).end();
  });
  await new Promise((done) => { host.server.listen(0, '127.0.0.1', done); });
  host.url = `http://localhost:${host.server.address().port}`;
});
after(() => {
  host.server.closeAllConnections();
  host.server.close();
});

/** Reads the code on the card, and checks that the earlier model still answers. */
async function expectRefusal(chat, code) {
  await chat.error.waitFor();
  assert.equal(await chat.error.getAttribute('data-code'), code);
  assert.ok((await chat.error.locator('.card-message').innerText()).length > 10);
  assert.equal(await chat.name.innerText(), chat.builtIn);
  assert.ok((await chat.ask('Hello!')).length > 0, 'the model in use still answers');
}

test('a model by its address, from another origin, and only when Load is pressed', async () => {
  const { page, chat, close } = await openChat(here, { origins: [host.url], init: storeSettings, initArgument: { maxTokens: 8, seed: 1 } });
  host.asked.length = 0;
  await page.locator('#model-button').click();
  await page.getByTestId('model-url').fill(`${host.url}/tiny.gguf`);
  assert.deepEqual(host.asked, []);
  await page.getByTestId('load-url').click();
  await chat.modelName('tiny');
  assert.deepEqual(host.asked, ['/tiny.gguf']);
  await chat.ask('Hi');
  await close();
});

test('a link may name a model and a prompt, but fetches and sends nothing', async () => {
  host.asked.length = 0;
  const visit = await here.open(`?model=${encodeURIComponent(`${host.url}/tiny.gguf`)}&prompt=Hello`);
  await visit.page.getByTestId('model-url').waitFor();
  assert.equal(await visit.page.getByTestId('model-url').inputValue(), `${host.url}/tiny.gguf`);
  assert.equal(await visit.page.getByTestId('input').inputValue(), 'Hello');
  await visit.page.getByTestId('status').getByText('Ready', { exact: true }).waitFor();
  assert.deepEqual(host.asked, []);
  assert.equal(await visit.page.getByTestId('message-user').count(), 0);
  await visit.close();
});

test('a file from the picker', async () => {
  const { chat, close } = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 8, seed: 1 } });
  await chat.loadFile('my model.gguf', tinyModel());
  await chat.modelName('my model');
  await chat.ask('Hi');
  await close();
});

test('the files of a folder from the picker', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 8, seed: 1 } });
  const names = await readdir(FOLDER);
  await page.getByTestId('file-input').setInputFiles(names.map((name) => join(FOLDER, name)));
  await chat.modelName(`${names.length} files`);
  await chat.ask('Hi');
  await close();
});

test('a file dropped on the page', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 8, seed: 1 } });
  const transfer = await page.evaluateHandle((numbers) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(numbers)], 'dropped.gguf'));
    return data;
  }, Array.from(tinyModel()));
  await page.dispatchEvent('main', 'dragover', { dataTransfer: transfer });
  await page.getByText('Drop documents or images to ask about them').waitFor();
  await page.dispatchEvent('main', 'drop', { dataTransfer: transfer });
  await chat.modelName('dropped');
  assert.equal(await page.getByText('Drop documents or images to ask about them').isVisible(), false);
  await chat.ask('Hi');
  await close();
});

test('a load shows its progress in bytes and can be cancelled; the old model stays', async () => {
  const { page, chat, close } = await openChat(here, { origins: [host.url] });
  await chat.loadUrl(`${host.url}/stalled.gguf`);
  const progress = page.getByTestId('progress');
  await eventually(async () => /\d.*MB of .*MB/.test(await progress.innerText()), 'bytes of bytes');
  const value = () => progress.locator('progress').evaluate((node) => node.value / node.max);
  await eventually(async () => await value() > 0.4, 'all that has come is shown');
  assert.ok(await value() < 0.6, 'and no more');
  await page.getByTestId('cancel-load').click();
  await progress.waitFor({ state: 'detached' });
  assert.deepEqual(await chat.error.allInnerTexts(), []);
  assert.equal(await chat.name.innerText(), chat.builtIn);
  assert.ok((await chat.ask('Hello!')).length > 0);
  await close();
});

for (const [what, path, code] of [
  ['a missing file', '/missing.gguf', 'net/http'], ['a forbidden file', '/forbidden.gguf', 'net/http'],
  ['a download that ends early', '/cut.gguf', 'net/truncated'],
]) {
  test(`${what}: ${code}`, async () => {
    const { chat, close } = await openChat(here, { origins: [host.url], expected: FAILED_FETCH });
    await chat.loadUrl(host.url + path);
    await expectRefusal(chat, code);
    await close();
  });
}

test('an HTML page instead of a model: model/format', async () => {
  const { chat, close } = await openChat(here);
  await chat.loadUrl(`${here.url}?not-a-model`);
  await expectRefusal(chat, 'model/format');
  await close();
});

test('a model of another family: model/unsupported, by name', async () => {
  const { chat, close } = await openChat(here);
  await chat.loadFile('other.gguf', tinyModel({ arch: 'mamba' }));
  await chat.error.waitFor();
  assert.match(await chat.error.innerText(), /mamba/);
  await expectRefusal(chat, 'model/unsupported');
  await close();
});

test('a broken file for each code: what it says, and the page lives', async () => {
  const { chat, close } = await openChat(here);
  const groups = new Map(badFiles().map((file) => [file.codes[0], file]));      // each file by itself: tests/js/files/files.test.mjs
  for (const { id, what, codes, bytes } of groups.values()) {
    await chat.loadFile(`${id}.gguf`, bytes);
    await chat.error.waitFor();
    const code = await chat.error.getAttribute('data-code');
    assert.ok(codes.includes(code), `${id} (${what}): ${code} instead of ${codes.join(' or ')}`);
    await chat.error.getByRole('button', { name: 'Dismiss' }).click();
  }
  assert.ok((await chat.ask('Hello!')).length > 0);
  assert.equal(await chat.name.innerText(), chat.builtIn);
  await close();
});

test('a message longer than the context: use/context, and the next one is answered', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.send('word '.repeat(5000));
  await chat.error.waitFor();
  assert.equal(await chat.error.getAttribute('data-code'), 'use/context');
  await page.getByTestId('send').waitFor();
  assert.ok((await chat.ask('Hello!')).length > 0);
  assert.equal(await chat.replies.last().getByTestId('error').count(), 0);
  await close();
});
