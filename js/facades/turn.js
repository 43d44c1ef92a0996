// SPDX-License-Identifier: MIT
// One reply as an API words it: a teller makes that API's pieces of the reply's events, which are the same whatever the
// API, and its whole answer of what it has told so far. So an answer says the same whole and in pieces.

import { Work } from './work.js';

/**
 * @typedef {object} Teller
 * @property {(usage: {promptTokens: number, cachedTokens: number}) => Iterable<object>} begin pieces before the first
 *   event; what is known by then
 * @property {(event: any) => Iterable<object>} event
 * @property {(result: any) => Iterable<object>} end
 * @property {() => object} whole the answer, after its end
 * @property {(error: object) => Iterable<object>} [failed] what tells a failure, where that is more than the error
 */

export class Turn extends Work {
  #teller;
  #known = { promptTokens: 0, cachedTokens: 0 };

  /**
   * @param {(options: object) => import('../index.d.ts').Reply} begin
   * @param {Teller} teller
   * @param {boolean} stream whether the request asked for pieces
   */
  constructor(begin, teller, stream) {
    const known = { promptTokens: 0, cachedTokens: 0 };
    super(
      [
        ({ onPrefill }) =>
          begin({
            onPrefill: (progress) => {
              if (progress?.phase !== 'vision')
                Object.assign(known, { promptTokens: progress?.total ?? 0, cachedTokens: progress?.cached ?? 0 });
              onPrefill(progress);
            },
          }),
      ],
      stream,
    );
    this.#known = known;
    this.#teller = teller;
  }

  /** The whole answer. @returns {Promise<object>} */
  async whole() {
    for await (const _ of this.chunks());       // told to nobody
    return this.#teller.whole();
  }

  /** The answer as it comes; read once. @returns {AsyncGenerator<object>} */
  async* chunks() {
    const [reply] = this.replies;
    try {
      await this.accepted;
      yield* this.#teller.begin(this.#known);
      for await (const event of reply.events) yield* this.#teller.event(event);
      yield* this.#teller.end(await reply.result);
    } finally {
      this.stop();
    }
  }

  /** Pieces that tell of a failure; undefined: the usual one does. @param {object} error as the API words it */
  failed(error) { return this.#teller.failed?.(error); }
}
