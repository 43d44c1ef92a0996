// SPDX-License-Identifier: MIT
// The model manager of the chat page: stored models, resume and delete, storage, the verdict before a download, pause
// and resume. The page has a library whose `models` and `support` are played; the last test has the real ones.
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildSite } from '../../tools/site.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { PROJECT, eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';

const folder = await mkdtemp(join(tmpdir(), 'quern-site-'));
const out = join(folder, 'site');
await mkdir(out);

/** A library whose store is a variable of the page. */
const LIBRARY = `
  import * as real from './real.js';
  export * from './real.js';
  const { playedStore: store, playedSupport } = globalThis;
  const answer = async (value) => { if (store.broken) throw new real.QuernError('storage/unavailable', 'There is no storage here.'); return structuredClone(value); };
  export const support = () => ({ ...real.support(), ...playedSupport });
  export const models = {
    list: () => answer(store.entries.toSorted((a, b) => b.lastUsed - a.lastUsed)),
    usage: () => answer(store.usage),
    saved: () => answer([]),
    forget: () => answer(),
    async persist() { store.usage.persisted = store.agrees; return store.agrees; },
    async remove(id) {
      store.removed.push(id);
      if (store.busy) throw new real.QuernError('use/busy', 'Another tab is using it.');
      store.entries = store.entries.filter((entry) => entry.id !== id);
    },
  };
  export const load = async (source, { sha256, ...options }) => {
    store.hashes.push(sha256);
    const { largest: contextSize } = store;
    if (contextSize !== undefined && String(source).includes('tiny') && options.contextSize !== contextSize) throw new real.QuernError('mem/plan', \`Too much; a contextSize of \${contextSize} would fit.\`, { detail: { contextSize } });
    return real.load(source, options);
  };`;

/** Sends all, or all but the end until it is requested again. */
const host = { asked: [], held: [] };

before(async () => {
  const dist = join(folder, 'dist');
  await cp(join(PROJECT, 'dist'), dist, { recursive: true });
  await rename(join(dist, 'index.js'), join(dist, 'real.js'));
  await writeFile(join(dist, 'index.js'), LIBRARY);
  await buildSite({ dist, out });
  host.server = createServer((request, response) => {
    host.asked.push(request.url);
    response.setHeader('Access-Control-Allow-Origin', '*');
    const bytes = request.url.startsWith('/long') ? talkativeModel() : tinyModel();
    response.setHeader('Content-Length', bytes.length);
    if (!request.url.startsWith('/long') || host.asked.filter((url) => url === request.url).length > 1) return response.end(bytes);
    return response.write(bytes.subarray(0, 3_000_000));
  });
  await new Promise((done) => { host.server.listen(0, '127.0.0.1', done); });
  host.url = `http://localhost:${host.server.address().port}`;
});
after(async () => {
  host.server.closeAllConnections();
  host.server.close();
  await rm(folder, { recursive: true });
});

const here = station({ root: out });
const real = station();

const entry = (id, name, size, loaded, lastUsed, url = `https://example.com/${name}`) => ({ id, name, url, files: 1, size, loaded, complete: size === loaded, lastUsed });

/** Opens the page with a store and its model dialog. */
async function openManager({ entries = [], usage, support = {}, ...store } = {}, options = {}) {
  const played = { entries, usage: { used: 1.2e9, quota: 10e9, persisted: false, ...usage }, removed: [], hashes: [], agrees: true, ...store };
  const init = ([playedStore, playedSupport]) => Object.assign(globalThis, { playedStore, playedSupport });
  const visit = await openChat(here, { init, initArgument: [played, support], origins: [host.url], ...options });
  const { page } = visit;
  await page.locator('#model-button').click();
  await page.locator('#shelf li').first().waitFor();
  return { ...visit, rows: page.getByTestId('stored'), store: () => page.evaluate(() => globalThis.playedStore) };
}

test('what is on this device: the latest first, with size, quantisation and how much is there', async () => {
  const { page, rows, close } = await openManager({ entries: [
    entry('a', 'Qwen3-0.6B-Q8_0.gguf', 639_446_688, 639_446_688, 100), entry('b', 'Qwen3-4B-Q4_K_M.gguf', 2_497_280_256, 500_000_000, 200),
    entry('c', 'mine.gguf', 0, 4_194_304, 50), entry('d', 'q06.Q4_K_M.gguf', 5e6, 5e6, 40),
  ] });
  await rows.nth(3).waitFor();
  const texts = (await rows.locator('.row-text').allInnerTexts()).map((text) => text.split(/\s*\n\s*/).join(' | '));
  assert.deepEqual(texts, [
    'Qwen3-4B Q4_K_M | 500 MB of 2.5 GB, not complete', 'Qwen3-0.6B Q8_0 | 639 MB, complete', 'mine | 4.2 MB of an unknown size, not complete',
    'q06 Q4_K_M | 5.0 MB, complete',
  ]);
  await page.getByRole('button', { name: 'Compare q06.Q4_K_M with the model in use' }).waitFor();
  assert.deepEqual(await rows.getByRole('button').evaluateAll((all) => all.map((node) => node.getAttribute('aria-label'))), [
    'Resume Qwen3-4B-Q4_K_M', 'Delete Qwen3-4B-Q4_K_M', 'Load Qwen3-0.6B-Q8_0', 'Compare Qwen3-0.6B-Q8_0 with the model in use', 'Delete Qwen3-0.6B-Q8_0', 'Resume mine', 'Delete mine',
    'Load q06.Q4_K_M', 'Compare q06.Q4_K_M with the model in use', 'Delete q06.Q4_K_M',
  ]);
  assert.equal(await rows.first().locator('progress').evaluate((bar) => bar.value / bar.max), 500_000_000 / 2_497_280_256);
  assert.equal(await page.getByRole('list', { name: 'On this device' }).count(), 1);
  await close();
});

test('nothing yet, and no storage at all', async () => {
  const empty = await openManager();
  await empty.page.getByText('No model yet').waitFor();
  assert.equal(await empty.page.locator('#storage-text').innerText(), '1.2 GB used, 8.8 GB left for this page.');
  assert.equal(await empty.page.locator('#persist').isVisible(), false, 'nothing to keep');
  await empty.close();
  const none = await openManager({ broken: true });
  await none.page.getByText('stores no models for this page: There is no storage here.').waitFor();
  assert.equal(await none.page.getByRole('meter', { name: 'Storage used' }).isVisible(), false);
  await none.close();
});

test('storage: used, left, and kept when the browser agrees', async () => {
  for (const [agrees, sentence] of [[true, /1\.2 GB used, 8\.8 GB left for this page\. Kept until you delete them\.$/], [false, /delete them when space is short\. It did not agree/]]) {
    const { page, close } = await openManager({ agrees, entries: [entry('a', 'one-Q8_0.gguf', 5e6, 5e6, 1)] });
    const meter = page.getByRole('meter', { name: 'Storage used' });
    await meter.waitFor();
    assert.equal(await meter.getAttribute('aria-valuetext'), '1.2 GB of 10.0 GB');
    assert.match(await page.locator('#storage-text').innerText(), /may delete them/);
    await page.getByRole('button', { name: 'Ask to keep them' }).click();
    await eventually(async () => sentence.test(await page.locator('#storage-text').innerText()), `${sentence}`);
    assert.equal(await page.locator('#persist').isVisible(), !agrees);
    await close();
  }
});

test('delete asks in the row, with the keyboard alone; Escape and Keep leave everything', async () => {
  const { page, rows, store, close } = await openManager({ entries: [entry('a', 'one-Q8_0.gguf', 5e6, 5e6, 2), entry('b', 'two-Q8_0.gguf', 6e6, 6e6, 1)] });
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent);
  await rows.first().getByRole('button', { name: 'Delete one-Q8_0' }).focus();
  for (const answer of ['Escape', 'Enter']) {
    await page.keyboard.press('Enter');
    assert.equal(await focused(), 'Keep');
    await page.keyboard.press(answer);
    assert.equal(await focused(), 'Delete one-Q8_0');
    assert.equal(await page.locator('#model-dialog').isVisible(), true);
  }
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Delete one-Q8_0 for good');
  await page.keyboard.press('Enter');
  await eventually(async () => await rows.count() === 1, 'one row is left');
  assert.deepEqual((await store()).removed, ['a']);
  assert.equal(await focused(), 'On this device');
  await close();
});

test('a model that cannot be deleted now stays, and the row says why', async () => {
  const { rows, close } = await openManager({ busy: true, entries: [entry('a', 'one-Q8_0.gguf', 5e6, 5e6, 2)] });
  await rows.getByRole('button', { name: 'Delete one-Q8_0' }).click();
  await rows.getByRole('button', { name: 'Delete one-Q8_0 for good' }).click();
  assert.match(await rows.getByRole('alert').innerText(), /Another tab/);
  assert.equal(await rows.getByRole('button', { name: 'Delete one-Q8_0', exact: true }).count(), 1);
  await close();
});

test('a kept model loads from its row, and is marked as in use', async () => {
  const url = () => `${host.url}/tiny.gguf`;
  const { page, chat, rows, close } = await openManager({ entries: [entry('a', 'tiny.gguf', 5e6, 1e6, 2, url())] });
  await rows.getByRole('button', { name: 'Resume tiny' }).click();
  await chat.modelName('tiny');
  await page.locator('#model-button').click();
  await rows.getByText('in use').waitFor();
  assert.match(await rows.innerText(), /1\.0 MB of 5\.0 MB, the rest is not stored/);
  await close();
});

test('the known models: quantisation, size, and whether it fits, before anything is fetched', async () => {
  const { page, store, close } = await openManager({ support: { maxMemory: 2 ** 32 - 2 ** 16 } });
  const picks = page.locator('#shelf .pick');
  assert.equal(await picks.count(), 17);
  const unfit = await page.locator('#shelf .unfit').evaluateAll((all) => all.map((node) => node.getAttribute('aria-label')));
  assert.deepEqual(unfit, ['Qwen3-4B Q8_0 4.3 GB', 'Qwen3.5-4B Q8_0 4.5 GB'].map((name) => `Choose ${name}, too large for this browser`));
  await page.getByRole('button', { name: 'Choose Qwen3-0.6B Q8_0' }).click();
  const note = page.locator('#url-note');
  assert.match(await note.innerText(), /downloads 639 MB from huggingface\.co .* about 1\.2 GB of memory, which this browser allows\. Its checksum is known/);
  assert.match(await page.getByTestId('model-url').inputValue(), /^https:\/\/huggingface\.co\/Qwen\/Qwen3-0\.6B-GGUF\/resolve\/[0-9a-f]{40}\/Qwen3-0\.6B-Q8_0\.gguf$/);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'load-url');
  await page.getByRole('button', { name: /Choose Qwen3-VL-2B/ }).click();
  assert.match(await note.innerText(), /downloads 1\.6 GB from huggingface\.co .* Its checksum is known/, 'the model and its vision');
  await page.getByRole('button', { name: /Choose Qwen3-4B Q8_0/ }).click();
  assert.match(await note.innerText(), /needs about 5\.1 GB of memory, but this browser allows 4\.3 GB: choose a smaller one/);
  await page.getByTestId('model-url').fill('https://example.com/x.gguf');
  assert.match(await note.innerText(), /from example\.com .*Unverified: its checksum is not known/);
  assert.deepEqual((await store()).hashes, [undefined], 'the demo model only');
  await close();
});

test('what is here already is not downloaded again, and what cannot stay is said before', async () => {
  const url = (name) => `https://example.com/${name}.gguf`;
  const { page, close } = await openManager({
    entries: [entry('a', 'all.gguf', 5e6, 5e6, 2, url('all')), entry('b', 'part.gguf', 5e9, 1e9, 1, url('part'))], usage: { used: 1e9, quota: 1.3e9 },
  });
  for (const [name, sentence] of [
    ['all', /^It is on this device; nothing is downloaded\./], ['part', /^Load downloads the remaining 4\.0 GB from example\.com .* Only 300 MB can still be stored/],
    ['other', /^Load downloads it from example\.com to this device\. Whether/],
  ]) {
    await page.getByTestId('model-url').fill(url(name));
    assert.match(await page.locator('#url-note').innerText(), sentence);
  }
  await close();
});

test('the checksum of a known model goes along with its load', async () => {
  const { page, chat, store, close } = await openManager({}, { expected: /Failed to load resource/, origins: ['https://huggingface.co'] });
  await page.context().route('https://huggingface.co/**', (route) => route.fulfill({ status: 404, headers: { 'Access-Control-Allow-Origin': '*' } }));
  await page.getByRole('button', { name: 'Choose Qwen3-1.7B Q4_K_M' }).click();
  await page.keyboard.press('Enter');
  await chat.error.getByRole('button', { name: 'Choose another' }).waitFor();
  assert.match((await store()).hashes.at(-1), /^b139949c/);
  await close();
});

test('a model that does not fit with this context is offered with the one that fits, or another one where none does', async () => {
  const url = () => `${host.url}/tiny.gguf`;
  const { page, chat, rows, store, close } = await openManager({ largest: 40, entries: [entry('a', 'tiny.gguf', 5e6, 5e6, 2, url())] });
  await rows.getByRole('button', { name: 'Load tiny' }).click();
  await chat.error.getByText('a context size of 40 would fit').waitFor();
  await chat.error.getByRole('button', { name: 'Load with 40 tokens' }).click();
  await chat.modelName('tiny');
  await page.getByText('of 40 tokens').waitFor();
  await page.evaluate(() => { globalThis.playedStore.largest = 0; });
  assert.equal((await store()).largest, 0);
  await page.locator('#model-button').click();
  await rows.getByRole('button', { name: 'Load tiny' }).click();
  await chat.error.getByRole('button', { name: 'Choose another' }).waitFor();
  assert.equal(await chat.error.getByRole('button').count(), 2, 'and Dismiss');
  await close();
});

test('a download shows its speed and the time left, is paused and resumed', async () => {
  const url = `${host.url}/long.gguf`;
  const { page, chat, close } = await openManager({ entries: [entry('a', 'long.gguf', 9e6, 3e6, 2, url)] });
  await page.getByTestId('model-url').fill(url);
  await page.getByTestId('load-url').click();
  const progress = page.getByTestId('progress');
  await eventually(async () => /3\.0 MB of \d.*, waiting for the server/.test(await progress.innerText()), 'it says that nothing comes');
  await page.getByTestId('pause-load').click();
  await page.getByTestId('resume-load').waitFor();
  assert.match(await progress.innerText(), /Paused\. 3\.0 MB of 9\.0 MB are on this device/);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'resume-load');
  assert.equal(await chat.name.innerText(), chat.builtIn);
  await page.keyboard.press('Enter');
  await chat.modelName('long');
  assert.equal(await progress.count(), 0);
  await close();
});

test('a pause where nothing is kept says that it will begin again; Cancel ends it', async () => {
  const { page, chat, close } = await openManager();
  await chat.page.keyboard.press('Escape');
  await chat.loadUrl(`${host.url}/long-2.gguf`);
  await page.getByTestId('pause-load').click();
  await page.getByTestId('progress').getByText('it will begin again').waitFor();
  await page.getByTestId('progress').getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await page.getByTestId('progress').count(), 0);
  assert.ok((await chat.ask('Hello!')).length > 0);
  await close();
});

test('on a phone and on a desktop nothing scrolls sideways, and everything to press is large enough', async () => {
  const entries = [entry('a', `${'very-long-name-'.repeat(8)}Q8_0.gguf`, 5e9, 1e9, 2), entry('b', 'Qwen3-4B-Q4_K_M.gguf', 2.5e9, 2.5e9, 1)];
  const { page, rows, close } = await openManager({ entries });
  await rows.nth(1).getByRole('button', { name: 'Delete' }).click();
  for (const width of [1280, 390, 320]) {
    await page.setViewportSize({ width, height: 844 });
    assert.equal(await page.locator('#model-dialog').evaluate((node) => node.scrollWidth > node.clientWidth), false, `${width}`);
    const small = await page.locator('#model-dialog button').evaluateAll((all) => all.filter((node) => node.checkVisibility() && !node.matches('.link-button'))
      .filter((node) => Math.min(node.getBoundingClientRect().width, node.getBoundingClientRect().height) < 24).map((node) => node.textContent));
    assert.deepEqual(small, []);
  }
  await close();
});

/** Answers ranges of the long model; the first answer stops after its first chunk and a bit. */
function serveRanges(bytes) {
  const ranges = [];
  const server = createServer(({ headers }, response) => {
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    ranges.push(headers.range);
    const [start, end] = [Number(first ?? 0), last ? Number(last) + 1 : bytes.length];
    response.writeHead(206, {
      'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Content-Range, ETag', ETag: '"1"',
      'Content-Range': `bytes ${start}-${end - 1}/${bytes.length}`, 'Content-Length': end - start,
    });
    if (ranges.length > 1) response.end(bytes.subarray(start, end));
    else response.write(bytes.subarray(start, 5_000_000));
  });
  return { server, ranges };
}

test('with the real store: paused, resumed from what was kept, listed, loaded without the network, deleted', async (t) => {
  const { server, ranges } = serveRanges(talkativeModel());
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const origin = `http://localhost:${server.address().port}`;
  const { page, chat, close } = await openChat(real, { origins: [origin], expected: /Failed to load resource/ });
  const row = page.getByTestId('stored');
  await chat.loadUrl(`${origin}/long-Q8_0.gguf`);
  await eventually(async () => /5\.0 MB of/.test(await page.getByTestId('progress').innerText()), 'the first 5 MB have come');
  await page.getByTestId('pause-load').click();
  await page.getByTestId('progress').getByText('Paused. 4.2 MB of 6.4 MB are on this device').waitFor();
  await page.getByTestId('resume-load').click();
  await chat.modelName('long-Q8_0');
  assert.match(ranges.at(-1), /^bytes=4194304-/);
  await page.locator('#model-button').click();
  await row.getByText(/^6\.4 MB, complete$/).waitFor();
  const asked = ranges.length;
  await row.getByRole('button', { name: 'Load long-Q8_0' }).click();
  await chat.modelName('long-Q8_0');
  assert.equal(ranges.length, asked, 'nothing is asked again');
  await page.locator('#model-button').click();
  await row.getByRole('button', { name: 'Delete long-Q8_0' }).click();
  await row.getByRole('button', { name: 'Delete long-Q8_0 for good' }).click();
  await page.getByText('No model yet').waitFor();
  await close();
});
