// SPDX-License-Identifier: MIT
// Checks parts of a message: texts, images, videos. A checked part is a copy of the fields that are present; OpenAI's
// `image_url` becomes an image. This file is loaded with the first model that has vision; without one, messages.js
// accepts only texts.

import { QuernError, badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { DETAIL, PIXELS, above, checkFields, integer, ofType, read } from './values.js';

/** Most frames of a video, and most pixels per side of an image given as pixels. */
const MOST_FRAMES = 768;
const MOST_SIDE = 2 ** 14;

const FILE = ['string', 'URL', 'Blob'];
const SEEN = ['ImageBitmap', 'HTMLImageElement', 'HTMLCanvasElement', 'OffscreenCanvas', 'VideoFrame'];

/** Whether a value is an instance of one of these classes, which may not exist here. */
const isOneOf = (names, value) => names.some((name) => (
  typeof value === name || (typeof globalThis[name] === 'function' && value instanceof globalThis[name])));

/** Pixels of 3 or 4 channels (RGB, RGBA); also an ImageData. */
function pixels({ data, width, height }) {
  if (!isOneOf(['Uint8Array', 'Uint8ClampedArray'], data)) return 'must have its pixels in data, a Uint8Array';
  const problem = integer(1, MOST_SIDE)(width) ?? integer(1, MOST_SIDE)(height);
  if (problem) return `has a width or height that ${problem.replace('must be', 'is not')}`;
  const bytes = width * height;
  return data.length === 3 * bytes || data.length === 4 * bytes ? null
    : `has ${data.length} bytes, but ${width} x ${height} pixels are ${3 * bytes} (RGB) or ${4 * bytes} (RGBA)`;
}

function image(value) {
  if (value === '') return 'must not be empty';
  if (isOneOf([...FILE, ...SEEN], value)) return null;
  if (isRecord(value) && 'data' in value) return pixels(value);
  return 'must be a Blob, an address, an ImageBitmap or element of a page, or { data, width, height }';
}

const times = (list, n) =>
  Array.isArray(list) && list.length === n && list.every((time, i) => time >= (list[i - 1] ?? 0) && time < Infinity)
    ? null
    : 'must be an array of seconds, one for each frame, none less than the one before';

const VIDEO = {
  frames: () => null,
  fps: above(0, 1000),
  timestamps: () => null,
  sample: ofType('boolean', 'true or false'),
};

const isFrames = (value) => isRecord(value) && 'frames' in value;

/** Checks a video that is given as frames. */
function frames(value, path) {
  const video = fields(value, VIDEO, path);
  if (!Array.isArray(video.frames) || video.frames.length === 0)
    throw badParam(`${path}.frames`, 'must be an array of images, one at least');
  if (video.frames.length > MOST_FRAMES && !video.sample) {
    throw new QuernError(
      'image/size',
      `${path}.frames are ${video.frames.length}, at most ${MOST_FRAMES} are possible unless they are sampled.`,
      { detail: { found: video.frames.length, limit: MOST_FRAMES } },
    );
  }
  const at = video.frames.findIndex((frame) => image(frame));
  if (at >= 0) throw badParam(`${path}.frames[${at}]`, image(video.frames[at]));
  const problem = video.timestamps && times(video.timestamps, video.frames.length);
  if (problem) throw badParam(`${path}.timestamps`, problem);
  return video;
}

function video(value) {
  if (value === '') return 'must not be empty';
  return isOneOf([...FILE, 'HTMLVideoElement'], value)
    ? null
    : 'must be a Blob, an address, a video element, or { frames, fps }';
}

/** Fields of each part besides its type. */
const PARTS = {
  text: { text: ofType('string', 'a string') },
  image: { image, detail: DETAIL, maxPixels: PIXELS },
  video: {
    video: (value) => (isFrames(value) ? null : video(value)),
    fps: above(0, 1000), maxFrames: integer(1, MOST_FRAMES), maxPixels: PIXELS,
  },
};

const fields = (value, table, path) => checkFields(value, table, path, 'field', ['type']);

/** Converts an OpenAI `image_url` part to an image part; its other fields are ignored. */
function imageOf(part, path) {
  const given = read(part, 'image_url', `${path}.image_url`);
  const { url, detail } = isRecord(given) ? given : { url: given };
  if (typeof url !== 'string') throw badParam(`${path}.image_url`, 'must be { url }, an address as a text');
  return { type: 'image', image: url, ...(detail != null && { detail }) };
}

/** Returns a checked copy of a part of a message. */
export function checkPart(given, path, role) {
  if (!isRecord(given)) throw badParam(path, 'must be an object with a type');
  const part = read(given, 'type', `${path}.type`) === 'image_url' ? imageOf(given, path) : given;
  const { type } = part;
  if (!Object.hasOwn(PARTS, type))
    throw badParam(`${path}.type`, "must be one of 'text', 'image', 'video', 'image_url'");
  const copy = { type, ...fields(part, PARTS[type], path) };
  if (copy[type] === undefined) throw badParam(`${path}.${type}`, 'is missing');
  if (type !== 'text' && role !== 'user' && role !== 'tool') {
    throw badParam(
      path,
      `is ${type === 'image' ? 'an image' : 'a video'} in a message of the ${role}'s; only the user's and a tool's can have some`,
    );
  }
  if (type === 'video' && isFrames(copy.video)) copy.video = frames(copy.video, `${path}.video`);
  return copy;
}
