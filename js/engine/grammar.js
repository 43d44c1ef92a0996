// SPDX-License-Identifier: MIT
// Runs dist/grammar.wasm (src/grammar/face.c), which decides the tokens that may come next so that the text finally
// matches a schema, a pattern or a grammar. The module has a memory of its own with a limit, so its input cannot harm
// the model. A state is a number: equal states have the same number, and a state belongs to no reply.
//
// A format that compiles within a moment is compiled here. Any other is compiled elsewhere (grammar-compiler.js) and
// arrives as a block of bytes. A compiled format is remembered only for the scope that requested it, so response times
// do not reveal what other scopes have asked for.

import { KINDS, checked, given, openCompiler, opened, room, textAt, tooMuch } from './grammar-compiler.js';
import { atOnce } from '../shared/steps.js';

/** Kinds of tokens in face.c: text, a token that ends a reply, a token that is never written. */
const [TEXT, END, NEVER] = [0, 1, 2];

/** Types of tokens that stand for text: normal tokens and bytes. Some other types are marks, which no text contains. */
const TEXT_TYPES = [1, 6];

/**
 * Milliseconds that compiling here may take, and the longest text that is tried. Most schemas that people write are
 * shorter and take a fifth of this time.
 */
const MOMENT_MS = 5;
const SMALL = 2 ** 14;

/** Number of compiled grammars that are remembered though no reply uses them. */
const REMEMBERED = 8;

/** Owner of grammars that everybody shares. */
const ALL = { owner: { scope: 0, guest: 0 } };

const encoder = new TextEncoder();

/**
 * Wraps the module's exports. A crash in the module ends one reply, not the engine, and the instance is not used again.
 */
function guarded(exports, onCrash) {
  const guard =
    (call) =>
    (...values) => {
      try {
        return call(...values);
      } catch (error) {
        onCrash();
        throw tooMuch(error.message, error);
      }
    };
  return Object.fromEntries(
    Object.entries(exports).map(([name, one]) => [name, typeof one === 'function' ? guard(one) : one]),
  );
}

/** A compiled format. */
export class Grammar {
  users = 0;
  #forced = new Map();    // state -> tokens of the text that must follow, if there is such a text

  /**
   * @param {any} wasm
   * @param {number} handle
   * @param {number} words size of a mask
   * @param {number} scope that may use it
   */
  constructor(wasm, handle, words, scope) {
    this.wasm = wasm;
    this.handle = handle;
    this.words = words;
    this.scope = scope;
  }

  get start() { return checked(this.wasm, this.wasm.grammar_start(this.handle)); }

  /** The state after a token that the mask allows; 0: not computed yet, call again. */
  take(state, id) { return checked(this.wasm, this.wasm.grammar_take(this.handle, state, id)); }

  /**
   * Tokens that probably follow, as the tokenizer makes them of the text that must follow.
   * @param {(text: Uint8Array) => Int32Array} tokenize
   * @returns {Int32Array | undefined} undefined: nothing must follow, or it would take too long to find out
   */
  forced(state, tokenize) {
    if (!this.#forced.has(state)) {
      const address = this.wasm.grammar_forced(this.handle, state);
      const [size] = new Uint8Array(this.wasm.memory.buffer, address, 1);
      if (size === 0) return undefined;
      this.#forced.set(state, tokenize(new Uint8Array(this.wasm.memory.buffer, address + 1, size)));
    }
    return this.#forced.get(state);
  }

  /** Whether the text may end in this state. */
  accepts(state) { return this.wasm.grammar_accepts(this.handle, state) === 1; }

  /** Keywords of a schema that have no effect and were ignored. @returns {{rule: string, message: string}[]} */
  get notes() {
    const lines = textAt(this.wasm, this.wasm.grammar_notes(this.handle)).split('\n');
    return lines
      .slice(0, -1)
      .map((line) => ({ rule: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
  }

  /**
   * The tokens that may follow, one bit each; null: not computed yet, call again. Valid until the next call of any
   * method.
   * @returns {Uint32Array | null}
   */
  mask(state) {
    const address = this.wasm.grammar_mask(this.handle, state);
    if (!address && checked(this.wasm, this.wasm.grammar_error_status()) === 0) return null;
    return new Uint32Array(this.wasm.memory.buffer, address, this.words);
  }
}

/**
 * The sender of a request for a grammar, which is shared within the owner's scope.
 * @typedef {{owner: {scope: number, guest: number}, job?: object}} Asker
 * @typedef {{kind: string, bytes: Uint8Array, flags: number}} Asked
 * @typedef {(asked: Asked, who: Asker) => Promise<Uint8Array>} Compile
 * @typedef {(steps: Iterator<void, any, void>, who: Asker) => Promise<any>} Through
 */

export class Grammars {
  #wasm;
  #words;
  #compile;
  #through;
  #moment = { ends: 0, isOver: false };
  #known = new Map();     // key -> Grammar; the most recently used is last
  #making = new Map();    // key -> promise that resolves when the compilation has ended or failed

  /** Whether the module has crashed. The caller then opens another one. */
  isDead = false;

  /**
   * @param {WebAssembly.Module} module @param {import('./engine.js').Engine} engine provides the vocabulary
   * @param {{limit?: number, compile?: Compile, through?: Through}} [how] limit: most bytes of the module's memory;
   *   compile: compiles outside this instance; through: runs steps of some milliseconds each, when there is time for
   *   them
   * @param {Asker} [who]
   */
  static async open(module, engine, { limit, compile, through = async (steps) => atOnce(steps) } = {}, who = ALL) {
    const here = openCompiler({ module, limit });
    const grammars = new Grammars(compile ?? (async (asked) => (await here(asked)).value), through);
    const wasm = await opened(module, limit, () => grammars.#isOver());
    grammars.#wasm = guarded(wasm, () => { grammars.isDead = true; });
    await through(grammars.#learn(engine), who);
    return grammars;
  }

  /** @param {Compile} compile @param {Through} through */
  constructor(compile, through) {
    this.#compile = compile;
    this.#through = through;
  }

  /** Size of the module's memory. */
  get bytes() { return this.#wasm.memory.buffer.byteLength; }

  /** Gives the module the bytes and the kinds of all tokens, in steps of some milliseconds. */
  * #learn(engine) {
    const { tokens: n, endTokens } = engine.facts;
    const { starts, bytes, types } = engine.tokens();
    const address = room(this.#wasm, 5 * n + bytes.length);
    const sizes = new Uint32Array(this.#wasm.memory.buffer, address, n);
    const kinds = new Uint8Array(this.#wasm.memory.buffer, address + 4 * n, n);
    for (let id = 0; id < n; id++) {
      sizes[id] = starts[id + 1] - starts[id];
      kinds[id] = sizes[id] > 0 && TEXT_TYPES.includes(types[id]) ? TEXT : NEVER;
    }
    for (const id of endTokens) kinds[id] = END;
    new Uint8Array(this.#wasm.memory.buffer, address + 5 * n).set(bytes);
    this.#words = Math.ceil(n / 32);
    yield;
    checked(this.#wasm, this.#wasm.grammar_vocabulary(n, address + 5 * n, address, address + 4 * n));
    do yield; while (checked(this.#wasm, this.#wasm.grammar_learn()) > 0);
  }

  /**
   * Returns a grammar, whose user decrements `users` at the end. Throws `use/schema` for a format that is not
   * supported.
   * @param {string} kind a key of KINDS in grammar-compiler.js
   * @param {string} text
   * @param {number} [flags] see face.c
   * @param {Asker} [who]
   * @returns {Promise<Grammar>}
   */
  async compile(kind, text, flags = 0, who = ALL) {
    const key = `${who.owner.scope} ${kind} ${flags} ${text}`;
    while (this.#making.has(key)) await this.#making.get(key);
    const known = this.#remembered(key);
    return known ? this.#lent(key, known) : this.#made(key, { kind, bytes: encoder.encode(text), flags }, who);
  }

  #lent(key, grammar) {
    this.#known.delete(key);
    this.#known.set(key, grammar);
    grammar.users++;
    return grammar;
  }

  /** Looks for a grammar. A worn one is filed under a key that no request has, so only its present users keep it. */
  #remembered(key) {
    const grammar = this.#known.get(key);
    if (!grammar || !this.#wasm.grammar_worn(grammar.handle)) return grammar;
    this.#known.delete(key);
    this.#known.set(grammar, grammar);
    return undefined;
  }

  /** Compiles a grammar. Requests for the same grammar wait meanwhile. */
  async #made(key, asked, who) {
    let made;
    this.#making.set(key, new Promise((resolve) => { made = resolve; }));
    try {
      const { scope } = who.owner;
      const handle = asked.bytes.length <= SMALL ? await this.#through(this.#soon(asked), who) : 0;
      return this.#lent(
        key,
        handle ? this.#grammar(handle, scope) : this.#loaded(await this.#compile(asked, who), scope),
      );
    } finally {
      this.#making.delete(key);
      made();
    }
  }

  #isOver() { return this.#moment.isOver ||= performance.now() > this.#moment.ends; }

  /**
   * Tries to compile within a moment.
   * @returns {Generator<void, number, void>} a handle; 0: needs more time or memory
   */
  * #soon({ kind, bytes, flags }) {
    this.#forget();
    this.#moment = { ends: performance.now() + MOMENT_MS, isOver: false };
    try {
      return checked(
        this.#wasm,
        this.#wasm.grammar_compile(KINDS[kind], given(this.#wasm, bytes), bytes.length, flags),
      );
    } catch (error) {
      if (this.#moment.isOver || error.code === 'mem/load') return 0;
      throw error;
    }
  }

  #grammar(handle, scope) { return new Grammar(this.#wasm, handle, this.#words, scope); }

  #loaded(block, scope) {
    this.#forget();
    for (;;) {
      try {
        const handle = checked(this.#wasm, this.#wasm.grammar_load(given(this.#wasm, block), block.length));
        return this.#grammar(handle, scope);
      } catch (error) {
        const spare = error.code === 'mem/load' ? this.#spare() : undefined;
        if (spare === undefined) throw error;
        this.#release(spare);
      }
    }
  }

  /** Releases unused grammars: all worn ones, and of the others those in excess of REMEMBERED. */
  #forget() {
    for (const [key, grammar] of this.#known) if (key === grammar && grammar.users === 0) this.#release(key);
    const unused = [...this.#known.values()].filter(({ users }) => users === 0).length;
    for (let n = unused; n >= REMEMBERED; n--) this.#release(this.#spare());
  }

  /** Of the scope with the most unused grammars, the key of the least recently used one; undefined: there is none. */
  #spare() {
    const unused = [...this.#known].filter(([, { users }]) => users === 0);
    const counts = new Map();
    for (const [, { scope }] of unused) counts.set(scope, (counts.get(scope) ?? 0) + 1);
    const most = Math.max(...counts.values());
    return unused.find(([, { scope }]) => counts.get(scope) === most)?.[0];
  }

  #release(key) {
    this.#wasm.grammar_release(this.#known.get(key).handle);
    this.#known.delete(key);
  }
}
