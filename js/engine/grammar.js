// SPDX-License-Identifier: MIT
// dist/grammar.wasm (src/grammar/face.c): which tokens may follow a text so that it is, in the end, what a schema, an
// expression or a grammar describes. It has a memory of its own with a limit, so that whatever it is given to read
// cannot harm the model. A state is a number; equal states are the same number, and a state knows no reply. A text that
// takes a moment is compiled here; any other is compiled elsewhere (grammar-compiler.js) and comes as a block of bytes.
// It is remembered for the scope whose request it was, so that nobody's time tells what others have asked for.

import { KINDS, checked, given, openCompiler, opened, room, textAt, tooMuch } from './grammar-compiler.js';
import { atOnce } from '../shared/steps.js';

/** Tokens as face.c knows them: text, one that ends a reply, one that is never written. */
const [TEXT, END, NEVER] = [0, 1, 2];

/**
 * Types of tokens that stand for text: normal ones, and bytes. Of the others some are marks, which a text cannot hold.
 */
const TEXT_TYPES = [1, 6];

/**
 * A moment, in milliseconds, and the longest text of which that may be enough: most schemas that people write are
 * shorter and take a fifth of it.
 */
const MOMENT_MS = 5;
const SMALL = 2 ** 14;

/** Compiled grammars that are remembered though no reply uses them. */
const REMEMBERED = 8;

/** Whoever shares what others have compiled. */
const ALL = { owner: { scope: 0, guest: 0 } };

const encoder = new TextEncoder();

/** A crash in there is no crash of the engine: it costs the reply, and the module's memory, which nobody uses again. */
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

/** Something compiled. */
export class Grammar {
  users = 0;

  /** @param {any} wasm @param {number} handle @param {number} words of a mask @param {number} scope that may use it */
  constructor(wasm, handle, words, scope) {
    this.wasm = wasm;
    this.handle = handle;
    this.words = words;
    this.scope = scope;
  }

  get start() { return checked(this.wasm, this.wasm.grammar_start(this.handle)); }

  /** The state behind a token that the mask allows; 0: not yet, ask again. */
  take(state, id) { return checked(this.wasm, this.wasm.grammar_take(this.handle, state, id)); }

  /** Whether a text may end here. */
  accepts(state) { return this.wasm.grammar_accepts(this.handle, state) === 1; }

  /** What of a schema says nothing and was passed over. @returns {{rule: string, message: string}[]} */
  get notes() {
    const lines = textAt(this.wasm, this.wasm.grammar_notes(this.handle)).split('\n');
    return lines
      .slice(0, -1)
      .map((line) => ({ rule: line.slice(0, line.indexOf(' ')), message: line.slice(line.indexOf(' ') + 1) }));
  }

  /**
   * A bit for each token that may follow, until the next call of anything; null: not yet.
   * @returns {Uint32Array | null}
   */
  mask(state) {
    const address = this.wasm.grammar_mask(this.handle, state);
    if (!address && checked(this.wasm, this.wasm.grammar_error_status()) === 0) return null;
    return new Uint32Array(this.wasm.memory.buffer, address, this.words);
  }
}

/**
 * Who wants something compiled, and shares it with his scope.
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
  #known = new Map();     // key -> Grammar, used last last
  #making = new Map();    // key -> when it will have been compiled, or not

  /** Whether it has crashed: another one is to be opened. */
  isDead = false;

  /**
   * @param {WebAssembly.Module} module @param {import('./engine.js').Engine} engine whose tokens it learns
   * @param {{limit?: number, compile?: Compile, through?: Through}} [how] limit: of its memory, in bytes; compile:
   *   elsewhere than here; through: takes steps of some milliseconds each, when there is time for them
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

  /** Of its memory. */
  get bytes() { return this.#wasm.memory.buffer.byteLength; }

  /** The bytes of all tokens, and what each is, in parts of some milliseconds. */
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
   * To be released (`users`) by whoever is given it. `use/schema` for what cannot be honoured.
   * @param {string} kind of grammar-compiler.js
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

  /** One that is worn is left to those who use it, by no key that anybody asks for. */
  #remembered(key) {
    const grammar = this.#known.get(key);
    if (!grammar || !this.#wasm.grammar_worn(grammar.handle)) return grammar;
    this.#known.delete(key);
    this.#known.set(grammar, grammar);
    return undefined;
  }

  /** Whoever asks for the same meanwhile waits for it. */
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

  /** Compiles it in a moment. @returns {Generator<void, number, void>} a handle; 0: it takes longer, or more memory */
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

  /** Those that nobody uses: worn ones, and of the others as many as are too many. */
  #forget() {
    for (const [key, grammar] of this.#known) if (key === grammar && grammar.users === 0) this.#release(key);
    const unused = [...this.#known.values()].filter(({ users }) => users === 0).length;
    for (let n = unused; n >= REMEMBERED; n--) this.#release(this.#spare());
  }

  /** Of the scope that has the most that nobody uses, the one that was used longest ago; undefined: there is none. */
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
