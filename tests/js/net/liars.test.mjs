// SPDX-License-Identifier: MIT
// Servers that lie about what they have: sizes that nothing justifies, bodies without an end, pages instead of models, addresses that
// differ in what looks like a download's own business, redirects that ask for secrets. Each ends with its code, soon, with little memory,
// and nothing of it is kept.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { load, models } from '../../../dist/node.js';
import { idOf, isName } from '../../../js/store/identity.js';
import { some } from '../../fixtures/lengths.mjs';
import { CLAIMS, ENDLESS, NO_NUMBERS, PORTALS, claims } from '../../fixtures/liars.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { evenly, splitGguf } from '../../fixtures/split.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CLI, DEMO, rejectsWith } from '../support/helper.mjs';

const TINY = tinyModel();
const BYTES = readFileSync(DEMO);
const MB = 2 ** 20;

let folder;
before(() => { folder = mkdtempSync(join(tmpdir(), 'quern-liars-')); });
after(() => rmSync(folder, { recursive: true }));
const newCache = () => mkdtempSync(join(folder, 'cache-'));

/** Bytes in a folder, and the most they were while `work` ran. */
const bytesIn = (cache) => readdirSync(cache).reduce((sum, name) => sum + (statSync(join(cache, name), { throwIfNoEntry: false })?.size ?? 0), 0);
async function mostIn(cache, work) {
  let most = 0;
  const look = setInterval(() => { most = Math.max(most, bytesIn(cache)); }, 2);
  await work().finally(() => clearInterval(look));
  return most;
}

async function serving(file, script, use) {
  const server = await new LyingServer(typeof file === 'function' ? file : { bytes: file }, script).start();
  try {
    return await use(server.base, server);
  } finally {
    await server.close();
  }
}

const WAYS = { load: (url, cache) => load(url, { store: cache, threads: 1 }), download: (url, cache) => models.download(url, { store: cache }) };

for (const [way, get] of Object.entries(WAYS)) {
  test(`S1 ${way}: a size that the header does not justify is refused when the header has come`, { timeout: 60_000 }, async () => {
    for (const size of some(CLAIMS, 2)) {
      const cache = newCache();
      await serving(BYTES, () => claims(size), async (url) => {
        const tooLarge = way === 'download' && size > 2 ** 40;    // for the disk
        const error = await rejectsWith(get(`${url}/m.gguf`, cache), tooLarge ? 'storage/quota' : 'model/inconsistent', tooLarge ? /needs/ : /ends after/);
        if (!tooLarge) assert.deepEqual([error.detail.rule, error.detail.found, error.detail.expected], ['trailing', size, BYTES.length]);
        assert.deepEqual(await models.list({ store: cache }), []);
      });
    }
    for (const size of NO_NUMBERS) await serving(TINY, () => claims(size), (url) => rejectsWith(get(`${url}/m.gguf`, newCache()), 'net/range'));
    assert.ok(process.memoryUsage().rss < 500 * MB, `${process.memoryUsage().rss}`);
  });

  test(`S2 ${way}: a body without an end is read to the end of the model and no further`, { timeout: 60_000 }, async () => {
    for (const bytes of [TINY, BYTES]) {
      for (const step of ENDLESS) {
        const cache = newCache();
        await serving(bytes, () => step, async (url, server) => {
          const most = await mostIn(cache, () => rejectsWith(get(`${url}/m.gguf`, cache), 'model/inconsistent', /ends after/));
          assert.ok(most <= bytes.length + MB + 1000, `${most} bytes kept of ${bytes.length}`);
          assert.ok(server.sent < bytes.length + 20 * MB, `${server.sent} bytes sent`);
          assert.deepEqual([await models.list({ store: cache }), bytesIn(cache)], [[], 0]);
        });
      }
    }
  });

  test(`B3 ${way}: what is no model is not kept`, { timeout: 60_000 }, async () => {
    for (const page of PORTALS) {
      const cache = newCache();
      await serving(Buffer.from(page), () => ({ headers: { 'Content-Type': 'text/html' } }), async (url) => {
        await rejectsWith(get(`${url}/m.gguf`, cache), 'model/format');
        assert.deepEqual([await models.list({ store: cache }), await models.has(`${url}/m.gguf`, { store: cache })], [[], false]);
      });
    }
  });
}

test('S2 of many files: a part of a split model ends where it says, a description after 64 MiB at the latest', { timeout: 60_000 }, async () => {
  const parts = splitGguf(TINY, evenly(readGguf(TINY).tensors.size, 2));
  const part = (url) => ({ bytes: parts[url.includes('-00001-') ? 0 : 1] });
  const folder = (url) => (/(?:config|tokenizer)\.json$|\.safetensors$/.test(url) ? { bytes: Buffer.from('{}') } : null);
  for (const [file, end, path, code, most] of [[part, '-00002-of-00002.gguf', '/m-00001-of-00002.gguf', 'model/inconsistent', 0], [folder, '/config.json', '/org/model/', 'model/format', 64 * MB]]) {
    const cache = newCache();
    await serving(file, ({ url }) => (url.endsWith(end) ? ENDLESS[0] : {}), async (url, server) => {
      const kept = await mostIn(cache, () => rejectsWith(models.download(url + path, { store: cache }), code));
      assert.ok(kept < most + 3 * MB && server.sent < most + 40 * MB, `${kept} bytes kept, ${server.sent} sent`);
      assert.deepEqual([await models.list({ store: cache }), bytesIn(cache)], [[], 0]);
    });
  }
});

test('S1 info reads the header, whatever size is claimed', async () => {
  for (const size of [CLAIMS[0], 2 ** 48]) {
    await serving(BYTES, () => claims(size), async (url) => {
      const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'info', `${url}/m.gguf`, '--json']);
      assert.equal(JSON.parse(stdout).fileBytes, BYTES.length);
    });
  }
});

test('a file may have as much behind its contents as an alignment asks for', async () => {
  for (const [more, code] of [[65_536, null], [65_537, 'model/inconsistent']]) {
    await serving(Buffer.concat([TINY, Buffer.alloc(more)]), [], async (url) => {
      const loading = load(`${url}/m.gguf`, { store: newCache(), threads: 1 });
      if (code) await rejectsWith(loading, code);
      else await (await loading).dispose();
    });
  }
});

/** Two models whose addresses differ in one parameter. */
const SEEDS = ['A', 'B'].map((name, i) => [name, tinyModel({ seed: 10 + i })]);

test('B1 addresses that differ in what is no signature are two models', { timeout: 60_000 }, async () => {
  for (const parameter of ['download', 'token', 'sig']) {
    const cache = newCache();
    const logits = [];
    await serving((url) => ({ bytes: SEEDS.find(([name]) => url.endsWith(`=${name}.gguf`))[1] }), [], async (url) => {
      for (const [name] of [...SEEDS, ...SEEDS]) {
        const model = await load(`${url}/q?${parameter}=${name}.gguf`, { store: cache, threads: 1 });
        logits.push(String(await model.logits([1, 2])));
        await model.dispose();
      }
    });
    assert.deepEqual([logits[0] === logits[1], logits.slice(2)], [false, logits.slice(0, 2)], parameter);
    assert.equal((await models.list({ store: cache })).length, 2);
  }
});

test('S4 a name stands for an address whose query is not known: it finds and removes the model, and downloads nothing', async () => {
  const cache = newCache();
  const secrets = ['api_key', 'key', 'password', 'auth', 'jwt', 'secret', 'session', 'credential', 'hf_token', 'sas', 'code', 'x'].map((name) => `${name}=SECRET`).join('&');
  await serving(TINY, [], async (url, server) => {
    const { id } = await models.download(`${url}/m.gguf?${secrets}`, { store: cache });
    assert.ok(isName(id) && !id.includes('SECRET'), id);
    assert.ok(readdirSync(cache).every((name) => !readFileSync(join(cache, name)).includes('SECRET')));
    assert.deepEqual((await models.list({ store: cache })).map((entry) => [entry.id, entry.url, entry.name, entry.complete]), [[id, id, 'm.gguf', true]]);
    const { length } = server.requests;
    await (await load(id, { store: cache, threads: 1 })).dispose();
    assert.deepEqual([server.requests.length, await models.has(id, { store: cache })], [length, true]);
    await models.remove(id, { store: cache });
    assert.deepEqual(await models.list({ store: cache }), []);
    for (const get of Object.values(WAYS)) await rejectsWith(get(id, cache), 'use/param', /whole address/);
    assert.equal(server.requests.length, length);
  });
});

test('S4 what is left out of an id, and what is kept in it', async () => {
  const at = (query) => idOf(`https://a.example/m.gguf?${query}#x`);
  const plain = 'https://a.example/m.gguf';
  for (const signature of [
    'X-Amz-Algorithm=a&X-Amz-Credential=c&X-Amz-Date=d&X-Amz-Expires=1&X-Amz-SignedHeaders=host&X-Amz-Signature=s&x-id=GetObject&response-content-disposition=inline',
    'X-Goog-Algorithm=a&X-Goog-Credential=c&X-Goog-Signature=s', 'AWSAccessKeyId=a&Signature=s&Expires=1', 'GoogleAccessId=a&Signature=s&Expires=1',
    'Policy=p&Signature=s&Key-Pair-Id=k', 'sv=2024&se=2026&sr=b&sp=r&sig=s&spr=https', '',
  ]) assert.equal(await at(signature), plain);
  assert.equal(await at('revision=main&FilePath=a/b.gguf'), `${plain}?revision=main&FilePath=a%2Fb.gguf`);
  assert.equal(await at('file=1&X-Amz-Signature=s&X-Amz-Credential=c'), `${plain}?file=1`);
  for (const query of ['X-Amz-Signature=s', 'sig=s', 'signature=s&expires=1', 'download=true', 'v=2', 'file=a%0Ab']) assert.match(await at(query), /^https:\/\/a\.example\/m\.gguf#query=[0-9a-f]{32}$/);
  assert.notEqual(await at('v=1'), await at('v=2'));
  assert.deepEqual([await idOf('blob:https://a.example/5'), await idOf('data:,x')], ['', '']);
});

test('S7 the caller\'s headers stay with the server that he named', { timeout: 60_000 }, async () => {
  const secret = { 'X-Api-Key': 'SECRET', Authorization: 'Bearer SECRET' };
  await serving(TINY, [], (other, elsewhere) => serving(TINY, ({ url }) => (url === '/far' ? { redirect: `${other}/m.gguf` } : url === '/near' ? { redirect: '/m.gguf' } : url === '/file' ? { redirect: 'file:///etc/passwd' } : url === '/round' ? { redirect: '/round' } : {}), async (url, named) => {
    const seen = (server) => server.requests.splice(0).map(({ headers }) => [headers['x-api-key'], headers.authorization]);
    const get = async (path, options) => (await load(url + path, { store: false, threads: 1, headers: secret, ...options })).dispose();
    await get('/far');
    assert.deepEqual([seen(named), seen(elsewhere)], [[['SECRET', 'Bearer SECRET']], [[undefined, undefined]]]);
    await get('/near');
    assert.deepEqual(seen(named), [['SECRET', 'Bearer SECRET'], ['SECRET', 'Bearer SECRET']]);
    await get('/far', { forwardHeaders: true });
    assert.deepEqual([seen(named), seen(elsewhere)], [[['SECRET', 'Bearer SECRET']], [['SECRET', undefined]]]);
    await get('/far', { headers: { Authorization: 'Bearer SECRET' } });
    assert.deepEqual(seen(elsewhere), [[undefined, undefined]]);
    for (const path of ['/file', '/round']) await rejectsWith(get(path), 'net/unreachable');
  }));
});

test('callbacks that fail later are reported, and the load goes on', async (t) => {
  const told = t.mock.method(console, 'error', () => {});
  await serving(TINY, [], async (url) => {
    const model = await load(`${url}/m.gguf`, { store: false, threads: 1, async onProgress() { throw new Error('mine'); } });
    await model.complete('a', { maxTokens: 1, async onPrefill() { throw new Error('mine'); } }).result;
    await model.dispose();
  });
  assert.ok(told.mock.calls.length >= 2 && told.mock.calls.every(({ arguments: [, error] }) => error.message === 'mine'));
});
