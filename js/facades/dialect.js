// SPDX-License-Identifier: MIT
// Common code of the other APIs. A request is converted to one of the OpenAI API for a chat or a completion, whose
// fields are checked in one place (openai-request.js). An error about such a field is then expressed in the terms of
// the original request.

import { errorOf } from './openai-error.js';
import { chatRequest, completionRequest, refuseUnsupported } from './openai-request.js';
import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';

/**
 * Converted requests, by their original bodies.
 * @type {WeakMap<object, {chat: object, terms: Record<string, string>, origins: Origin[]}>}
 */
const translations = new WeakMap();

/**
 * Origin of a message in a converted request.
 * @typedef {object} Origin
 * @property {string} path
 * @property {number[]} [parts] indices of its content's parts in the original
 */

/** The problem of a type that is not supported. */
export const otherType = (type, known) => `is '${String(type).slice(0, 64)}', and this version supports only ${known}`;

export function checkBody(body) {
  if (!isRecord(body)) throw badParam('The body', 'must be a JSON object');
}

/**
 * The fields of a request that the OpenAI API has too.
 * @param {Record<string, string>} fields names in the OpenAI API, by the request's names
 */
export function renamed(body, fields) {
  const entries = Object.entries(fields).filter(([field]) => body[field] != null);
  return Object.fromEntries(entries.map(([field, name]) => [name, body[field]]));
}

/** Names that both have in common. */
export const same = (...names) => Object.fromEntries(names.map((name) => [name, name]));

/**
 * Remembers a converted request, for errors.
 * @param {Record<string, string>} terms the request's words for words of the converted one
 * @returns {any} the converted request
 */
export function noted(body, chat, terms, origins = []) {
  translations.set(body, { chat, terms, origins });
  return chat;
}

/**
 * Reads a request by converting it to a chat or a completion.
 * @param {object} body the original request
 * @param {{unsupported: Record<string, (value: any) => boolean>, terms: Record<string, string>, translate: (body:
 *   any, origins: Origin[]) => object, info?: {endTokens: readonly number[]}}} dialect translate: converts the body to
 *   one of a chat
 * @returns {import('./openai-request.js').Request}
 */
export function asked(body, { unsupported, terms, translate, info }) {
  checkBody(body);
  refuseUnsupported(body, unsupported);
  const origins = [];
  const chat = noted(body, translate(body, origins), terms, origins);
  return info ? completionRequest(chat, info) : chatRequest(chat);
}

/** Replaces words of the converted request by those of the original one. */
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

/** Describes a failure in the terms of the request that failed; see errorOf(). */
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
