// SPDX-License-Identifier: MIT
// A copy of a table in memory. It reads the whole table once, and from then on only rows that have changed. So a
// thousand conversations are listed and searched within a frame.

export class Mirror {
  #readAll;
  #readOne;
  #rows = null;                 // promise of a Map
  #stale = new Set();
  #turn = Promise.resolve();    // reads follow each other, so that none misses what another is about to read

  /**
   * @param {() => Promise<Map<string, any>>} readAll
   * @param {(id: string) => Promise<any>} readOne returns undefined if there is no such row
   */
  constructor(readAll, readOne) {
    this.#readAll = readAll;
    this.#readOne = readOne;
  }

  /** Marks a row as changed. */
  touch(id) {
    if (this.#rows) this.#stale.add(id);
  }

  /** @returns {Promise<Map<string, any>>} */
  read() {
    this.#turn = this.#turn.catch(() => {}).then(() => this.#update());
    return this.#turn;
  }

  async #update() {
    this.#rows ??= this.#readAll();
    const rows = await this.#rows;
    for (const id of [...this.#stale]) {
      this.#stale.delete(id);
      const row = await this.#readOne(id);
      if (row === undefined) rows.delete(id);
      else rows.set(id, row);
    }
    return rows;
  }
}
