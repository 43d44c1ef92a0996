// SPDX-License-Identifier: MIT
// Renders chat templates. They are programs by the author of the model file: they run in slices, between which other
// work runs, and their steps are limited. For the same variables the result is the same as in transformers.

import { compile } from './compile.js';
import { readSteps } from './json.js';
import { NeedsRare } from './late.js';
import { LENT } from './lent.js';
import { Machine, ready } from './machine.js';
import { MOST_AT_ONCE, TemplateError } from './meter.js';
import { lending, notFetched } from '../shared/lent.js';
import { atOnce } from '../shared/steps.js';

const MOST_TEMPLATE = 2 ** 19;      // letters; Qwen3's own has 4,000

/** Steps of a rendering, further steps for each letter of its variables, and steps of a slice, about a millisecond. */
const [STEPS, STEPS_A_LETTER, SLICE] = [2_000_000, 4, 4000];

/** Letters of the variables for one more step per operation: operations on long texts take longer. */
const LETTERS_AT_ONCE = 16;

/** Number of remembered programs: a model has one template, and perhaps another one for tools. */
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
 * @param {string} template
 * @param {string} json text of an object; numbers and order are as in Python
 * @returns {Generator<void, Machine>} a machine that has not begun
 */
function* prepared(template, json, now) {
  const [steps, atMost] = [STEPS + STEPS_A_LETTER * json.length, MOST_AT_ONCE + json.length / LETTERS_AT_ONCE];
  const program = programOf(template);
  yield;
  return new Machine(program, yield* readSteps(json), { steps, atOnce: atMost, now });
}

/** Does the same at once. */
export const begin = (template, json, now = new Date()) => atOnce(prepared(template, json, now));

function* rendered(template, json) {
  const machine = yield* prepared(template, json, new Date());
  while (!machine.run(SLICE)) yield;
  return machine.out;
}

/**
 * @param {string} template
 * @param {string} json
 * @param {(steps: Iterator<unknown, string, void>) => Promise<string>} through takes some steps at a time, and lets
 *   other work run in between
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
