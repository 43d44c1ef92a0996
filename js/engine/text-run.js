// SPDX-License-Identifier: MIT
// Turns a text into tokens a little at a time (src/text/tokenizer.h), and tokens into text. The engine's memory holds
// only the part of the text that is worked on. All texts share one window; a piece (a word, a run of spaces) that is
// longer than the window gets a room for all of it.

import { PART, cutOf } from '../shared/steps.js';

/**
 * Bytes of text, and ids, that fit in the window. The bytes exceed any piece that is not long, with the lookahead
 * behind it.
 */
const [WINDOW, IDS] = [2 ** 15, 2 ** 14];

/** Steps per call: about a millisecond. */
const BUDGET = 20_000;

/** Most letters of a long piece that are added at a time. */
const MOST_LETTERS = 2 ** 18;

const MODES = { plain: 0, text: 1, chat: 2 };

/** Results of a call. */
const [DONE, WANTS_TEXT, LONG] = [0, 2, 3];

const encoder = new TextEncoder();

/** The windows' addresses, by heap. @type {WeakMap<object, number>} */
const windows = new WeakMap();

function windowOf(heap) {
  if (!windows.has(heap)) windows.set(heap, heap.alloc(WINDOW + 4 * IDS + 8));
  return windows.get(heap);
}

export class TextRun {
  #where;
  #run;             // address; 0 after its end
  #text;            // the whole text, taken up to #at
  #bytes;           // bytes of the text taken so far; [from, to) are not tokens yet
  #from = 0;
  #to = 0;
  #at = 0;          // letters, or bytes, taken so far
  #room = 0;        // address of a room for a long piece; then its size and the bytes in it
  #size = 0;
  #filled = 0;
  #ids = [];

  /**
   * @param {{wasm: any, heap: import('./heap.js').Heap, engine: number, check: (status: number) => number, failed: ()
   *   => Error}} where
   * @param {string | Uint8Array} text @param {'plain' | 'text' | 'chat'} mode @param {number} sentinel
   */
  constructor(where, text, mode, sentinel) {
    this.#where = where;
    this.#text = text;
    this.#bytes = new Uint8Array(Math.min(2 * WINDOW, 3 * text.length));
    this.#run = where.wasm._wasm_text_new(where.engine, MODES[mode], sentinel);
    if (!this.#run) throw where.failed();
  }

  /**
   * Works for about that many milliseconds.
   * @param {boolean} mayBeLong whether a long piece may be begun; since it takes memory, only one may at a time
   * @returns {'done' | 'more' | 'long'} long: a long piece is next or under way
   */
  work(ms, mayBeLong) {
    const end = performance.now() + ms;
    for (;;) {
      const status = this.#call(mayBeLong);
      if (status === DONE) return 'done';
      if (status === LONG && !mayBeLong) return 'long';
      if (performance.now() >= end) return status === LONG || this.#room ? 'long' : 'more';
      if (status === WANTS_TEXT) this.#take();
    }
  }

  /** Works to the end of the text. */
  all() {
    try {
      while (this.work(Infinity, true) !== 'done');
      return this.ids;
    } finally {
      this.end();
    }
  }

  /** @returns {Int32Array} all tokens so far */
  get ids() {
    const all = new Int32Array(this.#ids.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const ids of this.#ids) {
      all.set(ids, at);
      at += ids.length;
    }
    return all;
  }

  /** Frees its memory. Must not be called after a crash. */
  end() {
    if (!this.#run) return;
    this.#where.wasm._wasm_text_free(this.#run);
    this.#run = 0;
    this.#release();
  }

  get #isWhole() { return this.#at === this.#text.length; }

  #call(mayBeLong) {
    const { wasm, heap, engine, check } = this.#where;
    const window = windowOf(heap);
    const [ids, out] = [window + WINDOW, window + WINDOW + 4 * IDS];
    const size = this.#to - this.#from;
    const text = this.#placed(window, size);
    const run = this.#run;
    this.#run = 0; // if the call traps, the run must not be used again
    const status = wasm._wasm_text_go_on(
      engine,
      run,
      text,
      size,
      Number(this.#isWhole) + 2 * Number(mayBeLong),
      BUDGET,
      ids,
      IDS,
      out,
    );
    this.#run = run;
    const [n, used] = heap.int32(out, 2);
    if (n) this.#ids.push(heap.int32(ids, n).slice());
    if (used) this.#use(used);
    return check(status);
  }

  #use(n) {
    this.#from += n;
    this.#filled = 0;
    if (this.#to - this.#from <= WINDOW) this.#release();
  }

  #release() {
    if (this.#room) this.#where.heap.release(this.#room);
    this.#room = this.#size = this.#filled = 0;
  }

  /** Copies the bytes into the engine's memory, as far as they are not there. @returns their address */
  #placed(window, size) {
    const { heap } = this.#where;
    if (size <= WINDOW) {
      heap.bytes(window, size).set(this.#bytes.subarray(this.#from, this.#to));
      return window;
    }
    if (size > this.#size) {
      this.#release();
      this.#size = 2 * size;
      this.#room = heap.alloc(this.#size);
    }
    heap
      .bytes(this.#room + this.#filled, size - this.#filled)
      .set(this.#bytes.subarray(this.#from + this.#filled, this.#to));
    this.#filled = size;
    return this.#room;
  }

  /** Takes more of the text: in a long piece, as much again as is held. */
  #take() {
    const held = this.#to - this.#from;
    const end = Math.min(this.#text.length, this.#at + Math.min(MOST_LETTERS, Math.max(PART, held)));
    const cut = typeof this.#text === 'string' ? cutOf(this.#text, end) : end;
    const part = this.#text.slice(this.#at, cut);
    this.#at = cut;
    this.#makeRoom(3 * part.length);
    if (typeof part === 'string') this.#to += encoder.encodeInto(part, this.#bytes.subarray(this.#to)).written;
    else {
      this.#bytes.set(part, this.#to);
      this.#to += part.length;
    }
  }

  #makeRoom(n) {
    const held = this.#to - this.#from;
    if (this.#bytes.length - this.#to >= n) return;
    const bytes = held + n <= this.#bytes.length ? this.#bytes : new Uint8Array(2 * (held + n));
    bytes.set(this.#bytes.subarray(this.#from, this.#to));
    [this.#bytes, this.#from, this.#to] = [bytes, 0, held];
  }
}

/** Tokens per step. */
const SOME = 256;

/** The bytes of tokens, in steps. @param {ArrayLike<number>} ids @returns {Generator<void, Uint8Array[]>} */
export function* bytesOf(engine, ids) {
  const all = [];
  for (let i = 0; i < ids.length; i++) {
    all.push(engine.tokenBytes(ids[i]));
    if (i % SOME === SOME - 1) yield;
  }
  return all;
}

/** The text of tokens, in steps. @param {ArrayLike<number>} ids @returns {Generator<void, string>} */
export function* textOf(engine, ids) {
  const stream = new TextDecoder('utf-8', { ignoreBOM: true });
  const texts = [];
  for (let i = 0; i < ids.length; i++) {
    texts.push(stream.decode(engine.tokenBytes(ids[i]), { stream: true }));
    if (i % SOME === SOME - 1) yield;
  }
  return texts.join('') + stream.decode();
}
