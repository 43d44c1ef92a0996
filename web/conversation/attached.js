// SPDX-License-Identifier: MIT
// What the next message has beside its words: images, videos and texts, added by the button, by paste or by drop, shown
// with their numbers of tokens, and removable. Unsent ones stay with their conversation.
import { announce, byId, button, element, iconButton } from '../shell/dom.js';
import { tokens as tokensText } from '../shell/format.js';
import { plural, say } from '../shell/words.js';
import { thumb } from '../message/media.js';

/** Most images of a prompt, and most bytes of each. */
const MOST = 64;
const LARGEST = 64 * 2 ** 20;

/** Most texts of a message. */
const MOST_TEXTS = 20;

/** Name of a text that was pasted. */
const PASTED = say`Pasted text`;

/** @typedef {import('../message/media.js').Medium} Medium */
/** @typedef {{name: string, text: string}} Text a document */
/** @typedef {{media: Medium[], texts: Text[]}} Parts */

export class Attached {
  #list = byId('attached');
  #parts = { media: [], texts: [] };
  #rows = new Map();      // part -> {row, cost, tokens}
  #events;

  /**
   * @param {object} events
   * @param {() => void} events.onChange
   * @param {() => void} events.onPick the visitor has changed them
   * @param {(part: Medium | Text) => Promise<number>} events.costOf tokens; 0 if unknown
   * @param {(sentence: string) => void} events.onRefuse
   * @param {(tokens: number) => void} events.onTokens the texts take this many together; called when it changes
   * @param {(text: string) => void} events.onText a pasted text is wanted in the field
   */
  constructor(events) {
    this.#events = events;
  }

  get parts() { return this.#parts; }

  get isEmpty() { return this.#all.length === 0; }

  get #all() { return [...this.#parts.media, ...this.#parts.texts]; }

  /** @param {Partial<Parts>} parts */
  set({ media = [], texts = [] } = {}) {
    this.#parts = { media, texts };
    this.#rows = new Map(this.#all.map((part) => [part, this.#rows.get(part) ?? this.#row(part)]));
    this.#list.replaceChildren(...[...this.#rows.values()].map(({ row }) => row));
    this.#list.hidden = this.isEmpty;
    this.#tellTokens();
    this.#events.onChange();
  }

  /** Adds images and videos, as many as there is room for. @param {Medium[]} found */
  add(found) {
    const { media } = this.#parts;
    const fit = found.filter(({ blob }) => blob.size <= LARGEST).slice(0, MOST - media.length);
    if (fit.length < found.length) this.#events.onRefuse(say`A message takes ${MOST} images, of 64 MB each at most.`);
    if (fit.length) {
      this.#pick({ ...this.#parts, media: [...media, ...fit] });
      const all = plural(fit.length, 'One image is added.', '{1} images are added.');
      announce(fit.length === 1 ? say`${fit[0].name} is added.` : all);
    }
  }

  /** @param {string} text @param {string} [name] of a file; none: the text was pasted */
  addText(text, name = '') {
    const { texts } = this.#parts;
    if (texts.length >= MOST_TEXTS) return this.#events.onRefuse(say`A message takes ${MOST_TEXTS} texts at most.`);
    const pasted = texts.filter((one) => one.name.startsWith(PASTED)).length;
    const named = name || (pasted ? `${PASTED} ${pasted + 1}` : PASTED);
    this.#pick({ ...this.#parts, texts: [...texts, { name: named, text }] });
    return announce(say`${named} is added.`);
  }

  /** Counts tokens again, because another model is in use. */
  recount() {
    this.#rows.clear();
    this.set(this.#parts);
  }

  #pick(parts) {
    this.set(parts);
    this.#events.onPick();
  }

  #remove(part) {
    const others = (parts) => parts.filter((one) => one !== part);
    this.#pick({ media: others(this.#parts.media), texts: others(this.#parts.texts) });
    byId('input').focus();
  }

  #row(part) {
    const cost = element('span', { className: 'cost' });
    const remove = iconButton('close', say`Remove ${part.name}`, () => this.#remove(part));
    const shown = part.blob ? [thumb(part), cost] : this.#chip(part, cost);
    const made = { row: element('li', {}, ...shown, remove), tokens: 0 };
    this.#events.costOf(part).then(
      (tokens) => {
        made.tokens = tokens;
        cost.textContent = tokens ? tokensText(tokens) : '';
        this.#tellTokens();
      },
      (error) => {
        cost.textContent = say`cannot be read`;
        cost.title = error.message;
      },
    );
    return made;
  }

  /** What is shown of a text. */
  #chip(part, cost) {
    const name = element('bdi', { title: part.name }, part.name);
    const intoField = () => {
      this.#remove(part);
      this.#events.onText(part.text);
    };
    const undo = part.name.startsWith(PASTED) ? [button(say`Put into the text`, intoField, 'link-button')] : [];
    return [element('span', { className: 'chip-text' }, name, cost, ...undo)];
  }

  #tellTokens() {
    const tokens = this.#parts.texts.reduce((sum, text) => sum + this.#rows.get(text).tokens, 0);
    this.#events.onTokens(tokens);
  }
}
