// SPDX-License-Identifier: MIT
// Takes frames from a video with their times, using the page's own player. Only a page has a player, so this does not
// run in the worker. The player seeks to one time after the other; an element of the page is used as it is, and put
// back to its position.

import { sleep, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { undecoded, withPatience } from './limits.js';
import { capture } from './page-sources.js';

/** Assumed frames per second, so that the last frame taken is before the end. */
const FPS = 30;

/**
 * Approximate pixels of all frames together. Larger frames are reduced, since models see frames at a low resolution.
 */
const PIXELS = 2 ** 24;
const FRAME_LEAST = 2 ** 16;

const SHOWN_MS = 10;

/**
 * How long a frame may take to be drawn. A player that is not visible may draw nothing and report nothing. The time is
 * counted in parts, so that a machine that stops for seconds uses up only one of them.
 */
const DRAWN_MS = 250;
const DRAWN_PARTS = 5;

/** Most seconds between a frame's own time and the requested one: less than between two frames that are taken. */
const NEAR = 0.25;
const NEVER = new AbortController().signal;

/** After the end of every video. */
const FAR = 1e7;

/** Codes of MediaError that mean a network problem. */
const ABORTED = 1;
const NETWORK = 2;

function failure(player) {
  const { code, message } = player.error ?? {};
  const words = `The video cannot be played (${message || 'an unknown format'}).`;
  return code === ABORTED || code === NETWORK ? new QuernError('net/unreachable', words) : undecoded(words);
}

/** Waits for the next event of this name; rejects if the player fails. */
function heard(player, name, signal) {
  const over = new AbortController();
  const event = new Promise((resolve, reject) => {
    player.addEventListener(name, resolve, { signal: over.signal, once: true });
    player.addEventListener('error', () => reject(failure(player)), { signal: over.signal, once: true });
  });
  return withPatience(() => event, { signal }).finally(() => over.abort());
}

/** Waits until the player has the image of its time, which may come after the seek is reported. */
async function shown(player) {
  while (player.readyState < player.HAVE_CURRENT_DATA) await sleep(systemClock, SHOWN_MS, NEVER);
}

/**
 * Resolves when the image at the player's position has been drawn. This may happen after the player has arrived there;
 * until then the previous image would be captured.
 */
function drawn(player, signal) {
  return new Promise((done) => {
    if (!player.requestVideoFrameCallback) return done();
    const listen = () => player.requestVideoFrameCallback((_, { mediaTime }) => {
      if (Math.abs(mediaTime - player.currentTime) < NEAR) done();
      else if (!signal.aborted) listen();
    });
    return listen();
  });
}

async function drawnInTime(image, signal) {
  let isDrawn = false;
  const news = image.then(() => {
    isDrawn = true;
  });
  for (let i = 0; i < DRAWN_PARTS && !isDrawn; i++)
    await Promise.race([news, sleep(systemClock, DRAWN_MS / DRAWN_PARTS, signal)]);
}

async function goTo(player, seconds, signal) {
  const over = new AbortController();
  const image = drawn(player, over.signal);
  try {
    const arrived = heard(player, 'seeked', signal);
    player.currentTime = seconds;
    await arrived;
    await withPatience(() => shown(player), { signal });
    await drawnInTime(image, over.signal);
  } finally {
    over.abort();
  }
}

/** Duration in seconds. Recordings of a browser do not have it; seeking to the end finds it. */
async function durationOf(player, signal) {
  if (player.duration === Infinity) {
    if (player.srcObject) throw undecoded('A live stream has no end; pass its frames.');
    await goTo(player, FAR, signal);
  }
  const seconds = Number.isFinite(player.duration) ? player.duration : player.currentTime;
  if (!(seconds > 0) || !player.videoWidth) throw undecoded('The video has no frames.');
  return seconds;
}

/** @param {Blob | string} source @returns {{player: HTMLVideoElement, close: () => void}} */
function ownPlayer(source) {
  const player = document.createElement('video');
  const url = source instanceof Blob ? URL.createObjectURL(source) : source;
  player.crossOrigin = 'anonymous';
  player.muted = true;
  player.playsInline = true;
  player.preload = 'auto';
  player.src = url;
  return {
    player,
    close() {
      player.removeAttribute('src');
      player.load();
      if (source instanceof Blob) URL.revokeObjectURL(url);
    },
  };
}

/** A player of the page, which afterwards continues from its position. @param {HTMLVideoElement} player */
function borrowedPlayer(player) {
  const { currentTime, paused } = player;
  player.pause();
  return {
    player,
    close() {
      player.currentTime = currentTime;
      if (!paused) player.play().catch(() => {});
    },
  };
}

/** Copies the frame that is shown. @param {number} most pixels of the frame */
async function frameOf(player, most) {
  const { videoWidth: width, videoHeight: height } = player;
  const scale = Math.sqrt(most / (width * height));
  if (scale >= 1) return capture(player);
  const whole = await capture(player);
  const [resizeWidth, resizeHeight] = [width, height].map((side) => Math.max(1, Math.round(side * scale)));
  return createImageBitmap(whole, { resizeWidth, resizeHeight, resizeQuality: 'high' }).finally(() => whole.close());
}

/** @param {{player: HTMLVideoElement, close: () => void}} opened */
async function takeFrames({ player }, { perSecond, least, most, signal }) {
  if (player.readyState < player.HAVE_CURRENT_DATA) await heard(player, 'loadeddata', signal);
  const duration = await durationOf(player, signal);
  const n = Math.max(1, Math.min(Math.max(Math.floor(duration * perSecond), least), most));
  const last = Math.max(duration - 1 / FPS, 0);
  const timestamps = Array.from({ length: n }, (_, k) => (n > 1 ? (k * last) / (n - 1) : 0));
  const frames = [];
  try {
    for (const time of timestamps) {
      await goTo(player, time, signal);
      await sleep(systemClock, 0, signal ?? NEVER);    // lets the page run
      frames.push(await frameOf(player, Math.max(FRAME_LEAST, PIXELS / n)));
    }
  } catch (error) {
    for (const frame of frames) frame.close();
    throw error;
  }
  return { frames, timestamps };
}

/**
 * @param {HTMLVideoElement | Blob | string} source an element, a file, or an address that may be read (CORS)
 * @param {{perSecond: number, least: number, most: number, signal?: AbortSignal}} how frames per second, and the least
 *   and most frames
 * @returns {Promise<{frames: ImageBitmap[], timestamps: number[]}>} evenly spaced from the first to the last; in
 *   seconds
 */
export async function framesOf(source, how) {
  if (!globalThis.document) throw undecoded('Videos are played by pages, not by workers: pass the frames.');
  const opened = source instanceof HTMLVideoElement ? borrowedPlayer(source) : ownPlayer(source);
  try {
    if (opened.player.error) throw failure(opened.player);
    return await takeFrames(opened, how);
  } finally {
    opened.close();
  }
}
