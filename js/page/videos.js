// SPDX-License-Identifier: MIT
// Takes frames from videos of a page by playing them, and keeps those of the last one. A separate file of the package,
// which is loaded with the first video.

import { framesOf } from '../media/video.js';

/**
 * Frames of the last video that was played from a file: playing takes seconds, and each turn of its conversation needs
 * them.
 */
let last = null;

/**
 * @param {HTMLVideoElement | Blob | string} video
 * @param {object} sample how many frames
 * @returns {Promise<object>} the form that the worker receives
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
