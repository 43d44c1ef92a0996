// SPDX-License-Identifier: MIT
// What drafts.mjs asks of quern, in a page and in Node alike: `load` of the package is handed in.

/** Milliseconds of a step of `rows` replies to one prompt, one row each, over the steps of `generate` tokens. */
async function stepMs(model, prompt, rows, generate) {
  const time = async (maxTokens) => {
    const start = performance.now();
    const ask = (seed) => model.complete(prompt, { maxTokens, temperature: 0, seed }).result;
    await Promise.all(Array.from({ length: rows }, (_, i) => ask(i)));
    return performance.now() - start;
  };
  const few = await time(4);
  return (await time(4 + generate) - few) / generate;
}

export function draftsDriver(loadModel) {
  const models = new Map();
  return {
    /** Loads a model under a name. */
    async load({ name, source, ...options }) {
      models.set(name, await loadModel(source, { store: false, ...options }));
      const { variant, threads } = models.get(name).info;
      return { variant, threads };
    },

    async dispose() {
      for (const model of models.values()) await model.dispose();
      models.clear();
    },

    /** Milliseconds of a step in each round, by its rows, after a round that only warms up. */
    async rows({ name, prompt, counts, rounds, generate }) {
      const found = counts.map(() => []);
      for (let round = 0; round <= rounds; round++) {
        for (const [i, rows] of counts.entries()) {
          const ms = await stepMs(models.get(name), prompt, rows, generate);
          if (round) found[i].push(ms);
        }
      }
      return Object.fromEntries(counts.map((rows, i) => [rows, found[i]]));
    },

    /** One reply: what it wrote, how fast, and its drafts. */
    async reply({ name, prompt, ...options }) {
      const { text, usage, timings } = await models.get(name).complete(prompt, options).result;
      return { text, tokensPerSecond: timings.tokensPerSecond, prefillMs: timings.prefillMs, ms: timings.decodeMs, ...usage };
    },
  };
}
