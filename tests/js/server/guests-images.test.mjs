// SPDX-License-Identifier: MIT
// Images of a guest cost nobody else anything: the worst that a small file can ask for is decoded while the engine answers others within a moment, in
// little memory, within bounds that are told, and with an end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, before, test } from 'node:test';
import { createDeflate } from 'node:zlib';
import { load } from '../../../dist/node.js';
import { length } from '../../fixtures/lengths.mjs';
import { LIMITS, PAIR, imagePath } from '../../fixtures/vision/golden.mjs';
import { chunk, file, header } from '../../fixtures/png.mjs';
import { rejectsWith, until } from '../support/helper.mjs';
import { start } from '../support/program.mjs';

const SIDE = 9999;
const IMAGES = length(2, 4);
const MEGABYTE = 1e6;

/** A PNG of zeros, 16 bits, interlaced: 0.6 MB that stand for 600 MB. */
async function hugePng(side) {
  const passes = [[0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]];
  const size = passes.reduce((sum, [x, y, dx, dy]) => sum + Math.ceil((side - y) / dy) * (1 + 6 * Math.ceil((side - x) / dx)), 0);
  const deflate = createDeflate({ level: 9 });
  const parts = [];
  deflate.on('data', (part) => parts.push(part));
  const zeros = Buffer.alloc(2 ** 20);
  for (let left = size; left > 0; left -= zeros.length) if (!deflate.write(zeros.subarray(0, Math.min(left, zeros.length)))) await once(deflate, 'drain');
  deflate.end();
  await once(deflate, 'end');
  return file(header({ width: side, height: side, depth: 16, color: 2, interlaced: true }), chunk('IDAT', Buffer.concat(parts)), chunk('IEND'));
}

let model;
let huge;
before(async () => {
  [model, huge] = await Promise.all([load(PAIR.source, { ...PAIR.options, threads: 1, contextSize: 256 }), hugePng(SIDE)]);
});
after(() => model.dispose());

const asked = (bytes, text = 'Well?') => [{ role: 'user', content: [{ type: 'image', image: new Blob([bytes]) }, { type: 'text', text }] }];

const quantile = (times, share) => times.toSorted((a, b) => a - b)[Math.floor(share * (times.length - 1))];

/** How long the engine's worker takes to answer, and how much memory the process has, while some work goes on. */
async function watched(work) {
  const delays = [];
  const before = process.memoryUsage.rss();
  let [peak, isOver] = [before, false];
  const done = work.finally(() => { isOver = true; });
  done.catch(() => {});
  while (!isOver) {
    const start = performance.now();
    await model.tokenize('x');
    delays.push(performance.now() - start);
    peak = Math.max(peak, process.memoryUsage.rss());
    await sleep(10);
  }
  return { result: await done, delays, grown: (peak - before) / MEGABYTE };
}

test('who gives up ends the decoding: the next image does not wait for it', { timeout: 120_000 }, async () => {
  const controller = new AbortController();
  const given = model.look(new Blob([huge]), { signal: controller.signal });
  given.catch(() => {});
  await sleep(300);
  controller.abort(new Error('enough'));
  const start = performance.now();
  await assert.rejects(given, /enough/);
  await model.look(imagePath('exact.png'));
  assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
});

test('a PNG of 9999 x 9999, 16 bits, interlaced: others are answered within 100 ms, in less than 700 MB', { timeout: 300_000 }, async () => {
  const { result, delays, grown } = await watched(model.look(new Blob([huge])));
  assert.ok(result.tokens > 0);
  assert.ok(delays.length > 20, `${delays.length} answers`);
  assert.ok(quantile(delays, 0.98) <= 100 && Math.max(...delays) <= 500, `98 % within ${quantile(delays, 0.98)} ms, all within ${Math.max(...delays)}`);
  assert.ok(grown <= 700, `${grown} MB`);
});

test(`${IMAGES} at once beside another key's replies: these go on, every image is looked at, one after the other`, { timeout: 600_000 }, async () => {
  let isOver = false;
  const guest = Promise.all(Array.from({ length: IMAGES }, (_, i) => model.chat(asked(Buffer.concat([huge, Buffer.from([i])]), `${i}?`), { cacheScope: 1, maxTokens: 1 }).result)).finally(() => { isOver = true; });
  guest.catch(() => {});
  const gaps = [];
  for (let last = performance.now(); !isOver;) {
    const reply = model.complete('a b c d', { cacheScope: 2, maxTokens: 20 });
    for await (const text of reply) {
      assert.equal(typeof text, 'string');
      gaps.push(performance.now() - last);
      last = performance.now();
    }
    last = performance.now();
  }
  const rss = process.memoryUsage.rss();
  for (const { finishReason } of await guest) assert.match(finishReason, /length|stop/);
  assert.ok(quantile(gaps, 0.95) <= 200, `95 % of ${gaps.length} gaps within ${quantile(gaps, 0.95)} ms`);
  assert.ok(rss < 1500 * MEGABYTE, `${rss / MEGABYTE} MB`);
});

test('what one scope has shown is looked at anew for another one, and not for itself', async () => {
  const looked = async (cacheScope) => {
    let parts = 0;
    const content = [{ type: 'image', image: imagePath('odd.png') }, { type: 'text', text: 'Well?' }];
    await model.chat([{ role: 'user', content }], { cacheScope, maxTokens: 1, onPrefill: ({ phase }) => { parts += Number(phase === 'vision'); } }).result;
    return parts > 0;
  };
  for (const scope of [1, 2, 0]) assert.deepEqual([await looked(scope), await looked(scope)], [true, false], `scope ${scope}`);
});

test('bounds of who runs it: pixels, images, frames and memory are refused by their names before anything is decoded', async () => {
  const bounds = { maxImagePixels: 10_000, maxImages: 3, imageMemoryBytes: 2 ** 20 };
  const small = await load(PAIR.source, { ...PAIR.options, threads: 1, contextSize: 256, visionOptions: { ...LIMITS, ...bounds } });
  const image = { type: 'image', image: { data: new Uint8Array(3 * 64 * 64), width: 64, height: 64 } };
  const ask = (...content) => small.chat([{ role: 'user', content }], { maxTokens: 1 }).result;
  const tooMany = await rejectsWith(small.look(new Blob([huge])), 'image/size', /9999 x 9999 is too large: at most 10000 pixels are allowed here/);
  assert.deepEqual(tooMany.detail, { width: SIDE, height: SIDE, limit: 10_000, medium: 0 });
  await rejectsWith(ask(image, image, image, image), 'image/size', /4 images, including frames of videos; at most 3/);
  await rejectsWith(ask(image, { type: 'video', video: { frames: [image.image, image.image, image.image] } }), 'image/size', /4 images/);
  await ask(image, { type: 'video', video: { frames: [image.image, image.image] } });
  await small.dispose();
  const tight = await load(PAIR.source, { ...PAIR.options, threads: 1, contextSize: 256, visionOptions: { ...LIMITS, imageMemoryBytes: 10 * 2 ** 20 } });
  await rejectsWith(tight.look(new Blob([huge])), 'image/size', /takes up to \d+ bytes of memory, at most 10485760/);
  assert.ok((await tight.look(imagePath('exact.png'))).tokens > 0);
  await tight.dispose();
});

test('quern serve: what is too large or too many is refused by its name; what is allowed, four at once, delays no other key', { timeout: 300_000 }, async (t) => {
  const args = ['serve', PAIR.source, '--vision', PAIR.options.vision, '--port', '0', '--threads', '1', '--context', '256', '--api-key', 'a', '--api-key', 'b'];
  const { child, got } = start([...args, '--max-pixels', String(LIMITS.maxPixels), '--min-pixels', String(LIMITS.minPixels)]);
  t.after(() => child.kill('SIGKILL'));
  await until(() => /served at http/.test(got.err) || child.exitCode !== null);
  const [, url] = /served at (http:\S+)$/m.exec(got.err) ?? assert.fail(got.err);
  const ask = async (key, content) => {
    const body = JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 2, temperature: 0 });
    const begun = performance.now();
    const answer = await fetch(`${url}/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` }, body });
    return { status: answer.status, ...await answer.json(), ms: performance.now() - begun };
  };
  const image = (bytes) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${bytes.toString('base64')}` } });
  const tooLarge = await ask('a', [image(huge)]);
  assert.deepEqual([tooLarge.status, tooLarge.error.code], [400, 'invalid_image']);
  assert.match(tooLarge.error.message, /9999 x 9999 is too large: at most 16777216 pixels are allowed here/);
  const tooMany = await ask('a', Array.from({ length: 33 }, () => image(readFileSync(imagePath('tiny.png')))));
  assert.deepEqual([tooMany.status, tooMany.error.code], [400, 'invalid_image']);
  const large = await hugePng(4096);
  let isOver = false;
  const guest = Promise.all([1, 2, 3, 4].map((i) => ask('a', [image(Buffer.concat([large, Buffer.from([i])]))]))).finally(() => { isOver = true; });
  const times = [];
  while (!isOver) {
    const { status, ms } = await ask('b', `Hi ${times.length}`);
    assert.equal(status, 200);
    times.push(ms);
  }
  assert.deepEqual((await guest).map(({ status }) => status), [200, 200, 200, 200]);
  assert.ok(quantile(times, 0.9) <= 500, `90 % of ${times.length} within ${quantile(times, 0.9)} ms`);
});
