// SPDX-License-Identifier: MIT
// The files of a model on their servers, fetched by chunks: what is missing in a store comes in one run per file, and a
// chunk between (a damaged one) by a request of its own.

import { openRemote } from './download.js';
import { Runs } from './runs.js';

/** Opens a file where bytes are missing; as a whole, where that tells too little or the file is not as it was. */
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
  #run = null;    // {file, chunks, wanted, next}: what is being fetched, and the chunk that comes next

  /**
   * All files are asked for at first, so that the size of all is known; only the first one's answer is kept waiting.
   * @param {object} options of `openRemote`; `found`: those that have been opened, if any; `onChunk(file, index,
   *   bytes)`: keeps a chunk, as soon as it is there; `ends`: where the contents of each file end (Remote.end)
   * @param {{file: number, from: number, to: number | null}} [first] the bytes that will be wanted first, where others
   *   are there
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

  /** What tells a version of the files from another, as a journal keeps it. */
  get versions() {
    return this.#files.map(({ size, etag, lastModified }) => ({
      size: size ?? 0,
      etag: etag ?? '',
      lastModified: lastModified ?? '',
    }));
  }

  /** 0: not known (yet). */
  size(file) { return this.#files[file].size ?? 0; }
  sha256(file) { return this.#files[file].sha256; }

  /** A file's contents end there. */
  ends(file, end) { this.#files[file].end = end; }

  /** Whether a chunk is among those that are being fetched, and comes in its turn. */
  brings(file, index) {
    return this.#run?.file === file && index >= this.#run.next && this.#run.wanted.has(index);
  }

  /**
   * A chunk, valid until the next is asked for; null: the file ended before it.
   * @param {(from: number) => Runs} missing what is not stored
   */
  async next(file, index, missing) {
    if (this.#run?.file !== file) this.#run = this.#start(file, index, missing(index));
    const run = this.#run;
    if (run.next !== index) return this.#single(file, index);
    run.next = run.wanted.next(index + 1);
    const { done, value } = await run.chunks.next();
    return done ? null : value.bytes;
  }

  /** Of a file of unknown size comes all that follows. */
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
