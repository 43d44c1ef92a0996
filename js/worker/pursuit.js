// SPDX-License-Identifier: MIT
// What may follow a reply's token, where it is held to something (reply/guide.js): looked for right after its step, as
// long as that is a small part of it. What takes longer is found by turns (turns.js) while the reply waits and the
// others go on.

import { guestKey, ownerOf } from './shares.js';

/**
 * What it takes of a step, where their owners differ: each owner has a part of that, and so many milliseconds at least.
 */
const SHARE = 1 / 5;
const LEAST_MS = 1;

/** Longest of it between two looks at the messages. */
const LOOK_MS = 20;

/** Nobody wants any more what a slice was for. */
const GONE = new Error('gone');

const keyOf = ({ work: { place } }) => guestKey(ownerOf(place));
export const countOwners = (runs) => new Set(Array.from(runs, keyOf)).size;

export class Pursuit {
  #turns;
  #rest;
  #runs;
  #act;
  #found;

  /**
   * @param {object} runner
   * @param {import('./turns.js').Turns} runner.turns
   * @param {() => void | Promise<void>} runner.rest lets waiting messages in
   * @param {Map<number, any>} runner.runs by their sequences' numbers
   * @param {(number: number, act: (work: {pursue: (ms: number) => void}) => void) => void} runner.act does something
   *   for one, which may end by it
   * @param {() => void} runner.found one waits no longer
   */
  constructor({ turns, rest, runs, act, found }) {
    this.#turns = turns;
    this.#rest = rest;
    this.#runs = runs;
    this.#act = act;
    this.#found = found;
  }

  #has(run) { return this.#runs.get(run.sequence.number) === run; }
  #isBehind(run) { return this.#has(run) && run.work.isBehind; }

  /** A slice for one of them, when it is its turn. */
  slice(run, act) {
    run.owner ??= ownerOf(run.work.place);
    return this.#turns.run(run.owner, (ms) => {
      if (!this.#has(run)) throw GONE;
      act(ms);
    });
  }

  /** Looks for it, at once if that is soon found, else by turns. */
  async one(run, soon = true) {
    const pursue = (ms) => this.#act(run.sequence.number, (work) => { work.pursue(ms); });
    if (soon && this.#isBehind(run)) pursue(0);
    if (!this.#isBehind(run)) return;
    run.isPursued = true;
    // where that fails, the run is no more
    while (this.#isBehind(run)) await this.slice(run, pursue).catch(() => {});
    run.isPursued = false;
    this.#found();
  }

  /**
   * The same of all, after a step that took so long. Whoever has more of them than his share of it allows waits with
   * the rest.
   */
  async all(stepMs) {
    const behind = [...this.#runs.values()].filter(({ work, isPursued }) => work.isBehind && !isPursued);
    const owners = countOwners(this.#runs.values());
    const most = owners > 1 ? Math.max(LEAST_MS, stepMs * SHARE / owners) : Infinity;
    const spent = new Map();
    let looked = performance.now();
    for (const run of behind) {
      if (performance.now() - looked > LOOK_MS) {
        await this.#rest();
        looked = performance.now();
      }
      const [key, began] = [keyOf(run), performance.now()];
      const before = spent.get(key) ?? 0;
      this.one(run, before < most);
      spent.set(key, before + performance.now() - began);
    }
  }
}
