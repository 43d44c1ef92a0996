// SPDX-License-Identifier: MIT
// Decoding beside the engine: its pace, its end when nobody waits, and its deadline where a decoder answers no more.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { DECODE, decoderBeside } from '../../../js/worker/side-decode-node.js';
import { readPng, writePng } from '../../fixtures/png.mjs';
import { imagePath } from '../../fixtures/vision/golden.mjs';

const OWNER = { scope: 1, guest: 0 };
const TARGET = { width: 64, height: 64 };
const BYTES = new Uint8Array(readFileSync(imagePath('odd.png')));
const { width, height, data } = readPng(readFileSync(imagePath('odd.png')));
const PNG = { kind: 'PNG', width, height, orientation: 1 };
const JPEG = { kind: 'JPEG', width: 1000, height: 1000, orientation: 1 };

/** A side worker that begins and never answers. */
function silent() {
  const seen = { posted: [], ended: 0 };
  const port = { post: (message) => seen.posted.push(message), listen: (receive) => queueMicrotask(() => receive({ ready: true })), end: () => { seen.ended++; } };
  return { seen, host: { aside: () => port, rest() {} } };
}

test('a job gives the pixels, and looks at its pace before each part', async () => {
  let looks = 0;
  const { value } = await DECODE.open()({ bytes: BYTES, found: PNG, target: TARGET }, () => { looks++; return false; });
  assert.ok(data.equals(value.bytes));
  assert.deepEqual([value.width, value.height, looks > 0], [width, height, true]);
});

test('a job that is given up ends at its next look', async () => {
  const side = 2000;
  const bytes = new Uint8Array(writePng({ width: side, height: side, data: Buffer.alloc(side * (3 * side + 1)) }));
  let looks = 0;
  await assert.rejects(DECODE.open()({ bytes, found: { ...PNG, width: side, height: side }, target: TARGET }, () => ++looks === 3), { name: 'AbortError' });
  assert.equal(looks, 3);
});

test('a decoder that never answers is ended with its worker after half a minute', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { seen, host } = silent();
  const pending = decoderBeside(host, { owner: OWNER, signal: new AbortController().signal })({ bytes: BYTES, found: JPEG, target: TARGET });
  const outcome = pending.catch((error) => error);
  await turn();
  assert.equal(seen.posted.length, 1);
  t.mock.timers.tick(29_000);
  assert.equal(seen.ended, 0);
  t.mock.timers.tick(1000);
  const { code, message } = await outcome;
  assert.deepEqual([code, seen.ended > 0], ['image/decode', true]);
  assert.match(message, /^The JPEG file is not decoded: it takes too long\.$/);
});

test('who gives up is told so at once, and what does not stop is ended', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { seen, host } = silent();
  const controller = new AbortController();
  const pending = decoderBeside(host, { owner: OWNER, signal: controller.signal })({ bytes: BYTES, found: JPEG, target: TARGET });
  await turn();
  controller.abort(new Error('enough'));
  await assert.rejects(pending, /enough/);
  assert.equal(seen.ended, 0);
  t.mock.timers.tick(100);
  assert.ok(seen.ended > 0);
  assert.ok(BYTES.length > 0, 'the file is still whole');
});

test('where no worker can be started it is done here', async () => {
  const found = await decoderBeside({ aside: null, rest() {} }, { owner: OWNER, signal: new AbortController().signal })({ bytes: BYTES, found: PNG, target: TARGET });
  assert.ok(data.equals(found.data));
  const broken = decoderBeside({ aside: null, rest() {} }, { owner: OWNER, signal: new AbortController().signal })({ bytes: BYTES.subarray(0, 99), found: PNG, target: TARGET });
  await assert.rejects(broken, { code: 'image/decode', message: /ends too early/ });
});
