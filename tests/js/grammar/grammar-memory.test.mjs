// SPDX-License-Identifier: MIT
// The grammars' module over many schemas, compiled and released in turns: memory that held something else before must not matter, so each
// schema answers as it does in a module of its own.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { hasMemory64 } from '../../../js/shared/variant.js';
import { Grammars } from '../../../js/engine/grammar.js';
import { BYTES } from '../../fixtures/byte-tokens.mjs';
import { random } from '../../fixtures/random.mjs';
import { randomSchema } from '../../fixtures/random-schemas.mjs';
import { maskOf, stateAfter } from '../../fixtures/whole.mjs';
import { engineOver } from '../support/engine-host.mjs';
import { DEMO, rejectsWith } from '../support/helper.mjs';

const module = new WebAssembly.Module(readFileSync(new URL('../../../dist/grammar.wasm', import.meta.url)));
const [SCHEMA, TOKENS, END, ALIVE, COUNT, MEM_LOAD] = [0, 257, 256, 6, 30, -6];

/** With the 256 bytes as tokens, and an end. */
function open() {
  const { exports } = new WebAssembly.Instance(module, { env: { pace: () => 0 } });
  exports._initialize();
  const at = exports.grammar_room(6 * TOKENS);
  new Uint32Array(exports.memory.buffer, at, TOKENS).fill(1);
  const rest = new Uint8Array(exports.memory.buffer, at + 4 * TOKENS, 2 * TOKENS);
  for (let id = 0; id < TOKENS; id++) [rest[id], rest[TOKENS + id]] = [id === END ? 1 : 0, id];
  assert.equal(exports.grammar_vocabulary(TOKENS, at + 5 * TOKENS, at, at + 4 * TOKENS), 0);
  while (exports.grammar_learn() > 0);
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
  if (!at) return MEM_LOAD;      // nothing may be written where there is no room
  new Uint8Array(exports.memory.buffer, at, text.length).set(text);
  return exports.grammar_compile(SCHEMA, at, text.length, 0);
}

/** The masks along a text of the highest allowed bytes, or the status. */
function answer(exports, handle) {
  if (handle < 0) return handle;
  const masks = [];
  for (let state = exports.grammar_start(handle), i = 0; i < 20 && state > 0; i++) {
    let address = exports.grammar_mask(handle, state);
    while (!address && exports.grammar_error_status() === 0) address = exports.grammar_mask(handle, state);
    const mask = new Uint32Array(exports.memory.buffer, address, 9);
    const allowed = Array.from({ length: 256 }, (_, id) => id).filter((id) => mask[id >> 5] >>> (id & 31) & 1);
    masks.push([...mask].join());
    state = allowed.length ? exports.grammar_take(handle, state, allowed.at(i % 2 ? 0 : -1)) : 0;
  }
  return masks.join(' ');
}

/** A module that has nothing else, and its handle. */
function fresh(seed) {
  const exports = open();
  return [exports, compile(exports, seed)];
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

test('it takes no more memory than it is given', () => {
  const exports = open();
  const held = exports.memory.buffer.byteLength;
  const limit = held + (1 << 20);
  exports.grammar_limit(limit);
  assert.equal(exports.grammar_room(8 << 20), 0, 'what is beyond it is not there');
  assert.notEqual(exports.grammar_room(64 << 10), 0);
  for (let seed = 1; seed <= COUNT; seed++) answer(exports, compile(exports, seed));
  assert.ok(exports.memory.buffer.byteLength <= limit);
  exports.grammar_limit(limit + (8 << 20));
  assert.notEqual(exports.grammar_room(8 << 20), 0);
});

test('wherever its memory ends, it says so and goes on', () => {
  for (let pages = 0; pages < 24; pages++) {
    const exports = open();
    const limit = exports.memory.buffer.byteLength + (pages << 16);
    exports.grammar_limit(limit);
    for (let seed = 1; seed <= COUNT; seed++) answer(exports, compile(exports, seed));
    assert.ok(exports.memory.buffer.byteLength <= limit, `${pages} pages`);
    exports.grammar_limit(limit + (48 << 20));
    for (let handle = 1; handle <= COUNT; handle++) exports.grammar_release(handle);
    assert.equal(answer(exports, compile(exports, 1)), answer(...fresh(1)), `${pages} pages`);
  }
});

test('replies never use up a grammar: one that is worn gives way, and stays with those who began in it', async () => {
  const [QUOTE, SPACE, LETTER, REPLIES, BYTES_OF_ONE] = [0x22, 0x20, 0x61, 60, 4000];
  const grammars = await Grammars.open(module, /** @type {any} */ (BYTES));
  const schema = JSON.stringify({ type: 'string', pattern: '^(?:\\S+\\s+){0,99}\\S+$', maxLength: 5000 });
  const first = await grammars.compile('schema', schema);
  const begun = stateAfter(first, first.start, QUOTE);
  const any = random(1);
  const seen = [first];
  for (let reply = 0; reply < REPLIES; reply++) {
    const grammar = await grammars.compile('schema', schema);
    if (grammar !== seen.at(-1)) seen.push(grammar);
    let state = stateAfter(grammar, grammar.start, QUOTE);
    for (let i = 0, words = 0; i < BYTES_OF_ONE && words < 99; i++) {
      const byte = i > 0 && any() < 1 / 50 ? SPACE : LETTER;
      state = stateAfter(grammar, state, byte);
      words += byte === SPACE ? 1 : 0;
    }
    grammar.users--;
  }
  const last = seen[seen.length - 1];
  assert.ok(seen.length > 1 && seen.length < 20, String(seen.length));
  assert.deepEqual(maskOf(first, begun).slice(), maskOf(last, stateAfter(last, last.start, QUOTE)).slice());
});

test('it learns all tokens of an engine as they are, in 32 bits and in 64', async () => {
  for (const address of /** @type {const} */ ([32, 64])) {
    if (address === 64 && !hasMemory64()) continue;
    const engine = await engineOver(readFileSync(DEMO), { address });
    engine.finish();
    const { starts, bytes, types } = engine.tokens();
    const [all, text, kinds] = [starts.slice(), bytes.slice(), types.slice()];
    const spelled = Array.from(kinds, (_, id) => new TextDecoder().decode(text.subarray(all[id], all[id + 1])));
    assert.deepEqual(spelled, Array.from(kinds, (_, id) => engine.detokenize([id])));
    assert.deepEqual([...kinds], Array.from(kinds, (_, id) => engine.tokenType(id)));
    assert.equal(engine.longestToken(), Math.max(...Array.from(kinds, (_, id) => all[id + 1] - all[id])));
  }
});

test('a model\'s limit of memory holds for grammars too, and info tells what they take', async () => {
  const choices = ['yes', 'no'];
  const free = await load(DEMO, { threads: 1 });
  assert.equal(free.info.memory.grammars, 0);
  await free.chat('Yes?', { choices }).result;
  const { grammars, wasm } = free.info.memory;
  assert.ok(grammars >= 4 << 20 && grammars <= 160 << 20, String(grammars));
  await free.dispose();
  const tight = await load(DEMO, { threads: 1, memoryLimit: wasm + (4 << 20) });
  const { detail } = await rejectsWith(tight.chat('Yes?', { choices }).result, 'mem/plan');
  assert.deepEqual([detail.needed > detail.allowed, detail.allowed, tight.info.memory.grammars], [true, 4 << 20, 0]);
  assert.ok((await tight.chat('Yes?', { maxTokens: 3, temperature: 0 }).result).text, 'other replies are made');
  await tight.dispose();
  const roomy = await load(DEMO, { threads: 1, memoryLimit: wasm + (24 << 20) });
  assert.ok(choices.includes((await roomy.chat('Yes?', { choices }).result).value));
  assert.ok(roomy.info.memory.grammars > 0 && roomy.info.memory.grammars <= 24 << 20);
  await roomy.dispose();
});
