// SPDX-License-Identifier: MIT
// The files of a model on their servers, fetched in chunks. Chunks that are missing in the store are fetched in one run
// per file; a single chunk in between (a damaged one) gets a request of its own.

import { openRemote } from './download.js';
import { Runs } from './runs.js';

/** Opens a file at its missing bytes; or as a whole, if that tells too little or the file has changed. */
async function openAt(url, options, first) {
  try {
    const remote = first && await openRemote(url, { ...options, first });
    if (remote && remote.size !== null) return remote;
    if (remote) remote.close();
  } catch (error) {
    if (!['net/changed', 'net/range'].includes(error.code)) throw error;
  }
  return openRemote(url, options);
}

export class Remotes {
  #files = [];
  #run = null;    // {file, chunks, wanted, next}: the run in progress, and its next chunk

  /**
   * Opens all files first, so that all sizes are known; only the first answer is kept open.
   * @param {object} options of `openRemote`; `found`: files that are open already, if any; `onChunk(file, index,
   *   bytes)`: stores a chunk as soon as it has arrived; `ends`: where the contents of each file end (Remote.end)
   * @param {{file: number, from: number, to: number | null}} [first] the bytes that are needed first, if others are
   *   stored
   */
  static async open(urls, options, first) {
    const remotes = new Remotes();
    try {
      for (const [file, url] of urls.entries()) {
        remotes.#add(options.found?.[file] ?? await openAt(url, options, file === first?.file && first), options);
      }
    } catch (error) {
      await remotes.close();
      throw error;
    }
    return remotes;
  }

  #add(remote, { onBytes, onChunk, ends }) {
    const file = this.#files.length;
    if (ends) remote.end = ends[file];
    remote.onBytes = onBytes;
    remote.onChunk = (index, bytes) => onChunk(file, index, bytes);
    if (file) remote.close();
    this.#files.push(remote);
  }

  get name() { return this.#files[0].name; }

  /** The versions of the files, as recorded in a journal. */
  get versions() {
    return this.#files.map(({ size, etag, lastModified }) => ({
      size: size ?? 0,
      etag: etag ?? '',
      lastModified: lastModified ?? '',
    }));
  }

  /** Size of a file; 0 while unknown. */
  size(file) { return this.#files[file].size ?? 0; }
  sha256(file) { return this.#files[file].sha256; }

  /** Sets the end of a file's contents. */
  ends(file, end) { this.#files[file].end = end; }

  /** Whether a chunk is part of the run in progress and still to come. */
  brings(file, index) {
    return this.#run?.file === file && index >= this.#run.next && this.#run.wanted.has(index);
  }

  /**
   * Returns a chunk, which is valid until the next is requested; null if the file ended before it.
   * @param {(from: number) => Runs} missing chunks that are not stored, from an index on
   */
  async next(file, index, missing) {
    if (this.#run?.file !== file) this.#run = this.#start(file, index, missing(index));
    const run = this.#run;
    if (run.next !== index) return this.#single(file, index);
    run.next = run.wanted.next(index + 1);
    const { done, value } = await run.chunks.next();
    return done ? null : value.bytes;
  }

  /** Starts a run. If the file's size is unknown, the run includes all chunks from the index on. */
  #start(file, index, missing) {
    const remote = this.#files[file];
    const wanted = remote.size === null ? Runs.from(index) : missing.below(remote.count);
    return { file, chunks: remote.chunks(wanted), wanted, next: index };
  }

  async #single(file, index) {
    for await (const { bytes } of this.#files[file].chunks(Runs.of(index))) return bytes;
    return null;
  }

  async close() {
    await this.#run?.chunks.return();
    this.#run = null;
    for (const remote of this.#files) remote.close();
  }
}
