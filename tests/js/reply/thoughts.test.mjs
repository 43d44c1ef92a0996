// SPDX-License-Identifier: MIT
// What a reply tells beside its text: the probabilities of its tokens, why it ended, what of the conversation it left out; and where its defaults
// come from.

import assert from 'node:assert/strict';
import { cp, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { load } from '../../../dist/node.js';
import { defaultsOf } from '../../../js/reply/chat.js';
import { Guide } from '../../../js/reply/guide.js';
import { promptThatFits } from '../../../js/reply/overflow.js';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { DEMO, collect, rejectsWith } from '../support/helper.mjs';

const FOLDER = fileURLToPath(new URL('../../fixtures/hf/f32', import.meta.url));
const OWL = 'Tell me a story about an owl.';

let model;
before(async () => { model = await load(DEMO, { threads: 2, contextSize: 256 }); });
after(() => model.dispose());

/** Logarithms of probability of a row of logits. */
function softmax(row) {
  const largest = Math.max(...row);
  const sum = Math.log(row.reduce((total, logit) => total + Math.exp(logit - largest), 0));
  return Array.from(row, (logit) => logit - largest - sum);
}

test('the probabilities of tokens are those of the logits, whatever the sampler does', async () => {
  const options = { temperature: 1.3, topK: 0, topP: 1, seed: 5, repeatPenalty: 1.3, maxTokens: 24, logprobs: 3 };
  const { logprobs, text, finishReason } = await model.complete('The mill', options).result;
  const end = finishReason === 'stop' ? logprobs.at(-1).text : '';
  assert.equal(logprobs.map((one) => one.text).join(''), text + end);
  const { tokens } = model.info;
  const prompt = await model.tokenize('The mill');
  const logits = await model.logits([...prompt, ...logprobs.map(({ id }) => id)]);
  logprobs.forEach(({ id, logprob, top }, i) => {
    const wanted = softmax(logits.slice((prompt.length - 1 + i) * model.info.vocabSize).subarray(0, tokens));
    assert.ok(Math.abs(logprob - wanted[id]) < 1e-9, `token ${i}`);
    const best = wanted.map((value, one) => [value, one]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, 3);
    assert.deepEqual(top.map((one) => one.id), best.map(([, one]) => one));
    top.forEach((one, k) => assert.ok(Math.abs(one.logprob - best[k][0]) < 1e-9));
  });
});

test('they are the same in company, with other kernels, and not there unless asked for', async () => {
  const options = { temperature: 1, seed: 7, maxTokens: 30, logprobs: 2 };
  const [one, ...beside] = await Promise.all([options, { ...options, seed: 8 }, options].map((each) => model.chat(OWL, each).result));
  assert.deepEqual(beside[1].logprobs, one.logprobs);
  const scalar = await load(DEMO, { variant: 'scalar', threads: 1 });
  assert.deepEqual((await scalar.chat(OWL, options).result).logprobs, one.logprobs);
  await scalar.dispose();
  assert.ok(!('logprobs' in await model.chat(OWL, { ...options, logprobs: null }).result));
  assert.deepEqual((await model.chat(OWL, { ...options, logprobs: 0 }).result).logprobs.map(({ top }) => top.length), one.logprobs.map(() => 0));
});

test('events have those of their text, stop texts or not', async () => {
  for (const stop of [undefined, 'the']) {
    const reply = model.chat(OWL, { temperature: 0, maxTokens: 40, logprobs: 1, stop });
    const events = await collect(reply.events);
    const { text, logprobs } = await reply.result;
    assert.equal(events.map((event) => event.text).join(''), text);
    const told = events.flatMap((event) => event.logprobs ?? []);
    assert.deepEqual(told, logprobs.slice(0, told.length));
    assert.ok(logprobs.map((one) => one.text).join('').startsWith(text));
    if (!stop) assert.equal(told.length, logprobs.length);
  }
});

test('a full context is not a reached limit', async () => {
  const endless = { temperature: 0, logitBias: Object.fromEntries(model.info.endTokens.map((id) => [id, -100])) };
  assert.equal((await model.complete('a', { ...endless, maxTokens: 5 }).result).finishReason, 'length');
  const { finishReason, usage } = await model.complete('a', endless).result;
  assert.deepEqual([finishReason, usage.promptTokens + usage.completionTokens], ['context', 256]);
  const rest = 256 - usage.promptTokens;
  assert.equal((await model.complete('a', { ...endless, maxTokens: rest }).result).finishReason, 'length');
  assert.equal((await model.complete('a', { ...endless, maxTokens: rest + 1 }).result).finishReason, 'context');
});

const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });

test('a conversation that is too long loses its oldest turns, where that is wanted', async () => {
  const turns = Array.from({ length: 20 }, (_, i) => [user(`Question ${i}: what is the mill?`), assistant(`Answer ${i}: it is old.`)]).flat();
  const messages = [{ role: 'system', content: 'Be kind.' }, ...turns, user('And now?')];
  await rejectsWith(model.chat(messages).result, 'use/context');
  await rejectsWith(model.chat(messages, { overflow: 'error' }).result, 'use/context');
  const reply = model.chat(messages, { overflow: 'drop', temperature: 0, maxTokens: 10 });
  const [first] = await collect(reply.events);
  const { dropped, text, usage } = await reply.result;
  assert.deepEqual(first, { type: 'dropped', text: '', messages: dropped });
  assert.ok(dropped > 0 && dropped % 2 === 0, String(dropped));
  const same = await model.chat([messages[0], ...messages.slice(1 + dropped)], { temperature: 0, maxTokens: 10 }).result;
  assert.deepEqual([same.text, same.usage.promptTokens, same.dropped], [text, usage.promptTokens, undefined]);
  assert.equal((await model.chat('Hi', { overflow: 'drop', maxTokens: 1 }).result).dropped, 0);
  await rejectsWith(model.chat([...messages, user('x '.repeat(600))], { overflow: 'drop' }).result, 'use/context');
});

test('what is left out stays left out while a conversation grows, and is no more than has to be', async () => {
  const LENGTH = 7;
  const promptOf = async (messages, media) => ({ ids: { length: LENGTH * messages.length }, media });
  let last = 0;
  let changes = 0;
  for (let n = 1; n < 200; n += 2) {
    const messages = [{ role: 'system', content: 's' }, ...Array.from({ length: n }, (_, i) => (i % 2 ? assistant('a') : user([{ type: 'text', text: 'q' }, { type: 'image' }])))];
    const media = messages.flatMap(({ content }, i) => (typeof content === 'string' ? [] : [i]));
    const prompt = await promptThatFits(await promptOf(messages, media), { messages, media }, { contextSize: 200, maxTokens: 1000 }, promptOf);
    assert.ok(prompt.ids.length <= 160 && prompt.dropped >= last && prompt.dropped % 2 === 0, `${n}: ${prompt.dropped}`);
    assert.deepEqual(prompt.media, media.slice(prompt.dropped / 2));
    changes += prompt.dropped !== last;
    last = prompt.dropped;
  }
  assert.ok(changes > 10 && changes < 20, `${changes} changes`);
});

test('between a thought and a text that is held to something there are no more line ends than templates write', () => {
  const [LINE, LINES, WORD, END, THINK, THOUGHT] = [1, 2, 3, 4, 5, 6];
  const thinking = { open: THINK, close: THOUGHT };
  const grammar = { users: 1, start: 0, take: (state) => state + 1, accepts: () => true, mask: (state) => Uint32Array.of(state ? 1 << END : 1 << WORD), forced() {} };
  const engine = { facts: { tokens: 32, endTokens: [END] }, tokenize: (text) => (text === '\n' ? [LINE] : [LINES]) };
  const allowed = (ids, prompt) => {
    let now = 0;
    const guide = new Guide(/** @type {any} */ (engine), { grammar });
    guide.begin(/** @type {any} */ ({ wait() {}, allow: ([bits]) => { now = bits; } }), /** @type {any} */ (prompt));
    let inside = Boolean(prompt.inside);
    for (const id of ids) {
      if (guide.isBehind) guide.pursue(0);
      if (id === THINK || id === THOUGHT) inside = id === THINK;
      guide.take(id, id <= WORD && !inside, inside ? thinking : null);
    }
    if (guide.isBehind) guide.pursue(0);
    return [LINE, LINES, WORD, END].filter((id) => (now >>> id) & 1);
  };
  for (const prompt of [{ inside: thinking }, { first: thinking }]) {
    const ids = prompt.first ? [THINK] : [];
    for (const [more, then] of [
      [[], [LINE, LINES, WORD]], [[LINE], [LINE, WORD]], [[LINES], [WORD]], [[LINE, LINE], [WORD]], [[WORD], [END]], [[LINE, WORD], [END]],
    ]) assert.deepEqual(allowed([...ids, LINES, LINES, THOUGHT, ...more], prompt), then, JSON.stringify(more));
    assert.ok(!allowed([...ids, LINE], prompt).includes(END), 'a thought is not the end');
  }
  assert.deepEqual(allowed([], {}), [WORD]);
});

test('tools count where a conversation is shortened', async () => {
  const roomy = await load(DEMO, { threads: 1, contextSize: 640 });
  const turns = Array.from({ length: 12 }, (_, i) => [user(`Question ${i}: what is the mill?`), assistant(`Answer ${i}: it is old.`)]).flat();
  const messages = [...turns, user('And now?')];
  const properties = Object.fromEntries(['place', 'day', 'hour', 'unit'].map((name) => [name, { type: 'string', description: `The ${name} of it` }]));
  const tools = [{ name: 'weather', description: 'The weather somewhere', parameters: { type: 'object', properties } }];
  const options = { overflow: 'drop', temperature: 0, maxTokens: 100 };
  const plain = await roomy.chat(messages, { ...options, maxTokens: 1 }).result;
  const { dropped, usage } = await roomy.chat(messages, { ...options, tools }).result;
  assert.equal(plain.dropped, 0);
  assert.ok(dropped > 0, `${dropped} of ${await roomy.countTokens(messages, { tools })} tokens`);
  assert.equal(usage.promptTokens, await roomy.countTokens(messages.slice(dropped), { tools }));
  assert.ok(usage.promptTokens <= 540, String(usage.promptTokens));
  await roomy.dispose();
});

test('the defaults of sampling are what the file advises, else the card\'s', async () => {
  assert.deepEqual(model.info.sampling, {});
  const { card } = model.info;
  assert.deepEqual(defaultsOf({ card, sampling: {} }, 'thinking'), { temperature: 0.6, topP: 0.95, topK: 20, minP: 0 });
  assert.deepEqual(defaultsOf({ card, sampling: { topK: 7, repeatPenalty: 1.1 } }, 'plain'), { temperature: 0.7, topP: 0.8, topK: 7, minP: 0, repeatPenalty: 1.1 });
  const folder = await mkdtemp(join(tmpdir(), 'quern-sampling-'));
  await cp(FOLDER, folder, { recursive: true });
  await writeFile(join(folder, 'generation_config.json'), JSON.stringify({ temperature: 0.25, top_p: 0.9, top_k: 7, min_p: null, repetition_penalty: 1.05, do_sample: true }));
  const advised = await load(folder, { threads: 1 });
  assert.deepEqual(advised.info.sampling, { temperature: 0.25, topP: 0.9, topK: 7, repeatPenalty: 1.05 });
  const options = { seed: 3, maxTokens: 20 };
  const said = (await advised.complete('a', options).result).text;
  assert.equal((await advised.complete('a', { ...options, temperature: 0.25, topP: 0.9, topK: 7, minP: 0, repeatPenalty: 1.05 }).result).text, said);
  assert.notEqual((await advised.complete('a', { ...options, temperature: 1.5, topP: 1, topK: 0 }).result).text, said);
  await advised.dispose();
});

test('of a GGUF file too; what cannot be asked for is passed over', async () => {
  const numbers = { temp: 0.95, top_k: 12, top_p: 1.5, min_p: NaN };
  const added = Object.entries(numbers).map(([key, value]) => [`general.sampling.${key}`, key === 'top_k' ? 'i32' : 'f32', value]);
  const advised = await load(new Blob([tinyModel({}, { addKv: added })]), { threads: 1 });
  assert.deepEqual(advised.info.sampling, { temperature: 0.95, topK: 12 });
  await advised.dispose();
});
