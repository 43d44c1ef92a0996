// SPDX-License-Identifier: MIT
// The work that a request asks for: its replies, when the model has begun with them, when they have ended, and how they
// are stopped. What their answer looks like, and how it is told in pieces, is its heirs' (openai.js, turn.js).

export class Work {
  #replies;

  /** Settles when the model has begun with every reply, or refuses one: then none goes on. @type {Promise<void>} */
  accepted;

  /**
   * @param {((begun: {onPrefill: (progress: object) => void}) => import('../index.d.ts').Reply)[]} begin one for each
   *   reply
   * @param {boolean} stream whether the request asked for pieces
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

  /** Settles when no reply goes on. */
  get ended() { return Promise.allSettled(this.#replies.map((reply) => reply.result)); }

  /** Ends all replies; what they have is their result. */
  stop() {
    for (const reply of this.#replies) reply.stop();
  }

  /** What fails one reply ends all. @returns {Promise<import('../index.d.ts').Result[]>} */
  results() {
    return Promise.all(this.#replies.map((reply) => reply.result)).catch((error) => {
      this.stop();
      throw error;
    });
  }
}
