// SPDX-License-Identifier: MIT
// What bench.mjs asks of quern, in a page and in Node alike: `load` of the package is handed in.

/** Bytes of one position's keys and values in f16. */
const kvBytes = ({ layers, kvHeads, headDim }) => layers * kvHeads * headDim * 2 * 2;

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);

export function driver(loadModel) {
  let model;
  return {
    /** @returns {Promise<object>} milliseconds it took, when it was ready (since 1970), and how the engine runs */
    async load({ url, path, threads, contextSize, variant, store: cache }) {
      const start = performance.now();
      // The token that is written is always the same one, so drafts would tell nothing about other replies.
      model = await loadModel(url ?? path, { threads, contextSize, variant, store: cache, drafts: false });
      const end = performance.now();
      const { info } = model;
      return {
        ms: end - start, readyAt: performance.timeOrigin + end, version: info.variant, threads: info.threads,
        weightBytes: sum(Object.values(info.types).map(({ bytes }) => bytes)), kvBytes: kvBytes(info),
      };
    },

    /** Reads a prompt and writes `generate` tokens: see engines.mjs for the one that is written. */
    async complete({ prompt, generate, token }) {
      const { text, usage, timings } = await model.complete(prompt, { maxTokens: generate, temperature: 0, logitBias: { [token]: 100 } }).result;
      return {
        promptTokens: usage.promptTokens - usage.cachedTokens, prefillMs: timings.prefillMs,
        tokens: usage.completionTokens, tokensPerSecond: timings.tokensPerSecond, text,
      };
    },

    /** The same, and the milliseconds between one token and the next as they arrive. */
    async stream({ prompt, generate, token }) {
      const reply = model.complete(prompt, { maxTokens: generate, temperature: 0, logitBias: { [token]: 100 } });
      const times = [];
      for await (const _ of reply.events) times.push(performance.now());
      const { timings } = await reply.result;
      return { prefillMs: timings.prefillMs, gaps: times.slice(1).map((time, i) => time - times[i]) };
    },
  };
}
