// SPDX-License-Identifier: MIT
// Connects a load with the store: its entry, and whether the load writes to it. Only one tab at a time writes a model.
// Another tab that needs the model follows: it reads the chunks that the first has stored, takes over when the first
// ends, and gives up when no more chunks are stored. If the store fails, it is given up with a notice, and everything
// here answers as if nothing were stored; if the store is the purpose (models.download), the error is thrown instead.

import { systemClock } from '../shared/clock.js';
import { isOf } from '../shared/errors.js';
import { storageError } from './guard.js';
import { Entry } from './store.js';

/** How often a following load looks for new chunks, in ms. */
const LOOK_MS = 200;

/** Number of looks without a new chunk, half a minute, after which the writer may have been stopped and is given up. */
const MOST_LOOKS = 30_000 / LOOK_MS;

export class Keeper {
  #entry = null;
  #release = null;      // releases the lock
  #turn = null;         // promise of the lock, while following
  #leave = new AbortController();
  #last = Promise.resolve();   // the last work with the entry
  #notice;
  #mustStore;
  #clock;

  constructor({ notice = () => {}, mustStore = false, clock = systemClock }) {
    this.#notice = notice;
    this.#mustStore = mustStore;
    this.#clock = clock;
  }

  /** @param {object | undefined} store undefined: nothing is stored */
  static async open(store, id, options) {
    const keeper = new Keeper(options);
    if (store) keeper.#entry = await keeper.#try(() => Entry.open(store, id, options)) ?? null;
    return keeper;
  }

  get header() { return this.#entry?.header ?? null; }
  /** Whether all of these files are stored (Entry.has). */
  has(urls, projectors) { return this.#entry?.has(urls, projectors) ?? false; }
  get writes() { return this.#release !== null; }
  get follows() { return this.#turn !== null; }

  size(file) { return this.#entry?.size(file) ?? 0; }
  hash(file, index) { return this.#entry?.hash(file, index); }
  stored(file) { return this.#entry?.stored(file) ?? []; }

  /** [file, index] of the first missing chunk; null if none is missing. */
  get firstMissing() {
    return this.header && this.#entry.missing(this.header.files.map((_, file) => this.size(file)));
  }

  /** The verified SHA-256 of a complete file; '' if it was not verified. */
  sha256(file) { return this.#entry?.sha256[file] ?? ''; }

  /** Runs work with the entry, after earlier work. The result is undefined if the store fails or has failed. */
  #try(work) {
    this.#last = this.#last.catch(() => {}).then(() => this.#attempt(work));
    return this.#last;
  }

  async #attempt(work) {
    try {
      return await work(this.#entry);
    } catch (error) {
      if (!isOf('storage', error)) throw error;
      await this.#giveUp(error);
      return undefined;
    }
  }

  /** If there was no room, there will be none later, so the entry is dropped; otherwise it stays for the next time. */
  async #giveUp(error) {
    const entry = this.#entry;
    this.#entry = null;
    const end = error.code === 'storage/quota' && this.writes && !entry?.complete ? entry?.drop() : entry?.close();
    await end?.catch(() => {});
    this.#unlock();
    if (this.#mustStore) throw error;
    this.#notice(error);
  }

  #unlock() {
    this.#release?.();
    this.#release = null;
    this.#leave.abort();
    this.#turn?.then((release) => release(), () => {});
    this.#turn = null;
  }

  /** Gets the right to write, if nobody else has it. */
  async tryLock() {
    if (this.#entry && !this.writes) this.#release = await this.#try((entry) => entry.lock({ wait: false })) ?? null;
    return this.writes;
  }

  /** Gets the right to write, or follows the writer until the journal has a header. */
  async acquire() {
    if (await this.tryLock() || !this.#entry) return;
    this.#notice(storageError('storage/busy', 'it is being downloaded there; this load follows'));
    this.#turn = this.#entry.lock({ signal: this.#leave.signal });
    this.#turn.catch(() => {});
    while (this.follows && !this.header) await this.follow();
  }

  /** Waits for news: more chunks, or the end of following. */
  async follow() {
    await this.#try(async (entry) => {
      const { recorded } = entry;
      for (let looks = 0; this.follows && entry.recorded === recorded; looks++) {
        if (looks === MOST_LOOKS)
          throw storageError('storage/busy', 'nothing more was stored there for half a minute');
        await this.#look();
        await entry.refresh();
      }
    });
  }

  /** Waits for LOOK_MS, or until the lock comes. */
  async #look() {
    let cancel;
    const moment = new Promise((done) => { cancel = this.#clock.after(LOOK_MS, done); });
    const release = await Promise.race([this.#turn, moment]).finally(cancel);
    if (!release) return;
    this.#release = release;
    this.#turn = null;
  }

  /**
   * Makes this the entry of the given files; stored chunks of others are dropped.
   * @param {(stored: object) => number} kept how many of the stored files are the same; further stored files may stay
   *   if all given ones are
   */
  async claim(header, kept) {
    if (!this.writes) return;
    await this.#try(async (entry) => {
      await entry.refresh();
      const n = entry.header ? kept(entry.header) : 0;
      if (n >= header.files.length) return entry.resume();
      await (n > 0 ? entry.become(header, n) : entry.begin(header));
      return entry.checkRoom(header.files.slice(n).reduce((sum, { size }) => sum + size, 0));
    });
  }

  /** Reads a chunk. Returns the number of bytes. */
  async read(file, index, target) {
    return await this.#try((entry) => entry?.read(file, index, target)) ?? 0;
  }

  put(file, index, bytes, hash) {
    return this.#try((entry) => this.writes && entry.put(file, index, bytes, hash));
  }

  /** Called when everything was read: marks an entry that has everything as complete and used. */
  async finish(sizes, hashes) {
    if (!await this.tryLock()) return;
    await this.#try(async (entry) => {
      // not of a model without the projector that is stored with it
      const isWhole = sizes.length === entry.header?.files.length;
      const isNews = !entry.complete || hashes.some((hash, file) => hash !== this.sha256(file));
      if (isWhole && isNews && !entry.missing(sizes)) await entry.finish(sizes, hashes);
      await entry.touch().catch(() => {});
    });
  }

  /** Deletes the entry. */
  async discard() {
    if (this.#entry) await (this.writes ? this.#entry.drop() : this.#entry.remove()).catch(() => {});
  }

  async close() {
    await this.#entry?.close().catch(() => {});
    this.#unlock();
  }
}
