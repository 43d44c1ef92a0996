// SPDX-License-Identifier: MIT
// Constraints in a request of the OpenAI API (response_format, fields of llama.cpp and vLLM), and requested log
// probabilities.

import { badParam } from '../shared/errors.js';
import { isRecord } from '../shared/kinds.js';
import { MOST_WEIGHT, weightOf } from './json-weight.js';
import { unsupported } from './openai-refused.js';

/** Most likeliest tokens: the API itself gives 5 for completions, other servers more. */
const MOST = 20;

/** A schema for any object. */
const OBJECT = { type: 'object' };

/** Constraints by the type of response_format. llama.cpp's clients may give a json_object a schema. */
const FORMATS = {
  text: () => ({}),
  json_object: ({ schema }) => ({ schema: schema ?? OBJECT }),
  json_schema: ({ json_schema: described }) => {
    if (!isRecord(described) || described.schema == null)
      throw badParam('response_format.json_schema.schema', 'is missing');
    return { schema: described.schema };
  },
};

function formatOf(format) {
  if (!isRecord(format)) throw badParam('response_format', 'must be an object with a type');
  const { type } = format;
  const isKnown = typeof type === 'string' && Object.hasOwn(FORMATS, type);
  if (!isKnown) throw unsupported('response_format.type', 'must be text, json_object or json_schema');
  return FORMATS[type](format);
}

/** A schema, which some clients send as text. */
function schemaIn(value, path) {
  if (typeof value !== 'string') return value;
  if (weightOf(value) > MOST_WEIGHT) throw badParam(path, 'has too many values');
  try {
    return JSON.parse(value);
  } catch {
    throw badParam(path, 'is not JSON');
  }
}

/** vLLM's constraints, by their names in `structured_outputs`. */
const GUIDES = {
  json: (value, path) => ({ schema: schemaIn(value, path) }),
  json_object: (value) => (value === true ? FORMATS.json_object({}) : {}),
  regex: (regex) => ({ regex }),
  choice: (choices) => ({ choices }),
  grammar: (grammar) => ({ grammar }),
  structural_tag: (_, path) => {
    throw unsupported(path);
  },
};

/** Reads `structured_outputs`, and its older form: `guided_json` and the like. */
function guidesOf({ structured_outputs: outputs, ...body }) {
  if (outputs != null && !isRecord(outputs)) throw badParam('structured_outputs', 'must be an object');
  const found = Object.entries(GUIDES).flatMap(([name, make]) => (
    [[outputs?.[name], `structured_outputs.${name}`], [body[`guided_${name}`], `guided_${name}`]]
      .filter(([value]) => value != null).map(([value, path]) => make(value, path))));
  return Object.assign({}, ...found);
}

/** Options that constrain a reply. */
export function limitsOf({ response_format: format, grammar, json_schema: schema, ...body }) {
  return {
    ...(format != null && formatOf(format)),
    ...(grammar != null && grammar !== '' && { grammar }),
    ...(schema != null && { schema }),
    ...guidesOf(body),
  };
}

/** A chat requests log probabilities by true and a number, a completion by the number alone. */
export function logprobsOf({ logprobs, top_logprobs: top }, kind) {
  const most = kind === 'chat' ? top : logprobs;
  const isAsked = kind === 'chat' ? logprobs === true : logprobs != null && logprobs !== false;
  if (kind === 'chat' && logprobs != null && typeof logprobs !== 'boolean')
    throw badParam('logprobs', 'must be true or false');
  const name = kind === 'chat' ? 'top_logprobs' : 'logprobs';
  if (most != null && most !== false && !(Number.isInteger(most) && most >= 0 && most <= MOST)) {
    throw badParam(name, `must be a whole number from 0 to ${MOST}`);
  }
  if (kind === 'chat' && top > 0 && !isAsked) throw badParam('top_logprobs', 'needs logprobs to be true');
  return isAsked ? { logprobs: most ?? 0 } : {};
}

// --- answers ---

const encoder = new TextEncoder();

/** The bytes of an incomplete character are unknown, since its text does not have them. */
export const wordOf = ({ text, logprob }) => ({
  token: text,
  logprob,
  bytes: text.includes('\uFFFD') ? null : [...encoder.encode(text)],
});

/** The form of chats; null if none were requested. @param {import('../index.d.ts').Logprob[]} [logprobs] */
export function chatLogprobs(logprobs) {
  return logprobs
    ? { content: logprobs.map((one) => ({ ...wordOf(one), top_logprobs: one.top.map(wordOf) })), refusal: null }
    : null;
}

/**
 * The likeliest tokens and the token itself, by their texts. Of incomplete characters, which have the same text, the
 * likeliest one counts. null for the first token of a prompt.
 */
function topOf({ text, logprob, top }) {
  if (logprob === null) return null;
  const all = new Map();
  for (const one of [...top, { text, logprob }].sort((a, b) => b.logprob - a.logprob))
    if (!all.has(one.text)) all.set(one.text, one.logprob);
  return Object.fromEntries(all);
}

/**
 * The form of completions.
 * @param {import('../index.d.ts').Logprob[]} [logprobs]
 * @param {number} [offset] letters before the first token
 */
export function textLogprobs(logprobs, offset = 0) {
  if (!logprobs) return null;
  let at = offset;
  return {
    tokens: logprobs.map(({ text }) => text),
    token_logprobs: logprobs.map(({ logprob }) => logprob),
    top_logprobs: logprobs.map(topOf),
    text_offset: logprobs.map(({ text }) => (at += text.length) - text.length),
  };
}
