// SPDX-License-Identifier: MIT
// Asks a model with the tools that the visitor has switched on, and runs what it calls. Fetched with the first question
// that has tools, and with the first reply that has called some. What a call needs of its conversation is its `scene`:
// the attached texts, and how to search in them.
import { run } from 'quern/run';
import { ownTools } from './own-tools.js';

export { show, take } from './calls.js';

/**
 * Asks a model with tools.
 * @param {'auto' | 'required'} toolChoice
 * @param {import('./own-tools.js').Scene} scene
 * @returns {import('quern/run').RunReply}
 */
export const ask = (model, messages, { toolChoice, ...options }, scene) =>
  run(model, messages, { ...options, toolChoice, tools: ownTools(model, scene) });

/** Number of tokens of a conversation with its tools. @param {import('./own-tools.js').Scene} scene */
export function count(model, messages, scene) {
  const tools = Object.entries(ownTools(model, scene))
    .map(([name, { description, parameters }]) => ({ name, description, parameters }));
  return model.countTokens(messages, { tools });
}
