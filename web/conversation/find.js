// SPDX-License-Identifier: MIT
// Places of words: in the messages of conversations that a search has found, and on the screen. A search compares
// texts without case and accents (record.js), so each letter's origin is kept.
import { element } from '../shell/dom.js';
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
function placeOf(messages, words) {
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

/**
 * The places that the search of the list has found, shown below the titles. Only conversations whose rows come into
 * sight are read, since a word may be in a thousand.
 */
export class Places {
  #archive;
  #search;
  #found = new Map();    // id of a conversation -> {message: its id, words}
  #sight = new IntersectionObserver((rows) =>
    this.#show(rows.filter(({ isIntersecting }) => isIntersecting).map(({ target }) => target)));

  /**
   * @param {import('./archive.js').Archive} archive
   * @param {HTMLInputElement} search
   */
  constructor(archive, search) {
    this.#archive = archive;
    this.#search = search;
  }

  get #words() { return this.#search.value.trim(); }

  /** @returns {{message: string, words: string} | undefined} the place in a conversation */
  get(id) { return this.#found.get(id); }

  /** Shows the places in these rows as soon as they come into sight. @param {Iterable<HTMLElement>} rows */
  watch(rows) {
    for (const row of rows) if (row.dataset.id) this.#sight.observe(row);
  }

  clear() {
    this.#sight.disconnect();
    this.#found.clear();
    for (const line of document.querySelectorAll('.list-found')) line.remove();
  }

  /** Shows places, one row after the other, as long as the words are those searched for. */
  async #show(rows) {
    const words = this.#words;
    for (const row of rows) {
      this.#sight.unobserve(row);
      const { id } = row.dataset;
      const { messages = [] } = await this.#archive.read(id).catch(() => null) ?? {};
      if (!words || words !== this.#words) return;
      const place = placeOf(messages, words);
      if (!place) continue;
      this.#found.set(id, { message: place.id, words });
      const { before, found, after } = place;
      const line = element('span', { className: 'list-found', dir: 'auto' }, before, element('mark', {}, found), after);
      row.querySelector('.list-found')?.remove();
      row.querySelector('.list-open')?.append(line);
    }
  }
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
