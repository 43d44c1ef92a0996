// SPDX-License-Identifier: MIT
// The catalogue of bad images, videos and projectors (fixtures/bad-images.mjs) through the package: each line gets its code and its sentence, the
// model sees as before, and no memory is lost.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { BAD_FILES, BAD_PARTS, BAD_PROJECTORS, ODD_FILES, projector } from '../../fixtures/bad-images.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { PAIR, imagePath } from '../../fixtures/vision/golden.mjs';
import { rejectsWith } from '../support/helper.mjs';

const IMAGES = length(60, 500);
const PROJECTORS = length(10, 1000);

const GOOD = imagePath('exact.png');

let model;
let expected;
before(async () => {
  model = await load(PAIR.source, { ...PAIR.options, threads: 1, contextSize: 256 });
  expected = (await model.look(GOOD)).values;
});
after(() => model.dispose());

/** The model sees what it saw. */
async function seesStill(what) {
  const { values } = await model.look(GOOD);
  assert.ok(Buffer.from(values.buffer).equals(Buffer.from(expected.buffer)), `behind ${what}`);
}

/** One that can be shown; and what helps, unless the calling code is to blame. */
const hasSentence = ({ code, message, hint }, what) => assert.ok(
  /^[^\x00-\x1f]{20,300}[.?]$/.test(message) && (code === 'use/param' || hint.length > 20), `${what}: ${message} ${hint}`);

test('every broken, lying and huge file', async () => {
  for (const [what, [bytes, codes = ['image/decode']]] of Object.entries(BAD_FILES)) {
    const error = await model.look(new Blob([bytes])).catch((failure) => failure);
    assert.ok(codes.includes(error.code), `${what}: ${error.stack}`);
    hasSentence(error, what);
    await seesStill(what);
  }
});

test('every part that cannot be', async () => {
  for (const [what, [part, code, says]] of Object.entries(BAD_PARTS)) {
    const messages = [{ role: 'user', content: [part, { type: 'text', text: 'Well?' }].flat() }];
    hasSentence(await rejectsWith(model.chat(messages, { maxTokens: 1 }).result, code, says), what);
    await seesStill(what);
  }
});

test('a file that is cut off at every kilobyte', async () => {
  const file = readFileSync(GOOD);
  for (let n = 0; n < file.length; n += 1024) await rejectsWith(model.look(new Blob([file.subarray(0, n)])), 'image/decode');
  await seesStill('all of them');
});

test('every odd file is seen, but for an animated AVIF, which says what helps', async () => {
  for (const [what, bytes] of Object.entries(ODD_FILES)) {
    const error = await model.look(new Blob([bytes])).then(() => null, (failure) => failure);
    if (!error) continue;
    assert.equal(what, 'animated.avif', error.stack);
    assert.equal(error.message, 'Animated AVIF files are not read in Node: save its first image as PNG.');
  }
});

test(`${IMAGES} images in a row, good and bad: as much memory as after the first round`, { timeout: 600_000 }, async () => {
  const files = [...Object.values(ODD_FILES), ...Object.values(BAD_FILES).map(([bytes]) => bytes)].filter(({ length }) => length < 1e5);
  const used = [];
  const peaks = [];
  for (let i = 0; i < IMAGES; i++) {
    const messages = [{ role: 'user', content: [{ type: 'image', image: new Blob([files[i % files.length]]) }, { type: 'text', text: `${i}?` }] }];
    await model.chat(messages, { maxTokens: 1 }).result.catch((error) => assert.match(error.code, /^image\//));
    used.push(model.info.memory.used);
    peaks.push(model.info.memory.peak);
  }
  assert.ok(Math.max(...used) <= Math.max(...used.slice(0, IMAGES / 2)) + 65_536, String(used));
  assert.ok(peaks.at(-1) <= peaks[10] + 65_536, String(peaks));
  await seesStill('all of them');
});

describe('projectors', () => {
  const open = (bytes) => load(PAIR.source, { threads: 1, contextSize: 64, vision: new Blob([bytes]) });

  test('a small one is one, and each of its faults has a name', async () => {
    await open(projector()).then((small) => small.dispose());
    for (const [what, [make, code, rule, says]] of Object.entries(BAD_PROJECTORS)) {
      const error = await rejectsWith(open(make()), code, says);
      assert.equal(error.detail.rule, rule, what);
      hasSentence(error, what);
    }
  });

  test(`${PROJECTORS} loads with broken ones leave no memory`, { timeout: 1_200_000 }, async () => {
    const whole = readFileSync(PAIR.options.vision);
    const rss = [];
    for (let i = 0; i < PROJECTORS; i++) {
      const broken = Buffer.from(whole);
      broken[(i * 7919) % 4000] ^= 1 << (i % 8);
      await open(i % 3 ? broken : broken.subarray(0, 9000 * (1 + (i % 90)))).then((other) => other.dispose(), (error) => assert.match(error.code, /^model\//));
      rss.push(process.memoryUsage().rss);
    }
    const most = (part) => Math.max(...rss.slice(PROJECTORS / 5).slice(...part));
    assert.ok(most([PROJECTORS * 0.4]) < most([0, PROJECTORS * 0.4]) + 30e6, String(rss));
  });
});
