// SPDX-License-Identifier: MIT
// Converts the OpenAI API's older form of tools, `functions` and `function_call`, to the newer one: a reply has one
// call, without an id. openai-tools.js converts answers (CallShape).

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';

const isSome = (list) => Array.isArray(list) && list.length > 0;

function choiceOf(choice) {
  if (choice == null || choice === 'none' || choice === 'auto') return choice;
  if (isRecord(choice)) return { type: 'function', function: { name: choice.name } };
  throw badParam('function_call', "must be 'none', 'auto' or { name }");
}

/** Gives calls and results ids: a result belongs to the call before it. @param {any[]} messages */
function modernMessages(messages) {
  let id = 'function_call';
  return messages.map((message, i) => {
    if (!isRecord(message)) return message;
    const { function_call: call, ...rest } = message;
    if (message.role === 'function') return { role: 'tool', tool_call_id: id, content: message.content ?? '' };
    if (call == null || message.tool_calls != null) return message;
    id = `function_call_${i}`;
    return { ...rest, tool_calls: [{ id, type: 'function', function: call }] };
  });
}

/** @param {any} body of a request @returns {any} the same in the newer form */
export function modern({ functions, function_call: choice, ...body }) {
  const messages = Array.isArray(body.messages) && { messages: modernMessages(body.messages) };
  if (functions != null && !Array.isArray(functions)) throw badParam('functions', 'must be an array');
  if (!isSome(functions)) return { ...body, ...messages };
  if (isSome(body.tools)) throw badParam('functions', 'and tools exclude each other');
  const tools = functions.map((one) => ({ type: 'function', function: one }));
  return { ...body, ...messages, tools, tool_choice: choiceOf(choice), parallel_tool_calls: false };
}

/** Names tools in errors in the older form. */
export const inOlderTerms = (text) =>
  text.replace(/\btools\[(\d+)\](?:\.function)?/g, 'functions[$1]').replace(/\btool_choice\b/g, 'function_call');
