// SPDX-License-Identifier: MIT
// Images are decoded once: a second turn takes what the first has made of the same bytes, in whatever form they come, and of no others.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { Images } from '../../../js/engine/image.js';
import { instantiate } from '../../../js/engine/instance.js';
import { pixelsOf, sizeOf } from '../../../js/media/pixels-node.js';
import { Decoded } from '../../../js/worker/decoded.js';
import { MediaLoader } from '../../../js/worker/media-loader.js';
import { Asker } from '../../../js/worker/asker.js';
import { Turns } from '../../../js/worker/turns.js';
import { imagesOf } from '../../fixtures/images-of.mjs';
import { imagePath } from '../../fixtures/vision/golden.mjs';
import { compile, glue } from '../support/engine-host.mjs';

const WHERE = { how: '', scope: 0 };
const NEVER = new AbortController().signal;
const [ODD, TALL] = ['odd.png', 'tall.png'].map((name) => readFileSync(imagePath(name)));

let images;
before(async () => { images = imagesOf(await instantiate(glue[32], await compile('simd'), 1, 32)); });

/** MediaLoader over an engine that takes pixels and computes nothing: what was decoded, and what the engine was given. */
function playedSight() {
  const [decoded, given] = [[], []];
  const media = {
    pad: () => 0, release() {}, plan: (kind, { frames = 1 }) => ({ width: 64, height: 64, frames: kind === 'video' ? frames + (frames & 1) : 1, rows: 2, cols: 2 }),
    add: (grid, frames) => given.push(...frames.map((pixels) => Buffer.from(pixels))),
  };
  const engine = { part: (Part) => (Part === Images ? images : media), facts: { vision: { minPixels: 4096, maxPixels: 4096, minVideoPixels: 4096, maxVideoPixels: 4096 } } };
  const vision = { MediaLoader, sizeOf, readImage: async (path) => readFileSync(path), pixelsOf: (source, how) => { decoded.push(source); return pixelsOf(source, how); } };
  const sight = new MediaLoader(/** @type {any} */ (engine), vision, { fetch, rest() {} });
  const turns = new Turns(() => {});
  const turnOf = (scope) => async (...images) => {
    const asker = new Asker(/** @type {any} */ (engine), turns, { cacheScope: scope }, NEVER);
    const { order } = await sight.measure(images.map((one) => ({ kind: 'image', frames: [one], ...(Array.isArray(one) && { kind: 'video', frames: one }) })), asker);
    decoded.length = given.length = 0;
    await sight.take(order, asker);
    return { decoded: decoded.length, given: [...given] };
  };
  return Object.assign(turnOf(0), { of: turnOf });
}

test('a second turn decodes nothing of what was seen, whatever form it has now; other bytes and other sizes are decoded', async () => {
  const turn = playedSight();
  const first = await turn({ bytes: ODD }, { bytes: TALL });
  assert.equal(first.decoded, 2);
  assert.ok(!first.given[0].equals(first.given[1]));
  const forms = [{ blob: new Blob([ODD]) }, { path: imagePath('odd.png') }, { url: `data:image/png;base64,${ODD.toString('base64')}` }, { bytes: Uint8Array.from(ODD) }];
  const second = await turn(...forms, { bytes: TALL });
  assert.equal(second.decoded, 0);
  assert.deepEqual(second.given, [...forms.map(() => first.given[0]), first.given[1]]);
  const altered = Buffer.concat([ODD, Buffer.from([0])]);     // behind its end: the same image in another file
  assert.deepEqual(await turn({ bytes: altered }), { decoded: 1, given: [first.given[0]] });
});

test('frames of videos are images; one of another size is refused each time', async () => {
  const turn = playedSight();
  assert.equal((await turn([{ bytes: ODD }, { bytes: ODD }])).decoded, 1);
  await turn({ bytes: TALL });
  for (let i = 0; i < 2; i++) await assert.rejects(turn([{ bytes: ODD }, { bytes: TALL }]), { code: 'image/size' });
});

test('pixels and bitmaps are taken as they are, what fails is not kept', async () => {
  const turn = playedSight();
  const pixels = { data: new Uint8Array(3 * 64), width: 8, height: 8 };
  for (let i = 0; i < 2; i++) assert.equal((await turn({ pixels })).decoded, 1);
  const cut = { bytes: ODD.subarray(0, ODD.length - 20) };
  for (let i = 0; i < 2; i++) await assert.rejects(turn(cut), { code: 'image/decode' });
});

test('what another scope has seen is decoded again, and what the own one has is not', async () => {
  const turn = playedSight();
  for (const scope of [0, 1, 2]) assert.equal((await turn.of(scope)({ bytes: ODD })).decoded, 1, `scope ${scope} first`);
  for (const scope of [0, 1, 2]) assert.equal((await turn.of(scope)({ bytes: ODD })).decoded, 0, `scope ${scope} again`);
});

test('who shows much pushes out his own', async () => {
  const decoded = new Decoded(800);
  const ask = async (scope, ...names) => {
    const made = [];
    for (const name of names) await decoded.pixels(Uint8Array.of(name), { how: '', scope }, async ([which]) => { made.push(which); return new Uint8Array(100); });
    return made;
  };
  await ask(1, 1, 2, 3);
  await ask(2, ...Array.from({ length: 50 }, (_, i) => i));
  assert.deepEqual(await ask(1, 1, 2, 3), []);
  await ask(1, 4, 5);
  assert.deepEqual(await ask(2, 46, 47, 48, 49), []);
  assert.deepEqual(await ask(2, 45), [45], 'each has half of the room');
});

test('not more is kept than the memory allows, what was used last the longest; nothing where there is no hash', async (t) => {
  const decoded = new Decoded(250);
  const made = [];
  const ask = async (...names) => {
    made.length = 0;
    for (const name of names) await decoded.pixels(Uint8Array.of(name), WHERE, async ([which]) => { made.push(which); return new Uint8Array(100); });
    return [...made];
  };
  assert.deepEqual(await ask(1, 2, 1, 2), [1, 2]);
  assert.deepEqual(await ask(1, 3), [3], 'and 2 goes');
  assert.deepEqual(await ask(1, 3, 2), [2]);      // and 1 goes
  const large = async () => new Uint8Array(300);
  await decoded.pixels(Uint8Array.of(9), WHERE, large);
  assert.deepEqual(await ask(1, 2), [1], 'one that is larger than all of it takes nobody\'s place');
  t.mock.getter(globalThis, 'crypto', () => undefined);
  assert.deepEqual(await ask(2, 2), [2, 2]);
});
