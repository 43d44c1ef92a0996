// SPDX-License-Identifier: MIT
// quern's side of maskbench.mjs, a process for each round: dist/grammar.wasm through js/engine/grammar.js, warmed up by the first cases in a module
// that is not measured. A line of JSON for each schema that compiles: microseconds.
import { readFileSync } from 'node:fs';
import { Grammars } from '../../js/engine/grammar.js';
import { maskOf, stateAfter } from '../fixtures/whole.mjs';
import { vocabularyOf } from './masks-run.js';

const FLEXIBLE = 1;     // white space where JSON allows it, as the instances have it
const WARM = 100;

const isIn = (mask, id) => mask[id >>> 5] >>> (id & 31) & 1;
const now = () => performance.now() * 1000;

/** Each mask on the way, up to the first token that is not allowed. */
function along(grammar, tokens) {
  const steps = [];
  let state = grammar.start;
  for (const id of tokens) {
    const began = now();
    const mask = maskOf(grammar, state);
    steps.push(now() - began);
    if (!isIn(mask, id)) break;
    state = stateAfter(grammar, state, id);
  }
  return steps;
}

/** Undefined where it is refused. */
async function measured(grammars, { id, schema, tests }) {
  try {
    const began = now();
    const grammar = await grammars.compile('schema', schema, FLEXIBLE);
    const compile = now() - began;
    try {
      return { id, compile, tests: tests.map((tokens) => along(grammar, tokens)) };
    } finally {
      grammar.users--;
    }
  } catch (error) {
    if (error.code === 'use/schema') return undefined;
    throw error;
  }
}

const [ranks, cases, wasm] = process.argv.slice(2);
const { engine } = vocabularyOf(readFileSync(ranks, 'latin1'));
const module = await WebAssembly.compile(readFileSync(wasm));
const all = readFileSync(cases, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const warming = await Grammars.open(module, engine);
for (const one of all.slice(0, WARM)) await measured(warming, one);
const grammars = await Grammars.open(module, engine);
for (const one of all) {
  const found = await measured(grammars, one);
  if (found) console.log(JSON.stringify(found));
}
