// SPDX-License-Identifier: MIT
// What happens to texts that are too long for the context: the visitor is told before sending, and instead of the whole
// the passages nearest to the question can be sent (document/passages.js), as many as fit. A text that does not fit at
// all has no other way.
import { button } from '../shell/dom.js';
import { tokens as amountOf } from '../shell/format.js';
import { joined, say } from '../shell/words.js';
import { inWorker } from './reading.js';

/** Most tokens that are left for the reply, and the part of a small context. */
const REPLY = 1024;
const PART = 4;

/** Tokens around the texts of a message: the template's marks, and names. */
const MARGIN = 64;

/** Each further try takes so much less, if the passages had more tokens than their letters promised. */
const LESS = 0.8;

let isNearest = false;      // the visitor wants passages of texts that would fit as a whole

/**
 * Tells about texts that are too long for what is left of the context.
 * @param {number} tokens of the texts
 * @param {object} actions of the composer
 */
export function advise(tokens, actions) {
  const { size, used } = actions.context();
  const takes = amountOf(tokens);
  if (!size || used + tokens < size) {
    isNearest = false;
    actions.onAdvice('');
  } else if (tokens >= size) {
    actions.onAdvice(joined(
      say`The text takes ${takes}, and the context holds ${amountOf(size)}: only the passages nearest to your question will be read.`,
      say`The settings have the context size.`,
    ));
  } else {
    const says = isNearest
      ? say`The text takes ${takes}, and only the passages nearest to your question will be read.`
      : say`The text takes ${takes}, and ${amountOf(size - used)} are left: the model will no longer read the beginning of the conversation.`;
    const other = button(isNearest ? say`Send the whole` : say`Send the nearest passages`, () => {
      isNearest = !isNearest;
      advise(tokens, actions);
    });
    actions.onAdvice(says, [other]);
  }
}

/** Tokens of all texts together. */
async function tokensOf(texts, { costOf }) {
  const costs = await Promise.all(texts.map(costOf));
  return costs.reduce((sum, cost) => sum + cost, 0);
}

async function fitted(texts, question, actions) {
  const isWanted = isNearest;
  isNearest = false;
  const { size, used } = actions.context();
  const letters = texts.reduce((sum, { text }) => sum + text.length, 0);
  if (!size || 3 * letters < size - used) return texts;     // a letter has 3 bytes at most, and a token one at least
  const tokens = await tokensOf(texts, actions);
  if (tokens < size && (!isWanted || used + tokens < size)) return texts;
  const asked = await actions.costOf({ name: '', text: question });
  const room = Math.max(size - used, size / 2) - Math.min(REPLY, size / PART) - asked - MARGIN;
  for (let most = (room * letters) / tokens; ; most *= LESS) {
    const job = { kind: 'passages', texts, question, most, letters: letters / tokens };
    const answer = await inWorker(job, say`Finding the nearest passages`, say`The text`);
    const found = answer?.passages.map((passages, i) => ({ ...texts[i], ...(passages !== null && { passages }) }));
    if (!found || most < 1 || await tokensOf(found, actions) <= room) return found ?? null;
  }
}

/**
 * The passages of texts that are nearest to some words, for a model that asks for them.
 * @param {Array<{name: string, text: string}>} texts
 * @param {number} most letters
 * @param {AbortSignal} signal of the reply
 * @returns {Promise<?Array<{name: string, place: string, text: string}>>} in the order of the texts; empty if no
 *   passage has any of the words; null if the visitor has ended the search; rejects with a sentence
 */
export async function search(texts, question, most, signal) {
  const job = { kind: 'search', texts, question, most };
  const answer = await inWorker(job, say`Searching in the documents`, say`The text`, { signal });
  return answer && answer.found;
}

/**
 * The texts as they are sent: whole, or with the passages that the model reads instead.
 * @param {Array<{name: string, text: string}>} texts
 * @param {string} question
 * @param {object} actions of the composer
 * @returns {Promise<?Array<{name: string, text: string, passages?: string}>>} null if it was cancelled, or if it has
 *   failed, which the visitor is told
 */
export const fit = (texts, question, actions) => fitted(texts, question, actions).catch(({ message }) => {
  actions.onRefuse(message);
  return null;
});
