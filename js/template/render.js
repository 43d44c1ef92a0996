// SPDX-License-Identifier: MIT
// Renders chat templates, which are programs written by whoever made the model file: they run in slices, between which others are let in, and end
// by a count of their steps. What they make of the same variables is what transformers makes of them.

import { compile } from './compile.js';
import { jsonRead } from './json.js';
import { NeedsRare } from './late.js';
import { LENT } from './lent.js';
import { Machine, ready } from './machine.js';
import { MOST_AT_ONCE, TemplateError } from './meter.js';
import { QuernError } from '../shared/errors.js';
import { lending } from '../shared/lent.js';

const MOST_TEMPLATE = 2 ** 19;      // letters; Qwen3's own has 4,000

/** Steps of a rendering, and more for each letter of its variables; of a slice, some milliseconds. */
const [STEPS, STEPS_A_LETTER, SLICE] = [2_000_000, 4, 20_000];

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
 * @returns {Machine} that has not begun
 */
export function begin(template, json, now = new Date()) {
  const [steps, atOnce] = [STEPS + STEPS_A_LETTER * json.length, MOST_AT_ONCE + json.length / LETTERS_AT_ONCE];
  return new Machine(programOf(template), jsonRead(json), { steps, atOnce, now });
}

/** @returns {never} */
function notFetched(cause) {
  throw new QuernError('env/worker', `A part of the package could not be fetched (${cause.message}).`, { cause });
}

/** @param {string} template @param {string} json @param {() => void | Promise<void>} rest lets others in @returns {Promise<string>} */
export async function render(template, json, rest) {
  try {
    const machine = begin(template, json);
    while (!machine.run(SLICE)) await rest();
    return machine.out;
  } catch (error) {
    if (!(error instanceof NeedsRare)) throw error;
    const { add } = await import('./template-rare.js').then(lending(LENT), notFetched);
    add();
    return render(template, json, rest);
  }
}
