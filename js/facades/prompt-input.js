// SPDX-License-Identifier: MIT
// Converts arguments of the Prompt API to messages and options of chat(), and failures to the API's exceptions. Values
// are converted as in Web IDL: anything but an object becomes a text, and an iterable object a list.

import { QuernError } from '../shared/errors.js';
import { isObject } from '../shared/kinds.js';

const ROLES = ['system', 'user', 'assistant'];

/** @param {unknown} [cause] */
export const exception = (name, message, cause) =>
  Object.assign(new DOMException(message, name), cause !== undefined && { cause });

/** The exception for an input that does not fit into the context. Newer browsers have a class for it. */
export function quotaExceeded(
  requested,
  quota,
  message = `The input has ${requested} tokens, but the context has ${quota} positions.`,
) {
  const { QuotaExceededError: Own } = /** @type {any} */ (globalThis);
  if (typeof Own === 'function') return new Own(message, { requested: Math.max(requested, quota), quota });
  const error = exception('QuotaExceededError', message);
  for (const [name, value] of Object.entries({ requested, quota }))
    Object.defineProperty(error, name, { value, configurable: true });
  return error;
}

/**
 * Exceptions for what cannot be honoured, for a model that is gone, and for a file that is not an image. Others are
 * OperationErrors.
 */
const NAMES = {
  'use/schema': 'NotSupportedError',
  'use/param': 'NotSupportedError',
  'engine/disposed': 'InvalidStateError',
  'image/decode': 'InvalidStateError',
};

/**
 * Converts a QuernError by its code (errors.md). Other errors are passed on: a signal's reason, an exception from a
 * tool.
 */
export function asException(error) {
  if (!(error instanceof QuernError)) return error;
  const { code, message } = error;
  const detail = /** @type {any} */ (error.detail);
  if (code === 'use/context') return quotaExceeded(detail?.found ?? 0, detail?.limit ?? 0);
  return exception(NAMES[code] ?? 'OperationError', message, error);
}

/** A list, or a text. */
function listOrText(value) {
  return isObject(value) && typeof value[Symbol.iterator] === 'function' ? Array.from(value) : String(value);
}

function bytesOf(value) {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value) ? new Blob([/** @type {any} */ (value)]) : value;
}

const MEDIA = ['image', 'audio', 'tool-call', 'tool-response'];

function partOf(part, role, types) {
  const { type, value } = part ?? {};
  if (type === 'text') {
    if (typeof value !== 'string') throw new TypeError('The value of a text must be a string.');
    return { type, text: value };
  }
  if (!MEDIA.includes(type)) throw new TypeError(`The type of content must be 'text' or one of ${MEDIA.join(', ')}.`);
  if (type.startsWith('tool-'))
    throw exception('NotSupportedError', 'Sessions write calls and results themselves: give tools a function execute.');
  if (!types.has(type))
    throw exception('NotSupportedError', `This session takes no ${type}: it is not among its expectedInputs.`);
  if (role === 'assistant') throw exception('NotSupportedError', 'An assistant message can have only text.');
  if (!isObject(value)) throw new TypeError('The value of an image must be an object.');
  return { type: 'image', image: bytesOf(value) };
}

function messageOf(given, session, at) {
  const { role, content, prefix = false } = given ?? {};
  if (!ROLES.includes(role)) throw new TypeError(`The role of a message must be one of ${ROLES.join(', ')}.`);
  if (content === undefined) throw new TypeError('A message must have content.');
  if (role === 'system' && at) throw new TypeError('A system message must be the first one.');
  const said = listOrText(content);
  if (typeof said === 'string') return { message: { role, content: said }, prefix };
  const parts = said.map((part) => partOf(part, role, session.types));
  const isText = parts.every(({ type }) => type === 'text');
  return { message: { role, content: isText ? parts.map(({ text }) => text).join('') : parts }, prefix };
}

/**
 * @param {{types: Set<string>, isInitial?: boolean, mayGoOn?: boolean}} session what it accepts
 * @returns {{messages: any[], goesOn: boolean}} goesOn: the reply continues the last message
 */
export function messagesOf(input, session) {
  const given = listOrText(input);
  const list =
    typeof given === 'string' || (!given.length && !session.isInitial) ? [{ role: 'user', content: given }] : given;
  const read = list.map((one, at) => messageOf(one, session, at));
  for (const [at, { message, prefix }] of read.entries()) {
    const isRight = !prefix || (session.mayGoOn && message.role === 'assistant' && at === read.length - 1);
    if (!isRight)
      throw exception(
        'SyntaxError',
        "Only the last message of a prompt may be a prefix, and it must be the assistant's.",
      );
  }
  return { messages: read.map(({ message }) => message), goesOn: Boolean(read.at(-1)?.prefix) };
}

const told = (words, limit) => `\n\nAnswer with ${words}: ${limit}`;

/** Converts a schema to JSON. */
function jsonOf(schema) {
  let text;
  try {
    text = JSON.stringify(schema);
  } catch (error) {
    const [why] = String(error?.message ?? error).split('\n');
    throw exception('NotSupportedError', `The responseConstraint is not JSON (${why.slice(0, 100)}).`, error);
  }
  if (text === undefined) throw new TypeError('The responseConstraint must be a JSON Schema or a RegExp.');
  return text;
}

/** The limits of a reply, and the text about them for the model. */
export function constraintOf({ responseConstraint: constraint, omitResponseConstraintInput: isQuiet }) {
  if (constraint == null) {
    if (isQuiet) throw new TypeError('omitResponseConstraintInput needs a responseConstraint.');
    return { limits: {}, words: '' };
  }
  if (constraint instanceof RegExp) {
    return {
      limits: { regex: constraint },
      words: isQuiet ? '' : told('a text that matches this regular expression', constraint.source),
    };
  }
  if (typeof constraint !== 'object') throw new TypeError('The responseConstraint must be a JSON Schema or a RegExp.');
  const json = jsonOf(constraint);
  return { limits: { schema: constraint }, words: isQuiet ? '' : told('JSON that is valid by this schema', json) };
}
