// SPDX-License-Identifier: MIT
// An image's file at an address, from servers that lie (fixtures/lying-server.mjs): how it ends, when, and that nothing is fetched on behind it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytesOfData, imageSource } from '../../../js/worker/image-bytes.js';
import { LyingServer, lyingFetch } from '../../fixtures/lying-server.mjs';
import { VirtualClock } from '../../fixtures/virtual-clock.mjs';
import { rejectsWith } from '../support/helper.mjs';

const FILE = { bytes: Uint8Array.from({ length: 3000 }, (_, i) => i) };
const MEGABYTE = 2 ** 20;
const signal = AbortSignal.timeout(600_000);

/** Fetches over a clock that is played; `seconds`: how long it took. */
async function fetched(step, more = {}) {
  const clock = new VirtualClock();
  const fetch = lyingFetch(FILE, [step], clock);
  const start = clock.now();
  const pending = imageSource({ url: 'https://images.example/a.png' }, { fetch, clock, signal, ...more });
  const outcome = await clock.run(pending).catch((error) => error);
  return { outcome, fetch, seconds: (clock.now() - start) / 1000, pending: clock.pending };
}

/** @type {Record<string, [step: object, code: string, says: RegExp, seconds?: number]>} */
const ROWS = {
  'a status': [{ status: 404 }, 'net/http', /status 404/],
  'no answer, and the connection breaks': [{ dropAt: -1 }, 'net/unreachable', /cannot be fetched/],
  'broken off': [{ dropAt: 1000 }, 'net/truncated', /broke off/],
  'never an answer': [{ stallAt: -1 }, 'net/stalled', /within 60 seconds/, 60],
  'silence in the midst of it': [{ stallAt: 1000 }, 'net/stalled', /within 60 seconds/, 60],
  'drop by drop': [{ chunk: 1, perByteMs: 500 }, 'net/stalled', /within 60 seconds/, 60],
  'said to be too large': [{ headers: { 'Content-Length': String(64 * MEGABYTE + 1) } }, 'image/size', /67108865 bytes/],
  'zeros without an end': [{ endless: true, sized: false, chunk: MEGABYTE }, 'image/size', /at most 67108864/],
};

for (const [what, [step, code, says, seconds = 0]] of Object.entries(ROWS)) {
  test(`${what}: ${code}`, async () => {
    const { outcome, fetch, ...rest } = await fetched(step);
    assert.equal(outcome.code, code, outcome.stack);
    assert.match(outcome.message, says);
    assert.deepEqual({ ...rest, open: fetch.open }, { seconds, pending: 0, open: 0 });
    assert.ok(fetch.sent <= 65 * MEGABYTE, String(fetch.sent));
  });
}

test('an honest one, in small pieces, without a length: the file', async () => {
  for (const step of [{}, { chunk: 7 }, { sized: false }, { chunk: 100, perByteMs: 10 }]) {
    const { outcome, pending, fetch } = await fetched(step);
    assert.deepEqual([Buffer.from(FILE.bytes).equals(outcome), pending, fetch.open], [true, 0, 0], JSON.stringify(step));
  }
});

test('nothing goes along that tells who asks', async () => {
  const given = [];
  await imageSource({ url: 'https://images.example/' }, { signal, fetch: (url, options) => { given.push(options.credentials, options.headers); return new Response('x'); } });
  assert.deepEqual(given, ['omit', undefined]);
});

test('who asked gives up: the reason, at once', async () => {
  const controller = new AbortController();
  const pending = fetched({ stallAt: 1000 }, { signal: controller.signal });
  controller.abort(new Error('enough'));
  const { outcome, seconds, fetch } = await pending;
  assert.deepEqual([outcome.message, seconds < 1, fetch.open], ['enough', true, 0]);
});

/** All at once. */
function dataBytes(url) {
  const steps = bytesOfData(url);
  for (let n = 1; ; n++) {
    const { done, value } = steps.next();
    if (done) return { bytes: Buffer.from(value), steps: n };
  }
}

test('a data: address is read in steps, wherever it is cut', () => {
  const file = Buffer.from(Uint8Array.from({ length: 1_000_003 }, (_, i) => Math.imul(i, 2654435761) >>> 24));
  const text = file.toString('base64');
  const escaped = (letters) => letters.replace(/[+/=]/g, (letter) => encodeURIComponent(letter));
  const lines = text.replace(/.{76}/g, '$&\r\n');
  for (const [what, body] of Object.entries({ text, escaped: escaped(text), lines, 'lines, escaped': escaped(lines).replace(/\r\n/g, '%0D%0A'), unpadded: text.replace(/=+$/, '') })) {
    const { bytes, steps } = dataBytes(`data:image/png;base64,${body}`);
    assert.ok(bytes.equals(file), what);
    assert.ok(steps > 5, `${what}: ${steps}`);
  }
  const letters = 'aé€'.repeat(70_000);
  assert.ok(dataBytes(`data:,${encodeURIComponent(letters)}`).bytes.equals(Uint8Array.from(letters, (letter) => letter.charCodeAt(0))));
  for (const body of ['*', 'YQ=', 'YQ==YQ==', 'Y', '%', '%zz', `${'A'.repeat(2 ** 16)}=`, `${'A'.repeat(2 ** 16 - 2)}==${'A'.repeat(8)}`]) {
    assert.throws(() => dataBytes(`data:image/png;base64,${body}`), { code: 'image/decode', detail: { rule: 'data' } }, body.slice(-20));
  }
  assert.equal(dataBytes('data:image/png;base64,').bytes.length, 0);
});

test('the same over real connections', async () => {
  const server = await new LyingServer(FILE, [{}, { dropAt: 1000 }, { dropAt: -1 }, { status: 500 }, { endless: true, sized: false, chunk: MEGABYTE }]).start();
  const ask = () => imageSource({ url: `${server.base}/a.png` }, { fetch, signal });
  assert.ok(Buffer.from(FILE.bytes).equals(await ask()));
  for (const code of ['net/truncated', 'net/unreachable', 'net/http', 'image/size']) await rejectsWith(ask(), code);
  await server.close();
});
