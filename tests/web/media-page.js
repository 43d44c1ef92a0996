// SPDX-License-Identifier: MIT
// The page's half of media.html: a worker that decodes, videos, and elements of a page.
import { framesOf } from '../../js/media/video.js';
import { capture } from '../../js/media/page-sources.js';

/** Workers that decode, by their preparation, and the last promise of each. */
const workers = new Map();

/** Pixels as Base64, since drivers are slow with lists. */
const asText = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
const told = (found) => (found.rgb ? { ...found, rgb: asText(found.rgb) } : found);

function call(worker, message, transfer) {
  return new Promise((done, fail) => {
    worker.onmessage = ({ data }) => (data.problem ? fail(new Error(data.problem)) : done(told(data.found)));
    worker.onerror = ({ message: text }) => fail(new Error(text || 'the worker does not start'));
    worker.postMessage(message, transfer);
  });
}

/** Runs calls one after the other. @param {string[]} [prepare] features that the browser lacks */
async function ask(name, argument, prepare = [], transfer = []) {
  const key = prepare.join();
  if (!workers.has(key)) workers.set(key, { worker: new Worker('./media-worker.js', { type: 'module' }), last: null });
  const entry = workers.get(key);
  entry.last = Promise.resolve(entry.last).catch(() => {}).then(() => call(entry.worker, { name, argument, prepare }, transfer));
  return entry.last;
}

/** Red of a frame's left half and right half. */
function halves(frame) {
  const context = new OffscreenCanvas(frame.width, frame.height).getContext('2d');
  context.drawImage(frame, 0, 0);
  const red = (x) => context.getImageData(Math.floor(x * frame.width), frame.height >> 1, 1, 1).data[0];
  return [red(0.25), red(0.75)];
}

const failure = (error) => ({ code: error.code ?? error.name, message: error.message });

async function video(source, how) {
  try {
    const { frames, timestamps } = await framesOf(source, how);
    return { timestamps, sizes: frames.map(({ width, height }) => [width, height]), halves: frames.map(halves) };
  } catch (error) {
    return failure(error);
  }
}

/** A video of a canvas, as browsers record it: without a duration. */
async function recorded(milliseconds) {
  const canvas = Object.assign(document.createElement('canvas'), { width: 64, height: 48 });
  const context = canvas.getContext('2d');
  const recorder = new MediaRecorder(canvas.captureStream(25));
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  recorder.start();
  const start = performance.now();
  for (let time = 0; time < milliseconds; time = performance.now() - start) {
    const grey = Math.round((200 * time) / milliseconds);
    context.fillStyle = `rgb(${grey}, ${grey}, ${grey})`;
    context.fillRect(0, 0, 64, 48);
    await new Promise(requestAnimationFrame);
  }
  recorder.stop();
  await new Promise((done) => { recorder.onstop = done; });
  return new Blob(parts, { type: recorder.mimeType });
}

globalThis.media = {
  ask,
  video: async (url, how) => video(url, how),
  videoOfFile: async (url, how) => video(await (await fetch(url)).blob(), how),
  videoOfNothing: (how) => video(new Blob(['no video'], { type: 'video/webm' }), how),
  /** A second of silence. */
  videoOfSound(how) {
    const bytes = new Uint8Array(44 + 8000).fill(128, 44);
    const view = new DataView(bytes.buffer);
    for (const [at, text] of [[0, 'RIFF'], [8, 'WAVEfmt '], [36, 'data']]) for (const [i, letter] of [...text].entries()) bytes[at + i] = letter.charCodeAt(0);
    for (const [at, value] of [[4, 8036], [16, 16], [24, 8000], [28, 8000], [40, 8000]]) view.setUint32(at, value, true);
    for (const [at, value] of [[20, 1], [22, 1], [32, 1], [34, 8]]) view.setUint16(at, value, true);
    return video(new Blob([bytes], { type: 'audio/wav' }), how);
  },
  videoOfRecording: async (milliseconds, how) => video(await recorded(milliseconds), how),

  /** An element of the page is unchanged afterwards. */
  async videoOfElement(url, how) {
    const element = Object.assign(document.createElement('video'), { src: url, muted: true });
    document.body.append(element);
    await new Promise((done) => { element.onloadeddata = done; });
    element.currentTime = 1.5;
    await new Promise((done) => { element.onseeked = done; });
    const { halves: found } = await video(element, how);
    await new Promise((done) => { element.onseeked = done; });
    return { halves: found, time: element.currentTime };
  },

  /** Passes an image, a canvas, a bitmap and a frame through a worker each; the page's own objects stay valid. */
  async captured(url) {
    const image = Object.assign(new Image(), { src: url });
    const canvas = document.createElement('canvas');
    const bitmaps = [await capture(image)];
    Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
    canvas.getContext('2d').drawImage(image, 0, 0);
    const taken = capture(canvas);
    canvas.getContext('2d').clearRect(0, 0, canvas.width, canvas.height);    // too late to have an effect
    bitmaps.push(await taken);
    const own = await createImageBitmap(image);
    bitmaps.push(await capture(own), await capture(own));
    if (globalThis.VideoFrame) bitmaps.push(await capture(new VideoFrame(own, { timestamp: 0 })));
    return Promise.all(bitmaps.map((bitmap) => ask('decode', bitmap, [], [bitmap])));
  },

  async foreign(url) {
    const image = Object.assign(new Image(), { src: url });
    const closed = await createImageBitmap(new ImageData(1, 1));
    closed.close();
    return Promise.all([image, closed, Object.assign(new Image(), { src: '/nowhere.png' })].map((source) => capture(source).then(() => null, failure)));
  },
};
