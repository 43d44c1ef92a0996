// SPDX-License-Identifier: MIT
// Gets the bytes of an image from any source: passed bytes, an address, a `data:` address, a path. Limits their number
// to that of an image, and the time to a minute.

import { deadline, systemClock } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';
import { MOST_BYTES, tooLarge } from '../shared/image.js';
import { piecesOf } from '../shared/stream.js';

const PATIENCE_MS = 60_000;

/** Letters of an address that are decoded per step: about a millisecond. */
const PIECE = 2 ** 16;

/** Most letters to go back for a place that does not cut a character: its bytes are written like `%C3%A9`. */
const NEAR = 32;

const isCut = (url, at) =>
  url[at] === '%' ? !/[89ab]/i.test(url[at + 1] ?? '') : url[at - 1] !== '%' && url[at - 2] !== '%';

/** End of the piece that begins at `from`. */
function endOf(url, from) {
  if (from + PIECE >= url.length) return url.length;
  for (let at = from + PIECE; at > from + PIECE - NEAR; at--) if (isCut(url, at)) return at;
  return from + PIECE;
}

/** The decoded letters of an address from `from` on, in pieces. */
function* lettersOf(url, from) {
  for (let at = from, end; at < url.length; at = end) {
    end = endOf(url, at);
    const piece = url.slice(at, end);
    yield piece.includes('%') ? decodeURIComponent(piece) : piece;
  }
}

/** Decodes base64, in pieces. */
function* unpacked(pieces) {
  let rest = '';
  let isOver = false;
  for (const piece of pieces) {
    const letters = rest + piece.replace(/[\t\n\f\r ]+/g, '');
    const whole = letters.length - letters.length % 4;
    rest = letters.slice(whole);
    if (isOver && letters) throw new Error('letters behind the end');
    isOver = letters[whole - 1] === '=';
    yield atob(letters.slice(0, whole));
  }
  if (isOver && rest) throw new Error('letters behind the end');
  yield atob(rest);
}

/**
 * The bytes of a `data:TYPE;base64,…` address, or of one with plain letters.
 * @returns {Generator<void, Uint8Array>}
 */
export function* bytesOfData(url) {
  const comma = url.indexOf(',');
  const bad = () => new QuernError('image/decode', "An image's data: address is broken.", { detail: { rule: 'data' } });
  if (comma < 0) throw bad();
  if (url.length > 1.5 * MOST_BYTES) throw tooLarge(Math.floor(0.75 * url.length));
  const isPacked = /;\s*base64\s*$/i.test(url.slice(0, comma));
  const letters = lettersOf(url, comma + 1);
  const bytes = new Uint8Array(Math.ceil((url.length - comma) * (isPacked ? 0.75 : 1)) + 3);
  let n = 0;
  try {
    for (const piece of isPacked ? unpacked(letters) : letters) {
      for (let i = 0; i < piece.length; i++) bytes[n++] = piece.charCodeAt(i);
      yield;
    }
  } catch {
    throw bad();
  }
  return bytes.slice(0, n);
}

const shortened = (url) => (url.length > 80 ? `${url.slice(0, 79)}…` : url);

async function read(response, url) {
  const said = Number(response.headers.get('Content-Length'));
  if (said > MOST_BYTES) throw tooLarge(said);
  const parts = [];
  let size = 0;
  const broken = (error) => new QuernError('net/truncated', `The image at ${url} broke off.`, { cause: error });
  for await (const bytes of piecesOf(response.body ?? new Blob().stream(), broken)) {
    size += bytes.length;
    if (size > MOST_BYTES) throw tooLarge(size);
    parts.push(bytes.slice());
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** Fetches an image, without credentials. */
async function fetched(url, { fetch, signal, clock = systemClock }) {
  const patience = new AbortController();
  const end = () => patience.abort();
  const cancel = deadline(PATIENCE_MS, end, clock);
  signal.addEventListener('abort', end, { once: true });
  const short = shortened(url);
  try {
    const response = await fetch(url, { credentials: 'omit', signal: patience.signal });
    const { ok, status } = response;
    if (!ok)
      throw new QuernError('net/http', `The image at ${short} cannot be fetched: status ${status}.`, {
        detail: { status },
      });
    return await read(response, short);
  } catch (error) {
    signal.throwIfAborted();
    if (patience.signal.aborted)
      throw new QuernError('net/stalled', `The image at ${short} did not arrive within ${PATIENCE_MS / 1000} seconds.`);
    if (error instanceof QuernError) throw error;
    throw new QuernError('net/unreachable', `The image at ${short} cannot be fetched (${error.message}).`, {
      cause: error,
    });
  } finally {
    cancel();
    signal.removeEventListener('abort', end);
    end();      // ends the download if the image is too large
  }
}

/**
 * @param {{url?: string, path?: string, bytes?: Uint8Array, blob?: Blob, bitmap?: ImageBitmap, pixels?: object}} frame
 *   as the page sent it
 * @param {{fetch: typeof fetch, readImage?: (path: string) => Promise<Uint8Array>, signal: AbortSignal, clock?: typeof
 *   systemClock, through?: (steps: Iterator<void, Uint8Array>) => Promise<Uint8Array>}} how through: runs all steps,
 *   each about a millisecond
 * @returns {Promise<Uint8Array | Blob | ImageBitmap | object>} as js/media takes it
 */
export async function imageSource({ url, path, bytes, blob, bitmap, pixels }, how) {
  if (url !== undefined) return /^data:/i.test(url) ? how.through(bytesOfData(url)) : fetched(url, how);
  if (path !== undefined) return how.readImage(path);
  if ((bytes?.length ?? blob?.size ?? 0) > MOST_BYTES) throw tooLarge(bytes?.length ?? blob.size);
  return bytes ?? blob ?? bitmap ?? pixels;
}
