// SPDX-License-Identifier: MIT
// What happens to texts that are too long for the context: the visitor is told before sending, and instead of the whole
// the passages nearest to the question can be sent (document/passages.js), as many as fit. A text that does not fit at
// all has no other way. What compares meanings is fetched when passages are needed; without it words alone decide.
import { button, byId } from '../shell/dom.js';
import { tokens as amountOf } from '../shell/format.js';
import { joined, say } from '../shell/words.js';
import { inWorker, showWork } from './reading.js';

/** Most tokens that are left for the reply, and the part of a small context. */
const REPLY = 1024;
const PART = 4;

/** Tokens around the texts of a message: the template's marks, and names. */
const MARGIN = 64;

/** Each further try takes so much less, if the passages had more tokens than their letters promised. */
const LESS = 0.8;

let isNearest = false;      // the visitor wants passages of texts that would fit as a whole

let latest = 0;             // number of the last advice

/** What compares meanings; null while it cannot be fetched. */
const meaning = () => import('./late/meaning.js').catch(() => null);

/** What there is to say of how passages are found. */
const findsBy = async (...given) => (await meaning())?.about(...given).catch(() => null) ?? { says: '', buttons: [] };

/**
 * Tells about texts that are too long for what is left of the context.
 * @param {number} tokens of the texts
 * @param {object} actions of the composer
 */
export async function advise(tokens, actions) {
  const mine = ++latest;
  const { size, used } = actions.context();
  const takes = amountOf(tokens);
  if (!size || used + tokens < size) {
    isNearest = false;
    return actions.onAdvice('');
  }
  const again = () => advise(tokens, actions);
  const isCut = tokens >= size;
  const { says, buttons } = isCut || isNearest ? await findsBy(actions.session, again, isCut) : { buttons: [] };
  if (mine !== latest || byId('attached').hidden) return undefined;
  if (isCut) {
    return actions.onAdvice(joined(
      say`The text takes ${takes}, and the context holds ${amountOf(size)}: only the passages nearest to your question will be read.`,
      says || say`The settings have the context size.`,
    ), buttons);
  }
  const sentence = isNearest
    ? say`The text takes ${takes}, and only the passages nearest to your question will be read.`
    : say`The text takes ${takes}, and ${amountOf(size - used)} are left: the model will no longer read the beginning of the conversation.`;
  const other = button(isNearest ? say`Send the whole` : say`Send the nearest passages`, () => {
    isNearest = !isNearest;
    again();
  });
  return actions.onAdvice(joined(sentence, says), [other, ...buttons]);
}

/**
 * How like the question each passage is in its meaning.
 * @param {object} job of the reader (document/passages.js)
 * @param {object} how see late/meaning.js
 * @returns {Promise<number[][] | null | undefined>} undefined: words alone decide; null: the visitor has ended it
 */
async function likenessOf(job, how) {
  const late = job.question.trim() && await meaning();
  if (!late || !await late.isUsed(how.session)) return undefined;
  const answer = await inWorker({ kind: 'cuts', ...job }, say`Finding the nearest passages`, say`The text`, how);
  if (!answer) return null;
  const show = (...given) => showWork(...given, how.signal ? '' : job.question);    // a reply shows its own question
  return late.compare({ ...job, cuts: answer.cuts }, { ...how, showWork: show });
}

/** Tokens of all texts together. */
async function tokensOf(texts, { costOf }) {
  const costs = await Promise.all(texts.map(costOf));
  return costs.reduce((sum, cost) => sum + cost, 0);
}

async function fitted(texts, question, conversation, actions) {
  const isWanted = isNearest;
  isNearest = false;
  const { size, used } = actions.context();
  const letters = texts.reduce((sum, { text }) => sum + text.length, 0);
  if (!size || 3 * letters < size - used) return texts;     // a letter has 3 bytes at most, and a token one at least
  const tokens = await tokensOf(texts, actions);
  if (tokens < size && (!isWanted || used + tokens < size)) return texts;
  const asked = await actions.costOf({ name: '', text: question });
  const reply = Math.min(REPLY, size / PART);
  const room = Math.max(size - used, size / 2) - reply - asked - MARGIN;
  const first = (room * letters) / tokens;
  const least = ((size / 2 - reply - MARGIN) * letters) / tokens;
  const all = { texts, question, least, isWhole: true };
  const how = { session: actions.session, conversation, onFail: actions.onRefuse };
  const likeness = await likenessOf({ ...all, most: first }, how);
  if (likeness === null) return null;
  for (let most = first; ; most *= LESS) {
    const job = { kind: 'passages', ...all, most, likeness };
    const answer = await inWorker(job, say`Finding the nearest passages`, say`The text`);
    const found = answer?.passages.map((passages, i) => ({ ...texts[i], ...(passages !== null && { passages }) }));
    if (!found || most < 1 || await tokensOf(found, actions) <= room) return found ?? null;
  }
}

/**
 * The passages of texts that are nearest to some words, for a model that asks for them.
 * @param {{texts: Array<{name: string, text: string}>, session: object, conversation: string}} scene
 * @param {string} question
 * @param {number} most letters
 * @param {AbortSignal} signal of the reply
 * @returns {Promise<?Array<{name: string, place: string, text: string}>>} in the order of the texts; empty if no
 *   passage is near; null if the visitor has ended the search; rejects with a sentence
 */
export async function search({ texts, session, conversation }, question, most, signal) {
  const job = { texts, question, most };
  const likeness = await likenessOf(job, { session, conversation, signal });
  if (likeness === null || signal.aborted) return null;
  const all = { kind: 'search', ...job, likeness };
  const answer = await inWorker(all, say`Searching in the documents`, say`The text`, { signal });
  return answer && answer.found;
}

/**
 * The texts as they are sent: whole, or with the passages that the model reads instead.
 * @param {Array<{name: string, text: string}>} texts
 * @param {string} question
 * @param {string} conversation its id; '' for a new one
 * @param {object} actions of the composer
 * @returns {Promise<?Array<{name: string, text: string, passages?: string}>>} null if it was cancelled, or if it has
 *   failed, which the visitor is told
 */
export const fit = (texts, question, conversation, actions) =>
  fitted(texts, question, conversation, actions).catch(({ message }) => {
    actions.onRefuse(message);
    return null;
  });
