// SPDX-License-Identifier: MIT
// Where images and videos stand in a prompt. Templates write one triple of marks for each; that of a video becomes one
// for each pair of its frames, labelled with its time, and behind the tokenizer each pad becomes as many as the medium
// has tokens. Typed text makes no marks (chat.js).

import { QuernError } from '../shared/errors.js';

/**
 * One medium in a prompt, as templates write it.
 * @param {import('./marks.js').Marks} marks
 * @param {'image' | 'video'} kind
 */
const triple = ({ pads, around: [before, behind] }, kind) => before + pads[kind] + behind;

/**
 * The kinds of the pads in a text, in their order.
 * @param {import('./marks.js').Marks} marks
 * @returns {('image' | 'video')[]}
 */
function kindsIn(text, { pads: { image, video } }) {
  return text.split(image).flatMap((part, i) => [
    ...(i ? ['image'] : []),
    ...part
      .split(video)
      .slice(1)
      .map(() => 'video'),
  ]);
}

const WORDS = { image: 'images', video: 'videos' };

/**
 * A medium as the prompt needs it: an image is one step, a video a step for each pair of frames.
 * @typedef {{kind: 'image' | 'video', tokens: number, labels: string[]}} Seen tokens: of each step; labels: those of a
 *   video's steps
 */

const NAMES = { image: 'Picture', video: 'Video' };

function checkPlaces(text, seen, marks) {
  for (const kind of /** @type {('image' | 'video')[]} */ (['image', 'video'])) {
    const wanted = seen.filter((medium) => medium.kind === kind).length;
    const [pads, triples] = [marks.pads[kind], triple(marks, kind)].map((mark) => text.split(mark).length - 1);
    if (pads === wanted && (triples === wanted || kind === 'image')) continue;
    const message = `The model's chat template has ${pads || 'no'} places for the ${wanted} ${WORDS[kind]} of the messages.`;
    throw new QuernError('use/param', message, { detail: { param: 'messages' } });
  }
}

/** The places of a conversation's images and videos in its prompt. */
export class Places {
  #seen;
  #pads;
  #marks;

  /** Of its media, as the prompt has them, once it was filled. @type {any[]} */
  order = [];

  /**
   * @param {Seen[]} seen in the order of the messages @param {Record<'image' | 'video', number>} pads ids
   * @param {import('./marks.js').Marks} marks of the model
   */
  constructor(seen, pads, marks) {
    this.#seen = seen;
    this.#pads = pads;
    this.#marks = marks;
    this.order = seen;
  }

  /** Tokens of all of them. */
  get tokens() {
    return this.#steps.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** Of each step. */
  get #steps() {
    return this.order.flatMap(({ kind, tokens, labels }) =>
      Array.from({ length: kind === 'image' ? 1 : labels.length }, () => tokens),
    );
  }

  /**
   * Which of those is looked at whose tokens are the last `total` of all, when `done` of them are.
   * @returns {{image: number, images: number}} from 1 on, of so many
   */
  at(done, total) {
    const sizes = this.order.map(({ kind, tokens, labels }) => tokens * (kind === 'image' ? 1 : labels.length));
    let first = sizes.length;
    for (let left = total; left > 0 && first > 0;) left -= sizes[--first];
    const looked = sizes.slice(first);
    const ends = looked.map((_, i) => looked.slice(0, i + 1).reduce((a, b) => a + b));
    const at = ends.findIndex((end) => end > done);
    return { image: at < 0 ? looked.length : at + 1, images: looked.length };
  }

  /**
   * Contents as built-in ChatML writes them, parts one behind the other; with `numbered` as Qwen3-VL's template does
   * for `add_vision_id`.
   * @returns {(content: string | {type: string, text?: string}[]) => string} for one content after the other
   */
  speller(numbered) {
    const counts = { image: 0, video: 0 };
    const spell = ({ type, text }) =>
      type === 'text' ? text : (numbered ? `${NAMES[type]} ${++counts[type]}: ` : '') + triple(this.#marks, type);
    return (content) => (typeof content === 'string' ? content : content.map(spell).join(''));
  }

  /** A rendered prompt with each video's triple replaced by those of its pairs. */
  fill(text) {
    checkPlaces(text, this.#seen, this.#marks);
    const waiting = {
      image: this.#seen.filter(({ kind }) => kind === 'image'),
      video: this.#seen.filter(({ kind }) => kind === 'video'),
    };
    this.order = kindsIn(text, this.#marks).map((kind) => waiting[kind].shift());
    const clip = triple(this.#marks, 'video');
    const pairs = this.order
      .filter(({ kind }) => kind === 'video')
      .map(({ labels }) => labels.map((label) => label + clip).join(''));
    return text
      .split(clip)
      .map((part, i) => part + (pairs[i] ?? ''))
      .join('');
  }

  /**
   * The prompt's ids with as many pads for each step as it has tokens.
   * @param {Int32Array} ids
   * @returns {Int32Array}
   */
  grow(ids) {
    const steps = this.#steps;
    const all = new Int32Array(ids.length - steps.length + this.tokens);
    let at = 0;
    for (const id of ids) {
      const count = id === this.#pads.image || id === this.#pads.video ? steps.shift() : 1;
      all.fill(id, at, at + count);
      at += count;
    }
    return all;
  }
}
