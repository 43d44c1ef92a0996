// SPDX-License-Identifier: MIT
// Tools in a conversation: checks what callers pass, and prepares it for templates, which take tools and calls in the
// form of the OpenAI API. A separate file of the package, which the first conversation with tools fetches.

import { badParam, unknownName } from '../shared/errors.js';
import { Calls, MOST_CALLS, MOST_DEPTH, isDeep } from './calls.js';
import { isRecord } from '../shared/kinds.js';
import { RawJson, memberOf, parsed } from '../shared/raw-json.js';
import { spelled } from './spelled.js';

/** Limits: tools, calls of a message, letters of an id, and letters (as JSON) and depth of a tool or a call. */
const MOST = { tools: 128, calls: MOST_CALLS, id: 256, letters: 2 ** 20, depth: MOST_DEPTH };

/** Names that JSON and templates write without escapes: no white space, control characters, quotes or backslashes. */
const NAME = /^[^\p{C}\p{Z}"'\\`]{1,64}$/u;

const isName = (value) => (typeof value === 'string' && NAME.test(value) ? null
  : 'must be a name of 1 to 64 letters, without spaces, quotes, backslashes and control characters');

const isId = (value) =>
  typeof value === 'string' && value !== '' && value.length <= MOST.id
    ? null
    : `must be a text of 1 to ${MOST.id} letters`;

/** Checks a record: its size and depth are limited. */
function isSmall(value) {
  if (!isRecord(value)) return 'must be an object';
  if (isDeep(value, MOST.depth)) return `is nested more than ${MOST.depth} deep`;
  return JSON.stringify(value).length > MOST.letters ? `has more than ${MOST.letters} letters (as JSON)` : null;
}

/** Checks an object that is written as JSON. */
function isWritten(value) {
  const meant = typeof value === 'string' ? parsed(value) : undefined;
  if (meant === undefined) return 'must be an object, or one as JSON';
  return value.length > MOST.letters ? `has more than ${MOST.letters} letters (as JSON)` : isSmall(meant);
}

const isGiven = (value) => (typeof value === 'string' ? isWritten(value) : isSmall(value));

const TOOL = {
  name: isName,
  description: (value) => (typeof value === 'string' ? null : 'must be a string'),
  parameters: isSmall,
  json: isWritten,
};
const CALL = { id: isId, name: isName, arguments: isGiven };

/** Returns a copy of the fields that are set; null counts as not set. */
function checked(value, table, path, wanted) {
  if (!isRecord(value)) throw badParam(path, 'must be an object');
  const fields = Object.entries(value).filter(([, one]) => one !== null);
  for (const [name, one] of fields) {
    const at = `${path}.${name.slice(0, 64)}`;
    if (!Object.hasOwn(table, name)) throw unknownName(at, Object.keys(table), 'field');
    if (table[name](one)) throw badParam(at, table[name](one));
  }
  const missing = wanted.find((name) => !fields.some(([known]) => known === name));
  if (missing) throw badParam(`${path}.${missing}`, 'is missing');
  return Object.fromEntries(fields);
}

function listOf(value, path, most, check) {
  if (!Array.isArray(value)) throw badParam(path, 'must be an array');
  if (value.length > most) throw badParam(path, `are ${value.length}, at most ${most} are possible`);
  return value.map((one, i) => check(one, `${path}[${i}]`));
}

/** Parameters of a tool without arguments. */
const NOTHING = { type: 'object', properties: {} };

/** @param {string} [oddName] a letter that names must not contain */
function toolsOf(tools, oddName) {
  const list = listOf(tools, 'options.tools', MOST.tools, (tool, path) => checked(tool, TOOL, path, ['name']));
  const twice = list.findIndex(({ name }, i) => list.findIndex((other) => other.name === name) < i);
  if (twice >= 0) throw badParam(`options.tools[${twice}].name`, 'is used by another tool');
  const odd = list.findIndex(({ parameters }) => (parameters?.type ?? 'object') !== 'object');
  if (odd >= 0) throw badParam(`options.tools[${odd}].parameters.type`, "must be 'object'");
  const strange = oddName ? list.findIndex(({ name }) => name.includes(oddName)) : -1;
  if (strange >= 0)
    throw badParam(
      `options.tools[${strange}].name`,
      `must not have '${oddName}' in it, which ends names in calls of this model`,
    );
  return list.map(({ name, description, parameters = NOTHING, json }) => ({
    name,
    ...(description !== undefined && { description }),
    parameters,
    json,
  }));
}

/** A tool in the form that templates take: its JSON, if it has one. */
const shown = ({ json, ...tool }) => (json === undefined ? { type: 'function', function: tool } : new RawJson(json));

/** The parameters as written in a tool's JSON; undefined: it has none. */
function writtenParameters({ json }) {
  const text = json && memberOf(memberOf(json, 'function') ?? json, 'parameters');
  return text && isRecord(parsed(text)) ? text : undefined;
}

/**
 * The schema of a call's arguments, always of an object. Without `properties` no properties are allowed. Numbers and
 * order stay.
 */
function argumentsOf(tool) {
  const lacks = (keyword) => !Object.hasOwn(tool.parameters, keyword);
  const text = writtenParameters(tool) ?? JSON.stringify(tool.parameters);
  const members = [
    lacks('type') && '"type":"object"',
    text.trim().slice(1, -1).trim(),
    lacks('properties') && lacks('$ref') && '"properties":{}',
  ];
  return `{${members.filter(Boolean).join(',')}}`;
}

/**
 * The limits of calls (src/grammar/calls.h); text '': nothing can be called.
 * @param {{tools?: any, toolChoice?: any}} options
 * @param {{before: (name: string) => string, after: string, grammar?: string, oddName?: string}} form a row of FORMS
 *   (calls.js)
 * @returns {{choice: 'auto' | 'required' | 'none', text: string, names: string[], kind: string}} kind: of grammar
 */
export function callLimits({ tools = [], toolChoice }, { before, after, grammar: kind, oddName }) {
  const all = toolsOf(tools, oddName);
  const { choice, names } = choiceOf(toolChoice, all.map(({ name }) => name));
  const some = all.filter(({ name }) => names.includes(name));
  const parts = some.flatMap((tool) => [before(tool.name), argumentsOf(tool), after]);
  const text = choice === 'none' ? '' : parts.join('\0');
  return { choice, text, names: some.map(({ name }) => name), kind };
}

/**
 * @param {any} choice of the caller @param {string[]} all names of the tools
 * @returns {{choice: 'auto' | 'required' | 'none', names: string[]}} names: of the tools that may be called
 */
function choiceOf(choice, all) {
  if (choice == null || choice === 'auto' || choice === 'none') return { choice: choice ?? 'auto', names: all };
  const asked = choice === 'required' ? { names: all, required: true } : isRecord(choice) ? choice : {};
  const { name, names = [name], required = name !== undefined } = asked;
  const isChoice =
    Array.isArray(names) && names.every((one) => typeof one === 'string') && typeof required === 'boolean';
  if (!isChoice)
    throw badParam('options.toolChoice', "must be 'auto', 'none', 'required', { name } or { names, required }");
  if (all.length === 0) throw badParam('options.toolChoice', 'needs tools to choose from');
  const isThere = names.length > 0 && names.every((one) => all.includes(one));
  if (!isThere)
    throw badParam(
      `options.toolChoice.${name === undefined ? 'names' : 'name'}`,
      'names no tool, or an unknown one',
    );
  return { choice: required ? 'required' : 'auto', names };
}

// --- messages ---

const isMedium = ({ type }) => type !== 'text';

/** Puts the calls of an assistant's message into the form that templates take. */
function callsOf({ role, toolCalls, ...message }, path) {
  if (role !== 'assistant') throw badParam(`${path}.toolCalls`, "may be in an assistant's message only");
  const calls = listOf(toolCalls, `${path}.toolCalls`, MOST.calls, (call, at) =>
    checked(call, CALL, at, ['id', 'name', 'arguments']),
  );
  const all = calls.map(({ id, name, arguments: given }) => ({
    id,
    type: 'function',
    function: { name, arguments: typeof given === 'string' ? new RawJson(given) : given },
  }));
  return { ...message, role, ...(all.length && { tool_calls: all }) };
}

/**
 * Sorts results by the order of their calls, since templates do not tell them apart.
 * @param {object[]} results that follow one message @param {{id: string}[]} calls of that message
 */
function inOrder(results, calls) {
  const places = results.map(({ toolCallId, path }) => {
    const problem = isId(toolCallId);
    const at = calls.findIndex(({ id }) => id === toolCallId);
    if (problem) throw badParam(`${path}.toolCallId`, problem);
    if (at < 0) throw badParam(`${path}.toolCallId`, 'is not the id of a call of the message before');
    return at;
  });
  const order = results.map((_, i) => i).sort((a, b) => places[a] - places[b]);
  const twice = order.findIndex((i, n) => n > 0 && places[i] === places[order[n - 1]]);
  if (twice >= 0) throw badParam(`${results[order[twice]].path}.toolCallId`, 'has a result already');
  return order.map((i) => {
    const { toolCallId, path: _, ...message } = results[i];
    return { ...message, tool_call_id: toolCallId };
  });
}

/** A conversation in the form that templates take. @param {object[]} messages as the page has checked them */
function messagesOf(messages) {
  const all = [];
  for (let i = 0; i < messages.length;) {
    const path = `messages[${i}]`;
    const message = messages[i++];
    if (message.role === 'tool')
      throw badParam(path, 'is a result without a call: it must follow the message with its call');
    const { toolCallId: _, toolCalls: __, ...said } = message.toolCalls == null ? message : callsOf(message, path);
    all.push(said);
    const results = [];
    for (; said.tool_calls && messages[i]?.role === 'tool'; i++)
      results.push({ ...messages[i], path: `messages[${i}]` });
    all.push(...inOrder(results, said.tool_calls));
  }
  return all;
}

/** The tools of one conversation. */
export class Tools {
  /** In the form that templates take. @type {object[]} */
  messages;
  /** @type {object[] | undefined} */
  list;
  /** @type {import('./text.js').Channel[]} */
  channels;
  #given;
  #form;

  /**
   * @param {object[]} messages as the page has checked them
   * @param {{tools?: any, toolChoice?: any, continue?: boolean}} options
   * @param {typeof import('./calls.js').FORMS.json} form of the model's calls
   */
  constructor(messages, { tools = [], toolChoice, continue: goesOn = false }, form) {
    const all = toolsOf(tools, form.oddName);
    const byName = new Map(all.map((tool) => [tool.name, tool]));
    const { choice } = choiceOf(toolChoice, [...byName.keys()]);
    this.#given = messages;
    this.#form = form;
    this.messages = messagesOf(messages);
    if (goesOn && this.messages.at(-1).tool_calls)
      throw badParam('messages', 'must end with a message without calls to be continued');
    this.list = all.length ? all.map(shown) : undefined;
    this.channels = all.length && !(form.bare && choice === 'none') ? [channelOf(form, byName)] : [];
  }

  /**
   * Reorders the media of the messages to the order of the messages here, since results may have changed places.
   * @param {any[]} media
   */
  arranged(media) {
    const waiting = [...media];
    const count = (content) => (typeof content === 'string' ? 0 : content.filter(isMedium).length);
    const own = new Map(this.#given.map(({ content }) => [content, waiting.splice(0, count(content))]));
    return this.messages.flatMap(({ content }) => own.get(content));
  }

  /** Guarded messages with tools, calls and results as texts, for built-in ChatML. */
  spelled(messages, list) {
    return spelled(messages, list, this.#form.spelling);
  }
}

function channelOf(form, tools) {
  let calls;
  const begin = (emit, parts) => (calls ??= new Calls(form, tools, emit, parts)).begin();
  return { open: form.open, close: form.close, bare: form.bare, type: 'tool-call', gap: form.gap, begin };
}
