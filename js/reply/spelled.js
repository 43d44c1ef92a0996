// SPDX-License-Identifier: MIT
// Tools, calls and results as texts of messages, for files without a chat template: built-in ChatML does not know them.
// Each form of calls (calls.js) is spelled as in its models' templates.

import { jsonText, partsOf, spaced } from '../shared/raw-json.js';

/**
 * @typedef {object} Spelling
 * @property {(list: string) => string} about says which tools there are; list: their JSON, a line each
 * @property {boolean} isFirst whether that comes before the text of the system message, else after it
 * @property {string} gap the text between a message's text and its first call
 * @property {(name: string, given: string) => string} call given: JSON of the arguments
 */

/** @type {Spelling} */
export const JSON_SPELLING = {
  about: (list) =>
    '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' +
    `You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n${list}\n</tools>\n\n` +
    'For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n' +
    '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>',
  isFirst: false,
  gap: '\n',
  call: (name, given) => `<tool_call>\n{"name": "${name}", "arguments": ${spaced(given)}}\n</tool_call>`,
};

/** Of calls without marks. @type {Spelling} */
export const PARAMETERS_SPELLING = {
  about: (list) =>
    `You can call these functions:\n\n${list}\n\n` +
    'To call one, reply only with a JSON object {"name": <function-name>, "parameters": <args-json-object>}.',
  isFirst: false,
  gap: '\n',
  call: (name, given) => `{"name": "${name}", "parameters": ${spaced(given)}}`,
};

const NAME = /^"(?:[^"\\]|\\.)*"/;

/** A member of the arguments between tags; a string is written as it is. */
function tagged(member) {
  const [name] = NAME.exec(member);
  const value = member.slice(name.length).replace(/^\s*:\s*/, '');
  return `<parameter=${JSON.parse(name)}>\n${value[0] === '"' ? JSON.parse(value) : spaced(value)}\n</parameter>\n`;
}

/** @type {Spelling} */
export const TAGGED_SPELLING = {
  about: (list) =>
    `# Tools\n\nYou have access to the following functions:\n\n<tools>\n${list}\n</tools>\n\n` +
    'If you choose to call a function ONLY reply in the following format with NO suffix:\n\n' +
    '<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n' +
    '<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n</parameter>\n' +
    '</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n' +
    '- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within ' +
    '<tool_call></tool_call> XML tags\n' +
    '- Required parameters MUST be specified\n' +
    '- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after\n' +
    '- If there is no function call available, answer the question like normal with your current knowledge and ' +
    'do not tell the user about function calls\n' +
    '</IMPORTANT>',
  isFirst: true,
  gap: '\n\n',
  call: (name, given) =>
    `<tool_call>\n<function=${name}>\n${partsOf(given).map(tagged).join('')}</function>\n</tool_call>`,
};

/** Joins texts; returns a list of parts if some of them have media. */
const joined = (...pieces) => (pieces.every((piece) => typeof piece === 'string') ? pieces.join('')
  : pieces.flatMap((piece) => (typeof piece === 'string' ? { type: 'text', text: piece } : piece)));

/**
 * @param {any[]} messages guarded
 * @param {any[] | undefined} list the tools
 * @param {Spelling} spelling
 */
export function spelled(messages, list, { about, isFirst, gap, call }) {
  const all = [];
  const callText = ({ function: { name, arguments: given } }) => call(name, jsonText(given));
  for (const { role, content, tool_calls: calls, ...more } of messages) {
    const result = joined('<tool_response>\n', content, '\n</tool_response>');
    const said = calls ? (content && content + gap) + calls.map(callText).join('\n') : content;
    if (role !== 'tool') all.push({ ...more, role, content: said });
    else if (all.at(-1)?.isResult) all.at(-1).content = joined(all.at(-1).content, '\n', result);
    else all.push({ role: 'user', content: result, isResult: true });
  }
  if (!list) return all;
  const words = about(list.map((tool) => spaced(jsonText(tool))).join('\n'));
  const [{ role, content }] = all;
  if (role !== 'system') return [{ role: 'system', content: words }, ...all];
  const both = isFirst ? words + (content && `\n\n${content}`) : `${content}\n\n${words}`;
  return [{ role, content: both }, ...all.slice(1)];
}
