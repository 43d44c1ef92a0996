// SPDX-License-Identifier: MIT
// What a first visit costs: every file comes over the wire once, although the page, the engine and the service worker
// all ask for it, and what the page itself needs is small.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { brotliCompressSync } from 'node:zlib';
import { SITE, Visit, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station({ serviceWorker: true });

/** Most bytes of a first visit, uncompressed: 3 MB of them are the demo model, 0.6 MB the engine. */
const MOST = 4_340_000;

/** Most bytes by Brotli of what the page loads before it can be used, without the package's workers and engine. */
const MOST_OF_PAGE = 80_500;

/** Counts the bytes of all answers by their paths. @returns {Promise<{url: string, sent: Map, close: () => void}>} */
async function counting(target) {
  const sent = new Map();
  const server = createServer((asked, response) => {
    const { url, method, headers } = asked;
    request(new URL(url, target), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.on('data', ({ length }) => {
        const [path] = url.split('?');
        if (!sent.has(path)) sent.set(path, { bytes: 0, size: Number(answer.headers['content-length']) });
        sent.get(path).bytes += length;
      });
      answer.pipe(response);
    }).end();
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  return { url: `http://localhost:${server.address().port}/`, sent, close: () => server.close() };
}

test('a first visit downloads each file once, the demo model too', async (t) => {
  const { url, sent, close } = await counting(here.url);
  t.after(close);
  const visit = await openChat({ open: () => Visit.open(here.browser, url, { serviceWorker: true }) });
  await visit.page.locator('html[data-offline=ready]').waitFor();
  await visit.close();
  assert.deepEqual([...sent].filter(([, { bytes, size }]) => bytes > size), []);
  const all = [...sent.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  t.diagnostic(`${all} bytes`);
  assert.ok(all < MOST, `${all} bytes`);
});

test('what the page needs at once is small', (t) => {
  const size = (name) => brotliCompressSync(readFileSync(join(SITE, name))).length;
  const bytes = ['index.html', 'boot.js', 'style.css', 'app.js'].reduce((sum, name) => sum + size(name), 0);
  t.diagnostic(`${bytes} bytes by Brotli`);
  assert.ok(bytes < MOST_OF_PAGE, `${bytes} bytes`);
});
