// SPDX-License-Identifier: MIT
// Runs of chunks, {from, to} with `to` exclusive, ascending and disjoint: the chunks of a file that are wanted, and
// those of them that nobody fetches yet. They are never a list of indices, because their number comes from the server.

export class Runs {
  #runs;

  /** @param {{from: number, to: number}[]} runs ascending; `to` is Infinity if the file's size is unknown */
  constructor(runs = []) {
    this.#runs = runs.map(({ from, to }) => ({ from, to }));
  }

  /** All chunks from one on. */
  static from(first) {
    return new Runs([{ from: first, to: Infinity }]);
  }

  /** One chunk. */
  static of(index) {
    return new Runs([{ from: index, to: index + 1 }]);
  }

  /** The chunks from `first` on that are not among these ascending indices. */
  static without(indices, first) {
    const runs = [];
    let from = first;
    for (const index of indices) {
      if (index > from) runs.push({ from, to: index });
      from = Math.max(from, index + 1);
    }
    return new Runs([...runs, { from, to: Infinity }]);
  }

  /** The chunks below `end`. */
  below(end) {
    return new Runs(
      this.#runs.map(({ from, to }) => ({ from, to: Math.min(to, end) })).filter(({ from, to }) => from < to),
    );
  }

  get any() {
    return this.#runs.length > 0;
  }

  /** The first chunk; Infinity if there is none. */
  get first() {
    return this.#runs[0]?.from ?? Infinity;
  }

  has(index) {
    return this.next(index) === index;
  }

  /** The first chunk that is not before `index`; Infinity if there is none. */
  next(index) {
    const run = this.#runs.find(({ to }) => index < to);
    return run ? Math.max(index, run.from) : Infinity;
  }

  put(run) {
    this.#runs.push(run);
    this.#runs.sort((a, b) => a.from - b.from);
  }

  /** Takes the first run, or its first `most` chunks; preferably a run whose first chunk has been started. */
  take(most, isBegun) {
    const at = Math.max(0, this.#runs.findIndex(({ from }) => isBegun(from)));
    const run = this.#runs[at];
    if (run.from + most >= run.to) return this.#runs.splice(at, 1)[0];
    const part = { from: run.from, to: run.from + most };
    run.from += most;
    return part;
  }

  /** Takes everything, with the gaps, as one run. */
  takeAll() {
    const run = { from: this.#runs[0].from, to: this.#runs.at(-1).to };
    this.#runs = [];
    return run;
  }
}
