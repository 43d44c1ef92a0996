// SPDX-License-Identifier: MIT
// Whether several ranges at a time make a download faster: against a server that limits each connection, one that limits
// all of them together, and one without a limit, with at most 1, 2 and 3 lanes, in Node and in Chromium. By hand:
// node tests/bench/ranges.mjs. The finding is in the head of js/net/download.js.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRemote } from '../../js/net/download.js';
import { launchChromium } from '../web/browser.mjs';

const MB = 1e6;
const SIZE = 160 * MB;
const PIECE = 1 << 16;
const PIECE_BYTES = Buffer.alloc(PIECE, 7);

/** Hands out so many bytes a second. */
class Limit {
  #rate;
  #free = performance.now();

  constructor(rate) {
    this.#rate = rate;
  }

  async take(bytes) {
    this.#free = Math.max(this.#free, performance.now()) + (1000 * bytes) / this.#rate;
    const wait = this.#free - performance.now();
    if (wait > 2) await sleep(wait);
  }
}

const SHARED = new Limit(24 * MB);
const LIMITS = {
  '/each': ['8 MB/s for each connection', () => new Limit(8 * MB)],
  '/all': ['24 MB/s for all together', () => SHARED],
  '/none': ['no limit', () => ({ take: async () => {} })],
};

async function send(request, response, limit) {
  const [, from, to] = /bytes=(\d+)-(\d*)/.exec(request.headers.range);
  const end = to ? Number(to) + 1 : SIZE;
  response.writeHead(206, { 'Content-Range': `bytes ${from}-${end - 1}/${SIZE}`, 'Content-Length': end - from, ETag: '"1"', 'Cache-Control': 'max-age=3600' });
  const closed = once(response, 'close');
  for (let left = end - from; left > 0 && !response.destroyed; left -= PIECE) {
    await limit.take(Math.min(left, PIECE));
    if (!response.write(PIECE_BYTES.subarray(0, Math.min(left, PIECE)))) await Promise.race([once(response, 'drain'), closed]);
  }
  response.end();
}

async function answer(request, response) {
  const { pathname } = new URL(request.url, 'http://a');
  if (LIMITS[pathname]) return send(request, response, LIMITS[pathname][1]());
  if (pathname === '/') return response.setHeader('Content-Type', 'text/html').end('<title>ranges</title>');
  const text = await readFile(fileURLToPath(new URL(`../..${pathname}`, import.meta.url))).catch(() => null);
  return response.setHeader('Content-Type', 'text/javascript').writeHead(text ? 200 : 404).end(text ?? '');
}

/** Runs in Node and in the page. */
async function seconds(open, url, parallel) {
  const start = performance.now();
  const remote = await open(url, { parallel });
  let bytes = 0;
  for await (const chunk of remote.chunks()) bytes += chunk.bytes.length;
  if (bytes !== remote.size) throw new Error(`${bytes} bytes`);
  return (performance.now() - start) / 1000;
}

const server = createServer(answer);
await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
const base = `http://127.0.0.1:${server.address().port}`;
const browser = await launchChromium([], true);
const page = await browser.newPage();
await page.goto(base);
const inPage = (url, parallel) => page.evaluate(async ([source, ...args]) => {
  const { openRemote: open } = await import('/js/net/download.js');
  return new Function(`return ${source}`)()(open, ...args);
}, [String(seconds), url, parallel]);

let n = 0;
for (const [where, run] of [['Node', (url, parallel) => seconds(openRemote, url, parallel)], ['Chromium', inPage]]) {
  for (const [path, [name]] of Object.entries(LIMITS)) {
    const times = [];
    for (const parallel of [1, 2, 3]) times.push(await run(`${base}${path}?${n++}`, parallel));
    console.log(`${where.padEnd(9)} ${name.padEnd(28)} at most 1, 2, 3 lanes: ${times.map((time) => `${(SIZE / MB / time).toFixed(1)} MB/s`).join(', ')}`);
  }
}
await browser.close();
server.closeAllConnections();
server.close();
