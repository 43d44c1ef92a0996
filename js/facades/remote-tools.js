// SPDX-License-Identifier: MIT
// Tools and calls of a remote model: fields of requests, and calls gathered from chunks, which servers number in
// different ways.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { parsed } from '../shared/raw-json.js';
import { callsOf } from './openai-tools.js';

function listOf(value, path) {
  if (!Array.isArray(value)) throw badParam(path, 'must be an array');
  return value;
}

/** Uses the tool's own JSON, if it has one. */
function toolOf(tool) {
  const { json, ...own } = isRecord(tool) ? tool : {};
  return parsed(json) ?? { type: 'function', function: isRecord(tool) ? own : tool };
}

const named = (name) => ({ type: 'function', function: { name } });

/** Converts a choice to the API's form. */
function choiceOf(choice) {
  if (!isRecord(choice)) return choice;
  const { name, names, required } = choice;
  if (!Array.isArray(names)) return named(name);
  return { type: 'allowed_tools', allowed_tools: { mode: required ? 'required' : 'auto', tools: names.map(named) } };
}

/** Fields of a request. @param {{tools?: any, toolChoice?: any, parallelToolCalls?: boolean}} options */
export function toolRequest({ tools, toolChoice, parallelToolCalls }) {
  return {
    ...(tools != null && { tools: listOf(tools, 'options.tools').map(toolOf) }),
    ...(toolChoice != null && { tool_choice: choiceOf(toolChoice) }),
    ...(parallelToolCalls !== undefined && tools?.length && { parallel_tool_calls: parallelToolCalls }),
  };
}

/** Fields of a message. @param {{toolCalls?: any, toolCallId?: any}} message */
export function toolMessage({ toolCalls, toolCallId }) {
  const calls = toolCalls == null ? [] : listOf(toolCalls, 'messages');
  if (!calls.every(isRecord)) throw badParam('messages', 'have a call that is not an object');
  return {
    ...(calls.length && { tool_calls: callsOf(calls) }),
    ...(toolCallId != null && { tool_call_id: toolCallId }),
  };
}

const isWhole = ({ text }) => isRecord(parsed(text));

/** Gathers the calls of a reply from deltas. */
export class GatheredCalls {
  #calls = [];            // {id, name, text} in their order; also ended ones
  #latest = new Map();    // the latest call by the server's index
  #ended = 0;             // number of ended calls

  /** @param {any} deltas of a chunk @param {(event: object) => void} push */
  take(deltas, push) {
    for (const { index, id, function: { name, arguments: given } = {} } of deltas ?? []) {
      const call = this.#callOf(index ?? -1, id, name) ?? this.#begin(index ?? -1, { id, name }, push);
      const text = typeof given === 'string' ? given : JSON.stringify(given ?? '').replace(/^""$/, '');
      if (!text) continue;
      call.text += text;
      push({ type: 'tool-call-delta', index: this.#calls.indexOf(call), delta: text });
    }
  }

  /**
   * The call that a delta continues. A name with a different id begins another call, whatever its index; so does a name
   * without an id after a complete call.
   */
  #callOf(number, id, name) {
    const call = this.#latest.get(number);
    const isOther = call && name && (id ? id !== call.given : isWhole(call));
    return isOther ? undefined : call;
  }

  #begin(number, { id, name = '' }, push) {
    const index = this.#calls.length;
    const isFree = id && !this.#calls.some((one) => one.id === id);
    const call = { id: isFree ? id : `call_${index}`, given: id, name, text: '' };
    this.#calls.push(call);
    this.#latest.set(number, call);
    push({ type: 'tool-call-start', index, id: call.id, name });
    return call;
  }

  /**
   * Ends all calls. Calls whose arguments are an object are complete. Of the others, the last one is unfinished if the
   * reply was cut off; the rest become text.
   * @param {(event: object) => void} push
   * @param {boolean} isCut
   * @returns {{toolCalls: object[], text: string, unfinishedCall?: {id: string, name: string, text: string}}}
   */
  end(push, isCut) {
    const toolCalls = [];
    let [lost, unfinishedCall] = ['', undefined];
    for (; this.#ended < this.#calls.length; this.#ended++) {
      const { id, name, text } = this.#calls[this.#ended];
      const given = parsed(text || '{}');
      const isLast = this.#ended === this.#calls.length - 1;
      if (isRecord(given) && !(isCut && isLast && !text)) {
        toolCalls.push({ id, name, arguments: given });
        push({ type: 'tool-call', index: this.#ended, id, name, arguments: given });
      } else if (isCut && isLast) unfinishedCall = { id, name, text };
      else lost += `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${text}}\n</tool_call>`;
    }
    return { toolCalls, text: lost, ...(unfinishedCall && { unfinishedCall }) };
  }
}
