// SPDX-License-Identifier: MIT
// Checks the options of callers, with one table row per option; many rows are in shared/options.js. Everything is
// checked on the page before anything is sent, so that an error names the argument as it was written (`options.topP`).
// Unknown names are errors: otherwise a mistyped option would be ignored silently.

import { badParam, unknownName } from '../shared/errors.js';
import { schemaOf, toolOf } from './standard.js';
import { isRecord } from '../shared/kinds.js';
import { DOWNLOADS, LOAD, QUANTIZED, REPLY, VISION } from '../shared/options.js';
import {
  DETAIL, PIXELS, above, asJson, between, checkFields, copied, integer, isFields, ofType, oneOf, read,
} from './values.js';

const MAX_BIAS = 100;
const MAX_NAME = 256;
const MAX_TOKENS = 2 ** 24;       // more than any context

const anyFunction = ofType('function', 'a function');
const boolean = ofType('boolean', 'true or false');
const url = (value) => (typeof value === 'string' || value instanceof URL ? null : 'must be a URL');
const signal = (value) =>
  typeof value === 'object' && typeof value?.addEventListener === 'function' && typeof value.aborted === 'boolean'
    ? null
    : 'must be an AbortSignal';

function isStrings(value) {
  if (!isFields(value)) return 'must be an object of strings, or Headers';
  const bad = Object.entries(value).find(([, text]) => typeof text !== 'string');
  return bad ? `must be an object of strings, but '${bad[0].slice(0, 64)}' is not one` : null;
}

/** Accepts a `Headers` or pairs too, as fetch() does. */
const headers = Object.assign((value) => isStrings(value), {
  take: (value) => (isRecord(value) && Symbol.iterator in value ? Object.fromEntries(value) : value),
});

const stops =
  ({ most, letters }) =>
  (value) => {
    const list = typeof value === 'string' ? [value] : value;
    if (!Array.isArray(list) || list.some((text) => typeof text !== 'string'))
      return 'must be a text or an array of texts';
    if (list.some((text) => text === '')) return 'must not be empty: every reply starts with the empty text';
    if (list.length > most) return `has ${list.length} texts, at most ${most} are possible`;
    if (list.some((text) => text.length > letters)) return `has a text of over ${letters} characters`;
    return null;
  };

function bias(value) {
  if (!isFields(value)) return 'must be an object from token ids to numbers';
  for (const [id, amount] of Object.entries(value)) {
    if (!/^\d{1,9}$/.test(id)) return `has the key '${id.slice(0, 64)}', which is not a token id`;
    if (amount !== -Infinity && between(-MAX_BIAS, MAX_BIAS)(amount)) {
      return `must map ${id} to -Infinity or a number from -${MAX_BIAS} to ${MAX_BIAS}`;
    }
  }
  return null;
}

/** Types to which weights can be converted, and the groups of weights that can be set separately. */
const quantized = oneOf(...QUANTIZED.slice(0, -1));
const EACH = ['weights', 'embeddings'];

/** One type for all weights, or one each for the layers' weights and the embeddings. */
function quantize(value) {
  if (value === 'auto' || !quantized(value)) return null;
  if (!isFields(value))
    return "must be one of 'none', 'q8', 'q4', 'auto', or an object { weights, embeddings } of the first three";
  for (const key of Object.keys(value)) {
    const path = `options.quantize.${key.slice(0, 64)}`;
    if (!EACH.includes(key)) throw unknownName(path, EACH);
    const problem = read(value, key, path) == null ? null : quantized(value[key]);
    if (problem) throw badParam(path, problem);
  }
  return null;
}

/** Methods that store.js calls. */
const STORE = ['list', 'read', 'open', 'remove', 'lock', 'usage'];

function store(value) {
  if (typeof value === 'boolean' || (typeof value === 'string' && value !== '')) return null;
  if (!isRecord(value)) return 'must be true, false or a store';
  const missing = STORE.find((name) => typeof read(value, name, `options.store.${name}`) !== 'function');
  return missing ? `must be true, false or a store, but has no function '${missing}'` : null;
}

/** Copies a value as JSON; the worker checks it in detail. */
const json = Object.assign(() => null, { take: copied });

/** Converts a value to JSON text, which the worker parses. */
const written = Object.assign(() => null, {
  take: (value) =>
    value == null ? value : asJson(value instanceof RegExp ? { source: value.source, flags: value.flags } : value),
});

/** Like `written`, but converts schemas of libraries to JSON Schema first. */
const schema = Object.assign(() => null, {
  take: (value) => (value == null ? value : asJson(schemaOf(value, 'options.schema'))),
});
const tools = Object.assign(() => null, {
  take: (list) => copied(Array.isArray(list) ? list.map((tool, i) => toolOf(tool, `options.tools[${i}]`)) : list),
});

/** Name of a saved conversation. Its file has room for MAX_NAME bytes. */
function save(value) {
  if (typeof value !== 'string' || value === '') return 'must be a name, a text that is not empty';
  const bytes = new TextEncoder().encode(value);
  if (bytes.length > MAX_NAME) return `has ${bytes.length} bytes (UTF-8), at most ${MAX_NAME} are possible`;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) === value
    ? null
    : 'must be text without lone surrogates';
}

const isHash = (text) => typeof text === 'string' && /^[0-9a-f]{64}$/i.test(text);

function sha256(value) {
  return [value].flat().every(isHash) && [value].flat().length ? null
    : 'must be a SHA-256 in 64 hexadecimal digits, or an array of them, one for each file of a split model';
}

const files = Object.assign(
  (value) =>
    value.length && value.every((one) => one instanceof Blob) ? null : 'must be a file, or an array of files',
  { take: (value) => (value === undefined ? value : [value].flat()) },
);

/** @returns {string | null} the problem */
function visionOptions(value) {
  if (!isFields(value)) return 'must be an object';
  for (const key of Object.keys(value)) {
    const path = `options.visionOptions.${key.slice(0, 64)}`;
    if (!Object.hasOwn(LIMITS, key)) throw unknownName(path, Object.keys(LIMITS));
    const problem = read(value, key, path) == null ? null : LIMITS[key](value[key]);
    if (problem) throw badParam(path, problem);
  }
  return null;
}

/** Booleans are for the files of a folder; locate() checks anything else. */
const vision = (value) => (value !== '' && ['boolean', 'string', 'object'].includes(typeof value)
  ? null : 'must be true, false, or where the projector is');

const whole = ({ least, most }) => integer(least, most);

/**
 * Makes the check of an option, by the kind of its row in the list of options.
 * @type {Record<string, (row: any) => (value: any) => string | null>}
 */
const KINDS = {
  whole,
  bytes: whole,
  between: ({ least, most }) => between(least, most),
  above: ({ least, most }) => above(least, most),
  names: ({ names }) => oneOf(...names),
  stops,
  boolean: () => boolean,
  function: () => anyFunction,
  url: () => url,
  signal: () => signal,
  headers: () => headers,
  store: () => store,
  sha256: () => sha256,
  files: () => files,
  vision: () => vision,
  source: () => (value) => (value && ['string', 'object'].includes(typeof value) ? null : 'must be where the model is'),
  limits: () => visionOptions,
  quantize: () => quantize,
  schema: () => schema,
  written: () => written,
};

/** @param {Record<string, import('../shared/options.js').Row>} table */
const checksOf = (table) =>
  Object.fromEntries(Object.entries(table).map(([name, row]) => [name, KINDS[row.kind](row)]));

const LIMITS = checksOf(VISION);

const LOGPROBS = integer(0, 20);

/**
 * `cacheScope` limits a request to cached prompts of its scope; `guest` is the guest in that scope, for a server
 * (worker/turns.js).
 */
const WHOSE = { cacheScope: integer(0, 2 ** 32 - 1), guest: integer(0, Number.MAX_SAFE_INTEGER) };

const COMPLETE = {
  ...checksOf(REPLY),
  signal,
  logitBias: bias,
  priority: oneOf('normal', 'background'),
  ...WHOSE,
  logprobs: LOGPROBS,
  choices: written,
  whitespace: oneOf('compact', 'flexible'),
  strictSchema: boolean,
  openObjects: boolean,
  onPrefill: anyFunction,
};

const TABLES = {
  load: checksOf(LOAD),
  download: checksOf(DOWNLOADS),
  store: { store },
  has: { store, vision },
  complete: { ...COMPLETE, promptLogprobs: LOGPROBS, suffix: ofType('string', 'a text') },
  chat: {
    ...COMPLETE,
    thinking: boolean,
    continue: boolean,
    numberImages: boolean,
    save,
    tools,
    toolChoice: json,
    parallelToolCalls: boolean,
    overflow: oneOf('error', 'drop'),
  },
  call: { signal },
  tokens: {
    signal,
    ...WHOSE,
    thinking: boolean,
    numberImages: boolean,
    tools,
    generationPrompt: boolean,
    continue: boolean,
  },
  detokenize: { signal, ...WHOSE, bytes: boolean },
  look: { signal, ...WHOSE, detail: DETAIL, maxPixels: PIXELS },
};

/** Returns a checked copy of the options; absent, undefined and null are the same. @param {keyof typeof TABLES} kind */
export function checkOptions(kind, given) {
  const options = given ?? {};
  if (!isFields(options)) throw badParam('options', 'must be an object');
  return checkFields(options, TABLES[kind], 'options');
}

/** Converts checked options of a reply to the form that the worker needs. */
export function sampling({ logitBias = {}, stop = [], ...options }, nTokens) {
  const pairs = Object.entries(logitBias).map(([id, amount]) => [Number(id), amount]);
  const unknown = pairs.find(([id]) => id >= nTokens);
  if (unknown)
    throw badParam('options.logitBias', `has the token id ${unknown[0]}, but the model has ${nTokens} tokens`);
  if (pairs.filter(([, amount]) => amount === -Infinity).length === nTokens)
    throw badParam('options.logitBias', 'forbids every token');
  const { signal: _, onPrefill: __, ...plain } = options;
  return { ...plain, bias: pairs, stops: typeof stop === 'string' ? [stop] : [...stop] };
}

/** Checks the name of a saved conversation; undefined stands for all of them. */
export function checkName(name) {
  const problem = name == null ? null : save(name);
  if (problem) throw badParam('name', problem);
  return name ?? undefined;
}

/** Returns a checked copy of token ids. */
export function checkTokens(tokens, nTokens, path = 'tokens') {
  if (typeof tokens !== 'object' || typeof tokens?.length !== 'number')
    throw badParam(path, 'must be an array of token ids');
  if (tokens.length > MAX_TOKENS) throw badParam(path, `has more than ${MAX_TOKENS} token ids`);
  const ids = read([tokens], 0, path, Array.from);
  const at = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= nTokens);
  if (at >= 0) throw badParam(`${path}[${at}]`, `must be a token id from 0 to ${nTokens - 1}`);
  return Int32Array.from(ids);
}

export function checkText(text, path = 'text') {
  if (typeof text === 'string') return text;
  if (text instanceof Uint8Array) return read([text], 0, path, (bytes) => bytes.subarray());
  throw badParam(path, 'must be a string');
}
