// SPDX-License-Identifier: MIT
// The tokens that stand for a text where its vector is wanted, or its rank: Qwen3-Embedding's and Qwen3-Reranker's own
// words around it. No text becomes a special token; one that is too long loses its end, and nothing that stands around
// it.

import { QuernError } from '../shared/errors.js';
import { around } from '../engine/around.js';
import { PART, atOnce } from '../shared/steps.js';
import { Rows } from '../engine/rows.js';
import { Unused, composed, guarded } from '../reply/guard.js';

/** What the models were taught with, where nobody says otherwise. */
const TASK = 'Given a web search query, retrieve relevant passages that answer the query';

const RANKING =
  '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. ' +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n' +
  '<|im_start|>user\n<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n' +
  '<|im_start|>assistant\n<think>\n\n</think>\n\n';

/** Where a template of ranking begins to speak of the query. */
const USER = '<|im_start|>user\n';

/** What Qwen3-Embedding was made with. */
function ownEnd(engine) {
  const ids = engine.tokenize('<|endoftext|>', 'chat');
  return ids.length === 1 ? [...ids] : [engine.facts.endTokens[0]];
}

/**
 * The tokens that end a text whose vector is wanted: those of the files, or the one that such models were made with.
 * Where a folder says how it makes vectors, what its tokenizer adds is all.
 */
function endOf(engine) {
  const { added: { after }, vectors } = engine.facts;
  return after.length > 0 || vectors.described ? after : ownEnd(engine);
}

/** Ids without the end that they have already. */
function withoutEnd(ids, end) {
  const from = ids.length - end.length;
  return from >= 0 && end.every((id, i) => ids[from + i] === id) ? ids.subarray(0, from) : ids;
}

/** As much of a text as so many tokens can stand for: the rest is not worth the work. */
function head(engine, text, tokens) {
  return text.length <= tokens ? text : text.slice(0, tokens * engine.longestToken());
}

/** `limit` ids at most. */
const cutTo = (ids, limit) => ({ ids: ids.subarray(0, limit), isCut: ids.length > limit });

function refuseLong(found, limit, what) {
  const message = `${what} has ${found} tokens with what stands around it, but the context holds ${limit}, and a text has to fit beside it.`;
  throw new QuernError('use/context', message, { detail: { found, limit } });
}

/** @typedef {(text: string | Int32Array) => Promise<{ids: Int32Array, isCut: boolean}>} PromptOf */

/** The tokens of plain text: of a short one at once. @param {import('../reply/chat.js').Asker} asker */
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

/** The file's own words around a query and a document, where it has both. */
function templateOf(engine, instruction) {
  const own = engine.part(Rows).template();
  if (!/\{query\}[^]*\{document\}/.test(own)) return RANKING;
  return instruction === undefined || own.includes('{instruction}') || own.includes(TASK)
    ? own.replace(TASK, '{instruction}')
    : RANKING;
}

/**
 * What stands around query and document inside a template: a folder's tokenizer is given these two as a text, as their
 * models' own README has it, while nothing is added to the template of a GGUF file.
 */
const addedInside = ({ format, added }) => (format === 'gguf' ? { before: [], after: [] } : added);

/**
 * The words of a template with texts in place of their names, none of which is a special token, and the sentinel that
 * sees to it.
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
 * Refuses vectors that are made another way than here; ranks are made of the last token's state whatever the files say
 * of vectors.
 */
function refuseAnother({ vectors: { refused } }) {
  if (!refused) return;
  throw new QuernError(
    'model/unsupported',
    `The model makes its vectors another way (${refused}) than this version does, so there are none.`,
    { detail: { rule: 'pooling' } },
  );
}

/**
 * How a text becomes tokens: for its vector, or for its rank where there is a query.
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
