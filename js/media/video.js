// SPDX-License-Identifier: MIT
// Frames of a video, as the page's own player shows them, with their times. Only a page has a player, so this does not
// run in the worker. The player goes to one time after the other; an element of the page's is taken as it is and put
// back where it was.

import { sleep, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { undecoded, withPatience } from './limits.js';
import { capture } from './page-sources.js';

/** Frames a second of a video that does not say, to stay before its end. */
const FPS = 30;

/** Pixels of all frames together, about. What is larger is reduced: a video's frames are looked at small. */
const PIXELS = 2 ** 24;
const FRAME_LEAST = 2 ** 16;

const SHOWN_MS = 10;

/**
 * A player that is nowhere to be seen may draw nothing and say nothing. In parts: a machine that stops for seconds
 * takes no more than one away.
 */
const DRAWN_MS = 250;
const DRAWN_PARTS = 5;

/**
 * Seconds between an image's own time and the one that was asked for, at most: less than between two that are taken.
 */
const NEAR = 0.25;
const NEVER = new AbortController().signal;

/** Behind every video's end. */
const FAR = 1e7;

/** MediaError's codes: of these two the network is to blame. */
const ABORTED = 1;
const NETWORK = 2;

function failure(player) {
  const { code, message } = player.error ?? {};
  const words = `The video cannot be played (${message || 'this browser knows no such files'}).`;
  return code === ABORTED || code === NETWORK ? new QuernError('net/unreachable', words) : undecoded(words);
}

/** The next event of this name; a failure of the player rejects. */
function heard(player, name, signal) {
  const over = new AbortController();
  const event = new Promise((resolve, reject) => {
    player.addEventListener(name, resolve, { signal: over.signal, once: true });
    player.addEventListener('error', () => reject(failure(player)), { signal: over.signal, once: true });
  });
  return withPatience(() => event, { signal }).finally(() => over.abort());
}

/** The image of a time may come after the news that it is reached. */
async function shown(player) {
  while (player.readyState < player.HAVE_CURRENT_DATA) await sleep(systemClock, SHOWN_MS, NEVER);
}

/**
 * When the image of where the player is has been drawn, which may be after it has come there: until then the one before
 * is captured.
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

/** Seconds. Recordings of a browser do not say; their end is found by going there. */
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

/** The page's, which plays on afterwards from where it was. @param {HTMLVideoElement} player */
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

/** The frame that is shown. @param {number} most pixels of it */
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
      await sleep(systemClock, 0, signal ?? NEVER);    // lets the page live
      frames.push(await frameOf(player, Math.max(FRAME_LEAST, PIXELS / n)));
    }
  } catch (error) {
    for (const frame of frames) frame.close();
    throw error;
  }
  return { frames, timestamps };
}

/**
 * @param {HTMLVideoElement | Blob | string} source an element, a file, or an address that allows to be read (CORS)
 * @param {{perSecond: number, least: number, most: number, signal?: AbortSignal}} how frames a second, and how many at
 *   least and at most
 * @returns {Promise<{frames: ImageBitmap[], timestamps: number[]}>} evenly from the first to the last; seconds
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
