// SPDX-License-Identifier: MIT
// The work of a request: its replies, when the model has begun all of them, when they have ended, and how to stop them.
// Subclasses determine the form of the answer and its pieces (openai.js, turn.js).

export class Work {
  #replies;

  /** Settles when the model has begun every reply, or has refused one: then none continues. @type {Promise<void>} */
  accepted;

  /**
   * @param {((begun: {onPrefill: (progress: object) => void}) => import('../index.d.ts').Reply)[]} begin one function
   *   for each reply
   * @param {boolean} stream whether the request wants pieces
   */
  constructor(begin, stream) {
    this.stream = stream;
    const begun = [];
    this.#replies = begin.map((start) => {
      let onBegin;
      const reading = new Promise((resolve) => { onBegin = resolve; });
      const reply = start({ onPrefill: (progress) => onBegin(progress) });
      begun.push(Promise.race([reading, reply.result]));
      return reply;
    });
    this.accepted = Promise.all(begun).then(() => {}, (error) => {
      this.stop();
      throw error;
    });
    this.accepted.catch(() => {});
  }

  get replies() { return this.#replies; }

  /** Settles when all replies have ended. */
  get ended() { return Promise.allSettled(this.#replies.map((reply) => reply.result)); }

  /** Ends all replies; their results have what was written. */
  stop() {
    for (const reply of this.#replies) reply.stop();
  }

  /** If one reply fails, all end. @returns {Promise<import('../index.d.ts').Result[]>} */
  results() {
    return Promise.all(this.#replies.map((reply) => reply.result)).catch((error) => {
      this.stop();
      throw error;
    });
  }
}
