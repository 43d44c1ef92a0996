// SPDX-License-Identifier: MIT
// Runs of chunks, {from, to} with `to` exclusive, ascending: what of a file nobody is fetching yet.

export class Runs {
  #runs = [];

  /** Everything from one chunk on. */
  static from(first) {
    const runs = new Runs();
    runs.put({ from: first, to: Infinity });
    return runs;
  }

  /** Neighbours among ascending indices make a run. */
  static of(indices) {
    const runs = new Runs();
    for (const index of indices) {
      const last = runs.#runs.at(-1);
      if (last?.to === index) last.to++;
      else runs.#runs.push({ from: index, to: index + 1 });
    }
    return runs;
  }

  get any() {
    return this.#runs.length > 0;
  }

  /** The first chunk; Infinity when there is none. */
  get first() {
    return this.#runs[0]?.from ?? Infinity;
  }

  put(run) {
    this.#runs.push(run);
    this.#runs.sort((a, b) => a.from - b.from);
  }

  /** Takes the first run, or the first `most` chunks of it; rather one whose first chunk is begun. */
  take(most, isBegun) {
    const at = Math.max(0, this.#runs.findIndex(({ from }) => isBegun(from)));
    const run = this.#runs[at];
    if (run.from + most >= run.to) return this.#runs.splice(at, 1)[0];
    const part = { from: run.from, to: run.from + most };
    run.from += most;
    return part;
  }

  /** Takes everything, and what lies between, as one run. */
  takeAll() {
    const run = { from: this.#runs[0].from, to: this.#runs.at(-1).to };
    this.#runs = [];
    return run;
  }
}
