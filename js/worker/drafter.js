// SPDX-License-Identifier: MIT
// Drafts by a smaller model of the same vocabulary. It has a worker of its own (page/draft-load.js), and the two
// workers talk by a port: before a step, the one that makes replies sends the tokens of those that want drafts, and the
// other answers with what its model would write. Nothing is kept for a conversation but pages of the cache, so what was
// drafted wrongly needs no undoing. A long prompt is read a step at a time, without drafts meanwhile. A separate file
// of the package, which the first model with a draft model fetches.

import { badParam } from '../shared/errors.js';

/** How the draft model writes: its likeliest tokens. */
const GREEDY = {
  temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, seed: 0,
  bias: [], silent: [], single: false,
};

/** The type of tokens that only fill a vocabulary up. */
const UNUSED = 5;

/** Sequence.wants(): no draft seems to pay, but one may be tried. */
const TRY = -1;

/** Weight of the latest time of a draft. */
const LATEST = 1 / 4;

/** No more tokens than these are read while the time of a draft is measured. */
const READ = 8;

/** Where drafts do not pay, trying them takes one part in so many of the time, of which so many steps' are saved up. */
const TRIALS = 50;
const SAVED_UP = 32;

/** A copy of the vocabulary, without unused tokens at its end. */
function vocabularyOf(engine) {
  const { starts, bytes, types } = engine.tokens();
  let n = types.length;
  while (n > 0 && types[n - 1] === UNUSED) n--;
  return { starts: starts.slice(0, n + 1), bytes: bytes.slice(0, starts[n]), types: types.slice(0, n) };
}

const isSame = (a, b) => a.length === b.length && a.every((value, i) => value === b[i]);

/** Begins to draft after these tokens. @returns {any} null: they do not fit, or too many others are drafted for */
function begun(engine, { ids, n, cacheScope }) {
  if (ids.length + n > engine.contextSize) return null;
  const sequence = engine.sequence({ cacheScope });
  sequence.set(ids, 'held');
  sequence.begin({ ...GREEDY, maxTokens: n });
  return { sequence, drafts: [], isOver: false };
}

/** Computes a step. @returns {boolean} whether all have written, and one may write more */
function step(engine, all) {
  engine.step(0);
  for (const { number, type, token } of engine.events()) {
    const one = all.find(({ sequence }) => sequence.number === number);
    if (type === 'token') one.drafts.push(token);
    if (type === 'end') one.isOver = true;
  }
  return all.every(({ drafts, isOver }) => drafts.length > 0 || isOver) && all.some(({ isOver }) => !isOver);
}

/** The drafts for each of the replies: none for those whose tokens are still to be read, null where none will come. */
function draftsFor(engine, asked) {
  const all = asked.map((one) => begun(engine, one));
  const some = all.filter(Boolean);
  try {
    while (some.length > 0 && step(engine, some));
    return all.map((one) => (one && (one.drafts.length > 0 || !one.isOver) ? one.drafts : null));
  } finally {
    for (const { sequence } of some) sequence.free();
  }
}

/** Serves the other worker with drafts. */
function serve(engine, port) {
  port.onmessage = ({ data: { vocabulary, asked } }) => {
    if (asked) return port.postMessage(draftsFor(engine, asked));
    const own = vocabularyOf(engine);
    return port.postMessage(Object.keys(own).every((part) => isSame(own[part], vocabulary[part])));
  };
}

/** Asks for drafts. */
class Drafter {
  #port;
  #answered;
  #ms = 0;        // time of a draft
  #spare = 0;     // ms that trials may take
  #trials = new WeakSet();    // runs with a trial that has been paid for, and is not over
  #read = new WeakMap();      // number of tokens of a run that the draft model has read

  constructor(port) {
    this.#port = port;
    port.onmessage = ({ data }) => this.#answered(data);
  }

  #ask(what) {
    return new Promise((resolve) => {
      this.#answered = resolve;
      this.#port.postMessage(what);
    });
  }

  /** Refuses a model of another vocabulary. */
  async check(engine) {
    if (await this.#ask({ vocabulary: vocabularyOf(engine) })) return;
    throw badParam('options.draft', "is a model with another vocabulary than the model's own, so it cannot draft for it");
  }

  /**
   * Gets drafts for the replies that want some.
   * @param {Map<number, any>} runs see runner.js
   * @param {number} ms of the step before
   */
  async draft(runs, ms) {
    this.#spare = Math.min(this.#spare + ms / TRIALS, SAVED_UP * ms);
    const asking = [...runs.values()]
      .filter(({ work }) => work.ids && !work.media)
      .map((run) => ({ run, n: run.sequence.wants(this.#ms) }))
      .filter(({ run, n }) => n > 0 || (n === TRY && this.#tries(run, ms)));
    if (asking.length === 0) return;
    const began = performance.now();
    const unread = Math.max(...asking.map(({ run }) => this.#unread(run)));
    const asked = asking.map(({ run: { work }, n }) => ({
      ids: Int32Array.from(work.ids), n: Math.abs(n), cacheScope: work.place.cacheScope,
    }));
    const all = await this.#ask({ asked });
    const count = all.flat().length;
    if (count && (unread <= READ || !this.#ms)) this.#learn((performance.now() - began) / count);
    asking.forEach(({ run }, i) => this.#take(runs, run, all[i], asked[i].ids.length));
  }

  /** Whether a draft may be tried for a run, though it does not seem to pay. */
  #tries(run, stepMs) {
    if (this.#trials.has(run)) return true;
    const cost = stepMs + (this.#unread(run) + 1) * this.#ms;   // as if the step took twice as long with one row more
    if (cost > this.#spare) return false;
    this.#spare -= cost;
    this.#trials.add(run);
    return true;
  }

  #unread(run) { return run.work.ids.length - (this.#read.get(run) ?? 0); }

  #take(runs, run, drafts, read) {
    if (drafts?.length === 0) return;     // it is still reading
    this.#trials.delete(run);
    if (!drafts) return;
    this.#read.set(run, read);
    if (runs.get(run.sequence.number) === run) run.sequence.draft(drafts, true);
  }

  #learn(ms) { this.#ms = this.#ms ? this.#ms + (ms - this.#ms) * LATEST : ms; }

  /** The other worker is gone: nothing is drafted any more. */
  end() {
    this.draft = async () => {};
    this.#answered?.([]);
  }
}

/**
 * Connects a worker to the other one.
 * @param {import('../engine/engine.js').Engine} engine
 * @param {import('./runner.js').Runner} runner
 * @param {{port?: any, serves?: boolean}} message serves: whether this worker drafts; without a port the other one is
 *   gone
 */
export async function connect(engine, runner, { port, serves }) {
  if (serves) return serve(engine, port);
  if (!port) return runner.drafter?.end();
  runner.drafter = new Drafter(port);     // before the answer, which does not come if the other one ends
  return runner.drafter.check(engine);
}
