// SPDX-License-Identifier: MIT
// A reply being made, as the caller holds it. The work goes on whether or not anybody reads; pieces that wait are
// joined, so a slow reader costs at most the text of one reply. Not thenable on purpose: `await model.chat(…)`
// would otherwise swallow the stream.

import { leaving } from '../shared/called.js';
import { QuernError } from '../shared/errors.js';

const DONE = Object.freeze({ done: true, value: undefined });

/** One reader's view of the pieces; `pick` turns a piece into what the reader gets, or undefined to pass over it. */
class Reader {
  #pieces = [];
  #waiting = [];          // {resolve, reject} of calls of next() without an answer
  #end = null;            // {error?} once nothing more comes
  #stop;

  constructor(stop) {
    this.#stop = stop;
  }

  push(value, join) {
    if (this.#waiting.length) this.#waiting.shift().resolve({ done: false, value });
    else if (!this.#pieces.length || !join(this.#pieces.at(-1), value)) this.#pieces.push(value);
  }

  end(error) {
    this.#end ??= { error };
    for (const call of this.#waiting.splice(0)) this.#answerEnd(call);
  }

  #answerEnd({ resolve, reject }) {
    const { error } = this.#end;
    this.#end = {};
    if (error) reject(error);
    else resolve(DONE);
  }

  next() {
    return new Promise((resolve, reject) => {
      if (this.#pieces.length) resolve({ done: false, value: this.#pieces.shift() });
      else if (this.#end) this.#answerEnd({ resolve, reject });
      else this.#waiting.push({ resolve, reject });
    });
  }

  async return(value) {
    this.#pieces.length = 0;
    this.end();
    this.#stop();
    return { done: true, value };
  }

  async throw(error) {
    await this.return();
    throw error;
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

/** Two neighbouring pieces of one kind become one, of one call where they are calls'. */
function join(last, next) {
  if (last.type !== next.type || last.index !== next.index) return false;
  last.text += next.text;
  if (next.delta) last.delta += next.delta;
  last.logprobs?.push(...next.logprobs ?? []);
  return true;
}

export class Reply {
  #reader;
  #result;
  #stop;
  #claimed = false;

  /**
   * @param {(push: (event: {type: string, text: string, logprobs?: object[]}) => void) => {promise: Promise, stop: ()
   * => void}} begin
   */
  constructor(begin) {
    const here = new Error();
    this.#reader = new Reader(() => this.stop());
    // Every event has a text, so that who shows the text of all shows no `undefined`.
    const { promise, stop } = begin((event) => this.#reader.push({ text: '', ...event }, join));
    this.#stop = stop;
    this.#result = promise.then(
      (result) => { this.#reader.end(); return result; },
      async (error) => { const said = await leaving(error, here); this.#reader.end(said); throw said; },
    );
    // The reader reports the error as well, and nobody has to ask for both.
    this.#result.catch(() => {});
  }

  get result() {
    return this.#result;
  }

  get events() {
    return { [Symbol.asyncIterator]: () => this.#claim() };
  }

  stop() {
    this.#stop();
  }

  [Symbol.asyncIterator]() {
    return texts(this.#claim());
  }

  toReadableStream() { return bytesOf(this); }

  #claim() {
    if (this.#claimed) throw new QuernError('use/busy', 'This reply is being read already; a reply can be read once.');
    this.#claimed = true;
    return this.#reader;
  }
}

/**
 * Texts as they are asked for. Who cancels it ends the work, also while a piece is waited for.
 * @param {AsyncIterable<any>} pieces
 * @param {{textOf?: (piece: any) => string, stop?: () => void}} [how] stop: where leaving the pieces does not end the
 *   work by itself
 * @returns {ReadableStream<Uint8Array<ArrayBuffer>>}
 */
export function bytesOf(pieces, { textOf = String, stop } = {}) {
  const iterator = pieces[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(textOf(value)));
    },
    async cancel() {
      stop?.();
      await iterator.return?.();
    },
  });
}

/** The reader's text without its thinking. */
function texts(reader) {
  return {
    async next() {
      for (;;) {
        const { done, value } = await reader.next();
        if (done) return DONE;
        if (value.type === 'text') return { done, value: value.text };
      }
    },
    return: (value) => reader.return(value),
    throw: (error) => reader.throw(error),
    [Symbol.asyncIterator]() { return this; },
  };
}
