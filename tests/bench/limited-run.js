// SPDX-License-Identifier: MIT
// What limited.mjs asks of a model, in Node or in a page: how long a token takes, with a schema and without, and how long the first limited reply waits.

/** <|endoftext|> and <|im_end|>: random weights would end a reply anywhere. */
const NO_END = { 151643: -100, 151645: -100 };
const PROMPT = 'Say it as JSON:';

const text = (most) => ({ type: 'string', maxLength: most });

/** A list that goes on for as long as is measured, of what programs ask for. Of each `round` it is one that nobody has seen: no mask is known. */
const schemaOf = (round) => ({
  title: String(round), type: 'array', minItems: 500,
  items: {
    type: 'object', additionalProperties: false, required: ['name', 'kind', 'count', 'price', 'when', 'tags', 'ok'],
    properties: {
      name: text(24), kind: { enum: ['bread', 'cake', 'flour'] }, count: { type: 'integer', minimum: 0, maximum: 1000 }, price: { type: 'number', minimum: 0 },
      when: { type: 'string', format: 'date' }, tags: { type: 'array', items: text(12), maxItems: 3 }, ok: { type: 'boolean' },
    },
  },
});

/** @param {(where: any) => Promise<import('../../js/index.d.ts').Model>} open */
export function limited(open) {
  let model;
  const reply = (options) => model.complete(PROMPT, { logitBias: NO_END, temperature: 1, topK: 20, topP: 0.95, ...options }).result;
  const waitOf = async (options) => {
    const began = performance.now();
    await reply({ maxTokens: 1, ...options });
    return performance.now() - began;
  };
  return {
    async load(where) { model = await open(where); },

    /** Milliseconds by which the first limited reply takes longer than others: the module, the tree of the vocabulary. */
    async first() {
      for (let i = 0; i < 3; i++) await waitOf({});
      const first = await waitOf({ schema: schemaOf('first') });
      const later = [];
      for (let i = 0; i < 5; i++) later.push(await waitOf({ schema: schemaOf(`later ${i}`) }));
      return first - later.sort((a, b) => a - b)[2];
    },

    /** Milliseconds of a token. */
    async run({ round, isLimited, tokens }) {
      const { timings, usage } = await reply({ maxTokens: tokens, seed: round, ...(isLimited && { schema: schemaOf(round) }) });
      if (usage.completionTokens !== tokens) throw new Error(`a reply ended after ${usage.completionTokens} tokens`);
      return 1000 / timings.tokensPerSecond;
    },
  };
}
