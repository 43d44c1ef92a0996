// SPDX-License-Identifier: MIT
// Computes vectors of texts, and scores how well texts answer a query. Each text is a sequence; the result comes from
// the hidden state of its last token, or in some models of the first one or of all. Enough texts run side by side to
// fill the steps, with lower priority than replies. A result depends on its own text only: sums are made here, in
// float64, in order. This is a separate file of the package, which the first call fetches.

import { QuernError } from '../shared/errors.js';
import { Rows } from '../engine/rows.js';
import { promptsOf } from './texts.js';

export { Scores } from '../reply/scores.js';

/** Texts queued for each one that is computed, so that every step is full. */
const AHEAD = 2;

/** GGUF's numbers for kinds of pooling. */
const [MEAN, FIRST] = [1, 2];

/** Milliseconds between two progress events. */
const TELL_MS = 100;

const NOTHING = new Float32Array(0);

/** Computes the hidden state of the last token. */
class State {
  #ids;
  #sequence;

  /** @param {Int32Array} ids @param {{cacheScope?: number, guest?: number}} whose */
  constructor(ids, whose) {
    this.#ids = ids;
    this.place = { ...whose, priority: /** @type {const} */ ('background') };
  }

  /** @param {import('../engine/sequence.js').Sequence} sequence */
  begin(sequence) {
    this.#sequence = sequence;
    sequence.set(this.#ids, 'hidden');
  }

  look() { return this.#sequence.hidden(); }

  /** The result of a text that is not wanted any more. */
  stop() { return NOTHING; }
}

/** Computes the mean of the hidden states of all tokens. */
class Mean extends State {
  #sum;
  #ids;
  #sequence;
  #done = 0;

  constructor(ids, whose, dim) {
    super(ids, whose);
    this.#ids = ids;
    this.#sum = new Float64Array(dim);
  }

  begin(sequence) {
    this.#sequence = sequence;
    sequence.set(this.#ids, 'states');
  }

  look() {
    const part = this.#sequence.states();
    if (part) this.#add(part);
    return this.#sequence.pending > 0 ? null : this.#sum.map((value) => value / this.#ids.length);
  }

  /** Adds each row once. A sequence that lost its pages repeats its rows from the beginning. */
  #add({ first, rows }) {
    const dim = this.#sum.length;
    for (let at = Math.max(this.#done - first, 0) * dim; at < rows.length; at += dim) {
      for (let i = 0; i < dim; i++) this.#sum[i] += rows[at + i];
      this.#done++;
    }
  }
}

/** The work for the kind of vector that the model makes. */
function workOf(ids, whose, { dim, pooling }) {
  if (pooling === MEAN) return new Mean(ids, whose, dim);
  return new State(pooling === FIRST ? ids.subarray(0, 1) : ids, whose);    // no later token changes a token's state
}

/**
 * Calls `act` for each of n items, at most `most` at a time. An item that is refused because too many wait is tried
 * again when another one has ended.
 */
async function forEach(n, most, job, act) {
  const again = [];
  let next = 0;
  let working = 0;
  const more = () => !job.stopped && (again.length > 0 || next < n);
  const work = async () => {
    working++;
    while (more()) {
      const i = again.pop() ?? next++;
      try {
        await act(i);
      } catch (error) {
        if (error.code !== 'use/busy' || working === 1) throw error;
        again.push(i);
        break;
      }
    }
    working--;
  };
  await Promise.all(Array.from({ length: Math.min(n, most) }, work));
}

function checkFinite(sum) {
  if (!Number.isFinite(sum))
    throw new QuernError('model/nonfinite', 'The model produced invalid numbers; the file is probably damaged.');
}

/** Copies the first numbers of a state; scales them to length 1 if `normalize` is set. */
function putVector(state, normalize, out) {
  let sum = 0;
  for (let i = 0; i < out.length; i++) sum += state[i] * state[i];
  checkFinite(sum);
  const length = normalize && sum > 0 ? Math.sqrt(sum) : 1;
  for (let i = 0; i < out.length; i++) out[i] = state[i] / length;
}

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  checkFinite(sum);
  return sum;
}

/** The single token of a word. */
function tokenOf(engine, word) {
  const ids = engine.tokenize(word, 'plain');
  if (ids.length === 1) return ids[0];
  throw new QuernError('model/unsupported', `The model cannot rank: its vocabulary has no token '${word}'.`, {
    detail: { rule: 'rank' },
  });
}

/**
 * Returns a function that turns a state into a score: the share of yes against no, from the file's classes or from the
 * logits of the words.
 */
function scorer(engine) {
  const { dim, classes } = engine.facts;
  const rows = engine.part(Rows);
  const [yes, no] = (classes ? [-1, -2] : ['yes', 'no'].map((word) => tokenOf(engine, word))).map((id) =>
    rows.row(id, dim),
  );
  return (state) => 1 / (1 + Math.exp(dot(state, no) - dot(state, yes)));
}

/** Tells how many texts are done: at most ten times a second, and after the last one. */
function progressOf(total, emit) {
  let done = 0;
  let last = 0;
  return () => {
    done++;
    const now = performance.now();
    if (now - last < TELL_MS && done < total) return;
    last = now;
    emit({ type: 'progress', done, total });
  };
}

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {import('./runner.js').Runner} runner
 * @param {{texts: (string | Int32Array)[], query?: string, options: {instruction?: string, dimensions?: number,
 *   normalize?: boolean, cacheScope?: number, guest?: number}}} asked
 * @param {{job: {stopped: boolean, onStop: () => void}, emit: (event: object) => void, asker:
 *   import('../reply/chat.js').Asker}} caller
 * @returns {Promise<{values: Float32Array, tokens: number, truncated: number[]}>} values: all vectors one after the
 *   other, or one score per text
 */
export async function pool(engine, runner, { texts, query, options }, { job, emit, asker }) {
  const { dim, parallel, vectors } = engine.facts;
  const { dimensions = dim, normalize = vectors.normalize, cacheScope, guest } = options;
  const score = query === undefined ? null : scorer(engine);
  const promptOf = await promptsOf(engine, asker, options, query);
  const size = score ? 1 : dimensions;
  const values = new Float32Array(texts.length * size);
  const truncated = [];
  const running = new Set();
  let tokens = 0;
  const tell = progressOf(texts.length, emit);
  const stopAll = () => { for (const { onStop } of running) onStop(); };
  job.onStop = stopAll;
  const one = async (i) => {
    const { ids, isCut } = await promptOf(texts[i]);
    const each = { stopped: job.stopped, onStop() {} };
    running.add(each);
    const work = score ? new State(ids, { cacheScope, guest }) : workOf(ids, { cacheScope, guest }, engine.facts);
    const state = await runner.add(work, each).finally(() => running.delete(each));
    if (state === NOTHING) return;
    tokens += ids.length;
    if (isCut) truncated.push(i);
    if (score) values[i] = score(state);
    else putVector(state, normalize, values.subarray(i * size, (i + 1) * size));
    tell();
  };
  try {
    await forEach(texts.length, AHEAD * parallel, job, one);
  } catch (error) {
    job.stopped = true;
    stopAll();
    throw error;
  }
  return { values, tokens, truncated: truncated.sort((a, b) => a - b) };
}
