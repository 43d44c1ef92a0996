// SPDX-License-Identifier: MIT
// Finds the tokens that may come next in a reply with constraints (reply/guide.js). The search runs right after the
// reply's step as long as it takes a small part of the step's time. A longer search goes on in turns (turns.js): this
// reply waits, and the others continue.

import { guestKey, ownerOf } from './shares.js';

/**
 * Part of a step's time that the search may take if the replies have several owners, who share it equally; each owner
 * gets at least LEAST_MS.
 */
const SHARE = 1 / 5;
const LEAST_MS = 1;

/** Longest search between two looks at the messages. */
const LOOK_MS = 20;

/** Thrown in a slice whose run has ended. */
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
   * @param {Map<number, any>} runner.runs by the numbers of their sequences
   * @param {(number: number, act: (work: {pursue: (ms: number) => void}) => void) => void} runner.act does something
   *   for a run, which may end the run
   * @param {() => void} runner.found called when a run has its tokens again
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

  /** Runs a slice of work for a run when its turn comes. */
  slice(run, act) {
    run.owner ??= ownerOf(run.work.place);
    return this.#turns.run(run.owner, (ms) => {
      if (!this.#has(run)) throw GONE;
      act(ms);
    });
  }

  /** Searches for one run: at once if that is quick, otherwise in turns. */
  async one(run, soon = true) {
    const pursue = (ms) => this.#act(run.sequence.number, (work) => { work.pursue(ms); });
    if (soon && this.#isBehind(run)) pursue(0);
    if (!this.#isBehind(run)) return;
    run.isPursued = true;
    // if a slice fails, the run has ended
    while (this.#isBehind(run)) await this.slice(run, pursue).catch(() => {});
    run.isPursued = false;
    this.#found();
  }

  /**
   * Searches for all runs after a step that took `stepMs`. Runs beyond their owner's share of the time go on in turns.
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
