// SPDX-License-Identifier: MIT
// The prompt for a text between two others, in the order that Qwen models were trained with: the text before, the text
// after, then the middle. The vocabulary must have the tokens for it.

import { around } from '../engine/around.js';
import { badParam } from '../shared/errors.js';

const MARKS = ['<|fim_prefix|>', '<|fim_suffix|>', '<|fim_middle|>'];

/** Tokens that end such a text, in addition to those that end any reply. */
const ENDS = ['<|fim_pad|>', '<|repo_name|>', '<|file_sep|>', '<|endoftext|>', ...MARKS];

/**
 * @param {import('../engine/engine.js').Engine} engine
 * @param {import('./chat.js').Chat} chat
 * @param {string | Int32Array} given the text before
 * @param {string} suffix the text after
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
  // in letters; a longer text never fits, whatever its tokens are
  const most = engine.contextSize * engine.longestToken();
  const tokensOf = async (text) => (typeof text === 'string' ? asker.tokens(text.slice(0, most)) : text);
  const [before, behind, middle] = MARKS.flatMap((mark) => [...idsOf(mark)]);
  const first = around(await tokensOf(given), { before: [...engine.facts.added.before, before], after: [behind] });
  const ids = around(await tokensOf(suffix), { before: first, after: [middle] });
  return { ...await chat.plain(ids), ends: new Set(ENDS.filter(isThere).flatMap((mark) => [...idsOf(mark)])) };
}
