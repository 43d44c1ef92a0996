// SPDX-License-Identifier: MIT
// Asks a model with the tools that the visitor has switched on, and runs what it calls. Fetched with the first question
// that has tools, and with the first reply that has called some. What a call needs of its conversation is its `scene`:
// the attached texts, and how to search in them.
import { run } from 'quern/run';
import { isOn } from './choice.js';
import { ownTools } from './own-tools.js';

export { show, take } from './calls.js';

/** The tools of a conversation that are switched on, by their names. */
const toolsOf = (model, scene) =>
  Object.fromEntries(Object.entries(ownTools(model, scene)).filter(([name]) => isOn(name)));

/**
 * Asks a model with tools, or without, if all are switched off.
 * @param {'auto' | 'required'} toolChoice
 * @param {import('./own-tools.js').Scene} scene
 * @returns {import('quern').Reply | import('quern/run').RunReply}
 */
export function ask(model, messages, { toolChoice, ...options }, scene) {
  const tools = toolsOf(model, scene);
  return Object.keys(tools).length
    ? run(model, messages, { ...options, toolChoice, tools })
    : model.chat(messages, options);
}

/** Number of tokens of a conversation with its tools. @param {import('./own-tools.js').Scene} scene */
export function count(model, messages, scene) {
  const tools = Object.entries(toolsOf(model, scene))
    .map(([name, { description, parameters }]) => ({ name, description, parameters }));
  return model.countTokens(messages, { tools });
}
