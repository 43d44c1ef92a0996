// SPDX-License-Identifier: MIT
// A table in memory: read whole once somebody asks, and from then on only what has changed. A thousand conversations
// are listed and searched in the time of a frame so.

export class Mirror {
  #readAll;
  #readOne;
  #rows = null;         // a promise of a Map
  #stale = new Set();

  /**
   * @param {() => Promise<Map<string, any>>} readAll
   * @param {(id: string) => Promise<any>} readOne undefined where there is none
   */
  constructor(readAll, readOne) {
    this.#readAll = readAll;
    this.#readOne = readOne;
  }

  /** This row may have changed. */
  touch(id) {
    if (this.#rows) this.#stale.add(id);
  }

  /** @returns {Promise<Map<string, any>>} */
  async read() {
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
