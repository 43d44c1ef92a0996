// SPDX-License-Identifier: MIT
// Reads the files of a source in order, by way of the store (keeper.js): stored chunks are verified before use, missing
// ones are fetched from the servers (remotes.js) and stored on their way to the engine. A complete model needs no
// request; a damaged chunk alone is fetched again.

import { hostOf } from '../net/answer.js';
import { CHUNK, CHUNKS } from '../shared/chunk.js';
import { QuernError, badParam, isOf } from '../shared/errors.js';
import { pathIn } from '../shared/folder.js';
import { idOfSource, onlyName, plainUrl } from './identity.js';
import { beginsWith, storedOf, sameFiles } from './journal.js';
import { Keeper } from './keeper.js';
import { listFolder } from './listing.js';
import { filesOf, joined, localParts, notTheHash, startSha256, streamBytes } from './local.js';
import { sum } from '../shared/sum.js';
import { Remotes } from '../net/remotes.js';
import { Runs } from '../net/runs.js';
import { checkTrailing } from '../net/trailing.js';

class Loading {
  #urls;
  #id;
  #projectors;            // how many of the last files are not part of the language model
  #more;                  // {isName?: whether only the name of the model was given}, and for a folder {name, found}
  #options;
  #keeper;
  #remotes = null;
  #ahead = null;          // chunks that were read from the store ahead of time, and their place
  #seen = null;           // the stored files from which chunks were read
  #hashes;                // SHA-256 of each verified file
  #came = 0;              // bytes read so far of the current file
  #ends;                  // where each file's contents end, null while unknown; undefined: the caller will not tell

  constructor({ urls, id, projectors = 0, ...more }, options) {
    this.#urls = urls;
    this.#id = id;
    this.#projectors = projectors;
    this.#more = more;
    this.#options = { sha256: [], onBytes() {}, chunkSize: CHUNK, ...options };
    this.#hashes = urls.map(() => '');
    this.#ends = options.saysEnds && urls.map(() => null);
  }

  async open() {
    this.#keeper = await Keeper.open(this.#id ? this.#options.store : undefined, this.#id, this.#options);
    const cached = this.#isThere;
    if (!cached) await this.#begin();
    const sizes = this.#urls.map((_, file) => this.#size(file));
    return {
      phase: cached ? 'load' : 'download',
      cached,
      total: sizes.includes(0) ? 0 : sum(sizes),
      parts: sizes.map((size, i) => ({
        size,
        name: pathIn(this.#urls[i]),
        chunks: this.#bytes(i),
        endsAt: (end) => this.#endsAt(i, end),
      })),
      discard: () => this.#keeper.discard(),
    };
  }

  async #begin() {
    try {
      await this.#keeper.acquire();
      if (!this.#keeper.follows && !this.#isThere) await this.#connect();
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  /** Whether the store has everything that is wanted. */
  get #isThere() {
    return this.#keeper.has(this.#urls, this.#projectors) && this.#isWanted();
  }

  /** Whether no hash of the complete copy differs from a requested one. */
  #isWanted() {
    const { sha256 } = this.#options;
    return this.#urls.every((_, file) => !sha256[file] || ['', sha256[file]].includes(this.#keeper.sha256(file)));
  }

  #size(file) { return this.#keeper.size(file) || this.#remotes?.size(file) || 0; }

  /** The bytes to request first: the first missing chunk and everything after it, or only the damaged chunk. */
  #firstWanted(damaged) {
    const { chunkSize } = this.#options;
    const [file, index] = damaged ?? this.#keeper.firstMissing ?? [0, 0];
    const from = index * chunkSize;
    return { file, from, to: damaged && this.#isThere ? Math.min(from + chunkSize, this.#size(file)) : null };
  }

  /** Connects to the servers; stored chunks of another version are dropped. */
  async #connect(damaged) {
    if (this.#more.isName) throw onlyName();
    const options = {
      ...this.#options,
      found: damaged ? [] : this.#more.found,
      ends: this.#ends,
      onChunk: (...chunk) => this.#keep(...chunk),
    };
    this.#remotes = await Remotes.open(this.#urls, options, this.#firstWanted(damaged));
    const { name, versions } = this.#remotes;
    if (this.#seen && !beginsWith(this.#seen, versions)) throw await this.#changed();
    const files = versions.map((version, i) => ({ ...version, url: i === 0 ? this.#id : plainUrl(this.#urls[i]) }));
    const about = { id: this.#id, name: this.#more.name ?? name, files, projectors: this.#projectors || undefined };
    await this.#keeper.claim(about, (stored) => (this.#isWanted() ? storedOf(stored, about) : 0));
  }

  async #changed() {
    await this.#keeper.discard();
    return new QuernError(
      'net/changed',
      `The file on ${new URL(this.#urls[0]).host} differs from its stored copy.`,
      { phase: 'load' },
    );
  }

  // --- chunks ---

  async* #bytes(file) {
    let ended = false;
    try {
      const sha = await this.#startHash(file);
      for (let index = 0, bytes; this.#left(file, index) > 0; index += this.#count(bytes)) {
        bytes = await this.#next(file, index);
        if (!bytes) break;
        sha?.update(bytes);
        this.#came = index * this.#options.chunkSize + bytes.length;
        yield bytes;
      }
      await this.#endHash(file, sha);
      ended = true;
    } finally {
      if (!ended) await this.#close();
    }
    if (file === this.#urls.length - 1) await this.#finish();
  }

  /** Called when the header of the current file was read. */
  #endsAt(file, end) {
    checkTrailing(hostOf(this.#urls[file]), this.#size(file) || this.#came, end);
    this.#ends[file] = end;
    this.#remotes?.ends(file, end);
  }

  /** Bytes of a file from a chunk on; Infinity while unknown. */
  #left(file, index) {
    return Math.max(0, (this.#size(file) || Infinity) - index * this.#options.chunkSize);
  }

  #count = (bytes) => Math.ceil(bytes.length / this.#options.chunkSize);

  /** Returns the bytes of one or more chunks; null if the file has ended. */
  async #next(file, index) {
    for (;;) {
      const bytes = await this.#stored(file, index);
      if (bytes) return bytes;
      if (!this.#keeper.follows) break;
      await this.#keeper.follow();
      if (!this.#left(file, index)) return null;
    }
    if (!this.#remotes) await this.#repair(file, index);
    return this.#remotes.next(file, index, (from) =>
      Runs.without(
        this.#keeper.stored(file).filter((i) => i > from),
        from,
      ),
    );
  }

  /** Whether a chunk is to be read from the store. */
  #isStored(file, index) { return Boolean(this.#keeper.hash(file, index)) && !this.#remotes?.brings(file, index); }

  /**
   * Returns consecutive chunks from the store, as far as they are stored and undamaged. While they are hashed, the next
   * ones are read.
   */
  async #stored(file, index) {
    if (!this.#isStored(file, index)) return null;
    const { header } = this.#keeper;
    if (!sameFiles(this.#seen ?? header.files, header.files)) throw await this.#changed();    // another tab began anew
    const staging = this.#options.memory();
    const isAhead = this.#ahead?.staging === staging && this.#ahead.file === file && this.#ahead.index === index;
    const { bytes } = isAhead ? this.#ahead : await this.#read(staging, file, index);
    const next = index + this.#count(bytes);
    staging.start(bytes, this.#options.chunkSize);
    this.#ahead = this.#isStored(file, next) ? await this.#read(staging, file, next, bytes) : null;
    const hashes = staging.end();
    const bad = hashes.findIndex((hash, i) => hash !== this.#keeper.hash(file, index + i));
    const good = bytes.subarray(0, bad < 0 ? bytes.length : bad * this.#options.chunkSize);
    if (!good.length) return null;
    this.#seen = header.files;
    this.#options.onBytes(good.length);
    return good;
  }

  /** Reads up to CHUNKS consecutive stored chunks. */
  async #read(staging, file, index, needed) {
    let to = index + 1;
    while (to < index + CHUNKS && this.#isStored(file, to)) to++;
    const room = staging.room(Math.min((to - index) * this.#options.chunkSize, this.#left(file, index)), needed);
    return { staging, file, index, bytes: room.subarray(0, await this.#keeper.read(file, index, room)) };
  }

  /** Stores a chunk that has arrived. */
  async #keep(file, index, bytes) {
    const expected = this.#keeper.hash(file, index);
    if (!expected && !this.#keeper.writes) return;
    const hash = this.#options.memory().hash(bytes);
    if (expected && expected !== hash) throw await this.#changed();
    await this.#keeper.put(file, index, bytes, hash);
  }

  /** Connects to the servers for a chunk that turned out to be damaged or missing. */
  async #repair(file, index) {
    const damaged = this.#isThere;
    this.#seen ??= this.#keeper.header?.files ?? null;
    await this.#keeper.tryLock();
    try {
      await this.#connect([file, index]);
    } catch (error) {
      if (!damaged || !isOf('net', error) || error.code === 'net/changed') throw error;
      throw new QuernError(
        'storage/corrupt',
        `The stored copy of the model is damaged, and cannot be repaired: ${error.message}`,
        {
          phase: 'load',
          retryable: true,
          cause: error,
        },
      );
    }
  }

  // --- the end ---

  #expected(file) { return this.#options.sha256[file] ?? this.#remotes?.sha256(file) ?? ''; }

  async #startHash(file) {
    const expected = this.#expected(file);
    return expected && this.#keeper.sha256(file) !== expected ? startSha256() : null;
  }

  async #endHash(file, sha) {
    const expected = sha ? this.#expected(file) : this.#keeper.sha256(file);
    if (sha && sha.digest() !== expected) {
      await this.#keeper.discard();
      throw notTheHash(`The file from ${new URL(this.#urls[file]).host}`, expected);
    }
    this.#hashes[file] = expected;
  }

  async #finish() {
    try {
      await this.#keeper.finish(this.#urls.map((_, file) => this.#size(file)), this.#hashes);
    } finally {
      await this.#close();
    }
  }

  async #close() {
    await this.#remotes?.close();
    await this.#keeper.close();
  }
}

/** Stores files of this machine under the addresses of a source. */
async function openPicked({ urls, ...source }, { files, ...options }) {
  if (files.length !== urls.length) throw badParam('options.files', `must be ${urls.length}, as the source names so many`);
  const { fetchFrom } = await import('./picked.js');
  return openParts({ ...source, urls }, { ...options, fetch: fetchFrom(urls, files) });
}

/**
 * @param {object} source as located by source.js, or {kind: 'streams', streams: {stream: ReadableStream, size: number,
 *   name?: string}[]}
 * @param {import('./local.js').OpenOptions} options for tests also chunkSize, clock, parallel
 * @returns {Promise<import('./local.js').Opened>}
 */
export async function openParts(source, options) {
  const { beside, ...model } = source;
  if (beside) return joined(model, beside, options, openParts);
  if (source.kind === 'urls') {
    if (options.files) return openPicked(source, options);
    const named = { ...source, id: await idOfSource(source) };
    return new Loading(source.folder ? await listFolder(named, options) : named, options).open();
  }
  return localParts(
    filesOf(source).map((file) => ({ size: file.size, name: file.name, chunks: streamBytes(file) })),
    options,
  );
}
