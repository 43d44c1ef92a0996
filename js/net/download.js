// SPDX-License-Identifier: MIT
// A file on a server, read in chunks. `openRemote` gets the file's size and version from a first answer, whose bytes
// are used too; `chunks` yields the wanted chunks despite faults of the connection and the server (answer.js checks
// answers, patience.js repeats requests, transfer.js assembles chunks).
//
// Several ranges at a time help only if a server limits each connection. From a server with 8 MB/s for each connection,
// 160 MB arrived at 7.7 MB/s with one lane, at 12.9 with two and at 15.8 with three, in Node and in Chromium; from a
// server that limits all of them together, at the same speed with any number (tests/bench/ranges.mjs). So a download
// begins with one lane, and keeps another one only after it measured a gain (pace.js).

import { badParam, QuernError } from '../shared/errors.js';
import { ask, checkVersion, hostOf } from './answer.js';
import { CHUNK } from '../shared/chunk.js';
import { systemClock } from '../shared/clock.js';
import { hubHash } from './hub.js';
import { Patience } from './patience.js';
import { Runs } from './runs.js';
import { Transfer } from './transfer.js';

const LANES = 3;

const WHOLE = { from: 0, to: null };

class Remote {
  #server;
  #first;              // the first answer, until it is read or closed
  #ignored = 0;        // requests in a row for a part that were answered with the whole file
  #signal;
  #most;

  /**
   * Where the contents end, according to the file's own header. null: not known yet, so nothing is fetched ahead;
   * Infinity: it will not be known.
   */
  end = Infinity;
  onBytes = () => {};
  onChunk = async () => {};

  constructor(server, answer, { sha256, signal, chunkSize, parallel }) {
    const { size, etag, lastModified, ranges } = answer;
    this.#server = server;
    this.#first = answer;
    this.#signal = signal;
    this.#most = ranges && size !== null ? parallel : 1;
    Object.assign(this, {
      url: server.url,
      host: hostOf(server.url),
      clock: server.clock,
      onWait: server.onWait,
      size,
      etag,
      lastModified,
      ranges,
      sha256,
      chunkSize,
      name: nameOf(server.url, answer.disposition),
    });
  }

  /** Number of chunks; Infinity while unknown. */
  get count() {
    return this.size === null ? Infinity : Math.ceil(this.size / this.chunkSize);
  }

  /**
   * Yields the wanted chunks that exist. Each is valid until the next is requested.
   * @param {Runs} wanted all chunks from one on, if the size is unknown
   * @returns {AsyncGenerator<{index: number, bytes: Uint8Array}>}
   */
  async* chunks(wanted = Runs.from(0)) {
    try {
      yield* new Transfer(this, wanted, this.#most).run(this.#signal);
    } finally {
      this.close();
    }
  }

  /**
   * Returns an answer with the bytes from `at` at least to the chunk `to`; it begins at 0 if the server does not
   * support ranges.
   */
  async answer(at, to, signal) {
    const answer = this.#held(at, signal) ?? await ask(this.#server, at, this.#end(to), signal);
    try {
      checkVersion(this, answer, this.host);
      this.#checkRanges(at, answer.start);
    } catch (error) {
      answer.close();
      throw error;
    }
    return answer;
  }

  /** Closes the connection; chunks can still be requested. */
  close() {
    this.#first?.close();
    this.#first = null;
  }

  #held(at, signal) {
    const answer = this.#first;
    if (!answer) return null;
    if (answer.start !== at && this.ranges) {
      this.close();
      return null;
    }
    this.#first = null;
    answer.follow(signal);
    return answer;
  }

  #end(to) {
    const end = to * this.chunkSize;
    return this.ranges && end < (this.size ?? 0) ? end : null;
  }

  /**
   * A whole file instead of a part is tolerated once; after the second time the server counts as one without ranges.
   */
  #checkRanges(at, start) {
    this.#ignored = start === at ? 0 : this.#ignored + 1;
    if (this.#ignored === 1 && this.ranges) {
      throw new QuernError('net/range', `${this.host} sent the whole file instead of a part.`,
        { phase: 'load', detail: { host: this.host } });
    }
    if (this.#ignored) this.ranges = false;
  }
}

/** The file's name: from the server, or else from the end of the address. */
export function nameOf(url, disposition) {
  const [, coded, plain] = /filename\*=UTF-8''([^;]+)|filename="?([^";]+)/i.exec(disposition ?? '') ?? [];
  const path = new URL(url).pathname.split('/').at(-1);
  let name = plain ?? coded ?? path;
  try {
    if (!plain) name = decodeURIComponent(name);
  } catch {
    // not encoded after all
  }
  return name.replace(/[\p{Cc}/\\]/gu, ' ').trim().slice(0, 200);
}

/** Returns the first valid answer. */
async function open(server, { from, to }, signal) {
  const patience = new Patience(server, signal, false);
  for (;;) {
    try {
      return await ask(server, from, to, signal);
    } catch (error) {
      await patience.afterFailure(error, 0);
    }
  }
}

function checkHeaders(headers) {
  try {
    return new Headers(headers);
  } catch {
    throw badParam('options.headers', 'has an invalid name or value');
  }
}

/**
 * @param {string} url absolute
 * @param {{headers?: object, forwardHeaders?: boolean, fetch?: Function, clock?: object, signal?: AbortSignal,
 *   parallel?: number, chunkSize?: number, first?: {from: number, to: number | null}, onWait?: (waiting: {ms: number |
 *   null, code: string, message: string}) => void}} options `first`: the bytes to request first, for callers that have
 *   the others; `parallel`: most requests at a time; `chunkSize`: for tests; `onWait`: gets the time until the next
 *   request after a failure, null until the device is online
 * @returns {Promise<Remote>} `size` null: unknown until the end; `sha256` null: unknown; `ranges`: whether parts can be
 *   requested
 */
export async function openRemote(
  url,
  {
    headers = {},
    forwardHeaders = false,
    fetch = globalThis.fetch,
    clock = systemClock,
    signal = new AbortController().signal,
    first = WHOLE,
    parallel = LANES,
    chunkSize = CHUNK,
    onWait = () => {},
  } = {},
) {
  const server = { url, headers: checkHeaders(headers), forwardHeaders, fetch, clock, onWait };
  const hash = hubHash(server, signal);
  try {
    const answer = await open(server, first, signal);
    const sha256 = answer.sha256 ?? await hash.of(answer.size);
    return new Remote(server, answer, { sha256, signal, chunkSize, parallel });
  } finally {
    hash.end();
  }
}
