// SPDX-License-Identifier: MIT
// quern in a page, through its public interface alone.
import { load as loadModel } from '../../../dist/index.js';

let model;

/** @returns {Promise<object>} milliseconds it took, when it was ready (since 1970), and how the engine runs */
export async function load({ url, threads, contextSize, variant }) {
  const start = performance.now();
  model = await loadModel(url, { threads, contextSize, variant });
  const end = performance.now();
  return { ms: end - start, readyAt: performance.timeOrigin + end, version: model.info.variant, threads: model.info.threads };
}

/** Reads a prompt and writes `generate` tokens: see bench.mjs for the one that is written. */
export async function complete({ prompt, generate, token }) {
  const { text, usage, timings } = await model.complete(prompt, { maxTokens: generate, temperature: 0, logitBias: { [token]: 100 } }).result;
  return {
    promptTokens: usage.promptTokens - usage.cachedTokens, prefillMs: timings.prefillMs,
    tokens: usage.completionTokens, tokensPerSecond: timings.tokensPerSecond, text,
  };
}

export function memory() {
  return model.info.memory;
}
