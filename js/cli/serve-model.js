// SPDX-License-Identifier: MIT
// The model of a server. Its replies are counted while they are made. If its engine fails, the model is loaded again,
// at most once a minute. Until it is ready, and when the server ends, clients are told to come again.

import { createHash } from 'node:crypto';
import { QuernError, isOf } from '../shared/errors.js';
import { Queue } from './serve-queue.js';

const STATES = {
  loading: 'The model is being loaded.', restarting: 'The engine has failed; the model is being loaded again.',
  draining: 'The server is about to end.',
};

/** Rows of a step, as the engine counts them. */
const STEP_ROWS = [1, 2, 4, 8, 16, 32, 64];

/** Number of tokens whose scores identify the weights. */
const PROBE = 8;

/**
 * A hash of the scores after some tokens, which are equal to the bit for the same weights and arithmetic, and of the
 * tokens that template and vocabulary make of a message. A failing template is ignored here; chat requests report it.
 */
async function fingerprintOf(model) {
  const { tokens, contextSize } = model.info;
  const ids = Array.from({ length: Math.min(PROBE, contextSize) }, (_, i) => (i * 7919 + 13) % tokens);
  const message = await model.tokenize([{ role: 'user', content: 'Hi' }]).catch(() => []);
  return createHash('sha256').update(await model.logits(ids)).update(message.join()).digest('hex').slice(0, 8);
}

export class ServedModel {
  #load;
  #metrics;
  #reloadMs;
  #say;
  #model = null;
  #state = 'loading';
  #begun = -Infinity;         // time of the last load
  #jobs = new Set();          // replies that are being made
  #timer = null;
  #idle = null;               // called when the last job has ended

  /** Identifies the weights and the arithmetic, in 8 digits. */
  fingerprint = '';

  /** The requests that wait for a place. @type {Queue} */
  queue;

  /**
   * @param {{load: () => Promise<import('../index.d.ts').Model>, metrics: import('./serve-metrics.js').Metrics, say:
   *   (text: string) => void, reloadMs?: number, queue?: {most?: number}}} options
   */
  constructor({ load, metrics, say, reloadMs = 60_000, queue }) {
    this.#load = load;
    this.#metrics = metrics;
    this.#say = say;
    this.#reloadMs = reloadMs;
    this.queue = new Queue({
      ...queue,
      parallel: () => this.#model?.info.parallel ?? 1,
      observe: (seconds) => metrics.observe('queue_seconds', seconds),
    });
  }

  /** Loads it for the first time. */
  async open() {
    this.#begun = performance.now();
    const model = await this.#load();
    try {
      this.fingerprint = await fingerprintOf(model);
    } catch (error) {
      model.dispose();
      throw error;
    }
    this.#model = model;
    if (this.#state !== 'draining') this.#state = 'ready';
  }

  /** Why the model cannot be used now; null: it can. */
  get obstacle() {
    return this.#state === 'ready' ? null : new QuernError('engine/disposed', STATES[this.#state]);
  }

  get info() { return this.#ready.info; }

  get #ready() {
    if (this.obstacle) throw this.obstacle;
    return this.#model;
  }

  /**
   * The model as one guest sees it: prompts of other scopes are not reused for this one.
   * @param {number} cacheScope @param {number} guest number of the guest within the scope
   */
  within(cacheScope, guest = 0) {
    const his = (options) => ({ ...options, cacheScope, guest });
    const begin = (kind) => (input, options) => this.#begin(this.#ready, kind, input, his(options));
    return {
      info: this.info, chat: begin('chat'), complete: begin('complete'),
      tokenize: (input, options) => this.#ask((model) => model.tokenize(input, his(options))),
      detokenize: (tokens, options) => this.#ask((model) => model.detokenize(tokens, his(options))),
      embed: (texts, options) => this.#list('embed', [texts], his(options)),
      rank: (query, documents, options) => this.#list('rank', [query, documents], his(options)),
    };
  }

  /** The running and the waiting replies, as numbers. */
  get jobs() {
    const queued = Array.from({ length: this.queue.size }, () => ({ phase: 'waiting', total: 0, done: 0 }));
    return [...this.#jobs].map(({ phase, total, done }) => ({ phase, total, done })).concat(queued);
  }

  /** Present values for the metrics. */
  gauges() {
    const { jobs } = this;
    const waiting = jobs.filter(({ phase }) => phase === 'waiting').length;
    const { memory, work } = this.#model?.info ?? { memory: {}, work: {} };
    const bytes = Object.entries(memory)
      .filter(([, value]) => typeof value === 'number')
      .map(([kind, value]) => ['memory_bytes', value, { kind }]);
    const pages = Object.entries(memory.cache ?? {}).map(([state, value]) => ['pages', value, { state }]);
    const { letGo = 0, recomputed = 0 } = work;
    return [
      ['requests_running', jobs.length - waiting], ['requests_waiting', waiting], ...bytes, ...pages,
      ['let_go_total', letGo], ['recomputed_tokens_total', recomputed],
    ];
  }

  /** Histograms that the engine counts. */
  histograms() {
    const { sizes: counts = new Array(STEP_ROWS.length + 1).fill(0), rows: sum = 0 } = this.#model?.info.work ?? {};
    return { step_rows: { bounds: STEP_ROWS, counts, sum } };
  }

  async #ask(what) {
    const model = this.#ready;
    try {
      return await what(model);
    } catch (error) {
      this.#failed(model, error);
      throw error;
    }
  }

  #begin(model, kind, input, options) {
    const controller = new AbortController();
    const job = { phase: 'waiting', total: 0, done: 0, controller, reply: null };
    const onPrefill = (progress) => {
      Object.assign(job, progress, { phase: progress.done < progress.total ? 'reading' : 'writing' });
      options.onPrefill?.(progress);
    };
    job.reply = model[kind](input, { ...options, onPrefill, signal: controller.signal });
    this.#jobs.add(job);
    job.reply.result
      .then(
        (result) => this.#count(job, result),
        (error) => this.#failed(model, error),
      )
      .finally(() => this.#leave(job));
    return job.reply;
  }

  /** Makes vectors or ranks of a list, as one job. */
  async #list(kind, list, { signal, ...options }) {
    const controller = new AbortController();
    const stop = () => controller.abort(this.obstacle);
    const job = { phase: 'reading', total: 0, done: 0, controller, reply: { stop } };
    this.#jobs.add(job);
    const both = AbortSignal.any([signal, controller.signal]);
    try {
      const result = await this.#ask((model) => model[kind](...list, { ...options, signal: both }));
      this.#metrics.count('prompt_tokens_total', result.tokens ?? 0);
      return result;
    } finally {
      this.#leave(job);
    }
  }

  #leave(job) {
    this.#jobs.delete(job);
    if (this.#jobs.size === 0) this.#idle?.();
  }

  #count({ phase }, { finishReason, usage, timings: { waitMs, prefillMs, decodeMs, tokensPerSecond } }) {
    if (finishReason === 'aborted') this.#metrics.count('aborted_total', 1, { phase });
    this.#metrics.count('prompt_tokens_total', usage.promptTokens);
    this.#metrics.count('cached_tokens_total', usage.cachedTokens);
    this.#metrics.count('completion_tokens_total', usage.completionTokens);
    this.#metrics.count('drafted_tokens_total', usage.draftedTokens ?? 0);
    this.#metrics.count('accepted_tokens_total', usage.acceptedTokens ?? 0);
    if (phase === 'waiting') return;
    this.#metrics.observe('wait_seconds', waitMs / 1000);
    if (usage.completionTokens > 0) this.#metrics.observe('ttft_seconds', (waitMs + prefillMs) / 1000);
    if (tokensPerSecond > 0)
      this.#metrics.observe('token_seconds', 1 / tokensPerSecond, Math.round((tokensPerSecond * decodeMs) / 1000));
  }

  // --- an engine that has failed ---

  #failed(model, error) {
    if (!isOf('engine', error) || model !== this.#model || this.#state !== 'ready') return;
    this.#state = 'restarting';
    this.#say(`${error.code}: ${error.message} Loading the model again.`);
    this.#metrics.count('engine_restarts_total');
    model.dispose();
    this.#again();
  }

  #again() {
    const after = Math.max(0, this.#begun + this.#reloadMs - performance.now());
    this.#timer = setTimeout(() => this.open().catch((error) => {
      this.#say(`${error.code}: ${error.message} Trying again in ${this.#reloadMs / 1000} s.`);
      this.#again();
    }), after);
  }

  // --- the end ---

  /** Ends: accepts nothing, refuses waiting requests, and stops running replies after this time. */
  async drain(graceMs) {
    this.#state = 'draining';
    clearTimeout(this.#timer);
    this.queue.end(this.obstacle);
    const ended = new Promise((resolve) => { this.#idle = resolve; });
    for (const { phase, controller } of this.#jobs) if (phase === 'waiting') controller.abort(this.obstacle);
    if (this.#jobs.size === 0) return;
    const grace = setTimeout(() => { for (const { reply } of this.#jobs) reply.stop(); }, graceMs);
    await ended;
    clearTimeout(grace);
  }

  async close() {
    await this.#model?.dispose();
  }
}
