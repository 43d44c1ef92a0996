// SPDX-License-Identifier: MIT
// One reply in the form of an API: a teller makes the API's pieces from the reply's events, which are the same for
// every API, and the whole answer from what it has told so far. So an answer is the same as a whole and in pieces.

import { Work } from './work.js';

/**
 * @typedef {object} Teller
 * @property {(usage: {promptTokens: number, cachedTokens: number}) => Iterable<object>} begin pieces before the first
 *   event; gets what is known by then
 * @property {(event: any) => Iterable<object>} event
 * @property {(result: any) => Iterable<object>} end
 * @property {() => object} whole the answer, after its end
 * @property {(error: object) => Iterable<object>} [failed] pieces for a failure, if they are more than the error
 */

export class Turn extends Work {
  #teller;
  #known = { promptTokens: 0, cachedTokens: 0 };

  /**
   * @param {(options: object) => import('../index.d.ts').Reply} begin
   * @param {Teller} teller
   * @param {boolean} stream whether the request wants pieces
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

  /** Returns the whole answer. @returns {Promise<object>} */
  async whole() {
    for await (const _ of this.chunks());       // ignored
    return this.#teller.whole();
  }

  /** Yields the answer as it arrives; it can be read once. @returns {AsyncGenerator<object>} */
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

  /** Pieces for a failure; undefined: the usual one. @param {object} error in the API's form */
  failed(error) { return this.#teller.failed?.(error); }
}
