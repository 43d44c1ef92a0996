// SPDX-License-Identifier: MIT
// dist/grammar.wasm (src/grammar/face.c): which tokens may follow a text so that it is, in the end, what a schema, an expression or a grammar
// describes. It has a memory of its own with a limit, so that whatever it is given to read cannot harm the model. A state is a number; equal
// states are the same number, and a state knows no reply.

import { QuernError } from '../shared/errors.js';

/** What a text describes, by its number in face.c. */
const KINDS = { schema: 0, regex: 1, grammar: 2, choices: 3, json: 4, calls: 5, taggedCalls: 6 };

/** Tokens as face.c knows them: text, one that ends a reply, one that is never written. */
const [TEXT, END, NEVER] = [0, 1, 2];

/** Types of tokens that stand for text: normal ones, and bytes. Of the others some are marks, which a text cannot hold. */
const TEXT_TYPES = [1, 6];

/** Codes of statuses (src/base/base.h) that are not about what was given. */
const CODES = { [-6]: 'mem/load', [-8]: 'use/param' };

/** Compiled grammars that are remembered though no reply uses them. */
const REMEMBERED = 8;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function textAt(wasm, address) {
  const bytes = new Uint8Array(wasm.memory.buffer, address);
  return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
}

/** A crash in there is no crash of the engine: it costs the reply, and the module's memory, which nobody uses again. */
function guarded(exports, onCrash) {
  const guard = (call) => (...values) => {
    try {
      return call(...values);
    } catch (error) {
      onCrash();
      const message = `What the reply is to look like was too much (${error.message}).`;
      throw new QuernError('use/schema', message, { detail: { rule: 'limit' }, cause: error });
    }
  };
  return Object.fromEntries(Object.entries(exports).map(([name, one]) => [name, typeof one === 'function' ? guard(one) : one]));
}

/** Something compiled. */
export class Grammar {
  users = 0;

  /** @param {any} wasm @param {number} handle @param {number} words of a mask @param {(status: number) => number} check */
  constructor(wasm, handle, words, check) {
    this.wasm = wasm;
    this.handle = handle;
    this.words = words;
    this.check = check;
  }

  get start() { return this.check(this.wasm.grammar_start(this.handle)); }

  /** The state behind a token that the mask allows. */
  take(state, id) { return this.check(this.wasm.grammar_take(this.handle, state, id)); }

  /** Whether a text may end here. */
  accepts(state) { return this.wasm.grammar_accepts(this.handle, state) === 1; }

  /** What of a schema says nothing and was passed over. @returns {{rule: string, message: string}[]} */
  get notes() {
    const lines = textAt(this.wasm, this.wasm.grammar_notes(this.handle)).split('\n');
    return lines.slice(0, -1).map((line) => ({ rule: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
  }

  /** A bit for each token that may follow, until the next call of anything. @returns {Uint32Array} */
  mask(state) {
    const address = this.wasm.grammar_mask(this.handle, state);
    if (!address) this.check(this.wasm.grammar_error_status());
    return new Uint32Array(this.wasm.memory.buffer, address, this.words);
  }
}

export class Grammars {
  #wasm;
  #words;
  #known = new Map();     // key -> Grammar, used last last

  /** Whether it has crashed: another one is to be opened. */
  isDead = false;

  /**
   * @param {WebAssembly.Module} module @param {import('./engine.js').Engine} engine whose tokens it learns
   * @param {number} [limit] of its memory, in bytes
   */
  static async open(module, engine, limit) {
    /** @type {any} */
    const { exports } = await WebAssembly.instantiate(module, {});
    exports._initialize();      // its allocator's heap
    if (limit) exports.grammar_limit(limit);
    return new Grammars(exports, engine);
  }

  constructor(wasm, engine) {
    this.#wasm = guarded(wasm, () => { this.isDead = true; });
    this.#learn(engine);
  }

  /** Of its memory. */
  get bytes() { return this.#wasm.memory.buffer.byteLength; }

  /** The bytes of all tokens, and what each is. */
  #learn(engine) {
    const { tokens: n, endTokens } = engine.facts;
    const { starts, bytes, types } = engine.tokens();
    const address = this.#room(5 * n + bytes.length);
    const sizes = new Uint32Array(this.#wasm.memory.buffer, address, n);
    const kinds = new Uint8Array(this.#wasm.memory.buffer, address + 4 * n, n);
    for (let id = 0; id < n; id++) {
      sizes[id] = starts[id + 1] - starts[id];
      kinds[id] = sizes[id] > 0 && TEXT_TYPES.includes(types[id]) ? TEXT : NEVER;
    }
    for (const id of endTokens) kinds[id] = END;
    new Uint8Array(this.#wasm.memory.buffer, address + 5 * n).set(bytes);
    this.#words = Math.ceil(n / 32);
    this.#check(this.#wasm.grammar_vocabulary(n, address + 5 * n, address, address + 4 * n));
  }

  #room(size) {
    const address = this.#wasm.grammar_room(size);
    if (!address) throw new QuernError('mem/load', `There is not enough memory for ${size} bytes of a grammar.`);
    return address;
  }

  /**
   * To be released by whoever is given it. `use/schema` for what cannot be honoured.
   * @param {keyof typeof KINDS} kind @param {string} text @param {number} [flags] see face.c
   * @returns {Grammar}
   */
  compile(kind, text, flags = 0) {
    const key = `${kind} ${flags} ${text}`;
    const grammar = this.#remembered(key) ?? this.#compiled(kind, text, flags);
    this.#known.delete(key);
    this.#known.set(key, grammar);
    grammar.users++;
    return grammar;
  }

  /** One that is worn is left to those who use it, by no key that anybody asks for. */
  #remembered(key) {
    const grammar = this.#known.get(key);
    if (!grammar || !this.#wasm.grammar_worn(grammar.handle)) return grammar;
    this.#known.delete(key);
    this.#known.set(grammar, grammar);
    return undefined;
  }

  #compiled(kind, text, flags) {
    this.#forget();
    const bytes = encoder.encode(text);
    const address = this.#room(bytes.length);
    new Uint8Array(this.#wasm.memory.buffer, address, bytes.length).set(bytes);
    const handle = this.#check(this.#wasm.grammar_compile(KINDS[kind], address, bytes.length, flags));
    return new Grammar(this.#wasm, handle, this.#words, (status) => this.#check(status));
  }

  /** Those that nobody uses: worn ones, and of the others those that were used longest ago. */
  #forget() {
    for (const [key, grammar] of this.#known) {
      if (grammar.users > 0 || (this.#known.size < REMEMBERED && key !== grammar)) continue;
      this.#known.delete(key);
      this.#wasm.grammar_release(grammar.handle);
    }
  }

  #check(status) {
    if (status >= 0) return status;
    const rule = textAt(this.#wasm, this.#wasm.grammar_error_rule());
    const detail = { ...(rule && { rule }), offset: this.#wasm.grammar_error_offset() };
    throw new QuernError(CODES[status] ?? 'use/schema', textAt(this.#wasm, this.#wasm.grammar_error_message()), { detail });
  }
}
