// SPDX-License-Identifier: MIT
// Images and videos from messages to logits, in Node, over small models with random weights whose results transformers has computed
// (tests/fixtures/vision): what they say means nothing, to the bit. How files are decoded is media.test.mjs's.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import sharp from 'sharp';
import { load } from '../../../dist/node.js';
import { some } from '../../fixtures/lengths.mjs';
import { FOLDER, HYBRID, LIMITS, MOE, PAIR, Q8, assertLogits, goldenCases, goldenLook, imagePath, nativeLook } from '../../fixtures/vision/golden.mjs';
import { vlPath } from '../../fixtures/vision-models.mjs';
import { vlProjector } from '../../fixtures/vl-projector.mjs';
import { NANO, rejectsWith } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const open = ({ source, options }, more = {}) => load(source, { kv: 'f32', threads: 2, ...options, ...more });
const same = (one, other, what) => assert.ok(Buffer.from(one.buffer).equals(Buffer.from(other.buffer)), what);

const DENSE = goldenCases('dense');
const caseOf = (name) => DENSE.find((one) => one.name === name);

/** Both pads of the small vocabulary. */
const PADS = [287, 288];

/** An image of noise. */
function noiseImage(width, height, seed = 1) {
  let state = seed;
  const next = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state >>> 24; };
  return { data: Uint8Array.from({ length: 3 * width * height }, next), width, height };
}

const ask = (...content) => [{ role: 'user', content: content.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : { type: 'image', image: part })) }];

const place = mkdtempSync(join(tmpdir(), 'vision-'));
after(() => rmSync(place, { recursive: true }));

/** A folder's model as a pair; its projector is made of the folder. */
function pairOf(name) {
  const vision = join(place, `${name}.mmproj.gguf`);
  writeFileSync(vision, vlProjector(name));
  return { source: vlPath(name, 'f16', 'model.gguf'), options: { vision, visionOptions: LIMITS } };
}

const GREEDY = { temperature: 0, presencePenalty: 0, maxTokens: 6 };

let pair;
before(async () => { pair = await open(PAIR); });
after(() => pair.dispose());

test('ids, and tokens of images, of every case: of pairs and of folders', async () => {
  const others = [[FOLDER, DENSE], [MOE, goldenCases('moe')], [HYBRID, goldenCases('hybrid')], [pairOf('hybrid'), goldenCases('hybrid')]];
  for (const [model, cases] of [[pair, DENSE], ...await Promise.all(others.map(async ([of, cases]) => [await open(of), cases]))]) {
    for (const { name, messages, numberImages, ids } of cases) {
      assert.deepEqual(await model.tokenize(messages, { numberImages }), ids, name);
      assert.equal(await model.countTokens(messages, { numberImages }), ids.length, name);
    }
    if (model !== pair) await model.dispose();
  }
});

/** Fails unless a model writes what transformers does. Some marks are not shown, and the bytes around them are one character. */
async function assertGreedy(model, { name, messages, numberImages, greedy }) {
  const { text } = await model.chat(messages, { ...GREEDY, maxTokens: greedy.length, numberImages }).result;
  const mark = /<\|\w+\|>/g;
  const isMark = await Promise.all(greedy.map(async (id) => (await model.detokenize([id])).search(mark) === 0));
  const expected = await model.detokenize(greedy.filter((_, i) => !isMark[i]));
  assert.equal(text.replaceAll(mark, ''), expected, name);
}

test('logits of every case are those of transformers, and what is written greedily; the folder\'s are the pair\'s', async () => {
  const folder = await open(FOLDER);
  for (const one of DENSE) {
    const { name, messages, numberImages } = one;
    const logits = await pair.logits(messages, { numberImages });
    assertLogits('dense', one, logits, PADS);
    same(logits, await folder.logits(messages, { numberImages }), name);
    await assertGreedy(pair, one);
  }
  await folder.dispose();
});

for (const [name, of] of [['moe', MOE], ['hybrid', HYBRID]]) {
  test(`${name}: the same from a folder and a pair`, async () => {
    const model = await open(of);
    const halves = await open(pairOf(name));
    for (const one of goldenCases(name)) {
      const logits = await model.logits(one.messages, { numberImages: one.numberImages });
      assertLogits(name, one, logits, PADS);
      same(logits, await halves.logits(one.messages, { numberImages: one.numberImages }), one.name);
      await assertGreedy(model, one);
    }
    await halves.dispose();
    await model.dispose();
  });
}

test('a model with states: its next turns continue behind known images, whose rows another image does not share', async () => {
  const model = await open(pairOf('hybrid'));
  const [first, answer, second] = goldenCases('hybrid').find(({ name }) => name === 'later').messages;
  const all = [first, answer, second];
  const fresh = await model.chat(all, { ...GREEDY, cacheScope: 7 }).result;
  const one = await model.chat([first], GREEDY).result;
  const two = await model.chat(all, GREEDY).result;
  assert.deepEqual([two.text, two.usage.imageTokens], [fresh.text, 12]);
  assert.ok(two.usage.cachedTokens > one.usage.promptTokens - 12 && two.usage.cachedTokens < one.usage.promptTokens, JSON.stringify([one.usage, two.usage]));
  const again = await model.chat(all, GREEDY).result;
  assert.equal(again.text, two.text);
  assert.ok(again.usage.cachedTokens > two.usage.cachedTokens, JSON.stringify(again.usage));
  const other = [{ ...first, content: first.content.map((part) => (part.type === 'image' ? { type: 'image', image: noiseImage(14, 9) } : part)) }];
  const [logits, changed] = [await model.logits([first]), await model.logits(other)];
  assert.equal(logits.length, changed.length);
  assert.ok(!Buffer.from(logits.buffer).equals(Buffer.from(changed.buffer)));
  const image = (await model.tokenize([first])).indexOf(PADS[0]);
  const { cachedTokens } = (await model.chat(other, GREEDY).result).usage;
  assert.ok(cachedTokens > 0 && cachedTokens <= image, `${cachedTokens} of ${image}`);
  await model.dispose();
});

test('with halves in the store: near them, and greedily the same where it is not close', async () => {
  const halves = await open(PAIR, { kv: 'f16' });
  for (const one of DENSE) {
    assertLogits('dense', one, await halves.logits(one.messages, { numberImages: one.numberImages }), PADS, { distance: Infinity, kl: 1e-5 });
    if (one.greedy_margin > 0.2) await assertGreedy(halves, one);
  }
  await halves.dispose();
});

test('the same bits with any threads, chunks that cut images anywhere, and kernels; natively too', async () => {
  const image = noiseImage(200, 160);
  for (const of of [PAIR, Q8, pairOf('hybrid')]) {
    const all = [];
    const native = nativeLook(of, image);
    for (const more of some([{}, { address: 32, chunk: 1024 }, { variant: 'scalar', threads: 1, chunk: 5 }, { variant: 'simd', chunk: 1 }, { threads: 3, chunk: 7 }], 2)) {
      const model = await open(of, more);
      const { messages, numberImages } = of === PAIR || of === Q8 ? caseOf('mixed') : goldenCases('hybrid').find(({ name }) => name === 'video');
      all.push(await model.logits(messages, { numberImages }));
      const { values } = await model.look(image);
      await model.dispose();
      assert.ok(native.equals(Buffer.from(values.buffer, values.byteOffset, values.byteLength)), `natively: ${JSON.stringify(more)}`);
      same(all[0], all.at(-1), JSON.stringify(more));
    }
  }
});

test('what the encoder makes of an image', async () => {
  for (const name of ['exact', 'alpha', 'tall']) {
    const { tokens, rows, columns, width, values } = await pair.look(imagePath(`${name}.png`));
    const golden = goldenLook('dense', name, 64);
    assert.deepEqual([rows * columns, values.length, tokens * width], [tokens, golden.length, golden.length]);
    const most = golden.reduce((sum, value, i) => Math.max(sum, Math.abs(value - values[i])), 0);
    assert.ok(most <= 2e-4, `${name}: ${most}`);
  }
});

test('a huge image says that it was reduced, also the next time', async () => {
  const size = { width: 5000, height: 4000 };
  const huge = new Blob([await sharp({ create: { ...size, channels: 3, background: '#845' } }).jpeg().toBuffer()]);
  for (const [image, reduced] of [[huge, size], [huge, size], [imagePath('exact.png'), null]]) assert.deepEqual((await pair.look(image)).reduced, reduced);
});

test('a second turn looks at what is new alone; an image that was replaced is not the one before', async () => {
  const model = await open(PAIR);
  const phases = [];
  const onPrefill = ({ phase, done, total }) => phases.push([phase, done, total]);
  const [first, answer, second] = caseOf('later').messages;
  const one = await model.chat([first], { ...GREEDY, onPrefill }).result;
  assert.deepEqual([one.usage.imageTokens, one.usage.cachedTokens], [6, 0]);
  assert.deepEqual(phases.filter(([phase]) => phase === 'vision').at(-1), ['vision', 6, 6]);
  assert.ok(phases.some(([phase, done, total]) => phase === 'text' && done === total && total === one.usage.promptTokens));
  phases.length = 0;
  const two = await model.chat([first, answer, second], { ...GREEDY, onPrefill }).result;
  assert.ok(two.usage.cachedTokens >= one.usage.promptTokens - 32 && two.usage.imageTokens === 12, JSON.stringify(two.usage));
  assert.deepEqual(phases.filter(([phase]) => phase === 'vision').at(-1), ['vision', 6, 6], 'the first one is known');
  const again = await model.chat([first, answer, second], GREEDY).result;
  assert.ok(again.usage.cachedTokens > two.usage.cachedTokens && again.text === two.text);

  const image = noiseImage(96, 64);
  const negative = { ...image, data: image.data.map((value) => 255 - value) };
  const before = await model.chat(ask('And then this, which is smaller than the one before: ', image, 'Well?'), GREEDY).result;
  const behind = await model.chat(ask('And then this, which is smaller than the one before: ', negative, 'Well?'), GREEDY).result;
  assert.ok(behind.usage.cachedTokens <= before.usage.promptTokens - 6, JSON.stringify(behind.usage));
  const [logits, others] = [await model.logits(ask(image, 'Well?')), await model.logits(ask(negative, 'Well?'))];
  assert.ok(!Buffer.from(logits.buffer).equals(Buffer.from(others.buffer)));
  await model.dispose();
});

/** Fails unless a conversation that is opened again needs no encoding. */
async function assertKept(of) {
  const cache = mkdtempSync(join(tmpdir(), 'quern-seen-'));
  const { messages } = caseOf('later');
  const ask = async (conversation, looked = []) => {
    const model = await open(of, { store: cache });
    const onPrefill = ({ phase, done, total }) => { if (phase === 'vision' && done === total) looked.push(total); };
    const result = await model.chat(conversation, { ...GREEDY, save: 'talk', onPrefill }).result;
    await model.saved();
    await model.dispose();
    return { ...result, looked };
  };
  const first = await ask(messages);
  const second = await ask(messages);
  assert.deepEqual([first.usage.cachedTokens, second.text], [0, first.text]);
  assert.ok(second.usage.cachedTokens >= 192 && second.looked.length === 0, JSON.stringify([second.usage, second.looked]));
  const others = messages.map(({ role, content }) => ({ role, content: typeof content === 'string' ? content : content.map((part) => (
    part.type === 'image' && part.image === imagePath('tiny.png') ? { type: 'image', image: noiseImage(14, 9) } : part)) }));
  const third = await ask(others);
  assert.ok(third.usage.cachedTokens < second.usage.cachedTokens && third.looked.length > 0, JSON.stringify([third.usage, third.looked]));
  rmSync(cache, { recursive: true });
}

test('what was seen is kept with its conversation: nobody looks again after a reload, and another image is another one', async () => {
  await assertKept(PAIR);
  await assertKept(pairOf('hybrid'));
});

test('alone as beside others, from whatever form an image comes in', async () => {
  const file = await readFile(imagePath('exact.png'));
  const forms = [
    imagePath('exact.png'), new URL(`file://${imagePath('exact.png')}`), new Blob([file]), `data:image/png;base64,${file.toString('base64')}`,
  ];
  const { messages, ids } = caseOf('exact');
  const given = (image) => messages.map(({ role, content }) => (
    { role, content: typeof content === 'string' ? content : content.map((part) => (part.type === 'image' ? { type: 'image', image } : part)) }));
  const expected = await pair.logits(messages);
  for (const form of forms) same(expected, await pair.logits(given(form)), String(form).slice(0, 40));
  const url = given(forms[0]);
  url[1].content[1] = { type: 'image_url', image_url: { url: forms[3] } };
  same(expected, await pair.logits(url), 'image_url');
  const alone = await pair.chat(messages, GREEDY).result;
  const all = await Promise.all([...forms.map((form) => pair.chat(given(form), GREEDY).result), pair.chat(caseOf('video').messages, GREEDY).result]);
  for (const { text, usage } of all.slice(0, -1)) assert.deepEqual([text, usage.promptTokens], [alone.text, ids.length]);
});

test('tools see too: their results\' images stand where the results do, whatever order they came in', async () => {
  const calls = ['a', 'b'].map((id) => ({ id, name: 'look', arguments: {} }));
  const result = (toolCallId, ...content) => ({ role: 'tool', toolCallId, content });
  const image = (width, height) => ({ type: 'image', image: noiseImage(width, height, width) });
  const one = result('a', { type: 'text', text: 'A door: ' }, image(64, 64));
  const other = result('b', image(96, 64), image(64, 96));
  const [right, swapped] = [[one, other], [other, one]].map((results) => [...ask(noiseImage(128, 64), 'What is there?'), { role: 'assistant', content: '', toolCalls: calls }, ...results]);
  const ids = await pair.tokenize(right);
  assert.deepEqual(await pair.tokenize(swapped), ids);
  assert.deepEqual([await pair.countTokens(swapped), ids.filter((id) => PADS.includes(id)).length], [ids.length, 8 + 4 + 6 + 6]);
  assert.match(await pair.detokenize(ids), /<tool_response>\nA door: <\|vision_start\|>(<\|image_pad\|>){4}<\|vision_end\|>\n<\/tool_response>/);
  same(await pair.logits(right), await pair.logits(swapped));
  const { usage } = await pair.chat(swapped, GREEDY).result;
  assert.deepEqual([usage.promptTokens, usage.imageTokens], [ids.length, 24]);
  for (const role of ['system', 'assistant']) {
    await rejectsWith(pair.countTokens([{ role, content: [image(64, 64)] }, ...right]), 'use/param', /only the user's and a tool's/);
  }
});

test('the caller may go on with pixels that were given', async () => {
  const image = noiseImage(96, 64);
  const expected = await pair.logits(ask(image, 'Well?'));
  const pending = pair.logits(ask(image, 'Well?'));
  image.data.fill(0);
  same(expected, await pending);
});

test('limits: what the caller asks for, then what is usual here', async () => {
  const tokens = async (model, part, ...more) => (await model.countTokens([{ role: 'user', content: [{ type: 'image', image: noiseImage(640, 640), ...part }, ...more] }]))
    - await model.countTokens([{ role: 'user', content: '' }]) - 2;
  assert.deepEqual([await tokens(pair, {}), await tokens(pair, { maxPixels: 2 ** 13 }), await tokens(pair, { maxPixels: 2 ** 16 })], [16, 4, 16], 'not above what load was given');
  const usual = await open(PAIR, { visionOptions: null });
  assert.deepEqual([await tokens(usual, {}), await tokens(usual, { detail: 'low' }), await tokens(usual, { detail: 'high' })], [256, 64, 400]);
  const video = { type: 'video', video: { frames: Array.from({ length: 16 }, () => noiseImage(320, 320)), fps: 8 } };
  assert.equal(await usual.countTokens([{ role: 'user', content: [video] }]) > 8 * 25, true);
  await usual.dispose();
});

test('it stops while it looks, for good or with a reason', async () => {
  const model = await open(PAIR, { visionOptions: { ...LIMITS, maxPixels: 2 ** 20 }, contextSize: 4096, threads: 1 });
  const big = (seed) => ask(noiseImage(1024, 1024, seed), 'Well?');
  let seed = 1;
  /** Milliseconds from the end that is asked for to the end. @param {(reply: object, controller: AbortController) => Promise<void>} end */
  const endWith = (end) => soon(200, async () => {
    let begun;
    const controller = new AbortController();
    const looking = new Promise((resolve) => { begun = resolve; });
    const reply = model.chat(big(++seed), { ...GREEDY, signal: controller.signal, onPrefill: (event) => { if (event.phase === 'vision') begun(event); } });
    const { done, total } = await looking;
    assert.ok(done < total && total === 1024, `${done} of ${total}`);
    return timed(() => end(reply, controller));
  });
  await endWith(async (reply) => {
    reply.stop();
    const { finishReason, text } = await reply.result;
    assert.deepEqual([finishReason, text], ['aborted', '']);
  });
  await endWith(async (reply, controller) => {
    controller.abort(new Error('enough'));
    await assert.rejects(reply.result, /enough/);
  });
  const early = model.chat(big(++seed), GREEDY);
  early.stop();
  assert.deepEqual((await early.result).usage, { promptTokens: 0, imageTokens: 0, cachedTokens: 0, completionTokens: 0, thinkingTokens: 0 });
  assert.equal((await model.chat('Hi', GREEDY).result).usage.imageTokens, 0);
  await model.dispose();
});

test('what a conversation cannot have', async () => {
  const image = noiseImage(64, 64);
  const blind = await load(NANO, { threads: 1 });
  assert.equal(blind.info.vision, null);
  for (const work of [blind.chat(ask(image)).result, blind.countTokens(ask(image)), blind.look(image)]) {
    await rejectsWith(work, 'use/param', /^This model has no vision: load it with its projector \(`vision`\)\.$/);
  }
  await blind.dispose();
  const video = (video) => [{ role: 'user', content: [{ type: 'video', video }] }];
  const at = (image) => [{ role: 'user', content: [{ type: 'image', image }] }];
  for (const [messages, code, words] of [
    [ask('x', new Blob(['no image'])), 'image/decode'], [at(imagePath('nowhere.png')), 'use/param', /no such file/], [at(imagePath('clip')), 'use/param', /not a file/],
    [at('data:image/png;base64,*'), 'image/decode'], [at('data:image/png'), 'image/decode'], [ask(noiseImage(3, 640)), 'image/size'],
    [at('http://127.0.0.1:9/a.png'), 'net/unreachable'], [at('http://127.0.0.1:9/'), 'net/unreachable'],
    [video(new Blob(['x'])), 'use/param', /frames/], [video({ frames: [noiseImage(64, 64), noiseImage(64, 32)] }), 'image/size'],
  ]) {
    const error = await rejectsWith(pair.chat(messages, GREEDY).result, code, words);
    assert.ok(code === 'use/param' || error.detail.medium === 0, error.message);
  }
  const small = await open(PAIR, { contextSize: 64 });
  const { detail } = await rejectsWith(small.chat(ask(noiseImage(96, 160), noiseImage(160, 96), noiseImage(96, 160), noiseImage(160, 96), 'Well?'), GREEDY).result,
    'use/context', /60 of them are of images, which would fit with a maxPixels of \d+ for each\.$/);
  const smaller = [1, 2, 3, 4].map((i) => ({ type: 'image', image: noiseImage(96, 160, i), maxPixels: detail.maxPixels }));
  assert.ok((await small.chat([{ role: 'user', content: [...smaller, { type: 'text', text: 'Well?' }] }], GREEDY).result).usage.imageTokens < 60);
  await small.dispose();
  assert.equal((await pair.chat(caseOf('exact').messages, GREEDY).result).usage.imageTokens, 12);
});
