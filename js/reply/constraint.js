// SPDX-License-Identifier: MIT
// Reads the option that limits the format of a reply. The page sends it as JSON, since a schema may be any object of
// the caller's. It is checked here, where it is used, so that pages need not load the code.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';

const MOST_CHOICES = 10_000;

const isText = (value) => typeof value === 'string' && value !== '';

/**
 * Parts of a pattern that mean something else, or nothing, without the flag v: nested sets, and negated sets with the
 * flag i.
 */
const SETS = /&&|--|\\q|\[(?:[^\]\\]|\\.)*\[/s;
const OTHERS = /\[\^|\\P/;

/** Checks values. Each returns a problem, or null. */
const PROBLEMS = {
  schema: (value) =>
    isRecord(value) || typeof value === 'boolean' ? null : 'must be a JSON Schema: an object, true or false',
  regex: (value) => {
    if (isText(value)) return null;
    const { source, flags } = value ?? {};
    if (!isText(source) || typeof flags !== 'string') return 'must be a regular expression, or its pattern as a text';
    const odd = flags.replace(/[dgimsuvy]/g, '');
    if (odd) return `has the flag '${odd[0]}', which is not supported`;
    if (!flags.includes('v') || !(SETS.test(source) || (flags.includes('i') && OTHERS.test(source)))) return null;
    return "has the flag 'v' and nested sets, or a negated set and 'i', which are not supported";
  },
  grammar: (value) => (isText(value) ? null : 'must be a text in GBNF'),
  json: (value) => (value === true ? null : 'must be true or false'),
  choices: (value) => {
    if (!Array.isArray(value) || value.length === 0 || !value.every(isText))
      return 'must be an array of texts, none of them empty';
    return value.length > MOST_CHOICES ? `has ${value.length} texts, at most ${MOST_CHOICES} are possible` : null;
  },
};

/** The value as a text for src/grammar/face.c. */
const TEXTS = {
  schema: (_, text) => text,
  regex: (value) => value.source ?? value,
  grammar: (value) => value,
  json: () => '',
  choices: (_, text) => text,
};

/** Flags of src/grammar/compile.h. */
export const FLEXIBLE = 1;
const PATTERN_FLAGS = { i: 2, s: 4, m: 16 };
const OLD_CASE = 32;
const STRICT = 8;
const CLOSED = 64;

/**
 * Flags of schemas, for replies and for calls of tools (schema_options.closed and .strict of
 * src/grammar/schema/schema.h).
 */
export const schemaFlags = ({ openObjects, strictSchema }) => (openObjects ? 0 : CLOSED) | (strictSchema ? STRICT : 0);

/**
 * Flags of a pattern. Those that concern searching have no effect. Without u and v, letters compare by the case rules
 * from before Unicode.
 */
function flagsOf({ flags }, options) {
  let all = (options.whitespace === 'flexible' ? FLEXIBLE : 0) | schemaFlags(options);
  if (typeof flags !== 'string') return all;
  for (const flag of flags) all |= PATTERN_FLAGS[flag] ?? 0;
  return /[uv]/.test(flags) ? all : all | OLD_CASE;
}

/** The type of `value` in the result. @type {Record<string, 'json' | 'text'>} */
const VALUES = { schema: 'json', json: 'json', choices: 'text' };

/**
 * Compiles the format that the options ask for; undefined: none. `value`: what the text becomes in the result.
 * `looser`: a grammar with flexible white space, for a reply that continues a text which has white space already.
 * @param {{whitespace?: string, openObjects?: boolean, strictSchema?: boolean, [kind: string]: any}} options as the
 *   page sends them: true, or JSON
 * @param {(kind: string, text: string, flags: number) => Promise<Grammar>} compile
 * @returns {Promise<{grammar: Grammar, value?: 'json' | 'text', looser?: Grammar} | undefined>}
 * @typedef {import('../engine/grammar.js').Grammar} Grammar
 */
export async function grammarOf(options, compile) {
  const [kind, another] = Object.keys(PROBLEMS).filter((name) => options[name]);
  if (!kind) return undefined;
  if (another) throw badParam(`options.${another}`, `and options.${kind} exclude each other`);
  const value = JSON.parse(options[kind]);
  const problem = PROBLEMS[kind](value);
  if (problem) throw badParam(`options.${kind}`, problem);
  const compiled = (flags) => compile(kind, TEXTS[kind](value, options[kind]), flags);
  const flags = flagsOf(kind === 'regex' ? value : {}, options);
  const mayBeLooser = options.continue && !options.whitespace && VALUES[kind] === 'json';
  const looser = mayBeLooser ? await compiled(flags | FLEXIBLE) : undefined;
  try {
    return { grammar: await compiled(flags), value: VALUES[kind], looser };
  } catch (error) {
    if (looser) looser.users--;
    throw error;
  }
}
