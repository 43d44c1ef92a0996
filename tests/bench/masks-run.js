// SPDX-License-Identifier: MIT
// Masks of the whole vocabulary along answers to schemas, in Node or in a page: the engine's own module (dist/grammar.wasm) through js/engine/grammar.js.
import { Grammars } from '../../js/engine/grammar.js';
import { maskOf, stateAfter } from '../fixtures/whole.mjs';

/** Qwen3's tokens from the published rank file, and the special ones behind them. */
export function vocabularyOf(tiktoken) {
  const tokens = tiktoken.trim().split('\n').map((line) => Uint8Array.from(atob(line.split(' ')[0]), (letter) => letter.charCodeAt(0)));
  const text = tokens.length;
  const special = Array.from({ length: 26 }, (_, i) => new TextEncoder().encode(`<|${i}|>`));
  const all = [...tokens, ...special];
  const starts = new Int32Array(all.length + 1);
  for (const [id, { length }] of all.entries()) starts[id + 1] = starts[id] + length;
  const bytes = new Uint8Array(starts[all.length]);
  for (const [id, token] of all.entries()) bytes.set(token, starts[id]);
  const types = Uint8Array.from(all, (_, id) => (id < text ? 1 : 3));
  return { all, engine: { facts: { tokens: all.length, endTokens: [text + 2] }, tokens: () => ({ starts, bytes, types }) } };
}

export const isIn = (mask, id) => mask[id >>> 5] >>> (id & 31) & 1;

/** Which allowed token the rest of a text begins with, the longest: much as a tokenizer would cut it. */
class Cutter {
  #ids = new Map();
  #longest = 0;

  constructor(all) {
    for (const [id, bytes] of all.entries()) {
      this.#ids.set(String.fromCharCode(...bytes), id);
      this.#longest = Math.max(this.#longest, bytes.length);
    }
  }

  next(text, mask) {
    for (let n = Math.min(text.length, this.#longest); n > 0; n--) {
      const id = this.#ids.get(text.slice(0, n));
      if (id !== undefined && isIn(mask, id)) return { id, n };
    }
    throw new Error(`no token of ${JSON.stringify(text.slice(0, 40))} is allowed`);
  }
}

const latin = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/** Each mask on the way through a text. */
function masksOf(grammar, cutter, text) {
  const masks = [];
  let state = grammar.start;
  for (let rest = latin(text); rest;) {
    const start = performance.now();
    const mask = maskOf(grammar, state);
    masks.push(performance.now() - start);
    const { id, n } = cutter.next(rest, mask);
    state = stateAfter(grammar, state, id);
    rest = rest.slice(n);
  }
  if (!grammar.accepts(state)) throw new Error(`the answer is not whole: ${text}`);
  return masks;
}

/** One schema: how long it took, and each mask on the way through answers to it. */
async function along(grammars, cutter, { schema, texts }) {
  const began = performance.now();
  const grammar = await grammars.compile('schema', schema);
  const compile = performance.now() - began;
  const masks = texts.flatMap((text) => masksOf(grammar, cutter, text));
  grammar.users--;
  return { compile, masks };
}

/**
 * @param {{wasm: BufferSource, tiktoken: string, cases: Record<string, {schema: string, texts: string[]}>, rounds: number}} given
 * @returns {Promise<{tokens: number, trie: number[], cases: Record<string, {compile: number[], masks: number[][]}>}>} milliseconds; each round with a
 * module of its own that has seen the other schemas, so that its code is compiled well, and this one not
 */
export async function measureMasks({ wasm, tiktoken, cases, rounds }) {
  const { all, engine } = vocabularyOf(tiktoken);
  const cutter = new Cutter(all);
  const module = await WebAssembly.compile(wasm);
  const trie = [];
  const found = Object.fromEntries(Object.keys(cases).map((name) => [name, { compile: [], masks: [] }]));
  for (let round = 0; round < rounds + 1; round++) {
    const began = performance.now();
    const grammars = await Grammars.open(module, engine);
    if (round) trie.push(performance.now() - began);
    for (const [name, one] of Object.entries(cases)) {
      const { compile, masks } = await along(grammars, cutter, one);
      if (!round) continue;     // the first warms the module up
      found[name].compile.push(compile);
      found[name].masks.push(masks);
    }
  }
  return { tokens: all.length, trie, cases: found };
}
