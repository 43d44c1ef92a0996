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

/** Weight of the latest time of a draft. */
const LATEST = 1 / 4;

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

/** The drafts for each of the replies; none for those whose tokens are still to be read. */
function draftsFor(engine, asked) {
  const all = asked.map((one) => begun(engine, one));
  const some = all.filter(Boolean);
  try {
    while (some.length > 0 && step(engine, some));
    return all.map((one) => one?.drafts ?? []);
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

  /** Gets drafts for the replies that want some. @param {Map<number, any>} runs see runner.js */
  async draft(runs) {
    const asking = [...runs.values()]
      .filter(({ work }) => work.ids && !work.media)
      .map((run) => ({ run, n: run.sequence.wants(this.#ms) }))
      .filter(({ n }) => n > 0);
    if (asking.length === 0) return;
    const began = performance.now();
    const asked = asking.map(({ run: { work }, n }) => ({
      ids: Int32Array.from(work.ids), n, cacheScope: work.place.cacheScope,
    }));
    const all = await this.#ask({ asked });
    const count = all.flat().length;
    if (count) this.#learn((performance.now() - began) / count);
    asking.forEach(({ run }, i) => {
      if (all[i]?.length && runs.get(run.sequence.number) === run) run.sequence.draft(all[i], true);
    });
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
