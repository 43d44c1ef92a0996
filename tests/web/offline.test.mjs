// SPDX-License-Identifier: MIT
// The service worker's two tasks. The page works without the network after the first visit. On a host that cannot send
// the isolation headers, it still gets threads. If service workers are not allowed, the page runs on one thread and
// says so.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, SITE, Visit, eventually, station } from './browser.mjs';
import { ChatPage, openChat, storeSettings } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const plain = station({ isolate: false, serviceWorker: true });
const FOLDER = join(PROJECT, 'tests/fixtures/hf/f32');

const isIsolated = (page) => page.evaluate(() => crossOriginIsolated);

test('O13: with the network cut the page loads again and chats', async () => {
  const server = await serve({ root: SITE });
  const visit = { serviceWorker: true, expected: /Failed to load resource: net::ERR_/ };   // of the request that is expected to fail
  const { page, context, chat, close } = await openChat({ open: () => Visit.open(plain.browser, server.url, visit) });
  await page.locator('html[data-offline=ready]').waitFor();
  await context.setOffline(true);
  await server.close();
  await assert.rejects(page.evaluate(() => fetch(`./not-kept?${Math.random()}`)));
  await page.reload();
  await chat.ready();
  assert.equal(await isIsolated(page), true, 'with threads, too');
  assert.ok((await chat.ask('Hello!')).length > 0);
  await chat.ask('What is quern?');
  assert.ok(await chat.cachedTokens() > 0);
  await close();
});

/** Names of the engines that the service worker has cached. */
const engines = (page) => page.evaluate(async () => {
  const [cache] = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
  const urls = (await cache.keys()).map(({ url }) => url.split('/').at(-1));
  return urls.filter((name) => name.endsWith('.wasm')).sort();
});

test('O13: of the engine\'s builds the one that runs is kept, another one when it is asked for, with the network cut too', async () => {
  const { page, context, close } = await openChat(plain, { expected: /Failed to load resource: net::ERR_/ });
  await page.locator('html[data-offline=ready]').waitFor();
  assert.deepEqual(await engines(page), ['quern-relaxed-text.wasm']);
  const fetched = () => page.evaluate(() => fetch('./quern-simd.wasm').then((response) => response.arrayBuffer().then(({ byteLength }) => byteLength), () => 'failed'));
  const size = await fetched();
  assert.ok(size > 100_000);
  assert.deepEqual(await engines(page), ['quern-relaxed-text.wasm', 'quern-simd.wasm']);
  await context.setOffline(true);
  assert.equal(await fetched(), size);
  await close();
});

test('O13: a folder that was loaded once is loaded again with the network cut, by the build that it needs', async (t) => {
  const folder = await serveModels(({ url }) => {
    const file = join(FOLDER, url.replace('/folder/', ''));
    return existsSync(file) ? readFileSync(file) : undefined;
  });
  t.after(folder.close);
  const { page, context, chat, close } = await openChat(plain, { origins: [folder.url], init: storeSettings, initArgument: { maxTokens: 8, seed: 1 }, expected: /Failed to load resource/ });
  await page.locator('html[data-offline=ready]').waitFor();
  const fetched = [];
  context.on('request', (request) => { if (request.url().endsWith('.wasm')) fetched.push(request.url().split('/').at(-1)); });
  const answer = async () => {
    await chat.loadUrl(`${folder.url}/folder/`);
    await chat.modelName('Model');
    return chat.ask('Hi');
  };
  assert.ok((await answer()).length > 0);
  assert.deepEqual(await engines(page), ['quern-relaxed-text.wasm', 'quern-relaxed.wasm']);
  assert.deepEqual(new Set(fetched), new Set(['quern-relaxed.wasm']));
  folder.close();
  await context.setOffline(true);
  await page.reload();
  await chat.ready();
  assert.ok((await answer()).length > 0);
  await close();
});

test('on a host without COOP and COEP the page loads itself once more, isolated, with threads', async () => {
  const answer = await fetch(plain.url);
  assert.equal(answer.headers.get('Cross-Origin-Opener-Policy'), null);
  const { page, chat, console, close } = await openChat(plain, { init: () => globalThis.console.debug(`isolated: ${crossOriginIsolated}`) });
  assert.deepEqual(console.filter((text) => text.startsWith('isolated:')), ['isolated: false', 'isolated: true']);
  assert.equal(await isIsolated(page), true);
  const cores = await page.evaluate(() => navigator.hardwareConcurrency);
  assert.equal(Number(await chat.fact('Threads')), Math.min(8, cores));
  assert.ok((await chat.ask('Hello!')).length > 0);
  await close();
});

test('what a link brings is there after the page has loaded itself once more', async () => {
  const { page, chat, close } = await openChat({ open: (path, options) => plain.open(`?prompt=Hello${path}`, options) });
  assert.equal(await isIsolated(page), true);
  assert.equal(await chat.input.inputValue(), 'Hello');
  assert.equal(page.url(), plain.url);
  await close();
});

/**
 * In the page, before its scripts: makes the service worker wait until a test calls `goOn`, and counts how often the
 * page begins.
 */
function holdServiceWorker() {
  globalThis.console.debug('begun');
  const { register } = ServiceWorkerContainer.prototype;
  ServiceWorkerContainer.prototype.register = async function held(...all) {
    await new Promise((done) => { globalThis.goOn = done; });
    return register.apply(this, all);
  };
}

test('who has asked already is answered, on one thread, and the page does not load itself once more', async () => {
  const visit = await plain.open('', { init: holdServiceWorker });
  const { page, console } = visit;
  const chat = new ChatPage(page);
  await eventually(() => page.evaluate(() => Boolean(globalThis.goOn) && 'quern:open' in sessionStorage), 'the worker is asked for, and a conversation is shown');
  await chat.send('Hello!');
  await page.getByTestId('message-user').waitFor();
  await page.evaluate(() => globalThis.goOn());
  await chat.ended();
  assert.ok((await chat.text()).length > 0);
  assert.equal(await isIsolated(page), false);
  assert.deepEqual(console.filter((text) => text === 'begun'), ['begun']);
  await visit.close();
});

test('without COOP, COEP and service workers: one thread, a notice, one line in the console, and it chats', async () => {
  const { page, chat, console, close } = await openChat(plain, { serviceWorker: false });
  assert.equal(await isIsolated(page), false);
  assert.equal(await page.evaluate(() => typeof SharedArrayBuffer), 'undefined');
  await chat.notice.getByText(/one thread/).waitFor();
  assert.equal(await chat.fact('Threads'), '1');
  assert.match(await chat.fact('Instructions'), /^relaxed SIMD/);
  const lines = console.filter((text) => /Cross-Origin-Opener-Policy/.test(text));
  assert.equal(lines.length, 1, console.join('\n'));
  assert.ok((await chat.ask('Hello!')).length > 0);
  await chat.ask('What is quern?');
  assert.ok(await chat.cachedTokens() > 0);
  await close();
});

test('a newer version is used where somebody asks for it, in a second tab too, and keeps what engines were asked for', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'quern-update-'));
  await cp(SITE, root, { recursive: true });
  const server = await serve({ root });
  t.after(async () => {
    await server.close();
    await rm(root, { recursive: true });
  });
  const { page, context, chat, close } = await openChat({ open: () => Visit.open(plain.browser, server.url, { serviceWorker: true }) });
  await page.locator('html[data-offline=ready]').waitFor();
  await page.reload();
  await chat.ready();
  const second = await context.newPage();
  await second.goto(server.url);
  await new ChatPage(second).ready();
  await page.evaluate(() => fetch('./quern-simd.wasm').then((response) => response.arrayBuffer()).then(() => {}));
  const worker = join(root, 'sw.js');
  await writeFile(worker, (await readFile(worker, 'utf8')).replace(/\b[0-9a-f]{16}\b/, '0123456789abcdef'));
  await page.evaluate(async () => { await (await navigator.serviceWorker.getRegistration()).update(); });
  for (const tab of [page, second]) {
    await tab.evaluate(() => { globalThis.isOld = true; });
    await tab.getByRole('button', { name: 'Use it' }).click();
    await eventually(() => tab.evaluate(() => !globalThis.isOld).catch(() => false), 'the page is loaded anew');
    await new ChatPage(tab).ready();
    assert.equal(await tab.getByTestId('notice').count(), 0);
  }
  assert.deepEqual(await engines(page), ['quern-relaxed-text.wasm', 'quern-simd.wasm']);
  await close();
});
