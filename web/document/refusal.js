// SPDX-License-Identifier: MIT
// How the workers of this room answer: what they have read, or why they have not.

/** Why a file is not read: the end of a sentence that begins with the file's name. */
export class Refusal extends Error {}

/** Answers the page's messages. @param {(job: object) => Promise<object>} answer throws a Refusal */
export function serve(answer) {
  addEventListener('message', async ({ data }) => {
    try {
      postMessage(await answer(data));
    } catch (error) {
      postMessage({ refusal: error instanceof Refusal ? error.message : `cannot be read (${error.message}).` });
    }
  });
}
