// SPDX-License-Identifier: MIT
// What is done with the package in every place: load, chat, dispose. The result says what came of it. The native build, with
// which the reply is compared, lets the model think.

export const QUESTION = 'What is the capital of Kenya?';

/** @returns {Promise<object>} the reply's text, threads and milliseconds from the start to the first token; or the error */
export async function answer(load, source, options) {
  try {
    const model = await load(source, { threads: 2, ...options });
    const { threads, variant } = model.info;
    let text = '';
    let first;
    for await (const piece of model.chat(QUESTION, { temperature: 0, thinking: true }).events) {
      first ??= performance.now();
      if (piece.type === 'text') text += piece.text;
    }
    await model.dispose();
    return { text, threads, variant, first };
  } catch (error) {
    return { error: `${error.code ?? error.name}: ${error.message}` };
  }
}
