// SPDX-License-Identifier: MIT
// The store in Chromium and, before a release, in Firefox: a page that dies during a download, damage, two tabs, no
// network, no store. Everything that does not depend on the browser is in tests/js/store/store.test.mjs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { findFirefox } from '../bench/firefox.mjs';
import { length } from '../fixtures/lengths.mjs';
import { CLAIMS, ENDLESS, PORTALS, claims } from '../fixtures/liars.mjs';
import { LyingServer } from '../fixtures/lying-server.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { PROJECT, eventually, launchChromium } from './browser.mjs';

const DEMO = readFileSync(join(PROJECT, 'web/models/demo-q8_0.gguf'));
const FOLDER = join(PROJECT, 'tests/fixtures/hf/bf16');   // its weights are in one file, without an index
const CHUNK = 1 << 20;
const MODEL = tinyModel({ layers: 2, hidden: 256, ffn: 2304, heads: 4, headDim: 64 });     // of five chunks
const PATIENCE_MS = 60_000;

/** Lets pages of other origins read a file, with the headers that tell versions apart. */
const CORS = { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'Content-Range, ETag' };

/** Lets them send headers of their own, and lets the server redirect. */
const OPEN = { ...CORS, 'Access-Control-Allow-Headers': '*, Authorization', 'Access-Control-Allow-Methods': '*' };

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** A browser with one profile, whose tabs share a store. @returns {Promise<{newPage: () => Promise<object>, close: () => Promise<void>}>} */
const BROWSERS = {
  async Chromium() {
    const browser = await launchChromium();
    const context = await browser.newContext();
    return { newPage: () => context.newPage(), close: () => browser.close() };
  },
  Firefox: () => puppeteer.launch({ browser: 'firefox', protocol: 'webDriverBiDi', executablePath: findFirefox(), headless: true, protocolTimeout: 2 * PATIENCE_MS }),
};

// --- what runs in the page ---

const inPage = {
  /**
   * Without chat: its template needs a worker of the engine's worker, and a driven Firefox may hang in a worker's `new
   * Worker` (firefox.test.mjs).
   */
  async complete({ url, options }) {
    const events = [];
    const model = await globalThis.quern.load(url, { threads: 1, ...options, onProgress: (event) => events.push(event) });
    const { text } = await model.complete('The capital of Kenya is', { temperature: 0, maxTokens: 16 }).result;
    await model.dispose();
    return { text, last: events.at(-1) };
  },
  /** Loads a model, and tells how that ended. */
  outcome: ({ url, options }) => globalThis.quern.load(url, { threads: 1, contextSize: 64, ...options }).then((model) => model.dispose(), ({ code }) => code),
  bits: async ({ url }) => {
    const model = await globalThis.quern.load(url, { threads: 1, contextSize: 64 });
    return String(await model.logits([1, 2]).finally(() => model.dispose()));
  },
  download: ({ url }) => globalThis.quern.models.download(url),
  start: ({ url }) => { globalThis.running = globalThis.quern.models.download(url).then(({ complete }) => complete, ({ code }) => code); },
  running: () => globalThis.running,
  list: () => globalThis.quern.models.list(),
  remove: ({ url }) => globalThis.quern.models.remove(url).then(() => 'removed', ({ code }) => code),
  usage: () => globalThis.quern.models.usage(),
  /** The SHA-256 of each stored file, without the journals; `flip` changes a bit of each first. */
  async stored({ flip }) {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('quern', { create: true });
    const hashes = [];
    for await (const [name, handle] of folder.entries()) {
      if (name.endsWith('.journal')) continue;
      const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
      if (flip !== undefined) {
        bytes[flip] ^= 1;
        const writable = await handle.createWritable();
        await writable.write(bytes);
        await writable.close();
      }
      hashes.push([...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join(''));
    }
    return hashes;
  },
  /** Holds the lock of the model that is stored here while the page lives. */
  async hold() {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('quern');
    const { value: name } = await folder.keys().next();
    return new Promise((held) => { navigator.locks.request(`quern:${name.split('.')[0]}`, () => new Promise(() => { held(); })); });
  },
  /**
   * Loads with a store in which one call is broken.
   * @returns {Promise<string[]>} the answers, or the reason why there is none
   */
  async spoiled({ url, rows }) {
    const [{ Disk, MemoryStore }, { ANSWERS, spoiled }] = await Promise.all(['memory-store', 'bad-stores'].map((name) => import(`/tests/fixtures/${name}.mjs`)));
    const texts = [];
    for (const [call, what] of rows) {
      const disk = new Disk();
      if (call === 'wait') disk.locks.get = () => [];     // another tab always holds it
      if (call === 'wait') disk.locks.has = () => true;
      const cache = spoiled(new MemoryStore(disk), call, ANSWERS[what]);
      const model = await globalThis.quern.load(url, { threads: 1, store: cache }).catch((error) => error);
      texts.push(model instanceof Error ? `${model.code} ${model.message}` : (await model.complete('The capital of Kenya is', { temperature: 0, maxTokens: 16 }).result).text);
      await model.dispose?.();
    }
    return texts;
  },
  async withoutStore() {
    StorageManager.prototype.getDirectory = () => Promise.reject(new DOMException('', 'SecurityError'));
    return globalThis.quern.models.list().then(() => 'listed', ({ code }) => code);
  },
};

for (const [name, launch] of Object.entries(BROWSERS).slice(0, length(1, 2))) {
  /** The behaviour of servers is the same for every browser. */
  const once = name === 'Chromium' ? test : () => {};

  describe(name, { timeout: 4 * PATIENCE_MS }, () => {
    let site;
    let browser;
    before(async () => {
      site = await serve({ root: PROJECT });
      browser = await launch();
    });
    after(async () => {
      await browser?.close();
      await site?.close();
    });

    /** A tab with the library. @returns {Promise<{page: any, run: (name: string, argument?: object) => Promise<any>, close: () => Promise<void>}>} */
    async function open() {
      const page = await browser.newPage();
      await page.goto(`${site.url}tests/web/library.html`);
      await eventually(() => page.evaluate(() => Boolean(globalThis.quern)), 'the library is there');
      return { page, run: (call, argument = {}) => page.evaluate(inPage[call], argument), close: () => page.close() };
    }

    /** Runs `use` with a server that answers as `step` says; each time with a new address, so with a new model. */
    async function withModel(bytes, step, use, path = '/m.gguf') {
      const file = typeof bytes === 'function' ? bytes : { bytes };
      const server = await new LyingServer(file, (request, n) => ({ headers: CORS, ...step(n, request) })).start();
      try {
        await use({ server, url: `${server.base}${path}` });
      } finally {
        const tab = await open();
        for (const { id } of await tab.run('list')) await tab.run('remove', { url: id });
        await tab.close();
        await server.close();
      }
    }

    test('the second start asks nobody, and needs no server', () => withModel(DEMO, () => ({}), async ({ server, url }) => {
      const tab = await open();
      const cold = await tab.run('complete', { url });
      assert.equal(server.requests.length, 1);
      await tab.close();
      const again = await open();
      const warm = await again.run('complete', { url });
      assert.equal(server.requests.length, 1);
      await server.close();
      const offline = await again.run('complete', { url });
      assert.match(cold.text, /Nairobi/);
      assert.deepEqual([warm.text, offline.text], [cold.text, cold.text]);
      assert.deepEqual([cold.last.cached, warm.last.cached, warm.last.loaded], [false, true, DEMO.length]);
      const { used, quota } = await again.run('usage');
      assert.ok(used > 0 && quota > used);
      await again.close();
    }));

    once('a full quota is storage/quota: a load goes on without, a download fails', () => withModel(MODEL, () => ({}), async ({ url }) => {
      const tab = await open();
      const driver = await tab.page.context().newCDPSession(tab.page);
      const limit = (quotaSize) => driver.send('Storage.overrideQuotaForOrigin', { origin: new URL(site.url).origin, ...(quotaSize && { quotaSize }) });
      const said = [];
      tab.page.on('console', (message) => said.push(message.text()));
      await limit(1.5 * CHUNK);
      try {
        assert.equal(await tab.run('outcome', { url }), undefined);
        assert.match(said.join(), /not enough space/);
        await tab.run('start', { url });
        assert.equal(await tab.run('running'), 'storage/quota');
      } finally {
        await limit();
        await tab.close();
      }
    }));

    once('a compressed answer is net/range, which names the header, though the browser says that it reached nobody', () => {
      const headers = { ...CORS, 'Access-Control-Expose-Headers': 'Content-Range, Content-Encoding' };
      return withModel(MODEL, () => ({ encoding: 'gzip', headers }), async ({ url }) => {
        const tab = await open();
        assert.equal(await tab.run('outcome', { url }), 'net/range');
        await tab.close();
      });
    });

    test('a folder by its address, from a server that does not show what is not there; the second start needs no server', () => {
      const fileOf = (url) => {
        const path = join(FOLDER, url.replace('/org/model/', ''));
        return existsSync(path) ? { bytes: readFileSync(path) } : null;
      };
      const step = (_, request) => (fileOf(request.url) ? {} : { headers: {} });
      return withModel(fileOf, step, async ({ server, url }) => {
        const tab = await open();
        const cold = await tab.run('complete', { url, options: { contextSize: 64 } });
        const [{ name: called, files, complete }, ...others] = await tab.run('list');
        assert.deepEqual([called, files, complete, others], ['model', 5, true, []]);
        await tab.close();
        await server.close();
        const again = await open();
        const warm = await again.run('complete', { url, options: { contextSize: 64 } });
        assert.deepEqual([warm.text, cold.last.cached, warm.last], [cold.text, false, { ...cold.last, cached: true }]);
        await again.run('remove', { url });
        assert.deepEqual([await again.run('list'), await again.run('stored')], [[], []]);
        await again.close();
      }, '/org/model/');
    });

    test('a page that dies in mid-download: the next one resumes', () => withModel(MODEL, (n) => (n === 0 ? { stallAt: 2 * CHUNK + 100_000 } : {}), async ({ server, url }) => {
      const tab = await open();
      await tab.run('start', { url });
      await eventually(async () => (await tab.run('list'))[0]?.loaded === 2 * CHUNK, 'two chunks are stored', PATIENCE_MS);
      await tab.close();
      const next = await open();
      const [partial] = await next.run('list');
      assert.deepEqual([partial.loaded, partial.size, partial.complete], [2 * CHUNK, MODEL.length, false]);
      const entry = await next.run('download', { url });
      assert.deepEqual([entry.loaded, entry.complete], [MODEL.length, true]);
      assert.deepEqual(await next.run('stored'), [digest(MODEL)]);
      assert.equal(server.requests.at(-1).headers.range, `bytes=${2 * CHUNK}-`);
      await next.close();
    }));

    test('a flipped byte is found before it is used, and repaired', () => withModel(DEMO, () => ({}), async ({ server, url }) => {
      const tab = await open();
      const { text } = await tab.run('complete', { url });
      assert.deepEqual(await tab.run('stored'), [digest(DEMO)]);
      const [damaged] = await tab.run('stored', { flip: 2_000_000 });
      assert.notEqual(damaged, digest(DEMO));
      const repaired = await tab.run('complete', { url });
      assert.deepEqual([repaired.text, server.requests.length, await tab.run('stored')], [text, 2, [digest(DEMO)]]);
      await tab.run('complete', { url });
      assert.equal(server.requests.length, 2);
      await tab.close();
    }));

    test('of many chunks the damaged one alone is fetched', () => withModel(MODEL, () => ({}), async ({ server, url }) => {
      const tab = await open();
      await tab.run('download', { url });
      const { sent } = server;
      await tab.run('stored', { flip: CHUNK + 5 });
      await tab.run('download', { url });
      assert.deepEqual(await tab.run('stored'), [digest(MODEL)]);
      assert.deepEqual([server.requests.at(-1).headers.range, server.requests.length], [`bytes=${CHUNK}-${2 * CHUNK - 1}`, 2]);
      assert.equal(server.sent - sent, CHUNK);
      await tab.close();
    }));

    test('two tabs, one download', () => withModel(MODEL, () => ({ chunk: 100_000 }), async ({ server, url }) => {
      const tabs = [await open(), await open()];
      for (const tab of tabs) await tab.run('start', { url });
      assert.deepEqual(await Promise.all(tabs.map((tab) => tab.run('running'))), [true, true]);
      assert.deepEqual([server.requests.length, server.sent], [1, MODEL.length]);
      for (const tab of tabs) await tab.close();
    }));

    test('two tabs, and the first dies: the second goes on', () => withModel(MODEL, (n) => (n === 0 ? { stallAt: CHUNK + 100_000 } : {}), async ({ server, url }) => {
      const [first, second] = [await open(), await open()];
      await first.run('start', { url });
      await eventually(async () => (await second.run('list'))[0]?.loaded === CHUNK, 'a chunk is stored', PATIENCE_MS);
      await second.run('start', { url });
      assert.equal(await second.run('remove', { url }), 'storage/busy');
      assert.equal(server.requests.length, 1);
      await first.close();
      assert.equal(await second.run('running'), true);
      assert.deepEqual(await second.run('stored'), [digest(MODEL)]);
      assert.equal(server.requests.length, 2);
      await second.close();
    }));

    /** Checks that a load and a download end as they must, and store nothing. */
    const refused = (bytes, step, code) => withModel(bytes, () => ({ ...step, headers: { ...CORS, ...step.headers } }), async ({ server, url }) => {
      const tab = await open();
      assert.equal(await tab.run('outcome', { url }), code);
      await tab.run('start', { url });
      assert.match(await tab.run('running'), step.total || step.headers?.['Content-Range'] ? new RegExp(`${code}|storage/quota`) : new RegExp(code));
      assert.deepEqual([await tab.run('list'), await tab.run('stored')], [[], []]);
      assert.ok(server.sent < 2 * (bytes.length + 150 * CHUNK), `${server.sent} bytes sent`);      // most of it into the browser's own buffers
      await tab.close();
    });

    once('S1: a claimed size that the header does not justify', async () => {
      for (const size of [CLAIMS[0], 2 ** 48]) await refused(MODEL, claims(size), 'model/inconsistent');
    });

    once('S2: a body without an end', async () => {
      for (const step of ENDLESS) await refused(MODEL, step, 'model/inconsistent');
    });

    once('B3: pages instead of a model', async () => {
      for (const page of PORTALS.slice(0, 2)) await refused(Buffer.from(page), {}, 'model/format');
    });

    test('S7: the caller\'s headers go to no other origin', () => withModel(MODEL, () => ({ headers: OPEN }), ({ server: elsewhere }) => (
      withModel(MODEL, (_, { method }) => ({ ...(method !== 'OPTIONS' && { redirect: `${elsewhere.base}/m.gguf` }), headers: OPEN }), async ({ url }) => {
        const tab = await open();
        const [key, bearer] = [{ 'X-Api-Key': 'SECRET' }, { Authorization: 'Bearer SECRET' }];
        const get = (options) => tab.run('outcome', { url, options: { store: false, ...options } });
        const seen = () => elsewhere.requests.splice(0).map(({ headers }) => [headers['x-api-key'], headers.authorization]);
        assert.deepEqual([await get({ headers: key }), seen()], ['use/param', []]);    // a page is not told the target of a redirect
        assert.equal(await get({ headers: bearer }), undefined);
        assert.ok(seen().every((values) => values.every((value) => value === undefined)));
        assert.equal(await get({ headers: { ...key, ...bearer }, forwardHeaders: true }), undefined);
        assert.deepEqual(seen().at(-1), ['SECRET', undefined]);
        await tab.close();
      })
    )));

    once('B1: addresses that differ in what is no signature', () => {
      const [one, two] = [1, 2].map((seed) => tinyModel({ seed }));
      return withModel((url) => ({ bytes: url.endsWith('B.gguf') ? two : one }), () => ({}), async ({ url }) => {
        const tab = await open();
        const bits = [];
        for (const name of ['A', 'B', 'A', 'B']) bits.push(await tab.run('bits', { url: url + name + '.gguf' }));
        assert.deepEqual([bits[0] === bits[1], bits.slice(2)], [false, bits.slice(0, 2)]);
        await tab.close();
      }, '/q?download=');
    });

    once('two tabs, and the first is stopped: half a minute, then a load goes on, and a download says why it does not', () => withModel(DEMO, (n) => (n === 0 ? { stallAt: CHUNK + 100_000 } : {}), async ({ url }) => {
      const tab = await open();
      await tab.run('start', { url });
      await eventually(async () => (await tab.run('list'))[0]?.loaded === CHUNK, 'a chunk is stored', PATIENCE_MS);
      await tab.close();
      const [stopped, first, second] = [await open(), await open(), await open()];
      await stopped.run('hold');
      await second.run('start', { url });
      const { text } = await first.run('complete', { url });
      assert.match(text, /Nairobi/);
      assert.equal(await second.run('running'), 'storage/busy');
      for (const open of [stopped, first, second]) await open.close();
    }));

    test('a store of the page that answers anything: the model all the same', () => withModel(DEMO, () => ({}), async ({ url }) => {
      const rows = [
        ['usage', 'null'], ['list', 'a number'], ['wait', 'null'], ['lock', 'a symbol'], ['release', 'a rejection of what throws'], ['open', 'an object that throws'],
        ['read', 'a function'], ['read', 'bytes of shared memory'], ['fetch', 'bytes that are gone'], ['write', 'a promise of its own kind that settles often'], ['close', 'a throw of nothing'],
      ];
      const tab = await open();
      const texts = await tab.run('spoiled', { url, rows });
      for (const [i, text] of texts.entries()) assert.match(text, /Nairobi/, rows[i].join());
      await tab.close();
    }));

    test('no store, as in a private window, or no locks: it answers all the same', () => withModel(DEMO, () => ({}), async ({ server, url }) => {
      const tab = await open();
      for (const [i, how] of ['', '', '?no-storage', '?storage-throws', '?no-locks', '?locks-throw', '?request-throws'].entries()) {
        const options = { workerUrl: `/tests/web/no-opfs-worker.js${how}` };
        assert.match((await tab.run('complete', { url, options })).text, /Nairobi/, how);
        assert.equal(server.requests.length, i + 1);
      }
      assert.equal(await tab.run('withoutStore'), 'storage/unavailable');
      await tab.close();
    }));
  });
}
