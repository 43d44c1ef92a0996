// SPDX-License-Identifier: MIT
// Places of words: in the messages of a conversation that a search has found, and on the screen. A search compares
// texts without case and accents (record.js), so each letter's origin is kept.
import { folded } from './record.js';

/** Letters of a message that are shown before and after the place. */
const BEFORE = 24;
const AFTER = 80;

/** What a line does not show: white space, control and direction characters. */
const CONTROL = /[\s\p{Cc}\p{Cf}]+/gu;

/** The words of a search. @returns {string[]} */
const wordsOf = (words) => folded(words).split(/\s+/).filter(Boolean);

/** The first place of a folded word in a text. @returns {?[start: number, end: number]} */
function placeIn(text, word) {
  const origins = [];
  let plain = '';
  let at = 0;
  for (const letter of text) {
    const flat = folded(letter);
    for (let i = 0; i < flat.length; i++) origins.push(at);
    plain += flat;
    at += letter.length;
  }
  const start = plain.indexOf(word);
  return start < 0 ? null : [origins[start], origins[start + word.length] ?? text.length];
}

/**
 * The message that a search has found: one with all words, or else the first with one of them.
 * @param {object[]} messages
 * @returns {?{id: string, before: string, found: string, after: string}} null: only the title has the words
 */
export function placeOf(messages, words) {
  const wanted = wordsOf(words);
  const texts = messages.map(({ id, content }) => ({ id, content, plain: folded(content) }));
  const has = ({ plain }) => (word) => plain.includes(word);
  const best = texts.find((text) => wanted.every(has(text))) ?? texts.find((text) => wanted.some(has(text)));
  const place = best && placeIn(best.content, wanted.find(has(best)));
  if (!place) return null;
  const { id, content } = best;
  const [start, end] = place;
  const from = Math.max(0, start - BEFORE);
  return {
    id,
    before: (from ? '…' : '') + content.slice(from, start).replace(CONTROL, ' '),
    found: content.slice(start, end),
    after: content.slice(end, end + AFTER).replace(CONTROL, ' '),
  };
}

/** Scrolls to the first of the words in a message, and marks it where the browser can do that without new elements. */
export function showPlace(node, words) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const wanted = wordsOf(words);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const place = wanted.map((word) => placeIn(text.data, word)).find(Boolean);
    if (!place || !text.parentElement.checkVisibility()) continue;
    const range = new Range();
    range.setStart(text, place[0]);
    range.setEnd(text, place[1]);
    globalThis.CSS.highlights?.set('found', new globalThis.Highlight(range));
    return text.parentElement.scrollIntoView({ block: 'center' });
  }
  return node.scrollIntoView({ block: 'start' });
}
