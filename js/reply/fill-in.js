// SPDX-License-Identifier: MIT
// The prompt of a text that is to go between two others, as Qwen's models were taught to fill in: what stands before
// it, what stands behind it, then the middle. A vocabulary has tokens for that, or it cannot.

import { around } from '../engine/around.js';
import { badParam } from '../shared/errors.js';

const MARKS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];

/** Tokens with which such a text is over, beside those that end any reply. */
const ENDS = ['<|fim_pad|>', '<|repo_name|>', '<|file_sep|>', '<|endoftext|>', ...MARKS];

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {import('./chat.js').Chat} chat
 * @param {string | Int32Array} given what stands before it
 * @param {string} suffix what stands behind it
 * @param {import('./chat.js').Asker} asker
 * @returns {Promise<import('./chat.js').Prompt & {ends: Set<number>}>} ends: tokens that end the reply
 */
export async function fillIn(engine, chat, given, suffix, asker) {
  const idsOf = (mark) => engine.tokenize(mark, 'chat');
  const isThere = (mark) => idsOf(mark).length === 1;
  const missing = MARKS.find((mark) => !isThere(mark));
  if (missing)
    throw badParam(
      'options.suffix',
      `needs a model whose vocabulary has ${MARKS.join(', ')}; this one has no ${missing}`,
    );
  // letters; what is longer does not fit whatever its tokens are
  const most = engine.contextSize * engine.longestToken();
  const tokensOf = async (text) => (typeof text === 'string' ? asker.tokens(text.slice(0, most)) : text);
  const [before, behind, middle] = MARKS.flatMap((mark) => [...idsOf(mark)]);
  const first = around(await tokensOf(given), { before: [...engine.facts.added.before, before], after: [behind] });
  const ids = around(await tokensOf(suffix), { before: first, after: [middle] });
  return { ...await chat.plain(ids), ends: new Set(ENDS.filter(isThere).flatMap((mark) => [...idsOf(mark)])) };
}
