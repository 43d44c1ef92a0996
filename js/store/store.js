// SPDX-License-Identifier: MIT
// A model in a store: its journal, its chunks, and the rules common to all stores. A store itself (Store in index.d.ts:
// store-opfs.js, store-node.js, or one of the page) only keeps files under short names and provides locks. All failures
// here are typed errors of the group `storage`.

import { CHUNK } from '../shared/chunk.js';
import { alone, guarded, storageError } from './guard.js';
import { hashOf, plainUrl } from './identity.js';
import { Journal, headerLine, line } from './journal.js';

/** A short name for an id of any length and alphabet. */
export async function keyOf(id) {
  const key = await hashOf(id);
  if (!key) throw storageError('storage/unavailable', 'this page was not loaded securely, by https');
  return key;
}

const JOURNAL = '.journal';
const dataName = (key, file) => `${key}.${file}`;

/** Keys of all stored models. */
async function keysIn(store) {
  return [
    ...new Set(
      (await guarded(store).list()).map((name) => /^([0-9a-f]{32})\.(?:\d+|journal)$/.exec(name)?.[1]).filter(Boolean),
    ),
  ];
}

export class Entry {
  #store;
  #key;
  #journal = new Journal();
  #log = null;            // the journal's file, open for writing
  #files = new Map();     // number -> open file
  #writing = false;
  #chunkSize;

  /** @param {{chunkSize?: number, clock?: object}} options both for tests */
  constructor(store, key, { chunkSize = CHUNK, clock } = {}) {
    this.#store = guarded(store, clock);
    this.#key = key;
    this.#chunkSize = chunkSize;
  }

  /** Opens the entry of this id; it may be empty or incomplete. */
  static async open(store, id, options) {
    const entry = new Entry(store, await keyOf(id), options);
    await entry.refresh();
    return entry;
  }

  /** All stored models. Files without a journal that nobody is writing are removed. */
  static async all(store) {
    const entries = [];
    for (const key of await keysIn(store)) {
      const entry = new Entry(store, key);
      await entry.refresh();
      if (entry.header) entries.push(entry);
      else await entry.remove().catch(() => {});
    }
    return entries;
  }

  get header() { return this.#journal.header; }
  get complete() { return this.#journal.done !== null; }
  get total() { return this.#journal.total; }
  get loaded() { return this.#journal.loaded(this.#chunkSize); }
  get used() { return this.#journal.used; }
  /** Bytes of the journal, which grow as more is stored. */
  get recorded() { return this.#journal.bytes; }
  get sha256() { return this.#journal.done?.hashes ?? []; }

  size(file) { return this.#journal.size(file); }

  /** [file, index] of the first missing chunk of files with these sizes; null if none is missing. */
  missing(sizes) {
    for (const [file, size] of sizes.entries()) {
      for (let index = 0; index * this.#chunkSize < size; index++) if (!this.hash(file, index)) return [file, index];
    }
    return null;
  }

  /**
   * Whether all of these files are stored. For a model stored with a projector, the files before the projector suffice.
   * @param {string[]} urls the last ones may be `projectors`: their addresses must match too, not only the model's id
   */
  has(urls, projectors = 0) {
    const { files = [] } = this.header ?? {};
    const same = (url, i) => i < urls.length - projectors || files[i].url === plainUrl(url);
    if (files.length < urls.length || !urls.every(same)) return false;
    const sizes = urls.map((_, file) => this.size(file));
    return this.complete || (files.length > urls.length && !sizes.includes(0) && !this.missing(sizes));
  }

  hash(file, index) { return this.#journal.hash(file, index); }
  stored(file) { return this.#journal.stored(file); }

  /** Reads the whole journal again: another tab may have begun anew. */
  async refresh() {
    const bytes = await this.#store.read(this.#key + JOURNAL);
    this.#journal = new Journal();
    if (bytes) this.#journal.read(bytes);
  }

  /**
   * Gets the right to write.
   * @returns {Promise<(() => void) | null>} releases it; null: another tab has it and `wait` is false
   */
  lock({ wait = true, signal } = {}) {
    return this.#store.lock(this.#key, { wait, signal });
  }

  // --- writing, under the lock ---

  /** Starts over for these files. */
  async begin(header) {
    await this.close();
    for (const name of await this.#dataNames()) await this.#truncate(name);
    await this.#truncate(this.#key + JOURNAL);
    this.#journal = new Journal();
    this.#writing = true;
    await this.#append(headerLine(header));
  }

  /**
   * Makes this the entry of the given files; the first `kept` of them are stored already. A crash in between leaves
   * some chunks to be fetched again.
   */
  async become(header, kept) {
    await this.resume();
    const record = (file) => this.stored(file).map((index) => line('chunk', file, index, this.hash(file, index)));
    const chunks = header.files.slice(0, kept).flatMap((_, file) => record(file));
    const numberOf = (name) => Number(name.slice(this.#key.length + 1));
    for (const name of await this.#dataNames()) if (numberOf(name) >= kept) await this.#truncate(name);
    await this.#append(new Uint8Array(await new Blob([headerLine(header), ...chunks]).arrayBuffer()));
  }

  /** Throws if there is no room for this many more bytes. */
  async checkRoom(bytes) {
    const { used, quota } = await this.#store.usage();
    const free = Math.max(0, quota - used);
    if (bytes > free)
      throw storageError(
        'storage/quota',
        `it needs ${Math.ceil(bytes / 1e6)} MB, and ${Math.floor(free / 1e6)} MB are free`,
      );
  }

  /** Continues writing to the stored files. */
  async resume() {
    await this.close();
    this.#writing = true;
  }

  async #dataNames() {
    return (await this.#store.list()).filter((name) => name.startsWith(`${this.#key}.`) && !name.endsWith(JOURNAL));
  }

  async #truncate(name) {
    const file = await this.#store.open(name, { write: true });
    await file.truncate(0).finally(() => file.close());
  }

  /** Appends a line; after an incomplete line it begins a new one first. */
  async #append(bytes) {
    this.#log ??= await this.#store.open(this.#key + JOURNAL, { write: true });
    const end = await this.#log.size();
    const text = this.#journal.torn ? Uint8Array.of(10, ...bytes) : bytes;
    await writeAll(this.#log, end, text);
    this.#journal.bytes = end + text.length - bytes.length;
    this.#journal.read(bytes);
  }

  /** Stores a chunk. */
  async put(file, index, bytes, hash) {
    await writeAll(await this.#file(file), index * this.#chunkSize, bytes);
    if (this.hash(file, index) !== hash) await this.#append(line('chunk', file, index, hash));
  }

  /** Records that all chunks are stored. */
  async finish(sizes, hashes) {
    for (const file of this.#files.values()) await file.flush();
    await this.#append(line('done', sizes, hashes));
    await this.#log.flush();
  }

  async touch() {
    this.#writing = true;
    await this.#append(line('used', Date.now()));
  }

  // --- reading ---

  async #file(number) {
    if (!this.#files.has(number)) {
      const file = await this.#store.open(dataName(this.#key, number), { write: this.#writing });
      if (!file) return null;
      this.#files.set(number, file);
    }
    return this.#files.get(number);
  }

  /** Reads a chunk into `target`. @returns {Promise<number>} number of bytes read */
  async read(file, index, target) {
    const handle = await this.#file(file);
    return handle ? readAll(handle, index * this.#chunkSize, target) : 0;
  }

  async close() {
    const open = [...this.#files.values(), ...(this.#log ? [this.#log] : [])];
    this.#files.clear();
    this.#log = null;
    await Promise.all(open.map((file) => file.close()));
  }

  /** Removes everything; the caller must hold the lock. */
  async drop() {
    await this.close();
    for (const name of await this.#dataNames()) await this.#store.remove(name);
    await this.#store.remove(this.#key + JOURNAL);
    this.#journal = new Journal();
  }

  /** Removes everything; `storage/busy` if another tab still writes or reads it after this time. */
  async remove(patienceMs = 0) {
    const busy = storageError('storage/busy', 'it is being downloaded or loaded');
    await alone(this.#store, this.#key, { patienceMs, busy }, () => this.drop());
  }
}

/** Fills `target` from the offset `at` on. @returns {Promise<number>} number of bytes read */
export async function readAll(file, at, target) {
  let n = 0;
  while (n < target.length) {
    const got = await file.read(at + n, target.subarray(n));
    if (got === 0) break;
    n += got;
  }
  return n;
}

export async function writeAll(file, at, bytes) {
  for (let done = 0; done < bytes.length;) {
    const n = await file.write(at + done, bytes.subarray(done));
    if (!(n > 0)) throw storageError('storage/quota', 'nothing more was written');
    done += n;
  }
}
