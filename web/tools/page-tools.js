// SPDX-License-Identifier: MIT
// Asks a model with the tools that the visitor has switched on, and runs what it calls. Fetched with the first question
// that has tools, and with the first reply that has called some. What a call needs of its conversation is its `scene`:
// the attached texts, and how to search in them.
import { announce } from '../shell/dom.js';
import { say } from '../shell/words.js';
import { run } from 'quern/run';
import { isOn } from './choice.js';
import { ownTools } from './own-tools.js';
import { toolsOfServers } from './server-calls.js';
import { leaveOut, serverTools } from './servers.js';

export { show, take } from './calls.js';

/** Most letters of a result; in a small context a letter for each of its tokens, so that a reply still fits. */
const MOST = 20_000;

/** A tool whose results are no longer than a model can read. */
function bounded({ execute, ...tool }, model) {
  const most = Math.min(MOST, model.info.contextSize);
  const cut = (result) => (result.length > most ? `${result.slice(0, most)}\n(The rest is left out.)` : result);
  return { ...tool, execute: async (...given) => {
    const result = await execute(...given);
    return typeof result === 'string' ? cut(result) : result;
  } };
}

/** The tools of a conversation that are switched on, by their names. */
function toolsOf(model, scene) {
  const all = ownTools(model, scene);
  const own = Object.fromEntries(Object.entries(all).filter(([name]) => isOn(name)));
  const tools = { ...own, ...toolsOfServers(Object.keys(all), Boolean(model.info.vision), scene) };
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, bounded(tool, model)]));
}

/** What the engine says of parameters whose calls it cannot make. */
const UNUSABLE = /^The parameters of '(.+?)': (.*)$/s;

/** Leaves the tool of a server out that a reply has failed with. @returns {boolean} whether there is one */
function isLeftOut({ code, message }, model, scene) {
  const [, name, why] = (code === 'use/schema' && UNUSABLE.exec(message)) || [];
  const one = serverTools(Object.keys(ownTools(model, scene))).get(name);
  if (!one || !leaveOut(one, why)) return false;
  announce(say`The tool “${name}” is left out: ${why}`);
  return true;
}

/**
 * Asks a model with tools, or without, if all are switched off. A tool of a server whose calls the engine cannot make
 * is left out, and the model is asked again.
 * @param {'auto' | 'required'} toolChoice
 * @param {import('./own-tools.js').Scene} scene
 * @returns {Pick<import('quern').Reply, 'events' | 'result' | 'stop'>}
 */
export function ask(model, messages, { toolChoice, ...options }, scene) {
  const begin = () => {
    const tools = toolsOf(model, scene);
    return Object.keys(tools).length
      ? run(model, messages, { ...options, toolChoice, tools })
      : model.chat(messages, options);
  };
  let reply = begin();
  async function* events() {
    for (;;) {
      try {
        return yield* reply.events;
      } catch (error) {
        if (!isLeftOut(error, model, scene)) throw error;
        reply = begin();
      }
    }
  }
  return { events: events(), get result() { return reply.result; }, stop: () => reply.stop() };
}

/**
 * The tools of a conversation as a model reads them: with them it knows the beginning of a prompt.
 * @param {import('./own-tools.js').Scene} scene
 */
export const listOf = (model, scene) => Object.entries(toolsOf(model, scene))
  .map(([name, { description, parameters }]) => ({ name, description, parameters }));
