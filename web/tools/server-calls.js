// SPDX-License-Identifier: MIT
// The tools of MCP servers as a model may call them. Each call needs the visitor's permission, for once or for all
// calls of this tool in this conversation, which this tab remembers until it is closed or the tool is another.
import { say } from '../shell/words.js';
import { askAbout, setProgress } from './pending.js';
import { withServers } from './reach.js';
import { serverTools } from './servers.js';

const REFUSED = 'The user has refused this call.';

const allowed = new Set();
const asking = new Map();       // what is asked about -> promise of the end of the question

/** Asks for permission, one call of a tool after another, since one answer may be for all. Resolves when it is given. */
async function permission({ server, tool }, { id, name, signal }, scene) {
  const key = JSON.stringify([scene.conversation, server.address, tool.name, tool.description, tool.schema]);
  while (asking.has(key)) await asking.get(key);
  if (allowed.has(key)) return;
  const { host } = new URL(server.address);
  const answers = [[say`Allow once`, 'once'], [say`Allow in this conversation`, 'always'], [say`Refuse`, '']];
  const sentence = say`May the model call “${name}” of ${host}?`;
  scene.wait(say`Waiting for your permission…`);
  const asked = askAbout(id, sentence, say`The arguments above are sent there.`, answers, signal, scene.onChange);
  asking.set(key, asked.catch(() => {}).finally(() => asking.delete(key)));
  const answer = await asked;
  scene.wait('');
  if (!answer) throw new Error(REFUSED);
  if (answer === 'always') allowed.add(key);
}

/** Lets a model's call reach its server. @param {boolean} sees whether the model has vision */
async function carryOut(one, given, call, scene, sees) {
  await permission(one, call, scene);
  const onProgress = (text) => {
    setProgress(call.id, text);
    scene.onChange();
  };
  try {
    const { callTool } = await withServers();
    return await callTool(one, given, { signal: call.signal, sees, onProgress });
  } finally {
    setProgress(call.id, '');
  }
}

/**
 * The tools of all servers, by their names for the model.
 * @param {string[]} taken names of other tools
 * @param {boolean} sees whether the model has vision
 * @param {import('./own-tools.js').Scene} scene
 */
export const toolsOfServers = (taken, sees, scene) =>
  Object.fromEntries(Array.from(serverTools(taken), ([name, one]) => [name, {
    description: one.tool.description,
    parameters: one.tool.schema,
    execute: (given, call) => carryOut(one, given, call, scene, sees),
  }]));
