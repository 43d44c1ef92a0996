// SPDX-License-Identifier: MIT
// Checks what a fake model is asked, as a real model's worker does, and refuses answers of its script that no real
// model could give: otherwise a test that passes with either could hide a fault. Only the engine checks schemas, so
// here a schema means only that a text is JSON.

import { QuernError } from '../shared/errors.js';
import { grammarOf } from '../reply/constraint.js';
import { formOf } from '../reply/calls.js';
import { Tools } from '../reply/tools.js';

/** Compiles nothing: constraints are checked before. */
const grammars = async () => /** @type {any} */ ({ compile: () => null });

/** @param {string | object[]} input checked @param {any} options @param {{callForm: string}} info */
export async function checkAsked(input, options, info) {
  if (Array.isArray(input)) void new Tools(input, options, formOf('', info));
  else if (input.length === 0) throw new QuernError('use/empty', 'There is nothing to do: the prompt is empty.');
  await grammarOf(options, grammars);
}

const shorten = (text) => JSON.stringify(text.slice(0, 100));

function isJson(text) {
  try {
    return [JSON.parse(text)].length > 0;
  } catch {
    return false;
  }
}

function isMatch(text, given) {
  const { source = given, flags = '' } = given;
  return new RegExp(`^(?:${source})$`, flags.includes('s') ? 'su' : 'u').test(text);
}

/** Constraints of a text: what it must be, and a test. Options are JSON, as they are sent. */
const LIMITS = {
  choices: ['one of the choices', (text, given) => given.includes(text)],
  regex: ['matched by the expression', isMatch],
  schema: ['JSON', isJson],
  json: ['JSON', isJson],
};

/** @param {{text?: string, toolCalls?: {name: string}[]}} answer of a script, complete */
export function checkAnswer({ text = '', toolCalls = [] }, options) {
  const wrong = (what) => new TypeError(`The script of fakeModel() has an impossible answer: ${what}.`);
  const { tools = [], toolChoice, parallelToolCalls = true } = options;
  for (const { name } of toolCalls) {
    if (!tools.some((tool) => tool.name === name))
      throw wrong(`it calls ${name}, which is not one of the tools`);
    if (toolChoice?.name && toolChoice.name !== name)
      throw wrong(`it calls ${name}, but toolChoice is ${toolChoice.name}`);
    if (toolChoice?.names && !toolChoice.names.includes(name))
      throw wrong(`it calls ${name}, which toolChoice does not name`);
  }
  if (toolChoice === 'none' && toolCalls.length > 0) throw wrong('it calls a tool, but toolChoice is \'none\'');
  const wantsCall = toolChoice === 'required' || toolChoice?.name || toolChoice?.required;
  if (wantsCall && toolCalls.length === 0) throw wrong('it calls nothing, but toolChoice wants a call');
  if (toolCalls.length > 1 && !parallelToolCalls) throw wrong('it has several calls where parallelToolCalls is false');
  if (toolCalls.length > 0) return;
  for (const [name, [what, holds]] of Object.entries(LIMITS)) {
    if (options[name] && !holds(text, JSON.parse(options[name])))
      throw wrong(`options.${name} is set, but ${shorten(text)} is not ${what}`);
  }
}
