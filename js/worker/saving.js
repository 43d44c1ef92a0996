// SPDX-License-Identifier: MIT
// Conversations that outlive the engine: before a reply what is kept of its prompt is read and given to the engine,
// after it what is new is written, a page at a time, by the turns of whoever asked (turns.js). Nothing here can change
// a reply: what is missing, damaged or another model's is read anew. A store that fails costs what would have been
// kept, and a line on the console.

import { asQuernError, isOf } from '../shared/errors.js';
import { guarded } from '../store/guard.js';
import { ownerOf } from './shares.js';
import {
  SavedFile, PAGE, forgetSaved, holding, savesAny, listSaved, makeRoom, mostRecords, removeSaved, sentenceOf, sizeOf,
  statesIn,
} from '../store/saved.js';

const SAVE_BYTES = 2 ** 31;

/**
 * What reads ahead into one room while the other is looked at: a promise that is not awaited yet is not unhandled.
 * @param {Promise<any>} [coming]
 */
const ahead = (coming) => {
  coming?.catch(() => {});
  return coming;
};

export class Saving {
  #engine;
  #runner;
  #store;
  #most;                          // bytes of all files
  #tell;
  #fail;
  #rooms = [];                    // two to read into, one to write from
  #reading = Promise.resolve();   // one at a time
  #writing = Promise.resolve();
  #wanted = new Set();            // {name} of each reply that is being made or kept
  #full = new Set();              // names for which there was no space
  #written = new Map();           // name -> tokens of its file when this engine wrote it last

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {import('./runner.js').Runner} runner
   * @param {object} how
   * @param {object} [how.store] undefined: nothing is kept
   * @param {number} [how.saveMaxBytes] of all files together
   * @param {(text: string) => void} how.tell
   * @param {(error: Error) => void} how.fail the engine has crashed
   */
  constructor(engine, runner, { store, saveMaxBytes = SAVE_BYTES, tell, fail }) {
    this.#engine = engine;
    this.#runner = runner;
    this.#store = store && saveMaxBytes > 0 ? guarded(store) : null;
    this.#most = saveMaxBytes;
    this.#tell = tell;
    this.#fail = fail;
  }

  /**
   * The reply of a generation, with what is kept under a name read before and written after it.
   * @param {() => void} [release] lets go of its images once all is done; not called where this rejects
   */
  async run(name, generation, job, release = () => {}) {
    const ticket = { name, place: generation.place };
    this.#wanted.add(ticket);
    try {
      const result = await this.#runner.add(generation, job, (sequence, isOver) =>
        this.#restore(name, sequence, generation.place, isOver),
      );
      this.#writing = this.#writing
        .then(() => this.#attempt(name, () => this.#save(ticket, generation)))
        .then(() => {
          this.#wanted.delete(ticket);
          if (!this.#runner.isDead) release();
        });
      return result;
    } catch (error) {
      this.#wanted.delete(ticket);
      throw error;
    }
  }

  /** What is kept, once nothing more is to be written. */
  async saved() {
    await this.#writing;
    return this.#store ? listSaved(this.#store) : [];
  }

  /** Forgets what is kept under a name, or all; replies under way are not kept either. */
  async forget(name) {
    for (const ticket of this.#wanted) if (name === undefined || ticket.name === name) this.#wanted.delete(ticket);
    if (this.#store) await forgetSaved(this.#store, name);
  }

  /** Work with the store or the engine, which fails for itself alone. */
  async #attempt(name, work) {
    if (!this.#store || this.#runner.isDead) return;
    try {
      await work();
    } catch (thrown) {
      const error = asQuernError(thrown, 'call');
      if (this.#runner.isDead) return;
      if (isOf('engine', error)) this.#fail(error);
      else if (error.code === 'storage/quota') this.#full.add(name);
      else if (error.code === 'storage/unavailable') this.#store = null;
      if (error.code !== 'storage/busy' && !isOf('engine', error))
        this.#notice(error.code, error.cause?.message ?? error.message);
    }
  }

  #notice(code, why) {
    this.#tell(`quern: ${code}: ${sentenceOf(code)}${why ? ` (${why})` : ''}`);
  }

  /** One of the rooms for records, which are made when somebody keeps something. */
  #room(i, length) {
    this.#rooms[i] ??= this.#engine.room(this.#engine.recordBytes);
    return this.#rooms[i].subarray(0, length);
  }

  /** Where something is kept already the engine finds out, in idle slices, whether it can be its own. */
  expect() {
    return this.#attempt('', async () => { if (await savesAny(this.#store)) await this.#identify({}); });
  }

  /**
   * Work with the engine when it is the turn of whoever asked.
   * @param {object} place his
   * @param {(ms: number) => any} work
   */
  #slice(place, work) { return this.#runner.turns.run(ownerOf(place), work); }

  async #identify(place) {
    while (!await this.#slice(place, (ms) => this.#engine.identify(Math.ceil(ms))));
  }

  // --- before a reply ---

  #restore(name, sequence, place, isOver) {
    this.#reading = this.#reading.then(() => this.#attempt(name, () => this.#read(name, sequence, place, isOver)));
    return this.#reading;
  }

  async #read(name, sequence, place, isOver) {
    const pages = Math.floor((sequence.size - 1) / PAGE);       // its last token is always computed
    if (isOver() || sequence.known >= Math.min(PAGE * pages, this.#written.get(name) ?? Infinity)) return;
    const file = await SavedFile.open(this.#store, name, this.#engine.recordBytes);
    if (!file) return;
    let good;                 // records that are not damaged
    try {
      await this.#identify(place);
      if (isOver()) return;
      const header = sequence.save(name);
      const isOurs = await file.beginsWith(header);
      if (isOver()) return;
      good = isOurs ? await this.#give(file, { sequence, states: statesIn(header), place, isOver }) : -1;
    } finally {
      await file.close();
    }
    if (good < Infinity) await this.#mend(name, good);
  }

  /** @returns {Promise<number>} how many records are good, Infinity where none was found damaged */
  async #give(file, { sequence, states, place, isOver }) {
    const n = file.records;
    const isWanted = (i) => (i + 1) * PAGE > sequence.length || i >= n - states;
    const read = (i) => (i < n ? file.read(i, this.#room(i % 2, file.lengthOf(isWanted(i)))) : undefined);
    let coming = ahead(read(0));
    try {
      for (let i = 0; i < n; i++) {
        const record = await coming;
        if (!record) return Infinity;
        const found = await this.#slice(
          place,
          () =>
            !isOver() &&
            sequence.give(record, () => {
              coming = ahead(read(i + 1));
            }),
        );
        if (found === 'damaged') return i;
        if (found !== 'next') return Infinity;
      }
      return Infinity;
    } finally {
      await coming?.catch(() => {});      // the room is free again
    }
  }

  /** Removes what is damaged, or another model's (-1), unless somebody is writing: the records behind the good ones. */
  async #mend(name, good) {
    await holding(this.#store, name, async () => {
      this.#notice('storage/corrupt');
      if (good <= 0) return removeSaved(this.#store, name);
      const file = await SavedFile.open(this.#store, name, this.#engine.recordBytes, { write: true });
      try {
        if (file.records > good) await file.cut(good);
      } finally {
        await file.close();
      }
      return undefined;
    }, 0);
  }

  // --- after it ---

  #isWanted(ticket) { return this.#wanted.has(ticket) && !this.#runner.isDead; }

  async #save(ticket, { kept: { ids, least }, media, place }) {
    if (this.#full.has(ticket.name) || !this.#isWanted(ticket)) return;
    await holding(this.#store, ticket.name, async () => {
      if (!this.#isWanted(ticket)) return;
      const sequence = this.#engine.sequence(place);
      try {
        sequence.set(ids, 'held', media);
        if (sequence.known >= Math.max(PAGE, least)) await this.#write(ticket, sequence);
      } finally {
        if (!this.#runner.isDead) sequence.free();
      }
    });
  }

  async #write(ticket, sequence) {
    const { name } = ticket;
    await this.#identify(ticket.place);
    if (!this.#isWanted(ticket)) return;
    const header = sequence.save(name);
    const states = statesIn(header);
    const file = await SavedFile.open(this.#store, name, this.#engine.recordBytes, { write: true });
    try {
      if (!this.#isWanted(ticket)) return;
      if (!await file.beginsWith(header)) await file.begin(header);
      const agreed = await this.#agree(ticket, file, sequence);
      await this.#append(ticket, file, sequence, { agreed, states });
    } finally {
      this.#written.set(name, states ? sequence.known : PAGE * file.records);
      if (file.records > 0) await file.finish().finally(() => file.close());
      else await file.close().then(() => removeSaved(this.#store, name));
    }
  }

  /** @returns {Promise<number>} records that the conversation begins with */
  async #agree(ticket, file, sequence) {
    const room = this.#room(2, file.lengthOf(false));
    for (let i = 0; i < file.records; i++) {
      const head = await file.read(i, room);
      if (!head || (await this.#slice(ticket.place, () => this.#isWanted(ticket) && sequence.give(head))) !== 'next')
        return i;
    }
    return file.records;
  }

  /** What there is behind them makes way for what is new, if anything is. */
  async #append(ticket, file, sequence, { agreed, states }) {
    if (!this.#isWanted(ticket)) return;
    const bytes = this.#engine.recordBytes;
    const all = Math.floor(sequence.length / PAGE) + states;
    const most = Math.min(all, mostRecords(this.#most, bytes));
    if (states && most < all) return;       // pages without their state are of no use
    const room = this.#room(2, bytes);
    if (agreed < most) await makeRoom(this.#store, ticket.name, sizeOf(most, bytes), this.#most);
    for (let i = agreed; i < most; i++) {
      let isTaken;
      do isTaken = await this.#slice(ticket.place, () => this.#isWanted(ticket) && sequence.take(room));
      while (isTaken === null);
      if (!isTaken) return;
      if (i === agreed) await file.cut(agreed);
      await file.add(room);
    }
  }
}
