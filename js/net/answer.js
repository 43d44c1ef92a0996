// SPDX-License-Identifier: MIT
// Sends one request for a part of a file and checks the answer: status, range, size and version are checked before a
// byte is used. The request has `bytes=0-` even for a whole file: this costs no CORS preflight, keeps servers from
// compressing, and makes them tell the size.
//
// A page sees only those headers of another site's server that the server exposes (Access-Control-Expose-Headers).
// Without Content-Range the Content-Length is used, without ETag the Last-Modified date and the size. Repeated requests
// go to the original address, because a redirect often leads to a signed address that expires. The browser's cache is
// not used: it would hold the file a second time.

import { QuernError } from '../shared/errors.js';
import { Watch, abortable, reasonOf } from '../shared/clock.js';
import { fetchFor } from './redirect.js';
import { readerOf } from '../shared/stream.js';

/** Most bytes of one read: a crash may lose this much in addition to a chunk. */
const PIECE = 1 << 18;

/** @typedef {{url: string, headers: Headers, forwardHeaders: boolean, fetch: Function, clock: object}} Server */

const netError = (code, message, detail, cause) => new QuernError(code, message, { phase: 'load', detail, cause });

/** The reason that Node's fetch hides in `cause` (ECONNREFUSED and so on); browsers give none. */
const whyOf = (error) => String(error?.cause?.code ?? error?.cause?.message ?? error?.message ?? error).slice(0, 100);

export const hostOf = (url) => new URL(url).host || 'The address';

/** Explanation of a status, after "<host> answered <status>". */
const STATUSES = {
  401: "the file may be downloaded only when signed in. For a gated or private repository pass headers: { Authorization: 'Bearer <token>' }",
  403:
    'the file is not open to you. For a gated or private repository accept its terms there and pass ' +
    "headers: { Authorization: 'Bearer <token>' }",
  404: 'there is no such file, or it is in a private repository',
  410: 'the file has been removed',
  429: 'too many requests',
  503: 'the server is busy',
};

/** Milliseconds that the server asks to wait, or undefined. */
function retryAfterOf(response, now) {
  const text = response.headers.get('Retry-After');
  if (!text) return undefined;
  const ms = /^\d+$/.test(text) ? 1000 * Number(text) : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function statusError(response, host, now) {
  const { status } = response;
  const retryAfter = retryAfterOf(response, now);
  const meaning = STATUSES[status] ?? (status >= 500 ? 'the server is in trouble' : response.statusText?.slice(0, 64));
  const wait = retryAfter ? `; it asks to wait ${Math.ceil(retryAfter / 1000)} s` : '';
  return new QuernError('net/http', `${host} answered ${status}${meaning ? `: ${meaning}` : ''}${wait}.`, {
    phase: 'load',
    detail: { host, status, ...(retryAfter !== undefined && { retryAfter }) },
    retryable: status === 429 || status >= 500,
  });
}

const wrongRange = (host, why) =>
  netError('net/range', `${host} did not send the requested part of the file (${why}).`, { host });

/** The error for a compressed answer; null if it is not compressed. */
function compressionOf(headers, host) {
  const encoding = headers.get('Content-Encoding');
  return encoding && encoding !== 'identity'
    ? wrongRange(host, `compressed, Content-Encoding: ${encoding.slice(0, 32)}`)
    : null;
}

/** Parses a number of bytes; null if it is not a possible one. */
const numberOf = (text) => (/^\d+$/.test(text ?? '') && Number.isSafeInteger(Number(text)) ? Number(text) : null);

/** The range of bytes in a 206 answer, and the file's size; null if the server does not tell it. */
function rangeOf({ headers, type }, from, to, host) {
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/i.exec(headers.get('Content-Range') ?? '') ?? [];
  if (first !== undefined) {
    const range = { start: numberOf(first), end: (numberOf(last) ?? -1) + 1, size: numberOf(total) };
    const isImpossible = range.size === null && total !== '*';
    if (isImpossible || range.start !== from || range.end <= range.start || range.end > (range.size ?? Infinity)) {
      throw wrongRange(host, `${first} to ${last} of ${total}`.slice(0, 100));
    }
    return range.size === null && to === null ? { ...range, end: null } : range;
  }
  const length = numberOf(headers.get('Content-Length'));
  if (type !== 'cors' || headers.has('Content-Range') || length === null || (to !== null && length !== to - from)) {
    throw wrongRange(host, 'no range given');
  }
  return { start: from, end: from + length, size: to === null ? from + length : null };
}

function wholeOf({ headers }) {
  const size = headers.has('Content-Encoding') ? null : numberOf(headers.get('Content-Length'));
  return { start: 0, end: size, size };
}

/** Handles 416: an empty file has no bytes to request; any other file has become shorter, or the server is wrong. */
function unsatisfiable(response, from, host) {
  const size = numberOf(/^bytes \*\/(\d+)$/i.exec(response.headers.get('Content-Range') ?? '')?.[1]);
  if (size === 0 && from === 0) return { start: 0, end: 0, size: 0 };
  if (size !== null && size <= from) {
    throw netError('net/changed', `The file on ${host} has become shorter during the download.`, { host, found: size });
  }
  throw wrongRange(host, 'no such part');
}

function spanOf(response, from, to, host, now) {
  const { status, headers } = response;
  if (status === 416) return unsatisfiable(response, from, host);
  if (status === 200) return { ...wholeOf(response), ranges: false };
  if (status !== 206) throw statusError(response, host, now);
  const compressed = compressionOf(headers, host);
  if (compressed) throw compressed;
  return { ...rangeOf(response, from, to, host), ranges: true };
}

const strong = (etag) => etag?.replace(/^W\//, '') ?? null;

/** Throws if two answers are about different versions of a file. ETags decide if both have one, else the dates. */
export function checkVersion(known, found, host) {
  const differ = (name) => known[name] !== null && found[name] !== null && known[name] !== found[name];
  const version = known.etag !== null && found.etag !== null ? 'etag' : 'lastModified';
  const name = ['size', version].find(differ);
  if (name) {
    throw netError(
      'net/changed',
      `The file on ${host} has changed during the download (${name}: ${known[name]} before, ${found[name]} now).`,
      { host, expected: known[name], found: found[name] },
    );
  }
}

/** A valid answer. `read()` resolves to the next piece of its bytes, or null at the end. */
class Answer {
  #host;
  #pos;
  #reader;
  #watch;
  #abort;

  constructor(span, response, { host, watch, abort }) {
    Object.assign(this, span);
    this.#host = host;
    this.#pos = span.start;
    this.etag = strong(response.headers.get('ETag'));
    this.lastModified = response.headers.get('Last-Modified');
    this.disposition = response.headers.get('Content-Disposition');
    this.sha256 = contentHash(response);
    this.#reader = response.body && readerOf(response.body, PIECE);
    this.#watch = watch;
    this.#abort = abort;
  }

  async read() {
    if (!this.#reader) return null;
    const { signal } = this.#abort;
    const reading = abortable(this.#reader.read(), signal);
    const { done, value } = await this.#watch.during(reading).catch((error) => {
      throw netFailure(error, this.#host, signal, this.#pos);
    });
    if (done) return null;
    this.#pos += value.length;
    return value;
  }

  /** Makes another signal abort the request from now on. */
  follow(signal) {
    this.#abort.follow(signal);
  }

  /** Ends the request, and everything that waits for it. */
  close() {
    this.#watch.end();
    this.#abort.end();
    this.#reader?.cancel().catch(() => {});
  }
}

/**
 * The hash of the contents, if the server tells it. (An ETag that looks like a hash is not used: behind Hugging Face it
 * is the hash of something else.)
 */
const contentHash = ({ headers }) =>
  /^(?:W\/)?"?([0-9a-f]{64})"?$/.exec(headers.get('X-Linked-Etag') ?? '')?.[1] ?? null;

/** A controller that also follows a signal, until it gets another one or ends. */
class Follower extends AbortController {
  #leave = () => {};

  constructor(signal) {
    super();
    this.follow(signal);
  }

  follow(signal) {
    this.#leave();
    const onAbort = () => this.abort(reasonOf(signal));
    this.#leave = () => signal.removeEventListener('abort', onAbort);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  }

  end() {
    this.#leave();
    this.abort();
  }
}

/** Converts an error of a fetch or a read to a QuernError, or to the reason of an abort. */
function netFailure(error, host, signal, received) {
  if (signal.aborted) return reasonOf(signal);
  if (error instanceof QuernError) return error;
  const why = whyOf(error);
  if (received === undefined)
    return netError('net/unreachable', `${host} could not be reached (${why}).`, { host }, error);
  return netError(
    'net/truncated',
    `The download from ${host} broke off after ${received} bytes (${why}).`,
    { host, received },
    error,
  );
}

/** Most milliseconds for finding an explanation. */
const EXPLAINING_MS = 5000;

/**
 * Chromium treats a compressed answer to a request for a part like a broken connection. A HEAD request for the whole
 * file shows whether the server compresses, unless a server of another site hides this header.
 */
async function explained(failure, { url, headers, forwardHeaders, fetch }, signal) {
  const isMute =
    failure.code === 'net/unreachable' && failure.cause instanceof TypeError && failure.cause.cause === undefined;
  if (!isMute || signal.aborted) return failure;
  const options = {
    method: 'HEAD',
    cache: 'no-store',
    signal: AbortSignal.any([signal, AbortSignal.timeout(EXPLAINING_MS)]),
  };
  const whole = await fetchFor(fetch, url, {}, headers, forwardHeaders, options).catch(() => null);
  return (whole?.ok && compressionOf(whole.headers, hostOf(url))) || failure;
}

const rangeHeader = (from, to) => ({ range: `bytes=${from}-${to === null ? '' : to - 1}` });

/**
 * @param {Server} server
 * @param {number} from
 * @param {number | null} to the end, exclusive; null is the end of the file
 * @returns {Promise<Answer>}
 */
export async function ask(server, from, to, signal) {
  const { url, headers, forwardHeaders, fetch, clock } = server;
  const host = hostOf(url);
  const abort = new Follower(signal);
  const watch = new Watch(clock, (ms) =>
    abort.abort(netError('net/stalled', `${host} sent nothing for ${Math.round(ms / 1000)} s.`, { host })),
  );
  let response;
  try {
    const asked = fetchFor(fetch, url, rangeHeader(from, to), headers, forwardHeaders, {
      signal: abort.signal,
      cache: 'no-store',
    });
    asked.then(
      (late) => {
        if (abort.signal.aborted) late.body?.cancel().catch(() => {});
      },
      () => {},
    );
    response = await watch.during(abortable(asked, abort.signal));
    return new Answer(spanOf(response, from, to, host, clock.now()), response, { host, watch, abort });
  } catch (error) {
    const failure = netFailure(error, host, abort.signal);
    response?.body?.cancel().catch(() => {});
    watch.end();
    abort.end();
    throw await explained(failure, server, signal);
  }
}
