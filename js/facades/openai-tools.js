// SPDX-License-Identifier: MIT
// Tools and calls in the OpenAI API's form and in ours, in both directions. There arguments are JSON as text, here objects; what is wrong within them
// the model itself says (reply/tools.js).

import { QuernError, badParam } from '../shared/errors.js';
import { asJson, isRecord, read } from '../page/values.js';
import { dense, memberOf, parsed, partsOf } from '../shared/raw-json.js';

export function unsupported(path, what = 'is not supported by this version') {
  return new QuernError('use/param', `${path} ${what}.`, { detail: { param: path, reason: 'unsupported_parameter' } });
}

function listOf(value, path) {
  if (!Array.isArray(value)) throw badParam(path, 'must be an array');
  return value;
}

// --- of requests ---

function functionOf(value, path) {
  if (!isRecord(value)) throw badParam(path, 'must be an object with type and function');
  if (value.type !== 'function') throw unsupported(`${path}.type`, "must be 'function'; nothing else is supported by this version");
  if (!isRecord(value.function)) throw badParam(`${path}.function`, 'must be an object');
  return value.function;
}

function choiceOf(choice) {
  if (typeof choice === 'string' || choice == null) return choice;
  return { name: functionOf(choice, 'tool_choice').name };
}

/** Tools of requests that came as text, as they are written there. @type {WeakMap<object, string>} */
const texts = new WeakMap();

/** A request's body from its JSON. Throws a SyntaxError. @param {string} text */
export function bodyOf(text) {
  const body = JSON.parse(text);
  if (!Array.isArray(body?.tools)) return body;
  const written = partsOf(memberOf(text, 'tools'));
  body.tools.forEach((tool, i) => { if (isRecord(tool)) texts.set(tool, written[i]); });
  return body;
}

/** A tool as templates are to see it: as the client wrote it, with what else it has. Nothing where that says no more than our own form of it. */
function writtenTool(tools, i, { name, description, parameters }) {
  const text = texts.get(tools[i]) ?? read(tools, i, `tools[${i}]`, asJson);
  const own = { type: 'function', function: { name, description, parameters } };
  return parameters != null && dense(text) === JSON.stringify(own) ? {} : { json: text };
}

/** The options that a request with tools has. `strict` changes nothing: calls always obey their schema. */
export function toolOptions({ tools, tool_choice: choice, parallel_tool_calls: parallel }) {
  if (parallel === false) throw unsupported('parallel_tool_calls');
  const list = tools == null ? [] : listOf(tools, 'tools').map((tool, i) => {
    const { name, description, parameters } = functionOf(tool, `tools[${i}]`);
    return { name, description, parameters, ...writtenTool(tools, i, { name, description, parameters }) };
  });
  return { ...(list.length && { tools: list }), ...(choice != null && { toolChoice: choiceOf(choice) }) };
}

/** What a message has to do with tools. */
export function toolFields({ tool_calls: calls, tool_call_id: toolCallId }, path) {
  const toolCalls = calls?.length === 0 ? null : calls;
  return {
    ...(toolCalls != null && { toolCalls: listOf(toolCalls, `${path}.tool_calls`).map((call, i) => {
      const { name, arguments: given } = functionOf(call, `${path}.tool_calls[${i}]`);
      return { id: call.id, name, arguments: given === '' ? '{}' : given };
    }) }),
    ...(toolCallId != null && { toolCallId }),
  };
}

/** A path of ours as the API has it. */
export const inTerms = (text) => text.replace(/\btoolCalls\b/g, 'tool_calls').replace(/\btoolCallId\b/g, 'tool_call_id')
  .replace(/\b(tools|tool_calls)\[(\d+)\]\.(name|description|parameters|arguments)/g, '$1[$2].function.$3')
  .replace(/\btools\[(\d+)\]\.json\b/g, 'tools[$1]');

// --- of answers ---

const written = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * What calls were given, as the model wrote it, by their ids.
 * @param {AsyncIterable<any>} events of a reply
 * @returns {Promise<Map<string, string>>}
 */
export async function writtenCalls(events) {
  const texts = new Map();
  const all = new Map();
  for await (const { type, index, id, delta } of events) {
    if (type === 'tool-call-delta') texts.set(index, (texts.get(index) ?? '') + delta);
    if (type === 'tool-call' && texts.has(index)) all.set(id, texts.get(index));
  }
  return all;
}

/** Calls of a message. @param {Map<string, string>} [texts] what they were given, where that is known as text */
export const callsOf = (toolCalls, texts) => toolCalls.map(({ id, name, arguments: given }) => (
  { id, type: 'function', function: { name, arguments: texts?.get(id) ?? written(given) } }));

/** The delta of an event of a call; null: it says nothing new. */
export function callDelta({ type, index, id, name, delta }) {
  if (type === 'tool-call-start') return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
  return type === 'tool-call-delta' ? { tool_calls: [{ index, function: { arguments: delta } }] } : null;
}

// --- what a remote model is asked, and answers ---

/** As it is written, where that is said. */
function toolOf(tool) {
  const { json, ...own } = isRecord(tool) ? tool : {};
  return parsed(json) ?? { type: 'function', function: isRecord(tool) ? own : tool };
}

/** Fields of a request. @param {{tools?: any, toolChoice?: any}} options */
export function toolRequest({ tools, toolChoice }) {
  const isName = isRecord(toolChoice);
  return {
    ...(tools != null && { tools: listOf(tools, 'options.tools').map(toolOf) }),
    ...(toolChoice != null && { tool_choice: isName ? { type: 'function', function: toolChoice } : toolChoice }),
  };
}

/** Fields of a message. @param {{toolCalls?: any, toolCallId?: any}} message */
export function toolMessage({ toolCalls, toolCallId }) {
  const calls = toolCalls == null ? [] : listOf(toolCalls, 'messages');
  if (!calls.every(isRecord)) throw badParam('messages', 'have a call that is no object');
  return {
    ...(calls.length && { tool_calls: callsOf(calls) }),
    ...(toolCallId != null && { tool_call_id: toolCallId }),
  };
}

/** The calls of a reply that comes in deltas. */
export class GatheredCalls {
  #calls = new Map();     // {id, name, text} by their numbers

  /** @param {any} deltas of a chunk @param {(event: object) => void} push */
  take(deltas, push) {
    for (const { index = 0, id = `call_${index}`, function: { name = '', arguments: text = '' } = {} } of deltas ?? []) {
      if (!this.#calls.has(index)) {
        this.#calls.set(index, { id, name, text: '' });
        push({ type: 'tool-call-start', index, id, name });
      }
      if (!text) continue;
      this.#calls.get(index).text += text;
      push({ type: 'tool-call-delta', index, delta: text });
    }
  }

  /** @returns {{toolCalls: object[], text: string}} those whose arguments are an object; the others as text */
  end(push) {
    const toolCalls = [];
    let lost = '';
    for (const [index, { id, name, text }] of this.#calls) {
      const given = parsed(text || '{}');
      if (isRecord(given)) {
        toolCalls.push({ id, name, arguments: given });
        push({ type: 'tool-call', index, id, name, arguments: given });
      } else lost += `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${text}}\n</tool_call>`;
    }
    this.#calls.clear();
    return { toolCalls, text: lost };
  }
}
