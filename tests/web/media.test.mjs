// SPDX-License-Identifier: MIT
// Images and videos in Chromium and in Firefox: the golden images to the byte, EXIF, transparency, a page's own images,
// browsers that alter canvases, and damaged files.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { findFirefox } from '../bench/firefox.mjs';
import { BAD_FILES } from '../fixtures/bad-images.mjs';
import { readPng, writePng } from '../fixtures/png.mjs';
import { PROJECT, launchChromium } from './browser.mjs';

const FOLDER = join(PROJECT, 'tests/fixtures/vision');
const AT = '/tests/fixtures/vision/';
const json = (name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));
const image = (name) => readPng(readFileSync(join(FOLDER, name)));
const sha256 = (bytes) => createHash('sha256').update(Uint8Array.from(bytes)).digest('hex');
const FILES = json('files.json');

const BROWSERS = {
  Chromium: () => launchChromium(),
  Firefox: () => puppeteer.launch({ browser: 'firefox', protocol: 'webDriverBiDi', executablePath: findFirefox(), headless: true }),
};

/** Largest and mean difference of two images. */
function distance(one, other) {
  assert.equal(one.length, other.length);
  let [most, sum] = [0, 0];
  for (let i = 0; i < one.length; i++) {
    most = Math.max(most, Math.abs(one[i] - other[i]));
    sum += Math.abs(one[i] - other[i]);
  }
  return { most, mean: sum / one.length };
}

/** Puts white behind transparent pixels, as the engine does. */
function overWhite({ data, channels }) {
  if (channels === 3) return [...data];
  const rgb = [];
  for (let i = 0; i < data.length; i += 4) for (let c = 0; c < 3; c++) rgb.push(Math.round((data[i + c] * data[i + 3] + 255 * (255 - data[i + 3])) / 255));
  return rgb;
}

/** Damaged files that some browsers still show, in the size that the file says; Node refuses them. */
const LENIENT = /PNG (?:of|with a (?:row|byte|colour|palette)|with half|with an altered|with another|whose)|JPEG that says 256/;

const asText = (bytes) => Buffer.from(bytes).toString('base64');

const HOW = { perSecond: 2, least: 4, most: 16 };

/** Grey of video.webm's frame at a time: ten frames a second, each 7 levels brighter. */
const greyAt = (seconds) => 16 + 7 * Math.floor(seconds * 10 + 1e-6);

function checkVideo({ timestamps, halves, sizes, message }, times = [0, 1, 2, 3, 4, 5].map((k) => (k * (3 - 1 / 30)) / 5)) {
  assert.equal(message, undefined);
  timestamps.forEach((time, k) => assert.ok(Math.abs(time - times[k]) < 0.02, `${timestamps} are not ${times}`));
  assert.equal(timestamps.length, times.length);
  for (const [k, [left, right]] of halves.entries()) {
    assert.ok(Math.abs(left - greyAt(timestamps[k])) <= 4, `frame ${k} at ${timestamps[k]} is ${left}`);
    assert.ok(Math.abs(left + right - 255) <= 6);
  }
  assert.deepEqual(sizes, times.map(() => [64, 48]));
}

for (const [name, launch] of Object.entries(BROWSERS)) {
  describe(name, { timeout: 240_000 }, () => {
    let site;
    let browser;
    let page;

    before(async () => {
      site = await serve({ root: PROJECT, csp: false });
      browser = await launch();
      page = await browser.newPage();
      await page.goto(`${site.url}tests/web/media.html`);
    });
    after(async () => {
      await browser?.close();
      await site?.close();
    });

    const asked = (method, ...args) => page.evaluate(async ([what, given]) => {
      while (!globalThis.media) await new Promise((done) => { setTimeout(done, 20); });
      return globalThis.media[what](...given);
    }, [method, args]);
    const pixelsOf = (found) => (found?.rgb ? { ...found, rgb: Buffer.from(found.rgb, 'base64') } : found);
    const call = async (...args) => {
      const found = await asked(...args);
      return Array.isArray(found) ? found.map(pixelsOf) : pixelsOf(found);
    };
    const decode = (path, prepare) => call('ask', 'decode', AT + path, prepare);

    test('16 megapixels are decoded, read and resized in slices, between which the worker answers', async () => {
      const [width, height] = [4096, 4096];
      const bytes = writePng({ width, height, data: Buffer.alloc(height * (3 * width + 1)) });
      let found;
      for (let attempt = 0; attempt < 4 && !(found?.longest <= 100); attempt++) found = await asked('ask', 'stretch', asText(bytes));
      assert.deepEqual([found.width, found.height], [width, height], JSON.stringify(found));
      assert.ok(found.part <= 100 && found.longest <= 250, JSON.stringify(found));     // other work may run at the same time
    });

    test('the golden images are equal, those with alpha within 1, 16 bits within 1; and so is what is resized of them', async () => {
      const resized = json('resized.json');
      for (const golden of ['exact', 'odd', 'palette', 'tall', 'tiny', 'wide', 'alpha', 'grey16']) {
        const expected = image(`images/${golden}.png`);
        const found = await decode(`images/${golden}.png`);
        assert.equal(found.message, undefined, golden);
        const { width, height } = expected;
        assert.deepEqual([found.width, found.height, found.size], [width, height, { width, height }]);
        const { most } = distance(found.rgb, overWhite(expected));
        assert.ok(most <= (/alpha|grey16/.test(golden) ? 1 : 0), `${golden}: ${most}`);
        if (most) continue;
        const to = resized[golden];
        assert.equal(await call('ask', 'resized', { url: `${AT}images/${golden}.png`, to }), to.sha256, golden);
      }
    });

    test('JPEG as it is to be seen, within 3 levels', async () => {
      const { rgb, width } = await decode('images/turned.jpg');
      assert.equal(width, 48);
      assert.ok(distance(rgb, image('images/turned.expected.png').data).most <= 3);
    });

    test('every kind of file that this browser knows, of the size that the header says', async (t) => {
      const scene = image('files/scene.png').data;
      for (const [path, { kind, width, height, alpha, sha256: hash }] of Object.entries(FILES)) {
        const found = await decode(`files/${path}`);
        if (found.message) {
          assert.equal(found.code, 'image/decode', path);
          t.diagnostic(`${path}: ${found.message}`);
          assert.ok(/avif/.test(path), `${path}: ${found.message}`);
          continue;
        }
        assert.deepEqual([found.width, found.height], [width, height], path);
        if (hash && !alpha) assert.equal(sha256(found.rgb), hash, path);
        else if (!alpha && /^(plain|animated|progressive|cmyk|restarts)/.test(path) && kind !== 'gif') assert.ok(distance(found.rgb, scene).mean < (kind === 'avif' ? 20 : 3), path);
      }
    });

    test('eight orientations look eight ways', async () => {
      const found = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((i) => decode(`files/exif${i}.jpg`)));
      assert.deepEqual(found.map(({ width }) => width), [24, 24, 24, 24, 16, 16, 16, 16]);
      assert.equal(new Set(found.map(({ rgb }) => sha256(rgb))).size, 8);
    });

    test('bytes, Blobs and pixels; a huge image is reduced', async () => {
      const bytes = asText(readFileSync(join(FOLDER, 'files/scene.png')));
      const { rgb } = await call('ask', 'bytes', bytes);
      assert.deepEqual((await call('ask', 'blob', bytes)).rgb, rgb);
      assert.deepEqual((await call('ask', 'raw', { data: asText(rgb), width: 24, height: 16 })).rgb, rgb);
      assert.equal((await call('ask', 'raw', { data: asText(rgb), width: 25, height: 16 })).code, 'use/param');
      const huge = writePng({ width: 6000, height: 3000, depth: 8, color: 0, data: Buffer.alloc(6001 * 3000) });
      const { width, height, reduced, message } = await call('ask', 'bytes', asText(huge));
      assert.deepEqual({ width, height, reduced }, { width: 128, height: 128, reduced: { width: 6000, height: 3000 } }, message);
    });

    test('what a page shows is taken as it is at the call', async () => {
      const { data, width, height } = image('images/odd.png');
      const found = await call('captured', `${AT}images/odd.png`);
      assert.ok(found.length >= 4);
      for (const [i, { rgb, message, ...size }] of found.entries()) {
        assert.equal(message, undefined);
        assert.deepEqual([size.width, size.height], [width, height]);
        assert.ok(distance(rgb, data).most <= 1, `source ${i}`);
      }
    });

    test('another site\'s image, one that is closed, and none', async () => {
      const server = createServer((_, response) => response.writeHead(200, { 'Content-Type': 'image/png', 'Cross-Origin-Resource-Policy': 'cross-origin' })
        .end(readFileSync(join(FOLDER, 'files/scene.png'))));
      await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
      const found = await call('foreign', `http://127.0.0.1:${server.address().port}/scene.png`);
      server.close();
      server.closeAllConnections();
      assert.deepEqual(found.map((error) => error?.code), ['image/decode', 'image/decode', 'image/decode']);
      assert.match(found[0].message, /CORS/);
    });

    test('a canvas that is altered, or none: through frames, else a refusal, never noise', async () => {
      for (const lack of ['noise', 'noCanvas']) {
        const { rgb, message } = await decode('images/odd.png', [lack]);
        assert.equal(message, undefined);
        assert.equal(distance(rgb, image('images/odd.png').data).most, 0);
        const upright = await decode('files/exif6.jpg', [lack]);
        assert.equal(upright.message, undefined);
        assert.ok(distance(upright.rgb, (await decode('files/exif6.jpg')).rgb).most <= 3);
        assert.ok(distance((await decode('images/alpha.png', [lack])).rgb, overWhite(image('images/alpha.png'))).most <= 1);
        assert.equal((await decode('images/odd.png', [lack, 'noFrames'])).code, 'env/canvas');
      }
    });

    test('broken and lying files end soon, in image/*', async () => {
      for (const [what, [bytes, codes = ['image/decode']]] of Object.entries(BAD_FILES)) {
        const found = await call('ask', 'bytes', asText(bytes));
        const isShown = Boolean(found.rgb) && LENIENT.test(what);
        assert.ok(isShown || codes.includes(found.code), `${what}: ${found.code} ${found.message}`);
        assert.ok(isShown || found.ms < 5000, `${what}: ${found.ms} ms`);
      }
      const { code } = await call('ask', 'aborted', `${AT}files/plain.jpg`, ['slow']);
      assert.equal(code, 'TimeoutError', 'a decoder that never answers does not keep a call');
    });

    for (const path of ['files/plain.jpg', 'files/progressive.jpg', 'images/odd.png', 'files/lossless.webp', 'files/plain.gif', 'files/plain.bmp', 'files/plain.avif']) {
      test(`cut off at every 64th byte: ${path}`, async () => {
        for (const { n, code, ms, decoded } of await call('ask', 'cut', { url: AT + path, step: 64 })) {
          assert.ok(!decoded, `${n} bytes were decoded`);
          assert.match(code, /^image\//);
          assert.ok(ms < 5000, `${ms} ms`);
        }
      });
    }

    test('frames of a video, by its address, of a file, of an element', async () => {
      checkVideo(await call('video', `${AT}video.webm`, HOW));
      checkVideo(await call('videoOfFile', `${AT}video.webm`, HOW));
      checkVideo(await call('video', `${AT}video.webm`, { perSecond: 1, least: 1, most: 2 }), [0, 3 - 1 / 30]);
      checkVideo(await call('video', `${AT}video.webm`, { perSecond: 1, least: 1, most: 1 }), [0]);
      const { halves, time } = await call('videoOfElement', `${AT}video.webm`, HOW);
      assert.equal(halves.length, 6);
      assert.ok(Math.abs(time - 1.5) < 0.05, 'is where it was');
    });

    test('a recording, which does not say how long it is', async () => {
      const { timestamps, halves, message } = await call('videoOfRecording', 1500, HOW);
      assert.equal(message, undefined);
      assert.ok(timestamps.length >= 4, `${timestamps}`);     // four of 1.5 s; more if the machine stops for a while
      const greys = halves.map(([left]) => left);
      assert.deepEqual(greys, [...greys].sort((a, b) => a - b), 'in order');
      assert.ok(greys.at(-1) > greys[0], String(greys));
    });

    test('what is no video', async () => {
      assert.equal((await call('videoOfNothing', HOW)).code, 'image/decode');
      assert.deepEqual(await call('videoOfSound', HOW), { code: 'image/decode', message: 'The video has no frames.' });
      assert.match((await call('video', `${AT}nothing.webm`, HOW)).code, /^(image\/decode|net\/unreachable)$/);
    });
  });
}
