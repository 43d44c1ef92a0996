// SPDX-License-Identifier: MIT
// Where pictures and films stand in a prompt. Templates write one triple of marks for each; that of a film becomes one for each pair of its frames,
// labelled with its time, and behind the tokenizer each pad becomes as many as the medium has tokens. Typed text makes no marks (chat.js).

import { QuernError } from '../shared/errors.js';

const PADS = { image: '<|image_pad|>', video: '<|video_pad|>' };

const triple = (kind) => `<|vision_start|>${PADS[kind]}<|vision_end|>`;

const ANY_PAD = /<\|(image|video)_pad\|>/g;

const WORDS = { image: 'pictures', video: 'films' };

/**
 * A medium as the prompt needs it: a picture is one step, a film a step for each pair of frames.
 * @typedef {{kind: 'image' | 'video', tokens: number, labels: string[]}} Seen tokens: of each step; labels: those of a film's steps
 */

const NAMES = { image: 'Picture', video: 'Video' };

/**
 * Contents as built-in ChatML writes them, parts one behind the other; with `numbered` as Qwen3-VL's template does for `add_vision_id`.
 * @returns {(content: string | {type: string, text?: string}[]) => string} for one content after the other
 */
export function speller(numbered) {
  const counts = { image: 0, video: 0 };
  const spell = ({ type, text }) => (type === 'text' ? text : (numbered ? `${NAMES[type]} ${++counts[type]}: ` : '') + triple(type));
  return (content) => (typeof content === 'string' ? content : content.map(spell).join(''));
}

function checkPlaces(text, seen) {
  for (const kind of /** @type {('image' | 'video')[]} */ (['image', 'video'])) {
    const wanted = seen.filter((medium) => medium.kind === kind).length;
    const [pads, triples] = [PADS[kind], triple(kind)].map((mark) => text.split(mark).length - 1);
    if (pads === wanted && (triples === wanted || kind === 'image')) continue;
    const message = `The model's chat template has ${pads || 'no'} places for the ${wanted} ${WORDS[kind]} of the messages.`;
    throw new QuernError('use/param', message, { detail: { param: 'messages' } });
  }
}

/**
 * A rendered prompt with each film's triple replaced by those of its pairs, and the media in the order of their places.
 * @param {string} text @param {Seen[]} seen in the order of the messages
 */
export function placed(text, seen) {
  if (seen.length === 0) return { text, order: [] };
  checkPlaces(text, seen);
  const waiting = { image: seen.filter(({ kind }) => kind === 'image'), video: seen.filter(({ kind }) => kind === 'video') };
  const order = [...text.matchAll(ANY_PAD)].map(([, kind]) => waiting[kind].shift());
  const films = order.filter(({ kind }) => kind === 'video');
  const pairs = films.map(({ labels }) => labels.map((label) => label + triple('video')).join(''));
  const filled = text.split(triple('video')).map((part, i) => part + (pairs[i] ?? '')).join('');
  return { text: filled, order };
}

/**
 * Ids with as many pads for each step as it has tokens.
 * @param {Int32Array} ids @param {Record<'image' | 'video', number>} pads @param {Seen[]} order
 */
export function grown(ids, pads, order) {
  const steps = order.flatMap(({ kind, tokens, labels }) => Array.from({ length: kind === 'image' ? 1 : labels.length }, () => tokens));
  const all = new Int32Array(ids.length + steps.reduce((sum, tokens) => sum + tokens - 1, 0));
  let at = 0;
  let step = 0;
  for (const id of ids) {
    const count = id === pads.image || id === pads.video ? steps[step++] : 1;
    all.fill(id, at, at + count);
    at += count;
  }
  return all;
}
