// SPDX-License-Identifier: MIT
// Saved conversations: before a reply, the saved part of its prompt is read from the store and given to the engine;
// after it, new pages are written, one at a time, in the turns of the request's owner (turns.js). Nothing here can
// change a reply: the engine computes again what is missing, damaged or of another model. If a store fails, the
// conversation is not saved, and the console shows a line.

import { asQuernError, isOf } from '../shared/errors.js';
import { guarded } from '../store/guard.js';
import { ownerOf } from './shares.js';
import {
  SavedFile, PAGE, forgetSaved, holding, savesAny, listSaved, makeRoom, mostRecords, removeSaved, sentenceOf, sizeOf,
  statesIn,
} from '../store/saved.js';

const SAVE_BYTES = 2 ** 31;

/**
 * Marks the promise of a record that is read ahead as handled, since it is awaited only later.
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
  #most;                          // most bytes of all files
  #tell;
  #fail;
  #rooms = [];                    // buffers for records: two to read into, one to write from
  #reading = Promise.resolve();   // the last read: one at a time
  #writing = Promise.resolve();   // the last write
  #wanted = new Set();            // {name} of each reply that is being computed or saved
  #full = new Set();              // names for which there was no space
  #written = new Map();           // name -> tokens of its file when this engine wrote the file last

  /**
   * @param {import('../engine/engine.js').Engine} engine
   * @param {import('./runner.js').Runner} runner
   * @param {object} how
   * @param {object} [how.store] undefined: nothing is saved
   * @param {number} [how.saveMaxBytes] most bytes of all files together
   * @param {(text: string) => void} how.tell
   * @param {(error: Error) => void} how.fail called if the engine has crashed
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
   * Runs a generation. Restores the conversation saved under a name before it, and saves the conversation after it.
   * @param {() => void} [release] releases the images when everything is saved; not called if this rejects
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

  /** Lists the saved conversations when nothing is left to write. */
  async saved() {
    await this.#writing;
    return this.#store ? listSaved(this.#store) : [];
  }

  /** Removes the conversation saved under a name, or all of them. Running replies are not saved either. */
  async forget(name) {
    for (const ticket of this.#wanted) if (name === undefined || ticket.name === name) this.#wanted.delete(ticket);
    if (this.#store) await forgetSaved(this.#store, name);
  }

  /** Works with the store or the engine; an error does not affect the reply. */
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

  /** A buffer for a record, allocated when it is first needed. */
  #room(i, length) {
    this.#rooms[i] ??= this.#engine.room(this.#engine.recordBytes);
    return this.#rooms[i].subarray(0, length);
  }

  /** If the store has saved conversations, computes the model's fingerprint in idle slices. */
  expect() {
    return this.#attempt('', async () => { if (await savesAny(this.#store)) await this.#identify({}); });
  }

  /**
   * Works with the engine in a turn of the owner.
   * @param {object} place of the owner's sequence
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
    const pages = Math.floor((sequence.size - 1) / PAGE);       // the last token is always computed
    if (isOver() || sequence.known >= Math.min(PAGE * pages, this.#written.get(name) ?? Infinity)) return;
    const file = await SavedFile.open(this.#store, name, this.#engine.recordBytes);
    if (!file) return;
    let good;                 // number of good records
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

  /** @returns {Promise<number>} number of good records; Infinity if no record was found damaged */
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
      await coming?.catch(() => {});      // the buffer is free again
    }
  }

  /** Removes the records after the good ones, or the file of another model (-1), unless the file is being written. */
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

  // --- after a reply ---

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

  /** @returns {Promise<number>} number of records that agree with the conversation */
  async #agree(ticket, file, sequence) {
    const room = this.#room(2, file.lengthOf(false));
    for (let i = 0; i < file.records; i++) {
      const head = await file.read(i, room);
      if (!head || (await this.#slice(ticket.place, () => this.#isWanted(ticket) && sequence.give(head))) !== 'next')
        return i;
    }
    return file.records;
  }

  /** Appends new records after the agreed ones. Other records there are cut off, but only if there are new ones. */
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
