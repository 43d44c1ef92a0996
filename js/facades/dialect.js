// SPDX-License-Identifier: MIT
// What APIs have in common that are not the OpenAI API's chats: a request becomes a chat's (or a completion's), whose
// fields are checked in one place (openai-request.js), and an error about a chat's field is told in the words of the
// request that it was made of.

import { errorOf } from './openai-error.js';
import { chatRequest, completionRequest, refuseUnsupported } from './openai-request.js';
import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';

/**
 * What requests became, by their bodies.
 * @type {WeakMap<object, {chat: object, terms: Record<string, string>, origins: Origin[]}>}
 */
const translations = new WeakMap();

/**
 * Where a chat's message came from.
 * @typedef {object} Origin
 * @property {string} path
 * @property {number[]} [parts] numbers of its content's parts there
 */

/** What is wrong with a type that is none of these. */
export const otherType = (type, known) => `is '${String(type).slice(0, 64)}', and this version supports only ${known}`;

export function checkBody(body) {
  if (!isRecord(body)) throw badParam('The body', 'must be a JSON object');
}

/**
 * Those of a request's fields that a chat has too.
 * @param {Record<string, string>} fields a chat's names by the request's
 */
export function renamed(body, fields) {
  const entries = Object.entries(fields).filter(([field]) => body[field] != null);
  return Object.fromEntries(entries.map(([field, name]) => [name, body[field]]));
}

/** Names that mean the same in a request and a chat. */
export const same = (...names) => Object.fromEntries(names.map((name) => [name, name]));

/**
 * Remembers what a request became, for errors.
 * @param {Record<string, string>} terms what its words are in the request
 * @returns {any} what it became
 */
export function noted(body, chat, terms, origins = []) {
  translations.set(body, { chat, terms, origins });
  return chat;
}

/**
 * A request as a chat, or a completion, asks for it.
 * @param {object} body as it came
 * @param {{unsupported: Record<string, (value: any) => boolean>, terms: Record<string, string>, translate: (body:
 *   any, origins: Origin[]) => object, info?: {endTokens: readonly number[]}}} dialect translate: what the body is as a
 *   chat's
 * @returns {import('./openai-request.js').Request}
 */
export function asked(body, { unsupported, terms, translate, info }) {
  checkBody(body);
  refuseUnsupported(body, unsupported);
  const origins = [];
  const chat = noted(body, translate(body, origins), terms, origins);
  return info ? completionRequest(chat, info) : chatRequest(chat);
}

/** A chat's words as the request has them. */
function inTerms(text, { terms, origins }) {
  const moved = text.replace(/\bmessages\[(\d+)\](?:\.content\[(\d+)\])?/g, (whole, index, part) => {
    const { path, parts } = origins[index] ?? {};
    if (path === undefined) return whole;
    return part === undefined ? path : `${path}.content[${parts?.[part] ?? part}]`;
  });
  return Object.entries(terms).reduce(
    (said, [name, own]) => said.replace(new RegExp(`(?<![\\w.])${name}(?!\\w)`, 'g'), own),
    moved,
  );
}

/** A failure in the words of the request that failed; see errorOf(). */
export function errorIn(failure, body) {
  const translation = isRecord(body) ? translations.get(body) : undefined;
  const { error, ...rest } = errorOf(failure, translation?.chat ?? body);
  if (!translation) return { error, ...rest };
  const { message, param } = error;
  return {
    ...rest,
    error: { ...error, message: inTerms(message, translation), param: param && inTerms(param, translation) },
  };
}
