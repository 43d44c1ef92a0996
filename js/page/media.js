// SPDX-License-Identifier: MIT
// Prepares a conversation's images and videos for the worker: they are taken out of the messages in order, and the
// messages keep their kinds. Elements of a page are read before the call returns, so that the caller may change them
// afterwards. Videos of a page are cut into frames here, since only a page can play them. `reader` has the difference
// between a page and Node (images.js, images-node.js).

/** Frames taken from each second of a video, and the least and most frames in all, unless the caller sets them. */
const SAMPLING = { perSecond: 2, least: 4, most: 16 };

/** @import { Medium } from '../shared/protocol.js' */

/** Copies the caller's pixels, which the caller may go on changing. */
export const copyOf = ({ data, width, height }) => ({ data: Uint8Array.from(data), width, height });

/** @returns {Promise<Medium>} */
async function imageOf({ image, detail, maxPixels }, { takeImage }) {
  return { kind: 'image', frames: [await takeImage(image)], detail, maxPixels };
}

/** @returns {Promise<Medium>} */
async function videoOf({ video, fps: perSecond = SAMPLING.perSecond, maxFrames, maxPixels }, { reader, most, ...how }) {
  const sample = { ...SAMPLING, perSecond, most: maxFrames ?? most ?? SAMPLING.most };
  if (!video.frames) return { kind: 'video', maxPixels, sample: null, ...await reader.takeVideo(video, sample, how) };
  const frames = Promise.all(video.frames.map((frame) => reader.takeImage(frame)));
  return {
    kind: 'video',
    maxPixels,
    fps: video.fps,
    timestamps: video.timestamps,
    sample: video.sample ? sample : null,
    frames: await frames,
  };
}

/**
 * @param {object[]} messages checked by messages.js
 * @param {{takeImage: (image: any) => any, takeVideo: (video: any, sample: object, how: object) => Promise<object>}}
 *   reader
 * @param {{most?: number, signal?: AbortSignal, videos?: Function}} options most: frames of a video, unless its part
 *   sets them; videos: loads videos.js
 * @returns {{messages: object[], media: Promise<Medium[]>}}
 */
export function takeMedia(messages, reader, options) {
  const parts = messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.filter(({ type }) => type !== 'text'),
  );
  const media = Promise.all(
    parts.map((part) => (part.type === 'image' ? imageOf(part, reader) : videoOf(part, { reader, ...options }))),
  );
  const bare = messages.map(({ content, ...message }) => ({
    ...message,
    content:
      typeof content === 'string'
        ? content
        : content.map(({ type, text }) => (type === 'text' ? { type, text } : { type })),
  }));
  return { messages: bare, media };
}

/** The parts of the media that are transferred to the worker instead of copied. */
export const transferOf = (media) => media.flatMap(({ frames }) => frames.flatMap(({ bitmap, pixels, bytes }) => (
  bitmap ?? pixels?.data.buffer ?? bytes?.buffer ?? [])));
