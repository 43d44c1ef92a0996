// SPDX-License-Identifier: MIT
// Runs of chunks, {from, to} with `to` exclusive, ascending and apart: which chunks of a file are wanted, and which of
// them nobody is fetching yet. Never a list of indices: how many there are is what a server claims.

export class Runs {
  #runs;

  /** @param {{from: number, to: number}[]} runs ascending; `to` Infinity where the file's size is not known */
  constructor(runs = []) {
    this.#runs = runs.map(({ from, to }) => ({ from, to }));
  }

  /** Everything from one chunk on. */
  static from(first) {
    return new Runs([{ from: first, to: Infinity }]);
  }

  /** One chunk. */
  static of(index) {
    return new Runs([{ from: index, to: index + 1 }]);
  }

  /** What lies between these ascending indices, from one chunk on. */
  static without(indices, first) {
    const runs = [];
    let from = first;
    for (const index of indices) {
      if (index > from) runs.push({ from, to: index });
      from = Math.max(from, index + 1);
    }
    return new Runs([...runs, { from, to: Infinity }]);
  }

  /** The part of them below a chunk. */
  below(end) {
    return new Runs(
      this.#runs.map(({ from, to }) => ({ from, to: Math.min(to, end) })).filter(({ from, to }) => from < to),
    );
  }

  get any() {
    return this.#runs.length > 0;
  }

  /** The first chunk; Infinity when there is none. */
  get first() {
    return this.#runs[0]?.from ?? Infinity;
  }

  has(index) {
    return this.next(index) === index;
  }

  /** The first chunk that is not before this one; Infinity when there is none. */
  next(index) {
    const run = this.#runs.find(({ to }) => index < to);
    return run ? Math.max(index, run.from) : Infinity;
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
