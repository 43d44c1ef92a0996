// SPDX-License-Identifier: MIT
// Reads files of this machine, which are not stored, and verifies whole files (also for loader.js).

import { QuernError } from '../shared/errors.js';
import { piecesOf } from '../shared/stream.js';
import { sum } from '../shared/sum.js';

/** Starts a SHA-256. */
export const startSha256 = async () => (await (await import('./sha256.js')).createSHA256()).init();

export const notTheHash = (what, expected) =>
  new QuernError('model/integrity', `${what} does not have the SHA-256 that it should have.`, {
    phase: 'load',
    detail: { expected },
  });

const unreadable = (error) =>
  new QuernError('use/param', `The file cannot be read any more (${error?.message ?? error}); choose it again.`, {
    phase: 'load',
    detail: { param: 'source' },
    cause: error,
  });

/** The streams of a source that is not an address. */
export const filesOf = ({ blobs, names, streams }) => streams
  ?? blobs.map((blob, i) => ({ name: names?.[i], size: blob.size, get stream() { return blob.stream(); } }));

export async function* streamBytes(file) {
  yield* piecesOf(file.stream, unreadable);
}

/** Yields a file's bytes, counted, and hashed if the hash is known. */
async function* countedBytes(chunks, expected, onBytes) {
  const sha = expected ? await startSha256() : null;
  for await (const bytes of chunks) {
    sha?.update(bytes);
    onBytes(bytes.length);
    yield bytes;
  }
  if (sha && sha.digest() !== expected) throw notTheHash('The file', expected);
}

/**
 * @typedef {object} OpenOptions
 * @property {() => any} memory returns the buffers for bytes (engine/staging.js)
 * @property {object} [store]
 * @property {boolean} [mustStore] if nothing can be stored, the load fails
 * @property {Function} [fetch]
 * @property {object} [headers]
 * @property {string[]} [sha256]
 * @property {AbortSignal} [signal]
 * @property {boolean} [saysEnds] each part's `endsAt` will be called after its header was read; until then nothing is
 *   fetched ahead
 * @property {(error: Error) => void} [notice]
 * @property {(n: number) => void} [onBytes]
 * @property {(waiting: object) => void} [onWait]
 *
 * @typedef {{size: number, name?: string, chunks: AsyncIterable<Uint8Array>, endsAt?: (end: number) => void}} Part a
 *   file of a model; size 0: unknown; name: its path, if known; a chunk is valid until the next one is requested
 * @typedef {{phase: 'download' | 'load', cached: boolean, total: number, parts: Part[], discard: () => Promise<void>}}
 *   Opened a model; total 0: unknown; `discard` deletes stored bytes that turned out not to be a model
 */

/**
 * Opens files that are on this machine already, and are not stored.
 * @param {{size: number, name?: string, chunks: AsyncIterable<Uint8Array>}[]} files
 * @param {{sha256?: string[], onBytes?: (n: number) => void}} options
 * @returns {Opened}
 */
export function localParts(files, { sha256 = [], onBytes = () => {} }) {
  const parts = files.map(({ size, name, chunks }, file) => ({
    size,
    name,
    chunks: countedBytes(chunks, sha256[file], onBytes),
  }));
  return { phase: 'load', cached: false, total: sum(parts.map(({ size }) => size)), parts, async discard() {} };
}

/**
 * Joins a model and a projector of another kind of source. The hash of the projector is the last one.
 * @param {(source: any, options: OpenOptions) => Promise<Opened>} open
 * @returns {Promise<Opened>}
 */
export async function joined(model, projector, { sha256 = [], ...options }, open) {
  const one = await open(model, { ...options, sha256 });
  const other = await open(projector, {
    ...options,
    sha256: sha256.length > one.parts.length ? sha256.slice(one.parts.length) : [],
  });
  const phase = [one, other].some(({ phase: of }) => of === 'download') ? 'download' : 'load';
  return {
    phase,
    cached: one.cached && other.cached,
    total: one.total && other.total ? one.total + other.total : 0,
    parts: [...one.parts, ...other.parts],
    async discard() {
      await one.discard();
      await other.discard();
    },
  };
}
