// SPDX-License-Identifier: MIT
// A load's hold on the store: its entry, and whether it writes it. One tab at a time writes a model. Another one that
// wants it follows: it reads what the first has stored, takes over when the first goes away, and gives up when it
// stores nothing more. A store that fails is given up with a notice, and everything here answers as if nothing were
// stored; where the store is the purpose (models.download), the failure is thrown instead.

import { systemClock } from '../shared/clock.js';
import { isOf } from '../shared/errors.js';
import { storageError } from './guard.js';
import { Entry } from './store.js';

/** How often a load that follows looks for new chunks, in ms. */
const LOOK_MS = 200;

/**
 * Whoever writes and stores nothing more for so many looks, half a minute, may have been stopped: he is not waited for.
 */
const MOST_LOOKS = 30_000 / LOOK_MS;

export class Keeper {
  #entry = null;
  #release = null;      // of the lock
  #turn = null;         // promise of the lock, while following
  #leave = new AbortController();
  #last = Promise.resolve();   // what is being done with the entry
  #notice;
  #mustStore;
  #clock;

  constructor({ notice = () => {}, mustStore = false, clock = systemClock }) {
    this.#notice = notice;
    this.#mustStore = mustStore;
    this.#clock = clock;
  }

  /** @param {object | undefined} store undefined: nothing is kept */
  static async open(store, id, options) {
    const keeper = new Keeper(options);
    if (store) keeper.#entry = await keeper.#try(() => Entry.open(store, id, options)) ?? null;
    return keeper;
  }

  get header() { return this.#entry?.header ?? null; }
  /** Whether all of these files are there (Entry.has). */
  has(urls, projectors) { return this.#entry?.has(urls, projectors) ?? false; }
  get writes() { return this.#release !== null; }
  get follows() { return this.#turn !== null; }

  size(file) { return this.#entry?.size(file) ?? 0; }
  hash(file, index) { return this.#entry?.hash(file, index); }
  stored(file) { return this.#entry?.stored(file) ?? []; }

  /** [file, index] of the first chunk that is not there; null: none. */
  get firstMissing() {
    return this.header && this.#entry.missing(this.header.files.map((_, file) => this.size(file)));
  }

  /** The SHA-256 that a complete file was found to have; '' where it was not checked. */
  sha256(file) { return this.#entry?.sha256[file] ?? ''; }

  /** The result of work with the entry, after what was begun before; undefined when the store fails or has failed. */
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

  /** What found no room will find none later: it is dropped, the rest stays for the next time. */
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

  /** The right to write, if nobody else has it. */
  async tryLock() {
    if (this.#entry && !this.writes) this.#release = await this.#try((entry) => entry.lock({ wait: false })) ?? null;
    return this.writes;
  }

  /** Gets the right to write, or follows whoever has it, until the journal says what is being written. */
  async acquire() {
    if (await this.tryLock() || !this.#entry) return;
    this.#notice(storageError('storage/busy', 'it is being downloaded there, and this load follows'));
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
          throw storageError('storage/busy', 'nothing more has been stored there for half a minute');
        await this.#look();
        await entry.refresh();
      }
    });
  }

  /** Lets a moment pass, unless the lock comes before. */
  async #look() {
    let cancel;
    const moment = new Promise((done) => { cancel = this.#clock.after(LOOK_MS, done); });
    const release = await Promise.race([this.#turn, moment]).finally(cancel);
    if (!release) return;
    this.#release = release;
    this.#turn = null;
  }

  /**
   * Makes the entry one of these files; what is stored of others is dropped.
   * @param {(stored: object) => number} kept how many of the stored files are the same; all of them, and more than
   *   these, may stay
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

  /** Bytes of a chunk that are there. */
  async read(file, index, target) {
    return await this.#try((entry) => entry?.read(file, index, target)) ?? 0;
  }

  put(file, index, bytes, hash) {
    return this.#try((entry) => this.writes && entry.put(file, index, bytes, hash));
  }

  /** Everything was read: a copy that has all of it is complete now, and was used. */
  async finish(sizes, hashes) {
    if (!await this.tryLock()) return;
    await this.#try(async (entry) => {
      // and not a model without the projector that is kept with it
      const isWhole = sizes.length === entry.header?.files.length;
      const isNews = !entry.complete || hashes.some((hash, file) => hash !== this.sha256(file));
      if (isWhole && isNews && !entry.missing(sizes)) await entry.finish(sizes, hashes);
      await entry.touch().catch(() => {});
    });
  }

  /** Forgets the model. */
  async discard() {
    if (this.#entry) await (this.writes ? this.#entry.drop() : this.#entry.remove()).catch(() => {});
  }

  async close() {
    await this.#entry?.close().catch(() => {});
    this.#unlock();
  }
}
