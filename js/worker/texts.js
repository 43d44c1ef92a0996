// SPDX-License-Identifier: MIT
// The tokens that stand for a text where its vector is wanted, or its rank: Qwen3-Embedding's and Qwen3-Reranker's own words around it. No text
// becomes a special token; one that is too long loses its end, and nothing that stands around it.

import { QuernError } from '../shared/errors.js';
import { Rows } from '../engine/rows.js';
import { composed, tooLong, unusedPoint } from '../reply/chat.js';

/** What the models were taught with, where nobody says otherwise. */
const TASK = 'Given a web search query, retrieve relevant passages that answer the query';

const RANKING = '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. '
  + 'Note that the answer can only be "yes" or "no".<|im_end|>\n'
  + '<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n'
  + '<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** What GGUF has numbers for beside the last token. */
const ANOTHER = new Map([[1, 'means of all tokens'], [2, 'the first token']]);

/** The token that ends a text: what the model was made with, whatever its file says. */
function endOf(engine) {
  const ids = engine.tokenize('<|endoftext|>', 'chat');
  return ids.length === 1 ? ids[0] : engine.facts.endTokens[0];
}

/** As much of a text as so many tokens can stand for: the rest is not worth the work. */
function head(engine, text, tokens) {
  return text.length <= tokens ? text : text.slice(0, tokens * engine.longestToken());
}

const joined = (ids, others) => {
  const all = new Int32Array(ids.length + others.length);
  all.set(ids);
  all.set(others, ids.length);
  return all;
};

/** `limit` ids at most. */
const cutTo = (ids, limit) => ({ ids: ids.subarray(0, limit), isCut: ids.length > limit });

function refuseLong(found, limit, what) {
  const message = `${what} has ${found} tokens with what stands around it, but the context holds ${limit}, and a text has to fit beside it.`;
  throw new QuernError('use/context', message, { detail: { found, limit } });
}

/** @returns {(text: string | Int32Array) => {ids: Int32Array, isCut: boolean}} */
function vectorPrompts(engine, { instruction }) {
  const { contextSize } = engine;
  const end = endOf(engine);
  const before = instruction ? `Instruct: ${instruction}\nQuery:` : '';
  const around = engine.tokenize(composed(before), 'plain').length + 1;
  if (around >= contextSize) refuseLong(around, contextSize, 'The instruction');
  return (text) => {
    const asText = (given) => engine.tokenize(composed(before + head(engine, given, contextSize)), 'plain');
    const whole = typeof text === 'string' ? asText(text) : text;
    const { ids, isCut } = cutTo(whole.at(-1) === end ? whole.subarray(0, -1) : whole, contextSize - 1);
    return { ids: joined(ids, [end]), isCut };
  };
}

/** The file's own words around a query and a document, where it has both. */
function templateOf(engine, instruction) {
  const own = engine.part(Rows).template();
  if (!/\{query\}[^]*\{document\}/.test(own)) return RANKING;
  return instruction === undefined || own.includes('{instruction}') || own.includes(TASK) ? own.replace(TASK, '{instruction}') : RANKING;
}

/** @returns {(document: string) => {ids: Int32Array, isCut: boolean}} */
function rankPrompts(engine, { instruction }, query) {
  const { contextSize } = engine;
  const [words, after] = templateOf(engine, instruction).split('{document}');
  const given = { instruction: composed(instruction ?? TASK), query: composed(query) };
  const tail = engine.tokenize(after, 'chat');
  const limit = contextSize - tail.length;
  const tokensOf = (document) => {
    const point = unusedPoint([words, given.instruction, given.query, document].join(' '));
    const guard = (text) => text.replaceAll('<', `<${String.fromCodePoint(point)}`);
    const before = words.replace(/\{(instruction|query)\}/g, (_, name) => guard(given[name]));
    return engine.tokenize(before + guard(document), 'chat', point);
  };
  const around = tokensOf('').length + tail.length;
  if (around >= contextSize) refuseLong(around, contextSize, 'The query');
  return (document) => {
    const { ids, isCut } = cutTo(tokensOf(composed(head(engine, document, contextSize))), limit);
    return { ids: joined(ids, tail), isCut };
  };
}

/**
 * How a text becomes tokens: for its vector, or for its rank where there is a query.
 * @param {import('../engine/engine.js').Engine} engine
 * @param {{instruction?: string}} options
 * @param {string} [query]
 */
export function promptsOf(engine, options, query) {
  const { pooling } = engine.facts;
  if (ANOTHER.has(pooling)) {
    throw new QuernError('model/unsupported', `The model makes its vectors another way (${ANOTHER.get(pooling)}) than by the last token.`,
      { detail: { rule: 'pooling' } });
  }
  return query === undefined ? vectorPrompts(engine, options) : rankPrompts(engine, options, query);
}
