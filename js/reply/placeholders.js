// SPDX-License-Identifier: MIT
// The places of images and videos in a prompt. Templates write a triple of marks for each medium. The triple of a video
// becomes one triple for each pair of frames, with a label of its time. After the tokenizer, each pad is repeated as
// often as the medium has tokens. Typed text never becomes a mark (chat.js).

import { QuernError } from '../shared/errors.js';

/**
 * The marks of one medium in a prompt, as templates write them.
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
 * The size of a medium in the prompt. An image is one step; a video is one step for each pair of frames.
 * @typedef {{kind: 'image' | 'video', tokens: number, labels: string[]}} Seen tokens: of one step; labels: of a video's
 *   steps
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

  /** The media in the order of the prompt, after fill(). @type {any[]} */
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

  /** Number of tokens of all media. */
  get tokens() {
    return this.#steps.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** Number of tokens of each step. */
  get #steps() {
    return this.order.flatMap(({ kind, tokens, labels }) =>
      Array.from({ length: kind === 'image' ? 1 : labels.length }, () => tokens),
    );
  }

  /**
   * The medium that is being encoded. The last `total` tokens of all media need encoding, and `done` of them are
   * encoded.
   * @returns {{image: number, images: number}} image: from 1 on; images: number of media that need encoding
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
   * Writes contents as built-in ChatML does, joining their parts. With `numbered` it numbers media, as Qwen3-VL's
   * template does for `add_vision_id`.
   * @returns {(content: string | {type: string, text?: string}[]) => string} to be called for the contents in order
   */
  speller(numbered) {
    const counts = { image: 0, video: 0 };
    const spell = ({ type, text }) =>
      type === 'text' ? text : (numbered ? `${NAMES[type]} ${++counts[type]}: ` : '') + triple(this.#marks, type);
    return (content) => (typeof content === 'string' ? content : content.map(spell).join(''));
  }

  /** Replaces each video's triple in a rendered prompt by those of its pairs of frames. */
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
   * Repeats the pads of each step as often as the step has tokens.
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
