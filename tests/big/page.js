// SPDX-License-Identifier: MIT
// The page's side of the heavy proofs, through the package's public interface.
import { load as loadModel } from '../../dist/index.js';

let model;

/** A timer this often shows when the main thread had no time. */
const BEAT_MS = 4;

/** Runs `work` and measures the longest time between two beats meanwhile. */
async function withHeartbeat(work) {
  let last = performance.now();
  let longestGapMs = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    longestGapMs = Math.max(longestGapMs, now - last);
    last = now;
  }, BEAT_MS);
  try {
    return { value: await work(), longestGapMs };
  } finally {
    clearInterval(timer);
  }
}

export async function load({ url, ...options }) {
  const start = performance.now();
  const { value, longestGapMs } = await withHeartbeat(() => loadModel(url, options));
  model = value;
  const end = performance.now();
  return { loadMs: end - start, readyAt: performance.timeOrigin + end, longestGapMs, info: model.info, isolated: globalThis.crossOriginIsolated };
}

/** The text of a reply at temperature 0. */
export async function greedy({ prompt, maxTokens, logitBias }) {
  const { text, usage } = await model.complete(prompt, { maxTokens, temperature: 0, logitBias }).result;
  return { text, tokens: usage.completionTokens };
}

/**
 * Reads a prompt until `more` further tokens of it are known, stops `delay` ms later, that is in the middle of a chunk, and
 * takes the time until the reply has ended. What is known stays known, so the next call goes on from there.
 */
export async function stopAfter({ prompt, more, delay }) {
  let at;
  let askedAt;
  const onPrefill = ({ done, cached }) => {
    if (at !== undefined || done < cached + more) return;
    at = done;
    setTimeout(() => {
      askedAt = performance.now();
      reply.stop();
    }, delay);
  };
  const reply = model.complete(prompt, { maxTokens: 1, onPrefill });
  const { finishReason, usage } = await reply.result;
  return { at, ms: performance.now() - askedAt, finishReason, promptTokens: usage.promptTokens };
}

/** Whether the logits of these tokens are the ones at an address, bit by bit. */
export async function compare({ tokens, expected }) {
  const logits = await model.logits(tokens);
  const bits = new Uint32Array(logits.buffer);
  const wanted = new Uint32Array(await (await fetch(expected)).arrayBuffer());
  return bits.length === wanted.length && bits.every((value, i) => value === wanted[i]);
}
