// SPDX-License-Identifier: MIT
// Makes the prompts for vectors and ranks: the words of Qwen3-Embedding and Qwen3-Reranker around a text. A text never
// becomes a special token. A text that is too long is cut at its end, and its surroundings stay whole.

import { QuernError } from '../shared/errors.js';
import { around } from '../engine/around.js';
import { PART, atOnce } from '../shared/steps.js';
import { Rows } from '../engine/rows.js';
import { Unused, composed, guarded } from '../reply/guard.js';

/** The default instruction, which the models were trained with. */
const TASK = 'Given a web search query, retrieve relevant passages that answer the query';

const RANKING =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. ' +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n' +
  '<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n' +
  '<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** Beginning of the part of a ranking template that mentions the query. */
const USER = '<|im_start|>user\n';

/** The end token that Qwen3-Embedding was trained with. */
function ownEnd(engine) {
  const ids = engine.tokenize('<|endoftext|>', 'chat');
  return ids.length === 1 ? [...ids] : [engine.facts.endTokens[0]];
}

/**
 * The tokens that end a text for a vector: those of the files, or the one that such models were trained with. A folder
 * that describes its pooling needs only the tokens that its tokenizer adds.
 */
function endOf(engine) {
  const { added: { after }, vectors } = engine.facts;
  return after.length > 0 || vectors.described ? after : ownEnd(engine);
}

/** Removes the end tokens if the ids have them already. */
function withoutEnd(ids, end) {
  const from = ids.length - end.length;
  return from >= 0 && end.every((id, i) => ids[from + i] === id) ? ids.subarray(0, from) : ids;
}

/** The part of a text that fits in that many tokens, or more, so that the rest is not tokenized. */
function head(engine, text, tokens) {
  return text.length <= tokens ? text : text.slice(0, tokens * engine.longestToken());
}

/** Keeps at most `limit` ids. */
const cutTo = (ids, limit) => ({ ids: ids.subarray(0, limit), isCut: ids.length > limit });

function refuseLong(found, limit, what) {
  const message = `${what} has ${found} tokens with its template, but the context holds ${limit}, and a text must fit too.`;
  throw new QuernError('use/context', message, { detail: { found, limit } });
}

/** @typedef {(text: string | Int32Array) => Promise<{ids: Int32Array, isCut: boolean}>} PromptOf */

/** Tokenizes plain text, a short one in a single slice. @param {import('../reply/chat.js').Asker} asker */
async function plainTokens(engine, asker, text) {
  if (text.length <= PART) return asker.run(() => engine.tokenize(atOnce(composed(text)), 'plain'));
  return asker.tokens(await asker.through(composed(text)), 'plain');
}

/** @returns {Promise<PromptOf>} */
async function vectorPrompts(engine, asker, { instruction }) {
  const { contextSize, facts: { added } } = engine;
  const after = endOf(engine);
  const words = instruction ? `Instruct: ${instruction}\nQuery:` : '';
  const least = added.before.length + (await plainTokens(engine, asker, words)).length + after.length;
  if (least >= contextSize) refuseLong(least, contextSize, 'The instruction');
  return async (text) => {
    const isText = typeof text === 'string';
    const before = isText ? added.before : [];
    const whole = isText ? await plainTokens(engine, asker, words + head(engine, text, contextSize)) : text;
    const { ids, isCut } = cutTo(withoutEnd(whole, after), contextSize - before.length - after.length);
    const all = around(ids, { before, after });
    return { ids: all.length > 0 ? all : Int32Array.from(ownEnd(engine)), isCut };
  };
}

/** The file's own template for ranking, if it takes both a query and a document. */
function templateOf(engine, instruction) {
  const own = engine.part(Rows).template();
  if (!/\{query\}[^]*\{document\}/.test(own)) return RANKING;
  return instruction === undefined || own.includes('{instruction}') || own.includes(TASK)
    ? own.replace(TASK, '{instruction}')
    : RANKING;
}

/**
 * The tokens around query and document inside a template. A folder's tokenizer gets these two as a text, as the README
 * files of such models show; a GGUF file's template gets nothing added.
 */
const addedInside = ({ format, added }) => (format === 'gguf' ? { before: [], after: [] } : added);

/**
 * Fills texts into a template. They are guarded, so that no text becomes a special token. Returns the sentinel of the
 * guard, too.
 */
function* filledIn(words, given, document) {
  const unused = new Unused();
  for (const text of [words, ...Object.values(given), document]) yield* unused.seen(text);
  const sentinel = unused.point;
  const point = String.fromCodePoint(sentinel);
  const safe = {};
  for (const [name, text] of Object.entries(given)) safe[name] = yield* guarded(text, point);
  const before = words.replace(/\{(instruction|query)\}/g, (_, name) => safe[name]);
  return { text: before + (yield* guarded(document, point)), sentinel };
}

/** @returns {Promise<PromptOf>} */
async function rankPrompts(engine, asker, { instruction }, query) {
  const { contextSize } = engine;
  const { before: first, after: last } = addedInside(engine.facts);
  const [words, after] = templateOf(engine, instruction).split('{document}');
  const given = {
    instruction: await asker.through(composed(instruction ?? TASK)),
    query: await asker.through(composed(query)),
  };
  const tail = around(engine.tokenize(after, 'chat'), { before: last });
  const cut = first.length && words.includes(USER) ? words.indexOf(USER) + USER.length : 0;
  const begin = around(engine.tokenize(words.slice(0, cut), 'chat'), { after: first });
  const limit = contextSize - tail.length;
  const tokensOf = async (document) => {
    const { text, sentinel } = await asker.through(filledIn(words.slice(cut), given, document));
    return around(await asker.tokens(text, 'chat', sentinel), { before: begin });
  };
  const least = (await tokensOf('')).length + tail.length;
  if (least >= contextSize) refuseLong(least, contextSize, 'The query');
  return async (document) => {
    const { ids, isCut } = cutTo(
      await tokensOf(await asker.through(composed(head(engine, document, contextSize)))),
      limit,
    );
    return { ids: around(ids, { after: tail }), isCut };
  };
}

/**
 * Refuses vectors with a pooling that is not supported. Ranks always use the last token's state, so this does not apply
 * to them.
 */
function refuseAnother({ vectors: { refused } }) {
  if (!refused) return;
  throw new QuernError(
    'model/unsupported',
    `The model makes vectors in a way (${refused}) that this version does not support.`,
    { detail: { rule: 'pooling' } },
  );
}

/**
 * Returns the function that tokenizes texts: for vectors, or for ranks if there is a query.
 * @param {import('../engine/engine.js').Engine} engine
 * @param {import('../reply/chat.js').Asker} asker
 * @param {{instruction?: string}} options
 * @param {string} [query]
 * @returns {Promise<PromptOf>}
 */
export async function promptsOf(engine, asker, options, query) {
  if (query !== undefined) return rankPrompts(engine, asker, options, query);
  refuseAnother(engine.facts);
  return vectorPrompts(engine, asker, options);
}
