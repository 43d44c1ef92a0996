// SPDX-License-Identifier: MIT
// Handles a conversation's images and videos in the worker. First it measures them by their headers, which is enough to
// count tokens. If the prompt fits, it decodes and resizes them and gives them to the engine, which encodes those that
// it does not know. The work goes in slices by turns (turns.js) or in side workers, and within a limit of memory
// (room.js). A scope never sees the images of another one.

import { abortable } from '../shared/clock.js';
import { Decoded } from './decoded.js';
import { Images } from '../engine/image.js';
import { Media } from '../engine/media.js';
import { imageSource } from './image-bytes.js';
import { MARKS } from '../reply/marks.js';
import { Places } from '../reply/placeholders.js';
import { QuernError } from '../shared/errors.js';
import { Room } from './room.js';

/** Default pixels of an image, by its detail, and of all frames of a video. */
const IMAGE = { low: 65_536, auto: 262_144, high: 1_048_576 };
const VIDEO = 524_288;

/** Default bytes of memory for all images that are decoded at a time. The largest image that can be read fits. */
const MEMORY = 2 ** 31;

/** Milliseconds of encoding between two looks at the messages. */
const BUDGET_MS = 50;

/** Frames per second of a video without that number. */
const FPS = 24;

/**
 * A medium that was measured (reply/placeholders.js), with the sources of its pixels.
 * @typedef {import('../reply/placeholders.js').Seen & {grid: import('../engine/media.js').Grid, size: {width: number,
 *   height: number}, reduced?: {width: number, height: number}, sources: (() => Promise<any>)[]}} Measured
 */

/**
 * The code that is loaded with the first model with vision (vision.js, vision-node.js).
 * @typedef {object} Vision
 * @property {typeof MediaLoader} MediaLoader
 * @property {(source: any, header: Function) => Promise<{width: number, height: number, bytes: number}>} sizeOf bytes:
 *   most that decoding takes
 * @property {(source: any, how: object) => Promise<{data: Uint8Array, width: number, height: number, reduced?:
 *   object}>} pixelsOf
 * @property {(path: string) => Promise<Uint8Array>} [readImage] reads a file
 */

export class MediaLoader {
  #engine;
  #media;
  #images;
  #vision;
  #host;
  #options;
  #room;
  #decoded = new Decoded();
  #reduced = new WeakMap();     // pixels -> size of an image that decoding made smaller

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {Vision} vision
   * @param {{fetch: typeof fetch, rest: () => void | Promise<void>}} host
   * @param {object} [options] visionOptions
   */
  constructor(engine, vision, host, options = {}) {
    this.#engine = engine;
    this.#media = engine.part(Media);
    this.#images = engine.part(Images);
    this.#vision = vision;
    this.#host = host;
    this.#options = options;
    this.#room = new Room(options.imageMemoryBytes ?? MEMORY);
  }

  /**
   * Measures media by their headers.
   * @param {import('../shared/protocol.js').Medium[]} media
   * @param {import('./asker.js').Asker} asker
   * @returns {Promise<Places>} with a Measured for each medium
   */
  async measure(media, asker) {
    this.#refuseMany(media);
    const measured = [];
    for (const [i, medium] of media.entries()) {
      asker.signal.throwIfAborted();
      measured.push(await named(i, abortable(this.#measureOne(medium, asker), asker.signal)));
    }
    return new Places(
      measured,
      { image: this.#media.pad('image'), video: this.#media.pad('video') },
      MARKS[this.#engine.facts.marks],
    );
  }

  /**
   * Decodes media and gives them to the engine.
   * @param {Measured[]} order in the order of the prompt
   * @param {import('./asker.js').Asker} asker
   * @returns {Promise<Uint8Array[]>} ids, which the caller releases
   */
  async take(order, asker) {
    const ids = [];
    try {
      for (const [i, medium] of order.entries()) await named(i, this.#takeOne(medium, ids, asker));
      return ids;
    } catch (error) {
      this.release(ids);
      throw error;
    }
  }

  release(ids) {
    for (const id of ids) this.#media.release(id);
  }

  /**
   * Encodes an image and returns the encoder's result.
   * @param {import('../shared/protocol.js').Medium[]} media one image
   * @param {import('./asker.js').Asker} asker
   */
  async look(media, asker) {
    const { signal } = asker;
    const { order } = await this.measure(media, asker);
    const ids = await this.take(order, asker);
    const [{ grid, reduced = null }] = order;
    for (;;) {
      const found = this.#media.look(ids[0], BUDGET_MS);
      if (found || signal.aborted) {
        this.release(ids);
        return { ...found, rows: grid.rows, columns: grid.cols, reduced };
      }
      await this.#host.rest();
    }
  }

  #header = (bytes) => this.#images.header(bytes);

  /** Refuses too many images. A video counts as the number of its frames that the model gets. */
  #refuseMany(media) {
    const { maxImages = Infinity } = this.#options;
    const found = media.reduce((sum, { frames, ...medium }) => sum + this.#chosen(frames.length, medium).length, 0);
    if (found <= maxImages) return;
    throw new QuernError(
      'image/size',
      `The messages have ${found} images, including frames of videos; at most ${maxImages} are allowed here.`,
      { detail: { found, limit: maxImages } },
    );
  }

  /** Size of an image by its header, and the bytes that decoding takes. */
  async #sizeOf(source) {
    const { width, height, bytes } = await this.#vision.sizeOf(source, this.#header);
    const { maxImagePixels = Infinity } = this.#options;
    if (width * height <= maxImagePixels) return { width, height, bytes };
    throw new QuernError(
      'image/size',
      `An image of ${width} x ${height} is too large: at most ${maxImagePixels} pixels are allowed here.`,
      { detail: { width, height, limit: maxImagePixels } },
    );
  }

  async #measureOne({ kind, frames, ...medium }, asker) {
    const indices = this.#chosen(frames.length, medium);
    const first = await this.#source(frames[indices[0]], asker);
    const size = await this.#sizeOf(first);
    const grid = this.#media.plan(kind, { ...size, frames: indices.length }, this.#limits(kind, medium));
    const sources = Array.from(
      indices,
      (index, i) => async () => (i === 0 ? first : this.#source(frames[index], asker)),
    );
    const labels = kind === 'video' ? this.#labels(indices, grid.frames, medium) : [];
    return { kind, tokens: grid.rows * grid.cols, labels, grid, size, sources };
  }

  #source(frame, { signal, through }) {
    return imageSource(frame, { fetch: this.#host.fetch, readImage: this.#vision.readImage, signal, through });
  }

  /** Numbers of the frames that the model gets. */
  #chosen(total, { sample, fps = 0 }) {
    if (!sample) return Array.from({ length: total }, (_, i) => i);
    return Array.from(this.#images.sample(total, fps, sample.perSecond, sample.least, sample.most));
  }

  /**
   * Lowest and highest number of pixels. The caller's limit goes before the model's, and that before the default here.
   */
  #limits(kind, { detail = 'auto', maxPixels }) {
    const { vision } = this.#engine.facts;
    const { minPixels, minVideoPixels, maxPixels: most, maxVideoPixels: mostOfVideo } = this.#options;
    const usual =
      kind === 'image'
        ? (most ?? Math.min(IMAGE[detail], vision.maxPixels))
        : (mostOfVideo ?? Math.min(VIDEO, vision.maxVideoPixels));
    const high = maxPixels ?? (kind === 'image' ? Math.min(usual, detail === 'low' ? IMAGE.low : Infinity) : usual);
    const low = kind === 'image' ? minPixels ?? vision.minPixels : minVideoPixels ?? vision.minVideoPixels;
    return { low: Math.min(low, high), high };
  }

  /**
   * Labels with the times of pairs of frames. If the number of frames is odd, the last pair has the last frame twice.
   */
  #labels(indices, count, { fps = FPS, timestamps }) {
    const time = (i) => {
      const index = indices[Math.min(i, indices.length - 1)];
      return timestamps ? timestamps[index] : index / fps;
    };
    return Array.from({ length: count / 2 }, (_, pair) =>
      this.#images.label((time(2 * pair) + time(2 * pair + 1)) / 2),
    );
  }

  async #takeOne(medium, ids, asker) {
    const { kind, grid, size, sources } = medium;
    if (kind === 'image') {
      const pixels = await this.#pixels(sources[0], size, grid, asker);
      medium.reduced = this.#reduced.get(pixels);
      ids.push(await this.#add(grid, [pixels], asker));
      return;
    }
    for (let i = 0; i < grid.frames; i += 2) {
      const [one, other] = [i, i + 1].map((at) => sources[Math.min(at, sources.length - 1)]);
      const frame = await this.#pixels(one, size, grid, asker);
      ids.push(
        await this.#add(grid, [frame, other === one ? frame : await this.#pixels(other, size, grid, asker)], asker),
      );
    }
  }

  #add(grid, frames, { run, owner }) {
    return run(() => this.#media.add(grid, frames, owner.scope));
  }

  /** Decodes and resizes an image to the size that the encoder needs. */
  async #pixels(source, size, { width, height }, asker) {
    const { signal, owner: { scope } } = asker;
    signal.throwIfAborted();
    const how = [size.width, size.height, width, height].join();
    const make = (given) => this.#decode(given, size, { width, height }, asker);
    return abortable(this.#decoded.pixels(await source(), { how, scope }, make), signal);
  }

  /**
   * Decodes within the memory limit. The room is given back when the work ends, even if nobody waits for the result.
   */
  async #decode(source, size, target, { owner, signal, run, through }) {
    const { bytes, ...said } = await this.#sizeOf(source);
    checkSame(said, size);
    const leave = await this.#room.enter(owner, bytes + 3 * target.width * (said.height + target.height), signal);
    try {
      const found = await this.#vision.pixelsOf(source, {
        header: this.#header,
        target,
        signal,
        slice: run,
        owner,
        host: this.#host,
      });
      if (!found.reduced) checkSame(found, size);
      const pixels = await through(this.#images.resizing(found.data, found, target));
      if (found.reduced) this.#reduced.set(pixels, found.reduced);
      return pixels;
    } finally {
      leave();
    }
  }
}

function checkSame(found, size) {
  if (found.width === size.width && found.height === size.height) return;
  const [is, was] = [found, size].map(({ width, height }) => `${width} x ${height}`);
  throw new QuernError('image/size', `An image has ${is} pixels, but ${was} were expected.`);
}

/** Adds the number of the medium, from 0 on, to an error of its work. */
async function named(i, work) {
  try {
    return await work;
  } catch (error) {
    if (error instanceof QuernError) Object.assign(error.detail, { medium: i });
    throw error;
  }
}
