// SPDX-License-Identifier: MIT
// Images in Node, from files of every kind to the bytes that the encoder gets: the golden ones to the byte, all kinds of PNG, what sharp and
// jpeg-js make of the others; and whatever is broken, lying or too large, which ends soon, in image/*.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { crc32 as slowCrc } from '../../../js/media/crc-node.js';
import { instantiate } from '../../../js/engine/instance.js';
import { pixelsOf, sizeOf } from '../../../js/media/pixels-node.js';
import { BAD_FILES } from '../../fixtures/bad-images.mjs';
import { imagesOf } from '../../fixtures/images-of.mjs';
import { chunk, crc32, readPng, writePng } from '../../fixtures/png.mjs';
import { compile, glue } from '../support/engine-host.mjs';
import { VirtualClock } from '../../fixtures/virtual-clock.mjs';
import { soon, timed } from '../support/soon.mjs';

const FOLDER = fileURLToPath(new URL('../../fixtures/vision', import.meta.url));
const bytesOf = (name) => new Uint8Array(readFileSync(join(FOLDER, name)));
const json = (name) => JSON.parse(readFileSync(join(FOLDER, name), 'utf8'));
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

const FILES = json('files.json');
const TARGET = { width: 64, height: 64 };

/** The decoders that may be installed: both, the small one, none. */
const INSTALLED = {
  sharp: undefined,
  'jpeg-js': async (name) => (name === 'jpeg-js' ? (await import(name)).default : null),
  nothing: async () => null,
};

let instance;
let images;
const header = (bytes) => images.header(bytes);
/** The size that a file says. */
const sizeOfFile = async (source) => {
  const { width, height } = await sizeOf(source, header);
  return { width, height };
};
const decode = (source, find) => pixelsOf(source, { header, target: TARGET, find });

before(async () => {
  instance = await instantiate(glue[32], await compile('simd'), 1, 32);
  images = imagesOf(instance);
});

/** The image in another size, at once. @param {Uint8Array} rgb */
function resizedAtOnce(rgb, from, to) {
  const { wasm, memory } = instance;
  const [scratch, pixels, out] = [wasm._wasm_image_resize_cost(from.width, from.height, to.width, to.height), rgb.length, 3 * to.width * to.height].map((n) => wasm._wasm_alloc(n));
  new Uint8Array(memory.buffer, pixels, rgb.length).set(rgb);
  wasm._wasm_image_resize(pixels, from.width, from.height, out, to.width, to.height, scratch);
  const made = new Uint8Array(memory.buffer, out, 3 * to.width * to.height).slice();
  for (const address of [scratch, pixels, out]) wasm._wasm_release(address);
  return made;
}

/** The largest difference of two images of one size. */
function distance(one, other) {
  assert.deepEqual([one.width, one.height], [other.width, other.height]);
  const step = one.data.length / (one.width * one.height);
  assert.equal(other.data.length, one.data.length / step * 3);
  let most = 0;
  for (let i = 0; i < one.width * one.height; i++) {
    for (let c = 0; c < 3; c++) most = Math.max(most, Math.abs(one.data[step * i + c] - other.data[3 * i + c]));
  }
  return most;
}

// --- what is right ---

test('the golden images and frames: decoded and resized to the byte', async () => {
  const resized = json('resized.json');
  const videos = { clip: [0, 3, 5, 8], five: [0, 1, 2, 3, 4] };
  const names = ['alpha', 'exact', 'grey16', 'odd', 'palette', 'tall', 'tiny', 'wide'].map((name) => [name, `images/${name}.png`]);
  for (const [video, numbers] of Object.entries(videos)) numbers.forEach((number, i) => names.push([`${video}-${i}`, `images/${video}/00${number}.png`]));
  for (const [name, path] of names) {
    const bytes = bytesOf(path);
    const pixels = await decode(bytes);
    const expected = readPng(Buffer.from(bytes));
    assert.deepEqual(await sizeOfFile(bytes), { width: expected.width, height: expected.height });
    assert.ok(expected.data.equals(pixels.data), name);
    const { width, height, sha256: hash } = resized[name];
    assert.equal(sha256(images.resize(pixels.data, pixels, { width, height })), hash, name);
  }
});

test('an image that goes through the memory in strips is the same', async () => {
  const [w, h] = [1500, 1001];
  const rgba = Uint8Array.from({ length: 4 * w * h }, (_, i) => (i * 2654435761 >>> 13) ^ (i >> 9));
  const whole = images.resize(rgba, { width: w, height: h }, { width: 320, height: 224 });
  const white = new Uint8Array(3 * w * h);
  for (let i = 0; i < w * h; i++) {
    for (let c = 0; c < 3; c++) {
      const v = rgba[4 * i + c] * rgba[4 * i + 3] + 255 * (255 - rgba[4 * i + 3]);
      white[3 * i + c] = Math.floor((2 * v + 255) / 510);
    }
  }
  assert.deepEqual(images.resize(white, { width: w, height: h }, { width: 320, height: 224 }), whole);
  for (const to of [{ width: 320, height: 224 }, { width: 1600, height: 64 }, { width: 33, height: 3000 }]) {
    assert.deepEqual(images.resize(white, { width: w, height: h }, to), resizedAtOnce(white, { width: w, height: h }, to));
  }
  assert.deepEqual(images.resize(white, { width: w, height: h }, { width: w, height: h }), white);
  assert.deepEqual(images.resize(rgba, { width: w, height: h }, { width: w, height: h }), white);
});

test('12 megapixels become 512 x 512 within 150 ms', async () => {
  const data = new Uint8Array(3 * 4000 * 3000);
  for (let i = 0; i < data.length; i++) data[i] = Math.imul(i, 2654435761) >>> 24;
  await soon(150, () => {    // of the processor's time, since others may run beside this
    const start = process.cpuUsage();
    images.resize(data, { width: 4000, height: 3000 }, { width: 512, height: 512 });
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  });
});

test('frames of videos and their labels', () => {
  const { sampling } = json('sizes.json');
  for (const { frames, fps, count, indices, labels } of sampling) {
    const chosen = images.sample(frames, fps, 2, 4, 768);
    assert.equal(chosen.length, count);
    if (!indices) continue;
    assert.deepEqual([...chosen], indices);
    const time = (i) => indices[Math.min(i, count - 1)] / fps;
    assert.deepEqual(labels.map((_, j) => images.label((time(2 * j) + time(2 * j + 1)) / 2)), labels);
  }
  assert.deepEqual([0.25, 0.75, 1.25, 3661.05].map((t) => images.label(t)), ['<0.2 seconds>', '<0.8 seconds>', '<1.2 seconds>', '<3661.1 seconds>']);
});

/** Every kind of PNG: what its samples are, and what they become. */
function* pngKinds() {
  const palette = Array.from({ length: 16 }, (_, i) => [i * 16, 255 - i * 9, (i * 53) & 255]);
  const depths = { 0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16] };
  for (const [width, height] of [[13, 11], [1, 1], [3, 9], [33, 2]]) {
    for (const interlaced of [false, true]) {
      for (const transparent of [false, true]) {
        for (const color of [0, 2, 3, 4, 6]) {
          for (const depth of depths[color]) yield { width, height, interlaced, transparent: transparent && color < 4, color, depth, palette };
        }
      }
    }
  }
}

function asPng({ width, height, interlaced, transparent, color, depth, palette }) {
  const most = color === 3 ? Math.min(2 ** depth, 16) - 1 : 2 ** depth - 1;
  const channels = { 0: 1, 2: 3, 3: 1, 4: 2, 6: 4 }[color];
  const samples = (x, y) => Array.from({ length: channels }, (_, c) => (x * 2551 + y * 977 * (c + 1) + c * 31 + (x ^ y) * 13) % (most + 1));
  const key = samples(0, 0);
  const byte = (v) => (depth === 16 ? Math.floor((v * 255 + 32895) / 65536) : Math.round(v * 255 / most));
  const alphas = [255, 10, 200, 0];
  const pixel = (x, y) => {
    const own = samples(x, y);
    if (color === 3) return [...palette[own[0]], ...transparent ? [alphas[own[0]] ?? 255] : []];
    const shown = own.map(byte);
    const rgb = channels < 3 ? [shown[0], shown[0], shown[0]] : shown.slice(0, 3);
    if (color >= 4) return [...rgb, shown.at(-1)];
    return [...rgb, ...transparent ? [own.every((v, c) => v === key[c]) ? 0 : 255] : []];
  };
  const tRNS = color === 3 ? alphas : key.flatMap((v) => [v >> 8, v & 255]);
  const bytes = writePng({
    width, height, depth, color, interlaced, samples, palette: color === 3 && palette.slice(0, most + 1), transparent: transparent && tRNS, pieces: 3,
  });
  const expected = [];
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) expected.push(...pixel(x, y));
  return { bytes, expected };
}

test('PNG of every kind: colours, depths, interlaced, transparent, filtered with all five', async () => {
  let count = 0;
  for (const kind of pngKinds()) {
    const { bytes, expected } = asPng(kind);
    const { data } = await decode(new Uint8Array(bytes));
    assert.deepEqual([...data], expected, JSON.stringify({ ...kind, palette: undefined }));
    count++;
  }
  assert.equal(count, 4 * 2 * 2 * 15);
});

/** A BMP file. @param {(x: number, y: number) => number} pixel as it is stored */
function asBmp({ width, height, bits, packing = 0, masks = [], palette = [], isCore = false, isDown = false, pixel }) {
  const stride = Math.ceil(width * bits / 32) * 4;
  const size = isCore ? 12 : Math.max(40, masks.length === 4 ? 56 : 0);
  const inside = size === 40 ? 4 * masks.length : 0;
  const start = 14 + size + inside + palette.length * (isCore ? 3 : 4);
  const bytes = Buffer.alloc(start + stride * height);
  bytes.write('BM');
  bytes.writeUInt32LE(start, 10);
  bytes.writeUInt32LE(size, 14);
  if (isCore) [width, height, 1, bits].forEach((value, i) => bytes.writeUInt16LE(value, 18 + 2 * i));
  else {
    bytes.writeInt32LE(width, 18);
    bytes.writeInt32LE(isDown ? -height : height, 22);
    bytes.writeUInt16LE(1, 26);
    bytes.writeUInt16LE(bits, 28);
    bytes.writeUInt32LE(packing, 30);
    bytes.writeUInt32LE(palette.length, 46);
    masks.forEach((mask, i) => bytes.writeUInt32LE(mask >>> 0, 54 + 4 * i));
  }
  palette.forEach((color, i) => color.forEach((value, c) => { bytes[14 + size + inside + (isCore ? 3 : 4) * i + 2 - c] = value; }));
  for (let y = 0; y < height; y++) {
    const row = start + stride * (isDown ? y : height - 1 - y);
    for (let x = 0; x < width; x++) {
      if (bits < 8) bytes[row + (x * bits >> 3)] |= pixel(x, y) << (8 - bits - (x * bits & 7));
      else bytes.writeUIntLE(pixel(x, y) >>> 0, row + x * bits / 8, bits / 8);
    }
  }
  return new Uint8Array(bytes);
}

test('BMP of every kind: palettes, masks, from above and from below; what is compressed says so', async () => {
  const [width, height] = [5, 3];
  const palette = [[1, 2, 3], [250, 20, 30], [9, 200, 7], [0, 0, 255]];
  const byte = (x, y, c) => (x * 50 + y * 9 + c * 77) & 255;
  const five = (value) => Math.round((value >> 3) * 255 / 31);
  const rgb = (x, y) => [0, 1, 2].map((c) => byte(x, y, c));
  const packed = (x, y, [r, g, b], at) => ((rgb(x, y)[0] >> (8 - r)) << at[0]) | ((rgb(x, y)[1] >> (8 - g)) << at[1]) | ((rgb(x, y)[2] >> (8 - b)) << at[2]);
  const number = (x, y) => (x + y) % 4;
  const kinds = [
    ...[4, 8].map((bits) => [{ bits, palette, pixel: number }, (x, y) => palette[number(x, y)]]),
    [{ bits: 8, palette, isCore: true, pixel: number }, (x, y) => palette[number(x, y)]], [{ bits: 4, palette: palette.slice(0, 2), pixel: number }, (x, y) => palette.slice(0, 2)[number(x, y)] ?? [0, 0, 0]],
    [{ bits: 24, isDown: true, pixel: (x, y) => packed(x, y, [8, 8, 8], [16, 8, 0]) }, rgb], [{ bits: 24, isCore: true, pixel: (x, y) => packed(x, y, [8, 8, 8], [16, 8, 0]) }, rgb],
    [{ bits: 16, pixel: (x, y) => packed(x, y, [5, 5, 5], [10, 5, 0]) }, (x, y) => rgb(x, y).map(five)],
    [{ bits: 16, packing: 3, masks: [0xF800, 0x7E0, 0x1F], pixel: (x, y) => packed(x, y, [5, 6, 5], [11, 5, 0]) },
      (x, y) => [five(byte(x, y, 0)), Math.round((byte(x, y, 1) >> 2) * 255 / 63), five(byte(x, y, 2))]],
    [{ bits: 32, packing: 3, masks: [0xFF, 0xFF00, 0xFF0000, 0xFF000000], pixel: (x, y) => packed(x, y, [8, 8, 8], [0, 8, 16]) | byte(y, x, 1) << 24 }, (x, y) => [...rgb(x, y), byte(y, x, 1)]],
    [{ bits: 32, pixel: (x, y) => packed(x, y, [8, 8, 8], [16, 8, 0]) }, rgb],
  ];
  for (const [kind, color] of kinds) {
    const bytes = asBmp({ width, height, ...kind });
    const { data, ...size } = await decode(bytes, INSTALLED.nothing);
    assert.deepEqual(size, { width, height });
    assert.deepEqual([...data], Array.from({ length: width * height }, (_, i) => color(i % width, Math.floor(i / width))).flat(), JSON.stringify(kind));
    await assert.rejects(decode(bytes.subarray(0, -1)), { code: 'image/decode', message: /ends too early/ });
  }
  await assert.rejects(decode(asBmp({ width, height, bits: 8, packing: 1, palette, pixel: number })), { code: 'image/decode', message: /^Compressed BMP files/ });
});

test('PNG: chunks that say nothing of pixels, and several that do', async () => {
  const image = { width: 2, height: 1, color: 2, samples: (x) => [x, 2, 3] };
  const before = [chunk('gAMA', Buffer.from([0, 0, 177, 143])), chunk('tEXt', Buffer.alloc(70000, 65)), chunk('pHYs', Buffer.alloc(9))];
  const { data } = await decode(new Uint8Array(writePng({ ...image, before, pieces: 7 })));
  assert.deepEqual([...data], [0, 2, 3, 1, 2, 3]);
  assert.equal(slowCrc(Buffer.from('123456789')), 0xCBF43926);
  assert.equal(crc32(Buffer.from('123456789')), 0xCBF43926);
});

test('a file of every kind, by sharp where no reader of ours does it: its size, its pixels where nothing is lost, its first image, turned as it says', async () => {
  const scene = await decode(bytesOf('files/scene.png'));
  for (const [name, expected] of Object.entries(FILES)) {
    const bytes = bytesOf(`files/${name}`);
    assert.deepEqual(await sizeOfFile(new Blob([bytes])), { width: expected.width, height: expected.height }, name);
    if (name === 'animated.avif') continue;    // which sharp does not know
    const pixels = await decode(bytes);
    assert.deepEqual([pixels.width, pixels.height], [expected.width, expected.height], name);
    if (expected.sha256) assert.equal(sha256(pixels.data), expected.sha256, name);
    else if (/^(plain|animated|progressive|restarts)/.test(name)) assert.ok(distance(pixels, scene) <= (/gif/.test(name) ? 60 : 20), name);
  }
});

/** A WebP file as it says itself, with chunks between what stands before the pixels and EXIF. @param {Buffer[]} chunks */
function longWebp(exif, chunks) {
  const part = (name, data) => Buffer.concat([Buffer.from(name), Uint8Array.of(data.length, data.length >> 8, data.length >> 16, data.length >> 24), data, Buffer.alloc(data.length & 1)]);
  const flags = Buffer.from([8, 0, 0, 0, 19, 0, 0, 9, 0, 0]);
  const file = Buffer.concat([Buffer.from('RIFF....WEBP'), part('VP8X', flags), ...chunks, ...exif ? [part('EXIF', exif)] : []]);
  file.writeUInt32LE(file.length - 8, 4);
  return new Uint8Array(file);
}

test('EXIF behind the pixels of a large WebP file is found; chunks without an end are refused soon', async () => {
  const turned = Buffer.from('4d4d002a00000008000101120003000000010006000000000000', 'hex');
  const pixels = Buffer.concat([Buffer.from('ALPH'), Uint8Array.of(1, 0, 16, 0), Buffer.alloc((1 << 20) + 2)]);
  const sizeOfWebp = (exif, chunks = [pixels]) => { const { width, height, orientation } = header(longWebp(exif, chunks)); return [width, height, orientation]; };
  assert.deepEqual(sizeOfWebp(turned), [10, 20, 6]);
  assert.deepEqual(sizeOfWebp(turned, []), [10, 20, 6], 'and of a small one');
  assert.deepEqual(sizeOfWebp(null), [20, 10, 1], 'announced, but not there');
  const cut = longWebp(turned, [pixels]).subarray(0, -30);
  assert.throws(() => header(cut), { code: 'image/decode' });
  const many = longWebp(turned, [Buffer.alloc(32 << 20)]);
  await soon(50, () => timed(async () => { assert.throws(() => header(many), { code: 'image/decode' }); }));
});

test('JPEG by sharp and by jpeg-js: the same but for some levels, in all eight orientations', async () => {
  const expected = readPng(readFileSync(join(FOLDER, 'images/turned.expected.png')));
  for (const find of [INSTALLED.sharp, INSTALLED['jpeg-js']]) assert.ok(distance(await decode(bytesOf('images/turned.jpg'), find), expected) <= 3);
  const images = new Set();
  for (const name of Object.keys(FILES).filter((path) => path.endsWith('.jpg'))) {
    const [one, other] = await Promise.all([INSTALLED.sharp, INSTALLED['jpeg-js']].map((find) => decode(bytesOf(`files/${name}`), find)));
    assert.ok(distance(one, other) <= (name === 'halved.jpg' ? 100 : 3), `${name}: ${distance(one, other)}`);
    if (name.startsWith('exif')) images.add(sha256(other.data));
  }
  assert.equal(images.size, 8, 'no two turns look alike');
});

test('pixels that the caller has are taken as they are, if they can be', async () => {
  const raw = { data: new Uint8ClampedArray(24), width: 4, height: 2 };
  assert.deepEqual(await decode(raw), raw);
  assert.deepEqual(await sizeOfFile(raw), { width: 4, height: 2 });
  await assert.rejects(decode({ ...raw, width: 5 }), { code: 'use/param', message: /30 bytes of RGB or 40 of RGBA, not 24/ });
  await assert.rejects(decode({ ...raw, width: 0 }), { code: 'image/decode' });
  await assert.rejects(sizeOf({ ...raw, width: 16385 }, header), { code: 'image/size' });
});

test('what is not installed is named', async () => {
  await assert.rejects(decode(bytesOf('files/plain.jpg'), INSTALLED.nothing), { code: 'image/decode', message: /install jpeg-js or sharp/, hint: /sharp/ });
  for (const find of [INSTALLED.nothing, INSTALLED['jpeg-js']]) {
    for (const name of ['lossless.webp', 'plain.gif', 'plain.avif']) {
      await assert.rejects(decode(bytesOf(`files/${name}`), find), { code: 'image/decode', message: /(WebP|GIF|AVIF) file .* install sharp\./ });
    }
  }
  await assert.rejects(decode(bytesOf('files/animated.avif')), { code: 'image/decode', message: /Animated AVIF .* save its first image as PNG\./ });
  for (const name of ['scene.png', 'plain.bmp']) assert.equal((await decode(bytesOf(`files/${name}`), INSTALLED.nothing)).width, 24);
});

test('a huge image is made smaller while sharp decodes it, and says so', async () => {
  const { default: sharp } = await import('sharp');
  const bytes = await sharp({ create: { width: 6000, height: 4000, channels: 3, background: { r: 200, g: 100, b: 50 } } }).jpeg().toBuffer();
  const { data, ...rest } = await decode(new Uint8Array(bytes));
  assert.deepEqual(rest, { width: 128, height: 128, reduced: { width: 6000, height: 4000 } });
  assert.equal(data.length, 3 * 128 * 128);
  assert.ok(Math.abs(data[0] - 200) < 3);
});

// --- what is wrong ---

/** Ends in this code, within a second. @param {(pixels: object) => boolean} [allowed] what may come instead */
async function fails(what, source, { codes = ['image/decode'], find, allowed = () => false } = {}) {
  await soon(1000, () => timed(async () => {
    const [pixels, error] = await decode(source, find).then((done) => [done, null], (failure) => [null, failure]);
    if (pixels && allowed(pixels)) return;
    assert.ok(error, `${what}: was decoded`);
    assert.ok(codes.includes(error.code), `${what}: ${error.stack}`);
    assert.ok(error.message.length > 20 && error.hint.length > 20, what);
  }));
}

describe('broken, lying and huge files end soon, in image/*', () => {
  for (const [name, [bytes, codes]] of Object.entries(BAD_FILES)) {
    for (const [which, find] of Object.entries(INSTALLED)) {
      test(`${name} (${which})`, () => fails(name, new Uint8Array(bytes), { codes, find }));
    }
  }
});

describe('cut off at every 64th byte', () => {
  const names = [...Object.keys(FILES).map((name) => `files/${name}`), ...readdirSync(join(FOLDER, 'images')).filter((name) => /\./.test(name)).map((name) => `images/${name}`)];
  for (const name of names) {
    test(name, async () => {
      const bytes = bytesOf(name);
      const rgb = (pixels) => images.resize(pixels.data, pixels, pixels);
      const whole = name.endsWith('animated.gif') ? rgb(await decode(bytes)) : null;
      const allowed = (pixels) => whole && Buffer.from(rgb(pixels)).equals(whole);    // the first of its images is there
      for (let n = 0; n < bytes.length; n += 64) {
        for (const find of [INSTALLED.sharp, INSTALLED['jpeg-js']]) {
          await fails(`${name}, ${n} bytes of ${bytes.length}`, bytes.subarray(0, n), { find, allowed });
        }
      }
    });
  }
});

test('500 images in a row, good and bad: the memory stays as it was after 10', async () => {
  const sources = [bytesOf('images/odd.png'), bytesOf('files/plain.jpg'), new Uint8Array(BAD_FILES['a PNG bomb of 65,535 x 65,535 in 4 KB'][0]), bytesOf('files/plain.jpg').subarray(0, 300)];
  const own = await instantiate(glue[32], await compile('simd'), 1, 32);
  const engine = imagesOf(own);
  let after10;
  for (let i = 0; i < 500; i++) {
    const image = await pixelsOf(sources[i % 4], { header: (bytes) => engine.header(bytes), target: TARGET, find: INSTALLED['jpeg-js'] }).catch(() => null);
    if (image) engine.resize(image.data, image, { width: 96, height: 96 });
    if (i === 10) after10 = own.memory.buffer.byteLength;
  }
  assert.equal(own.memory.buffer.byteLength, after10);
});

test('a decoder that never answers is given up after half a minute', async () => {
  const clock = new VirtualClock();
  const start = clock.now();
  const sharp = () => ({ metadata: () => new Promise(() => {}) });
  const pending = pixelsOf(bytesOf('images/turned.jpg'), { header, target: TARGET, clock, find: async () => sharp });
  const error = await clock.run(pending).catch((failure) => failure);
  assert.deepEqual([error.code, clock.now() - start, clock.pending], ['image/decode', 30_000, 0]);
  assert.match(error.message, /has not answered within 30 seconds/);
});
