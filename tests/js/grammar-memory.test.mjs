// SPDX-License-Identifier: MIT
// The grammars' module over many schemas, compiled and released in turns: memory that held something else before must not matter, so each
// schema answers as it does in a module of its own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { randomSchema } from '../fixtures/random-schemas.mjs';

const module = new WebAssembly.Module(readFileSync(new URL('../../dist/grammar.wasm', import.meta.url)));
const [SCHEMA, TOKENS, END, ALIVE, COUNT] = [0, 257, 256, 6, 30];

/** With the 256 bytes as tokens, and an end. */
function open() {
  const { exports } = new WebAssembly.Instance(module, {});
  exports._initialize();
  const at = exports.grammar_room(6 * TOKENS);
  new Uint32Array(exports.memory.buffer, at, TOKENS).fill(1);
  const rest = new Uint8Array(exports.memory.buffer, at + 4 * TOKENS, 2 * TOKENS);
  for (let id = 0; id < TOKENS; id++) [rest[id], rest[TOKENS + id]] = [id === END ? 1 : 0, id];
  assert.equal(exports.grammar_vocabulary(TOKENS, at + 5 * TOKENS, at, at + 4 * TOKENS), 0);
  return exports;
}

/** Whatever comes next finds these bytes where it expects nothing. */
function litter(exports) {
  const size = 1 << 20;
  const at = exports.grammar_room(size);        // memory may grow here
  new Uint8Array(exports.memory.buffer, at, size).fill(2);
}

function compile(exports, seed) {
  const text = new TextEncoder().encode(JSON.stringify(randomSchema(seed)));
  const at = exports.grammar_room(text.length);
  new Uint8Array(exports.memory.buffer, at, text.length).set(text);
  return exports.grammar_compile(SCHEMA, at, text.length, 0);
}

/** The masks along a text of the highest allowed bytes, or the status. */
function answer(exports, handle) {
  if (handle < 0) return handle;
  const masks = [];
  for (let state = exports.grammar_start(handle), i = 0; i < 20 && state > 0; i++) {
    const mask = new Uint32Array(exports.memory.buffer, exports.grammar_mask(handle, state), 9);
    const allowed = Array.from({ length: 256 }, (_, id) => id).filter((id) => mask[id >> 5] >>> (id & 31) & 1);
    masks.push([...mask].join());
    state = allowed.length ? exports.grammar_take(handle, state, allowed.at(i % 2 ? 0 : -1)) : 0;
  }
  return masks.join(' ');
}

test('what others left in memory does not matter', () => {
  const shared = open();
  const alive = [];
  for (let seed = 6000; seed > 6000 - COUNT; seed--) {
    litter(shared);
    const handle = compile(shared, seed);
    const alone = open();
    assert.equal(answer(shared, handle), answer(alone, compile(alone, seed)), `seed ${seed}`);
    if (handle > 0) alive.push(handle);
    if (alive.length > ALIVE) shared.grammar_release(alive.splice(seed % alive.length, 1)[0]);
  }
});
