// SPDX-License-Identifier: MIT
// A conversation's images and videos on their way to the worker: taken out of the messages in order, which keep their
// kinds. What a page shows is read before the call returns, so that its owner may go on with it; videos of a page are
// taken apart into frames here, since only a page can play them. What differs between a page and Node is `reader`
// (images.js, images-node.js).

/**
 * Frames of a video that are looked at each second, and the least and the most of them where the caller does not say.
 */
const SAMPLING = { perSecond: 2, least: 4, most: 16 };

/** @import { Medium } from '../shared/protocol.js' */

/** Pixels of the caller's, who may go on with them. */
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
 * @param {object[]} messages checked (messages.js)
 * @param {{takeImage: (image: any) => any, takeVideo: (video: any, sample: object, how: object) => Promise<object>}}
 *   reader
 * @param {{most?: number, signal?: AbortSignal, videos?: Function}} options most: frames of a video, where its part
 *   does not say; videos.js
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

/** What of the media is handed over, not copied. */
export const transferOf = (media) => media.flatMap(({ frames }) => frames.flatMap(({ bitmap, pixels, bytes }) => (
  bitmap ?? pixels?.data.buffer ?? bytes?.buffer ?? [])));
