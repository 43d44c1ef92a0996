// SPDX-License-Identifier: MIT
// One reply: the prompt is read in steps, then token by token is sampled and computed. Every step takes a bounded
// time and is followed by a look at the worker's messages, so that a stop, another question or the end of the model is
// never far away.

import { tooLong } from './chat.js';
import { ReplyText } from './text.js';

/** The type of tokens that only steer, like `<|im_start|>`. */
const CONTROL = 3;

/** Longest computation between two looks at the messages. Stops have to take effect within 200 ms. */
const BUDGET_MS = 50;

const NO_PENALTY = { repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0 };

/**
 * Computes what is pending, step by step.
 * @param {{stopped: boolean, rest: () => Promise<void>}} job
 * @param {() => void} [onChunk] after every finished chunk
 * @returns {Promise<boolean>} false when the job was stopped
 */
export async function compute(engine, job, onChunk) {
  while (engine.pending > 0) {
    if (job.stopped) return false;
    if (engine.step(BUDGET_MS)) onChunk?.();
    await job.rest();
  }
  return !job.stopped;
}

/** Samples until something ends the reply. @returns {Promise<'stop' | 'length' | 'aborted'>} */
async function write(engine, job, limit, text, counts) {
  for (;;) {
    if (counts.tokens >= limit) return 'length';
    const id = engine.sample();
    if (engine.isEnd(id)) return 'stop';
    counts.tokens++;
    if (!text.mark(id) && engine.tokenType(id) !== CONTROL && text.push(engine.stream(id))) return 'stop';
    if (counts.tokens >= limit) return 'length';
    engine.push(id);
    if (!await compute(engine, job)) return 'aborted';
    counts.steps++;
  }
}

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {object} job
 * @param {import('./chat.js').Prompt} prompt
 * @param {object} options as options.js sends them
 * @param {(event: object) => void} emit
 */
export async function generate(engine, job, prompt, { stops, maxTokens = Infinity, ...sampling }, emit) {
  const total = prompt.ids.length;
  if (total >= engine.contextSize) throw tooLong(total, engine.contextSize);
  const text = new ReplyText({ ...prompt, stops, emit });
  const counts = { tokens: 0, steps: 0 };
  const start = performance.now();
  const cached = engine.set(prompt.ids);
  const report = () => emit({ type: 'prefill', done: engine.length, total, cached });
  report();
  let finishReason = await compute(engine, job, report) ? 'length' : 'aborted';
  const prefilled = performance.now();
  if (finishReason !== 'aborted' && maxTokens > 0) {
    engine.sampleBegin({ ...prompt.defaults, ...NO_PENALTY, ...sampling });
    finishReason = await write(engine, job, Math.min(maxTokens, engine.contextSize - total), text, counts);
    text.push(engine.stream(-1));
  }
  text.end();
  const decodeMs = performance.now() - prefilled;
  return {
    ...text.parts,
    finishReason,
    usage: { promptTokens: total, cachedTokens: cached, completionTokens: counts.tokens },
    timings: { prefillMs: prefilled - start, decodeMs, tokensPerSecond: counts.steps ? (1000 * counts.steps) / decodeMs : 0 },
  };
}
