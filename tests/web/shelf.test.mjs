// SPDX-License-Identifier: MIT
// The model dialog: it shows the model in use however it was opened, the first offer fits the device, and a text that
// is no address gets a message.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { ChatPage, openChat, talkativeModel } from './chat-page.mjs';

const here = station();

test('the dialog behind "Get a real one" says what is in use, and does not offer to load that', async () => {
  const { page, close } = await openChat(here);
  await page.locator('#get-real').click();
  assert.match(await page.locator('#model-facts').innerText(), /In use\s+quern demo/);
  assert.equal(await page.getByRole('button', { name: 'Demo model, in use' }).isDisabled(), true);
  await close();
});

test('a dialog that was open before the model says what is in use as soon as there is one', async () => {
  const visit = await here.open('?model=https://example.com/x.gguf');
  await visit.page.locator('#model-facts').getByText('quern demo').waitFor();
  await visit.close();
});

const phone = { userAgent: 'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const little = { init: () => { Object.defineProperty(Navigator.prototype, 'deviceMemory', { get: () => 4 }); } };

for (const [what, options, offer, size] of [['a desktop', {}, 'Q8_0', '639 MB'], ['a phone', phone, 'Q4_K_M', '397 MB'], ['little memory', little, 'Q4_K_M', '397 MB']]) {
  test(`what is offered first: ${offer} on ${what}`, async () => {
    const { page, close } = await openChat(here, options);
    assert.equal(await page.locator('#get-real').innerText(), `Get a real one: Qwen3-0.6B, ${size}`);
    await page.locator('#get-real').click();
    await page.locator('#load-url:focus').waitFor();
    assert.match(await page.getByTestId('model-url').inputValue(), new RegExp(`${offer}\\.gguf$`));
    await close();
  });
}

test('below the address: what it leads to, or that it is none', async () => {
  const { page, close } = await openChat(here);
  const [field, note] = [page.getByTestId('model-url'), page.locator('#url-note')];
  await page.locator('#model-button').click();
  await page.locator('#shelf li').first().waitFor();
  const first = await note.innerText();
  for (const [typed, says] of [
    ['qwen', /^That is no address yet/], ['htt', /^That is no address yet/], ['file:///model.gguf', /^That is no address yet/], ['/models/x.gguf', /^Load downloads it from localhost:\d+ to this device/],
    ['http://example.com/x.gguf', /^Only addresses with https:\/\/ can be fetched; http:\/\/ is for a server on this device/],
    ['http://localhost:1234/x.gguf', /^Load downloads it from localhost:1234/], ['https://example.com/x.gguf', /^Load downloads it from example\.com/],
    ...['huggingface.co/Qwen/Qwen3-0.6B-GGUF', 'https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/tree/main', 'Qwen/Qwen3-0.6B-GGUF', 'hf:Qwen/Qwen3-0.6B-GGUF:Q8_0'].map((text) => [text, /^Load looks for GGUF files in Qwen\/Qwen3-0\.6B-GGUF on huggingface\.co\./]),
    ['hf:Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf', /^Load downloads it from huggingface\.co/],
  ]) {
    await field.fill(typed);
    assert.match(await note.innerText(), says, typed);
  }
  await field.fill('');
  assert.equal(await note.innerText(), first);
  for (const typed of ['', 'qwen', 'http://example.com/x.gguf']) {
    await field.fill(typed);
    await page.keyboard.press('Enter');
    assert.equal(await field.getAttribute('aria-invalid'), 'true', typed);
    assert.match(await note.innerText(), /https:\/\//);
    assert.equal(await page.locator('#model-dialog').isVisible(), true);
  }
  await close();
});

/** Whether a part of the dialog is in sight. */
const inSight = (locator) => locator.evaluate((node) => {
  const [part, dialog] = [node, node.closest('dialog')].map((one) => one.getBoundingClientRect());
  return part.top >= dialog.top && part.bottom <= dialog.bottom;
});

test('what a link brings is in sight', async () => {
  const visit = await here.open('?model=https://example.com/x.gguf', { viewport: { width: 390, height: 600 } });
  const { page } = visit;
  await new ChatPage(page).ready();
  await page.locator('#url-note').getByText('from example.com').waitFor();
  for (const part of ['#model-url', '#load-url', '#url-note']) assert.ok(await inSight(page.locator(part)), part);
  await visit.close();
});

const memoryOf = (gigabytes) => ({ init: (told) => { Object.defineProperty(Navigator.prototype, 'deviceMemory', { get: () => told }); }, initArgument: gigabytes });

test('a model that the device does not hold says so before it is loaded', async () => {
  const { page, close } = await openChat(here, memoryOf(2));
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: /^Choose Qwen3\.5-4B Q8_0 4\.5 GB, too large/ }).click();
  assert.match(await page.locator('#url-note').innerText(), /about 5\.\d GB of memory\. This device has 2 GB of memory, as the browser tells: the browser will probably close the page\.$/);
  await page.getByRole('button', { name: /^Choose Qwen3-0\.6B Q8_0/ }).click();
  assert.match(await page.locator('#url-note').innerText(), /This device has 2 GB of memory, as the browser tells: it may be slow/);
  await close();
});

test('a model whose size is known only when it comes is weighed then', async () => {
  const { chat, close } = await openChat(here, memoryOf(0.004));
  await chat.loadFile('heavy.gguf', talkativeModel());
  await chat.notice.getByText(/^heavy: It needs about 54\d MB of memory\. This device has 0\.004 GB of memory/).waitFor();
  await close();
});

test('where the browser tells nothing, or 8 for all that is more, nothing is said of the device', async () => {
  for (const told of [undefined, 8]) {
    const { page, close } = await openChat(here, memoryOf(told));
    await page.locator('#model-button').click();
    await page.getByRole('button', { name: /^Choose Qwen3\.5-4B Q4_K_M/ }).click();
    assert.match(await page.locator('#url-note').innerText(), /of memory, which this browser allows/);
    await close();
  }
});

test('each known model has a button that loads it, and one is recommended', async () => {
  const visit = await openChat(here, { origins: ['https://huggingface.co'], expected: /Failed to load resource/ });
  const { page, chat, close } = visit;
  const asked = [];
  await page.context().route('https://huggingface.co/**', (route) => {
    asked.push(route.request().url());
    return route.fulfill({ status: 404, headers: { 'Access-Control-Allow-Origin': '*' } });
  });
  await page.locator('#model-button').click();
  const rows = page.locator('#shelf li');
  await rows.nth(8).waitFor();
  assert.match(await rows.nth(1).innerText(), /Qwen3-0\.6B\s+recommended/);
  assert.equal(await page.getByText('recommended').count(), 1);
  assert.match(await rows.nth(3).innerText(), /Q4_K_M: 1\.1 GB to download, about 1\.7 GB of memory\./);
  assert.deepEqual(await complaints(visit), []);
  assert.deepEqual(asked, []);
  await page.getByRole('button', { name: 'Load Qwen3-1.7B Q4_K_M' }).click();
  await chat.error.waitFor();
  assert.match(asked[0], /Qwen3-1\.7B-Q4_K_M\.gguf$/);
  await close();
});

test('of a repository the GGUF files are listed, with their sizes; one without any is taken as a folder', async () => {
  const { page, chat, close } = await openChat(here, { origins: ['https://huggingface.co'], expected: /Failed to load resource/ });
  const asked = [];
  const sha256 = 'a'.repeat(64);
  const siblings = [
    { rfilename: 'README.md', size: 10 }, { rfilename: 'm-Q8_0.gguf', lfs: { size: 5e6, sha256 } }, { rfilename: 'mmproj-m.gguf', size: 7 },
    { rfilename: 'm-F16-00001-of-00002.gguf', size: 6e6 }, { rfilename: 'm-F16-00002-of-00002.gguf', size: 4e6 }, { rfilename: 'm-Q4_K_M.gguf', size: 3e6 },
  ];
  await page.context().route('https://huggingface.co/**', (route) => {
    const { pathname } = new URL(route.request().url());
    asked.push(pathname);
    const headers = { 'Access-Control-Allow-Origin': '*' };
    if (pathname.startsWith('/api/models/some/GGUF/')) return route.fulfill({ headers, json: { siblings } });
    if (pathname.startsWith('/api/models/')) return route.fulfill({ headers, json: { siblings: [siblings[0]] } });
    return pathname.endsWith('Q4_K_M.gguf') ? route.fulfill({ headers, body: Buffer.from(tinyModel()) }) : route.fulfill({ status: 404, headers });
  });
  const rows = page.locator('#url-files li');
  const enter = async (text) => {
    await page.locator('#model-button').click();
    await page.getByTestId('model-url').fill(text);
    await page.keyboard.press('Enter');
  };
  await enter('https://huggingface.co/some/GGUF');
  await rows.nth(2).waitFor();
  assert.deepEqual(await rows.locator('strong').allInnerTexts(), ['m-Q4_K_M.gguf', 'm-Q8_0.gguf', 'm-F16-00001-of-00002.gguf']);
  assert.match(await rows.nth(2).innerText(), /10\.0 MB\. It needs about/);
  assert.deepEqual(asked, ['/api/models/some/GGUF/revision/main']);
  await page.getByTestId('model-url').fill('hf:some/GGUF:Q4_K_M');
  assert.equal(await rows.count(), 0, 'another address, no list');
  await page.keyboard.press('Enter');
  await eventually(async () => await rows.count() === 1, 'one of this type');
  await rows.getByRole('button', { name: 'Load m-Q4_K_M.gguf' }).click();
  await chat.modelName('m-Q4_K_M');
  await enter('some/folder');
  await chat.error.waitFor();
  assert.ok(asked.includes('/some/folder/resolve/main/config.json'), asked.join());
  await close();
});
