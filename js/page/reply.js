// SPDX-License-Identifier: MIT
// A reply in progress. The work continues whether or not anybody reads; unread pieces are joined, so a slow reader
// costs at most the text of one reply. A reply has no `then` on purpose: `await model.chat(…)` would otherwise consume
// the stream.

import { leaving } from '../shared/called.js';
import { QuernError } from '../shared/errors.js';

const DONE = Object.freeze({ done: true, value: undefined });

/** One reader of the pieces. */
class Reader {
  #pieces = [];
  #waiting = [];          // {resolve, reject} of pending calls of next()
  #end = null;            // {error?} once no more pieces come
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

/** Joins two neighbouring pieces of the same kind (and, for calls, of the same call) into one. */
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
    // Every event has a text, so that code that shows the text of all events never shows `undefined`.
    const { promise, stop } = begin((event) => this.#reader.push({ text: '', ...event }, join));
    this.#stop = stop;
    this.#result = promise.then(
      (result) => { this.#reader.end(); return result; },
      async (error) => { const said = await leaving(error, here); this.#reader.end(said); throw said; },
    );
    // The reader reports the error as well, and callers need not ask for both.
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
 * Makes a stream of bytes from texts, on demand. Cancelling the stream ends the work, also while it waits for a piece.
 * @param {AsyncIterable<any>} pieces
 * @param {{textOf?: (piece: any) => string, stop?: () => void}} [how] stop: ends the work, if leaving the pieces does
 *   not
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
