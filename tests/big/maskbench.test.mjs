// SPDX-License-Identifier: MIT
// MaskBench (github.com/guidance-ai/jsonschemabench, its folder maskbench/): some 11,300 schemas that people wrote, with valid and invalid instances,
// through dist/grammar.wasm token by token. Its data is not ours to pass on: QUERN_MASKBENCH names the folder with its JSON files.
//
//   QUERN_MASKBENCH=DIR npm run test:big -- maskbench         (QUERN_MASKBENCH_SOME=50: each fiftieth file)

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Grammars } from '../../js/engine/grammar.js';
import { isIn, vocabularyOf } from '../bench/masks-run.js';
import { maskOf, stateAfter } from '../fixtures/whole.mjs';
import { PROJECT } from '../fixtures/golden.mjs';

const FOLDER = process.env.QUERN_MASKBENCH ?? '';
const EACH = Number(process.env.QUERN_MASKBENCH_SOME ?? 1);

/** Of so many schemas, how many have to pass. */
const PASSING = 10_000;
const ALL = 11_305;

const FLEXIBLE = 1;

/** JSON as tokens, and a value of them as Python writes it: numbers stay as they are written, properties in their order. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const WRITTEN = { ',': ', ', ':': ': ' };

const spelt = (token) => WRITTEN[token] ?? (token[0] === '"' ? JSON.stringify(JSON.parse(token)) : token);

/** The value at tokens[at]: its text, where it ends, and the places of what is in it. */
function valueAt(tokens, at) {
  const inside = new Map();
  let depth = 0;
  let end = at;
  do {
    const token = tokens[end++];
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
    if (depth !== 1 || token === ']' || token === '}') continue;
    if (tokens[at] === '{' && tokens[end] === ':') inside.set(JSON.parse(token), end + 1);
    if (tokens[at] === '[' && (end === at + 1 || token === ',') && tokens[end] !== ']') inside.set(inside.size, end);
  } while (depth > 0);
  return { inside, text: () => tokens.slice(at, end).map(spelt).join('') };
}

function readCase(name) {
  const tokens = readFileSync(join(FOLDER, name), 'utf8').match(TOKENS) ?? [];
  const { inside } = valueAt(tokens, 0);
  const tests = [...valueAt(tokens, inside.get('tests')).inside.values()].map((place) => {
    const one = valueAt(tokens, place).inside;
    return { text: valueAt(tokens, one.get('data')).text(), isValid: tokens[one.get('valid')] === 'true' };
  });
  return { schema: valueAt(tokens, inside.get('schema')).text(), tests };
}

/** A text as tokens, the longest first. */
class Cutter {
  #ids = new Map();
  #longest = 0;

  constructor(all) {
    for (const [id, bytes] of all.entries()) this.#ids.set(Buffer.from(bytes).toString('latin1'), id);
    this.#longest = all.reduce((most, { length }) => Math.max(most, length), 0);
  }

  * of(text) {
    const latin = Buffer.from(text).toString('latin1');
    for (let at = 0; at < latin.length;) {
      let n = Math.min(latin.length - at, this.#longest);
      while (!this.#ids.has(latin.slice(at, at + n))) n--;
      yield this.#ids.get(latin.slice(at, at + n));
      at += n;
    }
  }
}

/** Whether the masks let a text through, up to its end. */
function isLetThrough(grammar, ids, times) {
  let state = grammar.start;
  for (const id of ids) {
    const began = performance.now();
    const mask = maskOf(grammar, state);
    times.push(1000 * (performance.now() - began));
    if (!isIn(mask, id)) return false;
    state = stateAfter(grammar, state, id);
  }
  return grammar.accepts(state);
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;

class Tally {
  passing = 0;
  refused = {};
  compile = [];
  masks = [];
  rejected = [];      // valid instances
  leaks = [];         // invalid ones that are let through
  limits = [];        // what was too much on the way

  /** @returns {boolean} whether every instance is judged rightly */
  judge(name, grammar, cutter, tests) {
    let right = true;
    for (const [i, { text, isValid }] of tests.entries()) {
      let through = false;
      try {
        through = isLetThrough(grammar, cutter.of(text), this.masks);
      } catch (error) {
        this.limits.push(`${name} ${i}: ${error.message}`);
        if (!isValid) right = false;
      }
      if (through !== isValid) (isValid ? this.rejected : this.leaks).push(`${name} ${i}`);
      right &&= through === isValid;
    }
    return right;
  }

  report(n) {
    const [compile, masks] = [this.compile, this.masks].map((list) => list.toSorted((a, b) => a - b));
    const refused = Object.entries(this.refused).toSorted((a, b) => b[1] - a[1]);
    return [
      `${n} schemas, ${this.passing} pass; refused: ${refused.reduce((sum, [, count]) => sum + count, 0)} (${refused.map(([rule, count]) => `${rule} ${count}`).join(', ')})`,
      `valid instances rejected: ${this.rejected.length}, invalid ones let through: ${this.leaks.length}, limits on the way: ${this.limits.length}`,
      `masks: ${masks.length}, mean ${mean(masks).toFixed(1)} us, p50 ${quantile(masks, 0.5).toFixed(1)}, p99 ${quantile(masks, 0.99).toFixed(0)} us`,
      `compilations: p50 ${quantile(compile, 0.5).toFixed(2)} ms, p99 ${quantile(compile, 0.99).toFixed(1)} ms`,
    ];
  }
}

describe('MaskBench', { skip: FOLDER ? false : 'QUERN_MASKBENCH names no folder with its data' }, () => {
  test('every schema', async (t) => {
    const { all, engine } = vocabularyOf(readFileSync(join(PROJECT, 'tests/fixtures/vocab/qwen.tiktoken'), 'utf8'));
    const module = await WebAssembly.compile(readFileSync(join(PROJECT, 'dist/grammar.wasm')));
    const cutter = new Cutter(all);
    const grammars = await Grammars.open(module, /** @type {any} */ (engine));
    const tally = new Tally();
    const files = readdirSync(FOLDER).filter((name) => name.endsWith('.json')).filter((_, i) => i % EACH === 0);
    for (const name of files) {
      const { schema, tests } = readCase(name);
      const began = performance.now();
      try {
        const grammar = await grammars.compile('schema', schema, FLEXIBLE);
        tally.compile.push(performance.now() - began);
        tally.passing += Number(tally.judge(name, grammar, cutter, tests));
        grammar.users--;
      } catch (error) {
        assert.equal(error.code, 'use/schema', error.stack);
        tally.refused[error.detail.rule] = (tally.refused[error.detail.rule] ?? 0) + 1;
      }
      assert.ok(!grammars.isDead, name);
    }
    for (const line of tally.report(files.length)) t.diagnostic(line);
    t.diagnostic(`rejected: ${tally.rejected.join(', ')}`);
    for (const line of tally.limits) t.diagnostic(`limit: ${line}`);
    assert.deepEqual(tally.leaks, []);
    assert.ok(tally.passing >= (PASSING / ALL) * files.length, `${tally.passing} pass`);
  });
});
