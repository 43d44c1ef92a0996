// SPDX-License-Identifier: MIT
// Renders chat templates, which are programs written by whoever made the model file: they run in slices, between which
// others are let in, and end by a count of their steps. What they make of the same variables is what transformers makes
// of them.

import { compile } from './compile.js';
import { readSteps } from './json.js';
import { NeedsRare } from './late.js';
import { LENT } from './lent.js';
import { Machine, ready } from './machine.js';
import { MOST_AT_ONCE, TemplateError } from './meter.js';
import { lending, notFetched } from '../shared/lent.js';
import { atOnce } from '../shared/steps.js';

const MOST_TEMPLATE = 2 ** 19;      // letters; Qwen3's own has 4,000

/** Steps of a rendering, and more for each letter of its variables; of what is done at a time, a millisecond or so. */
const [STEPS, STEPS_A_LETTER, SLICE] = [2_000_000, 4, 4000];

/** Letters of its variables for which an operation may take a step more: what looks at a long text takes longer. */
const LETTERS_AT_ONCE = 16;

/** Programs that are remembered: a model has its template, and perhaps one for tools. */
const REMEMBERED = 4;

const programs = new Map();

function programOf(template) {
  if (template.length > MOST_TEMPLATE) throw new TemplateError(`it has over ${MOST_TEMPLATE} letters`);
  const program = programs.get(template) ?? ready(compile(template));
  programs.delete(template);
  programs.set(template, program);
  if (programs.size > REMEMBERED) programs.delete(programs.keys().next().value);
  return program;
}

/**
 * @param {string} template @param {string} json the text of an object: numbers and orders are what Python makes of it
 * @returns {Generator<void, Machine>} that has not begun
 */
function* prepared(template, json, now) {
  const [steps, atMost] = [STEPS + STEPS_A_LETTER * json.length, MOST_AT_ONCE + json.length / LETTERS_AT_ONCE];
  const program = programOf(template);
  yield;
  return new Machine(program, yield* readSteps(json), { steps, atOnce: atMost, now });
}

/** The same at once. */
export const begin = (template, json, now = new Date()) => atOnce(prepared(template, json, now));

function* rendered(template, json) {
  const machine = yield* prepared(template, json, new Date());
  while (!machine.run(SLICE)) yield;
  return machine.out;
}

/**
 * @param {string} template @param {string} json
 * @param {(steps: Iterator<unknown, string, void>) => Promise<string>} through takes some steps at a time, and lets
 *   others in between
 * @returns {Promise<string>}
 */
export async function render(template, json, through) {
  try {
    return await through(rendered(template, json));
  } catch (error) {
    if (!(error instanceof NeedsRare)) throw error;
    const { add } = await import('./template-rare.js').then(lending(LENT), notFetched());
    add();
    return through(rendered(template, json));
  }
}
