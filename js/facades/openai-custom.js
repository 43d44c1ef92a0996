// SPDX-License-Identifier: MIT
// Custom tools of the OpenAI API, which take a text instead of JSON. Here they become tools with one argument `input`,
// a string limited by the tool's format; in answers it is a text again, also while it is being written.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { unsupported } from './openai-refused.js';

/** Limits of the string by its format. Only regular expressions are supported. */
function formatOf(format, path) {
  if (format == null || format.type === 'text') return {};
  const { syntax, definition } = format.grammar ?? format;     // inside in chats, flat in responses
  if (format.type !== 'grammar') throw badParam(`${path}.type`, "must be 'text' or 'grammar'");
  if (syntax !== 'regex')
    throw unsupported(`${path}.grammar.syntax`, "must be 'regex': no other one is supported by this version");
  if (typeof definition !== 'string') throw badParam(`${path}.grammar.definition`, 'must be a string');
  return { pattern: `^(?:${definition})$` };
}

/** @param {any} tool @param {string} path */
export function customTool({ custom }, path) {
  if (!isRecord(custom)) throw badParam(`${path}.custom`, 'must be an object');
  const { name, description, format } = custom;
  const input = { type: 'string', ...formatOf(format, `${path}.custom.format`) };
  return { name, description, parameters: { type: 'object', properties: { input }, required: ['input'] } };
}

/** Names such tools in errors as the request does. @param {any} body of the request */
export const inCustomTerms = (text, body) => text.replace(/\btools\[(\d+)\]\.function\b/g, (whole, i) => (
  body?.tools?.[i]?.type === 'custom' ? `tools[${i}].custom` : whole));

const HEAD = /^\s*\{\s*"input"\s*:\s*"/;
const WHOLE = /^(?:[^"\\]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*/;

/** An escaped half of a character at the end, whose other half follows. */
const HALF = /\\u[dD][89abAB][\da-fA-F]{2}$/;

/** Extracts the text from arguments that come in pieces of JSON. */
export class InputText {
  #rest = '';
  #isInside = false;

  /** @param {string} piece @returns {string} the new part of the text */
  take(piece) {
    this.#rest += piece;
    const [head] = (!this.#isInside && HEAD.exec(this.#rest)) || [''];
    this.#isInside ||= head !== '';
    if (!this.#isInside) return '';
    const rest = this.#rest.slice(head.length);
    const whole = WHOLE.exec(rest)[0].replace(HALF, '');
    this.#rest = rest.slice(whole.length);
    return JSON.parse(`"${whole}"`);
  }
}
