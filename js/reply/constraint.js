// SPDX-License-Identifier: MIT
// What a caller limits a reply to, as the page sends it: as JSON, since a schema may be any object of the caller's. Checked here, where it is used,
// so that pages do not load what few of them need.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/raw-json.js';

const MOST_CHOICES = 10_000;

const isText = (value) => typeof value === 'string' && value !== '';

/** Flags of regular expressions that are known here, most of which change nothing: where a search begins, and what it tells. */
const IDLE_FLAGS = /[dgsuy]/g;

/** What is wrong with a value; null: nothing. */
const PROBLEMS = {
  schema: (value) => (isRecord(value) || typeof value === 'boolean' ? null : 'must be a JSON Schema: an object, true or false'),
  regex: (value) => {
    if (isText(value)) return null;
    if (!isText(value?.source) || typeof value.flags !== 'string') return 'must be a regular expression, or its pattern as a text';
    const flags = value.flags.replace(IDLE_FLAGS, '');
    return flags ? `has the flag '${flags[0]}', which is not supported` : null;
  },
  grammar: (value) => (isText(value) ? null : 'must be a text in GBNF'),
  json: (value) => (value === true ? null : 'must be true or false'),
  choices: (value) => {
    if (!Array.isArray(value) || value.length === 0 || !value.every(isText)) return 'must be an array of texts, none of them empty';
    return value.length > MOST_CHOICES ? `has ${value.length} texts, at most ${MOST_CHOICES} are possible` : null;
  },
};

/** As src/grammar/face.c reads it. */
const TEXTS = {
  schema: (_, text) => text,
  regex: (value) => value.source ?? value,
  grammar: (value) => value,
  json: () => '',
  choices: (_, text) => text,
};

/** As src/grammar/compile.h has them. */
export const FLEXIBLE = 1;
const DOT_ALL = 4;
const STRICT = 8;
const CLOSED = 64;

/** Of schemas, the same for replies and for calls of tools (schema_options.closed and .strict of src/grammar/schema.h). */
export const schemaFlags = ({ openObjects, strictSchema }) => (openObjects ? 0 : CLOSED) | (strictSchema ? STRICT : 0);

const flagsOf = (value, options) => (
  (options.whitespace === 'flexible' ? FLEXIBLE : 0) | (value?.flags?.includes('s') ? DOT_ALL : 0) | schemaFlags(options));

/** What a text is made. @type {Record<string, 'json' | 'text'>} */
const VALUES = { schema: 'json', json: 'json', choices: 'text' };

/**
 * The one that is asked for, compiled; undefined: none. `value`: what the reply's text is made; `looser`: compiles one for a text whose beginning has
 * white space already.
 * @param {{whitespace?: string, openObjects?: boolean, strictSchema?: boolean, [kind: string]: any}} options as the page sends them: true, or JSON
 * @param {() => Promise<import('../engine/grammar.js').Grammars>} open
 * @returns {Promise<{grammar: Grammar, value?: 'json' | 'text', looser?: () => Grammar} | undefined>}
 * @typedef {import('../engine/grammar.js').Grammar} Grammar
 */
export async function grammarOf(options, open) {
  const [kind, another] = Object.keys(PROBLEMS).filter((name) => options[name]);
  if (!kind) return undefined;
  if (another) throw badParam(`options.${another}`, `and options.${kind} exclude each other`);
  const value = JSON.parse(options[kind]);
  const problem = PROBLEMS[kind](value);
  if (problem) throw badParam(`options.${kind}`, problem);
  const grammars = await open();
  const compiled = (flags) => grammars.compile(kind, TEXTS[kind](value, options[kind]), flags);
  const flags = flagsOf(value, options);
  const looser = options.whitespace || VALUES[kind] !== 'json' ? undefined : () => compiled(flags | FLEXIBLE);
  return { grammar: compiled(flags), value: VALUES[kind], looser };
}
