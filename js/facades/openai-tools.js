// SPDX-License-Identifier: MIT
// Converts tools and calls between the OpenAI API and this package, in both directions. Arguments are JSON text there
// and objects here; the model itself checks their content (reply/tools.js). Custom tools are in openai-custom.js, the
// older `functions` in openai-legacy.js.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { asJson, read } from '../page/values.js';
import { dense, memberOf, parsed, partsOf } from '../shared/raw-json.js';
import { InputText, customTool } from './openai-custom.js';
import { MOST_WEIGHT, weightOf } from './json-weight.js';
import { mended } from './openai-mended.js';
import { unsupported } from './openai-refused.js';

/** Most truncated arguments that are completed, and letters of all of them; one reply has no more of either. */
const MOST_MENDS = 64;
const MOST_MENDED = 2 ** 19;

/** Most tools of a request, and calls of a message; the model itself accepts fewer. */
const MOST = 1024;

/** Length of the longest tool whose text is compared with our own form. */
const MOST_COMPARED = 2 ** 16;

function listOf(value, path) {
  if (!Array.isArray(value)) throw badParam(path, 'must be an array');
  if (value.length > MOST) throw badParam(path, `are more than ${MOST}`);
  return value;
}

// --- of requests ---

function functionOf(value, path) {
  if (!isRecord(value)) throw badParam(path, 'must be an object with type and function');
  if (value.type !== 'function')
    throw unsupported(`${path}.type`, "must be 'function' or 'custom'; nothing else is supported by this version");
  if (!isRecord(value.function)) throw badParam(`${path}.function`, 'must be an object');
  return value.function;
}

/** The description of a tool, a call or a choice of either type. */
const partOf = (value, path) =>
  isRecord(value) && value.type === 'custom' && isRecord(value.custom) ? value.custom : functionOf(value, path);

/** Tools of which some may be called: nested as in chats, or flat. */
function allowedOf({ allowed_tools: inner, ...flat }) {
  const { mode = 'auto', tools } = inner ?? flat;
  if (mode !== 'auto' && mode !== 'required')
    throw badParam('tool_choice.allowed_tools.mode', "must be 'auto' or 'required'");
  const names = listOf(tools, 'tool_choice.allowed_tools.tools').map(
    (tool) => tool?.name ?? tool?.function?.name ?? tool?.custom?.name,
  );
  if (!names.every((name) => typeof name === 'string'))
    throw badParam('tool_choice.allowed_tools.tools', 'must name tools');
  return { names, required: mode === 'required' };
}

function choiceOf(choice) {
  if (['auto', 'none', 'required'].includes(choice)) return choice;
  if (!isRecord(choice))
    throw badParam('tool_choice', "must be 'none', 'auto', 'required', or an object that names tools");
  return choice.type === 'allowed_tools' ? allowedOf(choice) : { name: partOf(choice, 'tool_choice').name };
}

/** Original texts of tools in requests that came as text. @type {WeakMap<object, string>} */
const texts = new WeakMap();

/** Parses a request's body. Throws a SyntaxError. @param {string} text */
export function bodyOf(text) {
  const body = JSON.parse(text);
  if (!Array.isArray(body?.tools) || body.tools.length > MOST) return body;
  const written = partsOf(memberOf(text, 'tools'));
  body.tools.forEach((tool, i) => { if (isRecord(tool)) texts.set(tool, written[i]); });
  return body;
}

/**
 * The tool as templates shall see it: as the client wrote it, with any further members. Empty if that has no more than
 * our own form.
 */
function writtenTool(tools, i, { name, description, parameters }) {
  const text = texts.get(tools[i]) ?? read(tools, i, `tools[${i}]`, asJson);
  const own = { type: 'function', function: { name, description, parameters } };
  const isSame = parameters != null && text.length <= MOST_COMPARED && dense(text) === JSON.stringify(own);
  return isSame ? {} : { json: text };
}

function toolOf(tools, i) {
  if (tools[i]?.type === 'custom') return customTool(tools[i], `tools[${i}]`);
  const { name, description, parameters } = functionOf(tools[i], `tools[${i}]`);
  return { name, description, parameters, ...writtenTool(tools, i, { name, description, parameters }) };
}

/** Options for a request's tools. `strict` has no effect: calls always follow their schema. */
export function toolOptions({ tools, tool_choice: choice, parallel_tool_calls: parallel }) {
  if (parallel != null && typeof parallel !== 'boolean') throw badParam('parallel_tool_calls', 'must be true or false');
  const list = tools == null ? [] : listOf(tools, 'tools').map((_, i) => toolOf(tools, i));
  return {
    ...(list.length && { tools: list }), ...(choice != null && { toolChoice: choiceOf(choice) }),
    ...(list.length && parallel === false && { parallelToolCalls: false }),
  };
}

/** Reads arguments of a request's calls from text, with a limit for the total work. */
export class Arguments {
  #weight = 0;
  #left = { mends: MOST_MENDS, letters: MOST_MENDED };

  /** Returns the arguments; truncated ones are completed. */
  of(given, path) {
    if (typeof given !== 'string') return given;
    this.#weight += weightOf(given);
    if (this.#weight > MOST_WEIGHT) throw badParam(path, 'and those before it have too many values');
    if (parsed(given) !== undefined) return given;
    const { mends, letters } = this.#left;
    this.#left = { mends: mends - 1, letters: letters - given.length };
    return mends > 0 && given.length <= letters ? mended(given) ?? given : given;
  }
}

/** Converts a call of a message. */
function callOf(call, path, written) {
  const { name, input, arguments: given } = partOf(call, path);
  if (call.type === 'custom') return { id: call.id, name, arguments: { input } };
  return { id: call.id, name, arguments: written.of(given, `${path}.function.arguments`) };
}

/** Fields of a message that concern tools. @param {Arguments} written of all messages */
export function toolFields({ tool_calls: calls, tool_call_id: toolCallId }, path, written) {
  const toolCalls = calls?.length === 0 ? null : calls;
  return {
    ...(toolCalls != null && {
      toolCalls: listOf(toolCalls, `${path}.tool_calls`).map((call, i) =>
        callOf(call, `${path}.tool_calls[${i}]`, written),
      ),
    }),
    ...(toolCallId != null && { toolCallId }),
  };
}

/** Converts a path of this package to one of the API. */
export const inTerms = (text) =>
  text
    .replace(/\btoolCalls\b/g, 'tool_calls')
    .replace(/\btoolCallId\b/g, 'tool_call_id')
    .replace(/\b(tools|tool_calls)\[(\d+)\]\.(name|description|parameters|arguments)/g, '$1[$2].function.$3')
    .replace(/\btools\[(\d+)\]\.json\b/g, 'tools[$1]')
    .replace(/\btool_choice\.name\b/g, 'tool_choice.function.name')
    .replace(/\btool_choice\.names\b/g, 'tool_choice.allowed_tools.tools');

// --- of answers ---

const written = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * Collects the arguments of calls as the model wrote them, by id.
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

/** Calls of a message. @param {Map<string, string>} [texts] the arguments, as far as they are known as text */
export const callsOf = (toolCalls, texts) => toolCalls.map(({ id, name, arguments: given }) => (
  { id, type: 'function', function: { name, arguments: texts?.get(id) ?? written(given) } }));

/**
 * The form of calls that a request expects.
 * @typedef {{customs: Set<string>, isLegacy: boolean}} CallShape customs: names of tools of that type; isLegacy: as a
 *   message's function_call
 * @param {any} body of a request
 * @returns {CallShape}
 */
export function callShape({ tools, functions }) {
  const customs = (Array.isArray(tools) ? tools : [])
    .filter((tool) => tool?.type === 'custom')
    .map(({ custom }) => custom?.name);
  return { customs: new Set(customs), isLegacy: Array.isArray(functions) && functions.length > 0 };
}

/**
 * Fields of a reply's message: its calls, including one that was cut off.
 * @param {any} result
 * @param {CallShape} shape
 */
export function answeredCalls({ toolCalls = [], unfinishedCall }, texts, { customs, isLegacy }) {
  const cut = unfinishedCall?.name ? [{ ...unfinishedCall, arguments: unfinishedCall.text }] : [];
  const all = callsOf([...toolCalls, ...cut], texts);
  if (!all.length) return {};
  if (isLegacy) return { function_call: all[0].function };
  return { tool_calls: all.map((call) => (customs.has(call.function.name) ? customCall(call) : call)) };
}

const customCall = ({ id, function: { name, arguments: given } }) => ({
  id,
  type: 'custom',
  custom: { name, input: new InputText().take(given) },
});

/** Makes the deltas of one reply's calls. */
export class CallDeltas {
  #shape;
  #inputs = new Map();    // of custom tools, by the index of their calls

  /** @param {CallShape} shape */
  constructor(shape) {
    this.#shape = shape;
  }

  /** @returns {object | null} null: the event adds nothing */
  take({ type, index, id, name, delta }) {
    const { customs, isLegacy } = this.#shape;
    if (type === 'tool-call-start') {
      if (isLegacy) return { function_call: { name, arguments: '' } };
      if (!customs.has(name))
        return { tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] };
      this.#inputs.set(index, new InputText());
      return { tool_calls: [{ index, id, type: 'custom', custom: { name, input: '' } }] };
    }
    if (type !== 'tool-call-delta') return null;
    if (isLegacy) return { function_call: { arguments: delta } };
    const input = this.#inputs.get(index);
    if (!input) return { tool_calls: [{ index, function: { arguments: delta } }] };
    const piece = input.take(delta);
    return piece ? { tool_calls: [{ index, custom: { input: piece } }] } : null;
  }
}
