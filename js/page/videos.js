// SPDX-License-Identifier: MIT
// How a page's videos are taken: played, and what was played last is kept. A file of its own in the package, which
// comes with the first of them.

import { framesOf } from '../media/video.js';

/**
 * Frames of the video that was played last, where it is a file: playing takes seconds, and each turn of its
 * conversation asks for them.
 */
let last = null;

/**
 * @param {HTMLVideoElement | Blob | string} video
 * @param {object} sample how many frames
 * @returns {Promise<object>} what the worker is handed
 */
export async function takeVideo(video, sample, signal) {
  const how = Object.values(sample).join();
  if (last?.video !== video || last.how !== how) {
    const played = await framesOf(video, { ...sample, signal });
    if (!(video instanceof Blob)) return handedOver(played);
    for (const frame of last?.frames ?? []) frame.close();
    last = { video, how, ...played };
  }
  const { frames, timestamps } = last;
  return handedOver({
    frames: await Promise.all(frames.map((frame) => createImageBitmap(frame, { premultiplyAlpha: 'none' }))),
    timestamps,
  });
}

const handedOver = ({ frames, timestamps }) => ({ frames: frames.map((bitmap) => ({ bitmap })), timestamps });
