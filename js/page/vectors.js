// SPDX-License-Identifier: MIT
// embed() and rank() of a model: checks the arguments, sends one request to the worker (worker/pooling.js), and shapes
// its answer. A separate file of the package, which is loaded with the first call.

import { QuernError, badParam } from '../shared/errors.js';
import { checkOptions, checkTokens } from './options.js';
import { checkFields, integer, isFields, ofType } from './values.js';

/** Most texts of one call: a list of results that a page can hold. */
const MOST_TEXTS = 2 ** 20;

const text = ofType('string', 'a text');
const WHOSE = { cacheScope: integer(0, 2 ** 32 - 1), guest: integer(0, Number.MAX_SAFE_INTEGER) };

const RANK = { instruction: text, ...WHOSE, onProgress: ofType('function', 'a function') };
const EMBED = { ...RANK, dimensions: integer(1, 2 ** 20), normalize: ofType('boolean', 'true or false') };

/**
 * @returns {{options: any, how: {signal?: AbortSignal, onEvent?: (event: any) => any}}} a checked copy of the options,
 *   and separately those that are not sent
 */
function optionsOf(given, table) {
  if (given != null && !isFields(given)) throw badParam('options', 'must be an object');
  const { signal, onProgress, ...options } = checkFields(given ?? {}, { ...table, signal: () => null }, 'options');
  const onEvent = onProgress && (({ done, total }) => onProgress({ done, total }));
  return { how: { signal: checkOptions('call', { signal }).signal, onEvent }, options };
}

function listOf(given, name) {
  if (!Array.isArray(given)) throw badParam(name, 'must be an array of texts');
  if (given.length === 0) throw new QuernError('use/empty', `There is nothing to do: ${name} is empty.`);
  if (given.length > MOST_TEXTS) throw badParam(name, `has ${given.length} texts, at most ${MOST_TEXTS} are possible`);
  return given;
}

/** A text, or the ids of its tokens. */
function checkedText(value, name, vocabSize) {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) || value instanceof Int32Array) return checkTokens(value, vocabSize, name);
  throw badParam(name, 'must be a text, or an array of token ids');
}

function checkDimensions({ dimensions }, { dim }) {
  if (dimensions > dim) throw badParam('options.dimensions', `is ${dimensions}, but the model's vectors have ${dim}`);
}

/**
 * @param {{dim: number, vocabSize: number}} info of the model
 * @param {(payload: any, how: any) => Promise<any>} call
 * @param {string | (string | ArrayLike<number>)[]} given
 */
export async function embed(info, call, given, asked) {
  const { how, options } = optionsOf(asked, EMBED);
  const list = typeof given === 'string' ? [given] : listOf(given, 'texts');
  checkDimensions(options, info);
  const texts = Array.from(list, (one, i) => checkedText(one, `texts[${i}]`, info.vocabSize));
  const { values, tokens, truncated } = await call({ texts, options }, how);
  const size = values.length / texts.length;
  const vectors = texts.map((_, i) => values.slice(i * size, (i + 1) * size));
  return { vectors, tokens, truncated };
}

/** @param {string[]} given */
export async function rank(info, call, query, given, asked) {
  const { how, options } = optionsOf(asked, RANK);
  if (typeof query !== 'string') throw badParam('query', 'must be a text');
  const texts = Array.from(listOf(given, 'documents'), (one, i) => {
    if (typeof one !== 'string') throw badParam(`documents[${i}]`, 'must be a text');
    return one;
  });
  const { values, truncated } = await call({ texts, query, options }, how);
  const cut = new Set(truncated);
  const ranks = Array.from(values, (score, index) => ({ index, score, ...(cut.has(index) && { truncated: true }) }));
  return ranks.sort((a, b) => b.score - a.score || a.index - b.index);
}
