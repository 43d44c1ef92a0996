// SPDX-License-Identifier: MIT
// The installed page: its manifest as Chromium reads it, and what the system hands over (a new chat, shared texts,
// files). Headless browsers install nothing, so files come through a played queue of launches.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SITE, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';

const here = station();

/** Width and height of a PNG file. */
function sizeOf(file) {
  const bytes = readFileSync(join(SITE, file));
  assert.equal(bytes.toString('latin1', 1, 4), 'PNG', file);
  return `${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`;
}

test('Chromium finds no fault in the manifest, and its images have the sizes that it tells', async () => {
  const { page, close } = await openChat(here);
  const session = await page.context().newCDPSession(page);
  const { errors, data } = await session.send('Page.getAppManifest');
  assert.deepEqual(errors, []);
  const manifest = JSON.parse(data);
  const images = [...manifest.icons, ...manifest.screenshots, ...manifest.shortcuts.flatMap(({ icons }) => icons)];
  for (const { src, sizes, type } of images) if (type === 'image/png') assert.equal(sizeOf(src), sizes, src);
  assert.ok(manifest.icons.some(({ purpose }) => purpose === 'maskable'));
  const factors = manifest.screenshots.map((shot) => shot.form_factor).sort();
  assert.deepEqual(factors, ['narrow', 'wide']);
  await close();
});

test('the shortcut opens a new chat, and the last conversation stays', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  const { url } = JSON.parse(readFileSync(join(SITE, 'manifest.webmanifest'), 'utf8')).shortcuts[0];
  const other = await page.context().newPage();
  await other.goto(new URL(url, here.url).href);
  await other.locator('#welcome').waitFor();
  await eventually(() => new URL(other.url()).search === '', 'a reload does not repeat it');
  assert.equal(await other.getByTestId('input').inputValue(), '');
  assert.equal(await other.getByTestId('message-user').count(), 0);
  await other.getByTestId('list-button').click();
  await other.locator('.list-title', { hasText: 'Hello!' }).waitFor();
  await close();
});

test('what is shared becomes a message that is not sent', async () => {
  const { share_target: { method, params } } = JSON.parse(readFileSync(join(SITE, 'manifest.webmanifest'), 'utf8'));
  assert.equal(method, 'GET');
  const query = new URLSearchParams({ [params.title]: 'Mills', [params.text]: 'A stone & a grain.\nTwo lines?', [params.url]: 'https://example.com/' });
  const visit = await here.open(`?${query}`);
  const { page } = visit;
  await page.locator('#input').waitFor();
  const field = page.getByTestId('input');
  await eventually(async () => await field.inputValue() === 'Mills\nA stone & a grain.\nTwo lines?\nhttps://example.com/', 'all of it');
  await eventually(() => new URL(page.url()).search === '', 'a reload does not repeat it');
  assert.equal(await page.getByTestId('message-user').count(), 0);
  await visit.close();
});

/** In the page, before its scripts: a queue of launches that the test fills. */
function playQueue() {
  const queue = { setConsumer: (take) => { globalThis.launch = (files) => take({ files }); } };
  Object.defineProperty(globalThis, 'launchQueue', { value: queue });
}

test('files that the system opens: a text joins the message, a model is loaded, a file that is gone changes nothing', async () => {
  const { page, chat, close } = await openChat(here, { init: playQueue });
  await page.evaluate(() => globalThis.launch([
    { getFile: async () => new File(['The mill stands by the river.'], 'mill.md') },
    { getFile: () => Promise.reject(new DOMException('gone', 'NotFoundError')) },
  ]));
  await page.locator('#attached').getByText('mill.md').waitFor();
  const bytes = [...tinyModel()];
  await page.evaluate((all) => globalThis.launch([{ getFile: async () => new File([Uint8Array.from(all)], 'mill.gguf') }]), bytes);
  await chat.modelName('mill');
  await close();
});
