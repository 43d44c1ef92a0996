// SPDX-License-Identifier: MIT
// What is done with the package in every place: load, chat, a reply in a form and vectors, whose files come with their first call, and dispose;
// or a look at an image. The result says what came of it. The native build, with which the reply is compared, lets the model think.

export const QUESTION = 'What is the capital of Kenya?';

const CITY = { type: 'object', properties: { city: { enum: ['Nairobi', 'Oslo'] } }, required: ['city'], additionalProperties: false };

/** How many numbers a model with vision makes of a grey image. */
async function look(model) {
  const { values } = await model.look({ data: new Uint8Array(64 * 64 * 3).fill(128), width: 64, height: 64 });
  return values.length;
}

/** @returns {Promise<object>} the reply's text, threads and milliseconds from the start to the first token; or the error */
export async function answer(load, source, options) {
  try {
    const model = await load(source, { threads: 2, ...options });
    const { threads, variant } = model.info;
    if (options?.vision) {
      const seen = await look(model);
      await model.dispose();
      return { seen, threads, variant };
    }
    let text = '';
    let first;
    for await (const piece of model.chat(QUESTION, { temperature: 0, thinking: true }).events) {
      first ??= performance.now();
      if (piece.type === 'text') text += piece.text;
    }
    const { value } = await model.chat(QUESTION, { schema: CITY, temperature: 0, maxTokens: 40 }).result;
    const { vectors } = await model.embed(['one', 'two']);
    await model.dispose();
    return { text, threads, variant, first, city: value?.city, vectors: vectors.length };
  } catch (error) {
    return { error: `${error.code ?? error.name}: ${error.message}` };
  }
}
