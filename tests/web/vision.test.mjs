// SPDX-License-Identifier: MIT
// Images in a foreign page under a strict policy: the same logits from every kind of image source, equal to the bit to
// those that Node's tests compare with transformers; videos; a stop while an image is read. A page with text only
// fetches none of this code.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { LIMITS, PAIR, goldenCases } from '../fixtures/vision/golden.mjs';
import { PROJECT, station } from './browser.mjs';

const isolated = station({ root: PROJECT });
const FOLDER = '/tests/fixtures/vision';

async function openLibrary(options) {
  const visit = await isolated.open('tests/web/library.html', options);
  await visit.page.waitForFunction(() => globalThis.quern);
  return visit;
}

/** Loads the pair of files in the page, as `model`. */
const openPair = (page, options = {}) => page.evaluate(async ([folder, more]) => {
  const at = (name) => `${folder}/models/dense/f16/${name}.gguf`;
  globalThis.model = await globalThis.quern.load(at('model'), { vision: at('mmproj'), kv: 'f32', threads: 2, ...more });
}, [FOLDER, { visionOptions: LIMITS, ...options }]);

test('an image in every form that a page has, and the caller goes on with it', async () => {
  const { messages } = goldenCases('dense').find(({ name }) => name === 'exact');
  const node = await load(PAIR.source, { ...PAIR.options, kv: 'f32', threads: 1 });
  const expected = Array.from(new Uint32Array((await node.logits(messages)).buffer));
  await node.dispose();
  const visit = await openLibrary();
  await openPair(visit.page);
  const found = await visit.page.evaluate(async ([url, texts, bits]) => {
    const { model } = globalThis;
    const blob = await (await fetch(url)).blob();
    const image = Object.assign(new Image(), { src: url });
    await image.decode();
    const fresh = Object.assign(new Image(), { src: `${url}?again` });
    const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const offscreen = new OffscreenCanvas(image.width, image.height);
    offscreen.getContext('2d').drawImage(image, 0, 0);
    const bitmap = await createImageBitmap(blob);
    const data = context.getImageData(0, 0, image.width, image.height);
    const dataUrl = await new Promise((done) => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(blob); });
    const forms = { url, absolute: new URL(url, location.href), blob, image, fresh, canvas, offscreen, bitmap, data, frame: new VideoFrame(bitmap, { timestamp: 0 }), dataUrl };
    const results = {};
    for (const [name, form] of Object.entries(forms)) {
      const content = [{ type: 'text', text: texts[0] }, { type: 'image', image: form }, { type: 'text', text: texts[1] }];
      const pending = model.logits([{ role: 'system', content: 'Be brief.' }, { role: 'user', content }]);
      if (form === data) data.data.fill(0);
      if (form === offscreen) offscreen.getContext('2d').clearRect(0, 0, 999, 999);
      const logits = new Uint32Array((await pending).buffer);
      results[name] = bits.length === logits.length && bits.every((value, i) => value === logits[i]);
    }
    return { results, bitmap: bitmap.width };
  }, [`${FOLDER}/images/exact.png`, ['Look: ', ' Well?'], expected]);
  assert.deepEqual(Object.entries(found.results).filter(([, isSame]) => !isSame), []);
  assert.equal(found.bitmap, 128, 'the caller\'s own is still there');
  await visit.close();
});

test('it says how far it has looked, stops while it looks, and knows what it has seen', async () => {
  const visit = await openLibrary();
  await openPair(visit.page, { visionOptions: { ...LIMITS, maxPixels: 2 ** 20 }, contextSize: 4096, threads: 1 });
  const { events, stopped, first, second } = await visit.page.evaluate(async () => {
    const { model } = globalThis;
    const noise = (seed) => {
      let state = seed;
      const data = Uint8ClampedArray.from({ length: 4 * 1024 * 1024 }, (_, i) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return i % 4 === 3 ? 255 : state >>> 24; });
      return new ImageData(data, 1024, 1024);
    };
    const ask = (image, options) => model.chat([{ role: 'user', content: [{ type: 'image', image }, { type: 'text', text: 'Well?' }] }], { maxTokens: 2, temperature: 0, ...options });
    const seen = [];
    const stop = async (seed, isAborted) => {
      let begun;
      const looking = new Promise((done) => { begun = done; });
      const controller = new AbortController();
      const reply = ask(noise(seed), { signal: controller.signal, onPrefill: (event) => { if (event.phase === 'vision') { seen.push(event); begun(); } } });
      await looking;
      const start = performance.now();
      if (isAborted) controller.abort();
      else reply.stop();
      const outcome = await reply.result.then(({ finishReason }) => finishReason, ({ name }) => name);
      return { outcome, took: performance.now() - start };
    };
    // The best of four, since other work on the machine only delays it.
    const best = async (first, isAborted) => {
      const tries = [];
      while (tries.length < 4 && !(tries.at(-1)?.took < 200)) tries.push(await stop(first + tries.length, isAborted));
      return { ms: tries.map(({ took }) => took), outcome: tries.at(-1).outcome };
    };
    const ends = [await best(11, false), await best(21, true)];
    const one = (await ask(noise(2)).result).usage;
    const two = (await ask(noise(2)).result).usage;
    return { events: seen, stopped: ends, first: one, second: two };
  });
  assert.deepEqual(stopped.map(({ outcome }) => outcome), ['aborted', 'AbortError']);
  for (const { ms } of stopped) assert.ok(ms.at(-1) < 200, `${ms} ms`);
  assert.ok(events.every(({ done, total }) => done < total && total === 1024));
  assert.ok(first.imageTokens === 1024 && first.cachedTokens < 32, JSON.stringify(first));
  assert.ok(second.cachedTokens >= 1024, JSON.stringify(second));
  await visit.close();
});

test('a video\'s file is played once for all turns, however it is asked about', async () => {
  const visit = await openLibrary();
  await openPair(visit.page);
  const { plays, same } = await visit.page.evaluate(async (url) => {
    const { model } = globalThis;
    let count = 0;
    const { createElement } = document;
    document.createElement = (name) => { count += name === 'video'; return createElement.call(document, name); };
    const video = await (await fetch(url)).blob();
    const ask = (fps) => [{ role: 'user', content: [{ type: 'video', video, fps }, { type: 'text', text: 'Well?' }] }];
    const counts = [];
    const bits = async (fps) => {
      const logits = await model.logits(ask(fps));
      counts.push(count);
      return new Uint32Array(logits.buffer).join();
    };
    const tokens = await model.countTokens(ask(2));
    const all = [await bits(2), await bits(2), await bits(1), await bits(2)];
    return { plays: counts, same: [tokens > 8, all[1] === all[0], all[2] === all[0], all[3] === all[0]] };
  }, `${FOLDER}/video.webm`);
  assert.deepEqual({ plays, same }, { plays: [1, 1, 2, 3], same: [true, true, false, true] });
  await visit.close();
});

test('a model of text fetches nothing for images; what is none has its code', async () => {
  const visit = await openLibrary({ expected: /404/ });
  const asked = [];
  visit.page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const forImages = () => asked.filter((path) => /(?:images|vision)\.js$/.test(path));
  await openPair(visit.page, { vision: null });
  await visit.page.evaluate(() => globalThis.model.chat('Hi', { maxTokens: 1 }).result.then(() => {}));
  assert.deepEqual(forImages(), []);
  await openPair(visit.page);
  assert.deepEqual(forImages(), ['/dist/vision.js', '/dist/images.js']);
  const codes = await visit.page.evaluate(async () => {
    const code = (part) => globalThis.model.countTokens([{ role: 'user', content: [part] }]).then(String, (error) => (error instanceof globalThis.quern.QuernError ? error.code : String(error)));
    return [
      await code({ type: 'video', video: new Blob(['no video']) }), await code({ type: 'image', image: new Blob(['<svg xmlns="http://www.w3.org/2000/svg"/>']) }),
      await code({ type: 'image', image: '/nowhere.png' }), await code({ type: 'image', image: document.createElement('canvas') }),
    ];
  });
  assert.deepEqual(codes.slice(0, 3), ['image/decode', 'image/decode', 'net/http']);
  assert.ok(Number(codes[3]) > 0);
  await visit.close();
});
