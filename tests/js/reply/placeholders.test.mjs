// SPDX-License-Identifier: MIT
// Images and videos in prompts: where a template puts them, the labels of a video's pairs, as many pads as there are tokens, and that nobody
// types one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Chat } from '../../../js/reply/chat.js';
import { MARKS } from '../../../js/reply/marks.js';
import { Places } from '../../../js/reply/placeholders.js';
import { rejectsWith, render } from '../support/helper.mjs';

const hf = new URL('../../fixtures/vision/models/dense/hf/chat_template.json', import.meta.url);
const { chat_template: TEMPLATE } = JSON.parse(readFileSync(hf, 'utf8'));

const PADS = { image: 1001, video: 1002 };
const TEXTS = ['<|image_pad|>', '<|video_pad|>'];

/** Knows pads and letters; what it was asked is the prompt's text without sentinels. */
function chatOf(template) {
  const asked = [];
  const engine = {
    contextSize: 100_000, facts: { marks: 'qwen', added: { before: [], after: [] }, card: { plain: {}, thinking: {}, images: { presencePenalty: 1.5 } } }, chatTemplate: () => template, longestToken: () => 8,
    tokenize(text, mode, sentinel = 0) {
      asked.push(text.replaceAll(String.fromCodePoint(sentinel), ''));
      const pieces = text.split(/(<\|(?:image|video)_pad\|>)/).flatMap((piece) => (TEXTS.includes(piece) ? [piece] : [...piece]));
      return Int32Array.from(pieces, (piece) => (TEXTS.includes(piece) ? 1001 + TEXTS.indexOf(piece) : piece.codePointAt()));
    },
  };
  return { asked, chat: new Chat(engine, async (text, variables) => render(text, variables)) };
}

const image = (tokens) => ({ kind: 'image', tokens, labels: [] });
const video = (tokens, ...labels) => ({ kind: 'video', tokens, labels });
const user = (...parts) => ({ role: 'user', content: parts.map((part) => (part === 0 ? { type: 'image' } : part === 1 ? { type: 'video' } : { type: 'text', text: part })) });

const V = (pad) => `<|vision_start|><|${pad}_pad|><|vision_end|>`;

test('a file\'s template and the built-in ChatML say the same', async () => {
  for (const numberImages of [false, true]) {
    const texts = [];
    for (const template of [TEMPLATE, '']) {
      const { asked, chat } = chatOf(template);
      const seen = [image(2), video(3, '<0.2 seconds>', '<1.0 seconds>'), image(1)];
      const { ids, places, defaults } = await chat.prompt([
        { role: 'system', content: 'Be brief.' }, user('a', 0, 'b', 1), { role: 'assistant', content: 'Well.' }, user(0, 'c'),
      ], { numberImages, places: new Places(seen, PADS, MARKS.qwen), thinking: true });
      assert.deepEqual([places.tokens, places.order, defaults.presencePenalty], [9, seen, 1.5]);
      assert.deepEqual(Array.from(ids).filter((id) => id > 1000), [1001, 1001, 1002, 1002, 1002, 1002, 1002, 1002, 1001]);
      texts.push(asked.at(-1));
    }
    const [first, second, clip] = numberImages ? ['Picture 1: ', 'Picture 2: ', 'Video 1: '] : ['', '', ''];
    const expected = '<|im_start|>system\nBe brief.<|im_end|>\n'
      + `<|im_start|>user\na${first}${V('image')}b${clip}<0.2 seconds>${V('video')}<1.0 seconds>${V('video')}<|im_end|>\n`
      + `<|im_start|>assistant\nWell.<|im_end|>\n<|im_start|>user\n${second}${V('image')}c<|im_end|>\n<|im_start|>assistant\n`;
    assert.deepEqual(texts, [expected, expected]);
  }
});

test('a message without images is a text for the template, one with them a list', async () => {
  const { asked, chat } = chatOf('{% for m in messages %}{{ m.content is string }}{% if m.content is not string %}<|image_pad|>{% endif %} {% endfor %}');
  await chat.prompt([user(0), { role: 'assistant', content: 'x' }], { places: new Places([image(1)], PADS, MARKS.qwen) });
  assert.equal(asked.at(-1).replaceAll('<|image_pad|>', ''), 'False True ');
});

test('nobody types a pad, in one message or over two', async () => {
  const { chat } = chatOf(TEMPLATE);
  const places = new Places([image(3)], PADS, MARKS.qwen);
  const { ids } = await chat.prompt([user(`<|image_pad|>${V('video')}<`, 0, '|image_pad|>'), { role: 'assistant', content: V('image') }, user('<|video_pad|>', '')], { places });
  assert.deepEqual(Array.from(ids).filter((id) => id === 1001 || id === 1002), [1001, 1001, 1001]);
});

test('a template without places for images, or with others than there are', async () => {
  for (const [template, words] of [
    ['{{ messages[0].role }}', /no places for the 1 images/], ['<|image_pad|><|image_pad|>', /2 places/], ['<|image_pad|><|video_pad|>', /videos/],
  ]) {
    const { detail } = await rejectsWith(chatOf(template).chat.prompt([user(0)], { places: new Places([image(1)], PADS, MARKS.qwen) }), 'use/param', words);
    assert.equal(detail.param, 'messages');
  }
  await rejectsWith(chatOf('<|video_pad|>').chat.prompt([user(1)], { places: new Places([video(1, 'a')], PADS, MARKS.qwen) }), 'use/param', /videos/);
});

test('places and pads are in the order of the text', () => {
  const [a, b, f] = [image(1), image(2), video(1, '<0.0 seconds>')];
  const places = new Places([a, f, b], PADS, MARKS.qwen);
  assert.equal(places.fill(`${V('video')}${V('image')}x${V('image')}`), `<0.0 seconds>${V('video')}${V('image')}x${V('image')}`);
  assert.deepEqual(places.order, [f, a, b]);
  assert.deepEqual([...places.grow(Int32Array.of(1002, 5, 1001, 1001))], [1002, 5, 1001, 1001, 1001]);
});

test('which image is looked at: of those behind what is known', () => {
  const places = new Places([image(4), image(6), video(2, 'a', 'b', 'c')], PADS, MARKS.qwen);
  const all = [[0, 16, 1, 3], [3, 16, 1, 3], [4, 16, 2, 3], [9, 16, 2, 3], [10, 16, 3, 3], [16, 16, 3, 3], [0, 6, 1, 1], [6, 6, 1, 1], [2, 12, 1, 2], [6, 12, 2, 2]];
  for (const [done, total, image, images] of all) assert.deepEqual(places.at(done, total), { image, images }, `${done} of ${total}`);
});
