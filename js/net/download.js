// SPDX-License-Identifier: MIT
// A file on a server, to be read in chunks: `openRemote` learns its size and version from a first answer, whose bytes
// are used too; `chunks` yields what is wanted of it, whatever the connection and the server do (answer.js says what an
// answer must be, patience.js what is repeated, transfer.js how it is put together).
//
// Several ranges at a time help only where a server limits each connection: of one that gives 8 MB/s to each, 160 MB
// came at 7.7 MB/s with one lane, at 12.9 with two and at 15.8 with three, in Node and in Chromium, and at the same
// speed with any number from one that limits all together (tests/bench/ranges.mjs). So a download begins with one lane
// and keeps another only when it measured a gain (pace.js).

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
  #first;              // the opening answer, until it is read or dropped
  #ignored = 0;        // requests in a row for a part that brought the whole
  #signal;
  #most;

  /**
   * Where the contents end by the file's own header; null: not known yet, so nothing is fetched ahead; Infinity: nobody
   * will say.
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

  /** Chunks of the file; Infinity while not known. */
  get count() {
    return this.size === null ? Infinity : Math.ceil(this.size / this.chunkSize);
  }

  /**
   * The chunks that are wanted, as far as there are any. Each is valid until the next is asked for.
   * @param {Runs} wanted all from one on, where the size is not known
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
   * An answer with the bytes from `at` to the chunk `to` at least; from the start, where the server knows no ranges.
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

  /** Lets go of the server; chunks can still be asked for. */
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

  /** The whole instead of a part is a mishap once; the second time the server is taken to know no ranges (any more). */
  #checkRanges(at, start) {
    this.#ignored = start === at ? 0 : this.#ignored + 1;
    if (this.#ignored === 1 && this.ranges) {
      throw new QuernError('net/range', `${this.host} sent the whole file instead of the part asked for.`,
        { phase: 'load', detail: { host: this.host } });
    }
    if (this.#ignored) this.ranges = false;
  }
}

/** What to call the file: as the server does, else as its address ends. */
export function nameOf(url, disposition) {
  const [, coded, plain] = /filename\*=UTF-8''([^;]+)|filename="?([^";]+)/i.exec(disposition ?? '') ?? [];
  const path = new URL(url).pathname.split('/').at(-1);
  let name = plain ?? coded ?? path;
  try {
    if (!plain) name = decodeURIComponent(name);
  } catch {
    // not coded after all
  }
  return name.replace(/[\p{Cc}/\\]/gu, ' ').trim().slice(0, 200);
}

/** The first good answer. */
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
    throw badParam('options.headers', 'has a name or a value that no request can have');
  }
}

/**
 * @param {string} url absolute
 * @param {{headers?: object, forwardHeaders?: boolean, fetch?: Function, clock?: object, signal?: AbortSignal,
 *   parallel?: number, chunkSize?: number, first?: {from: number, to: number | null}, onWait?: (waiting: {ms: number |
 *   null, code: string, message: string}) => void}} options `first`: the bytes to ask for at first, for whoever has the
 *   others; `parallel`: requests at a time at most; `chunkSize`: for tests; `onWait`: hears for how long nothing will
 *   be asked after a failure, null until the device is online
 * @returns {Promise<Remote>} `size` null: unknown until the end; `sha256` null: unknown; `ranges`: whether parts can be
 *   asked for
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
