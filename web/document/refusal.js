// SPDX-License-Identifier: MIT
// How the workers of this room answer: what they have read, or why they have not.

/** Why a file is not read: a key of the page's words, with the file's name as {1}, and values from {2} on. */
export class Refusal extends Error {
  constructor(sentence, ...values) {
    super(sentence);
    this.values = values;
  }
}

/** Answers the page's messages. @param {(job: object) => Promise<object>} answer throws a Refusal */
export function serve(answer) {
  addEventListener('message', async ({ data }) => {
    try {
      postMessage(await answer(data));
    } catch (error) {
      const isRefused = error instanceof Refusal;
      const { message, values } = isRefused ? error : new Refusal('{1} cannot be read ({2}).', error.message);
      postMessage({ refusal: message, values });
    }
  });
}
