// SPDX-License-Identifier: MIT
// What callers of the Prompt API pass, as messages and options of chat(); and failures as the exceptions that it has.

import { QuernError } from '../shared/errors.js';

const ROLES = ['system', 'user', 'assistant'];

/** @param {unknown} [cause] */
export const exception = (name, message, cause) => Object.assign(new DOMException(message, name), cause !== undefined && { cause });

/** Of an input that the context has no room for. Newer browsers have a class of its own for it. */
export function quotaExceeded(requested, quota, message = `The input has ${requested} tokens, but the context has ${quota} positions.`) {
  const { QuotaExceededError: Own } = /** @type {any} */ (globalThis);
  if (typeof Own === 'function') return new Own(message, { requested: Math.max(requested, quota), quota });
  const error = exception('QuotaExceededError', message);
  for (const [name, value] of Object.entries({ requested, quota })) Object.defineProperty(error, name, { value, configurable: true });
  return error;
}

const NAMES = { 'use/schema': 'NotSupportedError', 'use/param': 'NotSupportedError', 'engine/disposed': 'InvalidStateError' };

/** By the codes of errors.md. What is none of ours is passed on as it is: the reason of a signal, what a tool threw. */
export function asException(error) {
  if (!(error instanceof QuernError)) return error;
  const { code, message } = error;
  const detail = /** @type {any} */ (error.detail);
  if (code === 'use/context') return quotaExceeded(detail?.found ?? 0, detail?.limit ?? 0);
  return exception(NAMES[code] ?? 'OperationError', message, error);
}

function bytesOf(value) {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? new Blob([/** @type {any} */ (value)]) : value;
}

function partOf(part, role, types) {
  const { type, value } = part ?? {};
  if (type === 'text') {
    if (typeof value !== 'string') throw new TypeError('The value of a text must be a string.');
    return { type, text: value };
  }
  if (type !== 'image' && type !== 'audio') throw new TypeError('The type of content must be \'text\', \'image\' or \'audio\'.');
  if (!types.has(type)) throw exception('NotSupportedError', `This session takes no ${type}: it is not among its expectedInputs.`);
  if (role === 'assistant') throw exception('NotSupportedError', 'A message of the assistant has texts alone.');
  if (value == null) throw new TypeError('The value of an image must be one.');
  return { type: 'image', image: bytesOf(value) };
}

function messageOf(given, session, at) {
  const { role, content, prefix = false } = given ?? {};
  if (!ROLES.includes(role)) throw new TypeError(`The role of a message must be one of ${ROLES.join(', ')}.`);
  if (role === 'system' && (at || !session.isInitial)) throw new TypeError('A message of the system must be the first of initialPrompts.');
  if (typeof content === 'string') return { message: { role, content }, prefix };
  if (!Array.isArray(content)) throw new TypeError('The content of a message must be a string or an array.');
  const parts = content.map((part) => partOf(part, role, session.types));
  const isText = parts.every(({ type }) => type === 'text');
  return { message: { role, content: isText ? parts.map(({ text }) => text).join('') : parts }, prefix };
}

/**
 * @param {{types: Set<string>, isInitial?: boolean, mayGoOn?: boolean}} session what it takes
 * @returns {{messages: any[], goesOn: boolean}} goesOn: the reply is the rest of the last message
 */
export function messagesOf(input, session) {
  if (typeof input !== 'string' && !Array.isArray(input)) throw new TypeError('The input must be a string or an array of messages.');
  const list = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const read = list.map((one, at) => messageOf(one, session, at));
  for (const [at, { message, prefix }] of read.entries()) {
    const isRight = !prefix || (session.mayGoOn && message.role === 'assistant' && at === read.length - 1);
    if (!isRight) throw exception('SyntaxError', 'Only the last message of a prompt may be a prefix, and it must be the assistant\'s.');
  }
  return { messages: read.map(({ message }) => message), goesOn: Boolean(read.at(-1)?.prefix) };
}

/** What a tool gave: a text, or a list of content. */
function givenBack(value) {
  if (!Array.isArray(value) || !value.every((part) => part?.type === 'text')) return value;
  return value.map((part) => part.value).join('');
}

function toolOf(tool) {
  const { name, description, inputSchema: parameters, execute } = tool ?? {};
  if (typeof name !== 'string' || !name) throw new TypeError('A tool must have a name.');
  if (typeof execute !== 'function') throw new TypeError(`The tool ${name.slice(0, 64)} must have a function execute.`);
  return [name, { description, parameters, execute: async (args) => givenBack(await Reflect.apply(execute, tool, [args])) }];
}

/** Tools as run() has them, or null. */
export function toolsOf(tools = []) {
  const list = Array.from(tools, toolOf);
  const names = new Set(list.map(([name]) => name));
  if (names.size < list.length) throw new TypeError('Two tools have the same name.');
  return list.length ? Object.fromEntries(list) : null;
}

const told = (words, limit) => `\n\nAnswer with ${words}: ${limit}`;

/** The limits of a reply, and what the model is told of them. */
export function constraintOf({ responseConstraint: constraint, omitResponseConstraintInput: isQuiet }) {
  if (constraint == null) {
    if (isQuiet) throw new TypeError('omitResponseConstraintInput needs a responseConstraint.');
    return { limits: {}, words: '' };
  }
  if (constraint instanceof RegExp) {
    return { limits: { regex: constraint }, words: isQuiet ? '' : told('a text that matches this regular expression', constraint.source) };
  }
  if (typeof constraint !== 'object') throw new TypeError('The responseConstraint must be a JSON Schema or a RegExp.');
  return { limits: { schema: constraint }, words: isQuiet ? '' : told('JSON that is valid by this schema', JSON.stringify(constraint)) };
}

/** Kinds of input that options ask for. A type that is none is a TypeError, as in the browser. */
export function typesOf({ expectedInputs = [], expectedOutputs = [] }) {
  const known = (list) => Array.from(list, ({ type }) => {
    if (!['text', 'image', 'audio'].includes(type)) throw new TypeError(`There is no type ${String(type).slice(0, 64)} of content.`);
    return type;
  });
  return { inputs: new Set(['text', ...known(expectedInputs)]), outputs: new Set(known(expectedOutputs)) };
}
