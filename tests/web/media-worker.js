// SPDX-License-Identifier: MIT
// The worker's half of media.html: decodes images as the engine's worker does, with the engine's own reading of
// headers.
import { instantiate } from '../../js/engine/instance.js';
import { pixelsOf, sizeOf } from '../../js/media/pixels-web.js';
import { imagesOf } from '../fixtures/images-of.mjs';

/** Plays a privacy mode that changes pixels, or a browser that lacks something. */
const PREPARE = {
  noise() {
    const { prototype } = OffscreenCanvasRenderingContext2D;
    const { getImageData } = prototype;
    prototype.getImageData = function noisy(...area) {
      const image = getImageData.apply(this, area);
      for (let i = 0; i < image.data.length; i += 397) image.data[i] ^= 1;
      return image;
    };
  },
  noFrames() { globalThis.VideoFrame = undefined; },
  noCanvas() { globalThis.OffscreenCanvas = undefined; },
  slow() { globalThis.createImageBitmap = () => new Promise(() => {}); },
};

let images;

async function decode(source, { target = { width: 64, height: 64 }, signal } = {}) {
  const start = performance.now();
  try {
    const bytes = typeof source === 'string' ? new Uint8Array(await (await fetch(source)).arrayBuffer()) : source;
    const header = (file) => images.header(file);
    const { width: w, height: h } = await sizeOf(bytes, header);
    const { data, width, height, reduced } = await pixelsOf(bytes, { header, target, signal });
    return { size: { width: w, height: h }, width, height, reduced, rgb: images.resize(data, { width, height }, { width, height }) };
  } catch (error) {
    return { code: error instanceof DOMException ? error.name : error.code, message: error.message, ms: performance.now() - start };
  }
}

const fromText = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

const CALLS = {
  decode,
  /** The hash of an image in another size. */
  resized: async ({ url, to }) => {
    const { rgb, width, height } = await decode(url);
    const hash = await crypto.subtle.digest('SHA-256', images.resize(rgb, { width, height }, to));
    return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
  },
  /** A file cut off at every `step` bytes: the cases that were decoded nevertheless. */
  async cut({ url, step }) {
    const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
    const found = [];
    for (let n = 0; n < bytes.length; n += step) {
      const { code, ms, rgb } = await decode(bytes.subarray(0, n));
      found.push({ n, code, ms, decoded: Boolean(rgb) });
    }
    return found;
  },
  bytes: (text) => decode(fromText(text)),
  blob: (text) => decode(new Blob([fromText(text)])),
  raw: (image) => decode({ ...image, data: fromText(image.data) }),
  /**
   * Longest time, in ms, that this worker does not answer, and that a slice takes, while a file is decoded and resized.
   */
  async stretch(text) {
    const [{ port1, port2 }, waiting] = [new MessageChannel(), []];
    port2.onmessage = () => waiting.shift()();
    const parts = [];
    const task = (part) => new Promise((done) => { waiting.push(done); port1.postMessage(0); }).then(() => {
      const start = performance.now();
      part();
      parts.push(performance.now() - start);
    });
    let [longest, isOver, last] = [0, false, performance.now()];
    const watch = async () => {
      for (; !isOver; last = performance.now()) {
        await task(() => {});
        longest = Math.max(longest, performance.now() - last);
      }
    };
    const watched = watch();
    const { data, width, height } = await pixelsOf(fromText(text), { header: (file) => images.header(file), target: { width: 512, height: 512 }, slice: task });
    const steps = images.resizing(data, { width, height }, { width: 512, height: 512 });
    for (let step; !step?.done;) await task(() => { step = steps.next(); });
    isOver = true;
    await watched;
    port1.close();
    return { longest, width, height, part: Math.max(...parts) };
  },
  aborted: (url) => decode(url, { signal: AbortSignal.timeout(200) }),
};

async function start(prepare) {
  for (const what of prepare) PREPARE[what]();
  const module = await WebAssembly.compileStreaming(fetch('../../dist/quern-simd.wasm'));
  const { default: glue } = await import('../../dist/quern-simd.mjs');
  return imagesOf(await instantiate(glue, module, 1, 32));
}

onmessage = async ({ data: { name, argument, prepare } }) => {
  try {
    images ??= await start(prepare);
    postMessage({ found: await CALLS[name](argument) });
  } catch (error) {
    postMessage({ problem: error.stack ?? String(error) });
  }
};
