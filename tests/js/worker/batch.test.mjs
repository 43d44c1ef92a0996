// SPDX-License-Identifier: MIT
// Replies side by side in Node with the real engine: each says what it says alone, and however one of them ends, while it waits, reads or
// writes, the others do not notice. The runner over an engine that is played: runner.test.mjs; in pages: tests/web/batch.test.mjs.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { load } from '../../../dist/node.js';
import { Service } from '../../../js/worker/service.js';
import { length } from '../../fixtures/lengths.mjs';
import { random } from '../../fixtures/random.mjs';
import { opened, partOf, testHost } from '../support/engine-host.mjs';
import { DEMO, NANO, collect, rejectsWith, rejectsWithAbort, until } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const FAULTS = fileURLToPath(new URL('../../../build/faults/worker.node.mjs', import.meta.url));

const SCHEDULES = length(20, 1000);

/** Many short steps, in the middle of which something can happen; and a few long ones. */
const STEADY = { threads: 1, chunk: 4 };
const SLOW = { variant: 'scalar', threads: 1 };

const LONG = 'Tell me about the mill. '.repeat(90);

/** Writes until it is stopped, or has 2,000 tokens: no end token may come. */
const endless = (model) => ({ temperature: 0, maxTokens: 2000, logitBias: Object.fromEntries(model.info.endTokens.map((id) => [id, -Infinity])) });

/** Sixteen that differ in everything that a reply can differ in. */
const QUESTIONS = [
  ['What is the capital of France?', { temperature: 0 }],
  ['Hi there, how are you today?', { temperature: 0 }],
  ['What is the capital of France?', { temperature: 0, thinking: true }],
  ['Tell me a story about an owl.', { temperature: 1, seed: 7, maxTokens: 60 }],
  ['Tell me a story about an owl.', { temperature: 1, seed: 8, maxTokens: 60 }],
  ['Tell me a story about an owl.', { temperature: 1.5, topP: 1, topK: 0, seed: 9, maxTokens: 25 }],
  [`${LONG}What is quern?`, { temperature: 0, maxTokens: 20 }],
  [`${LONG}And who are you?`, { temperature: 0.7, seed: 1, maxTokens: 30 }],
  ['Hi there, how are you today?', { temperature: 0, stop: [' you!', 'zzz'] }],
  ['Tell me a story about a fox.', { seed: 3, repeatPenalty: 1.3, maxTokens: 40 }],
  ['Tell me a story about a fox.', { seed: 3, presencePenalty: 1, frequencyPenalty: 0.5, maxTokens: 40 }],
  [LONG, { temperature: 0, maxTokens: 0 }],
  ['What is the opposite of big?', { temperature: 0, priority: 'background' }],
  ['What is the opposite of big?', { temperature: 0, maxTokens: 1 }],
  ['Please count.', { seed: 4, logitBias: { 65: 5, 66: -Infinity }, maxTokens: 30 }],
  [[{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hello!' }], { seed: 5, minP: 0.1, maxTokens: 30 }],
];

/** A model for one test. */
async function open(t, source, options) {
  const model = await load(source, options);
  t.after(() => model.dispose());
  return model;
}

/** What can be compared of a result. */
const essence = ({ text, thinking, finishReason, usage }) => ({ text, thinking, finishReason, tokens: usage.completionTokens });

let alone;        // what each question is answered with, one after the other
before(async () => {
  const model = await load(DEMO, { threads: 1, parallel: 1 });
  alone = [];
  for (const [messages, options] of QUESTIONS) alone.push(essence(await model.chat(messages, options).result));
  await model.dispose();
});

for (const parallel of [1, 3, 16]) {
  test(`16 chats at once, ${parallel} side by side: each as alone`, async (t) => {
    const model = await open(t, DEMO, { threads: 2, parallel });
    assert.equal(model.info.parallel, parallel);
    const replies = QUESTIONS.map(([messages, options]) => model.chat(messages, options));
    const streamed = await Promise.all(replies.map(async (reply) => (await collect(reply)).join('')));
    const results = await Promise.all(replies.map(({ result }) => result));
    assert.deepEqual(results.map(essence), alone);
    assert.deepEqual(streamed, alone.map(({ text }) => text));
    const waited = results.filter(({ timings }) => timings.waitMs > 0.5 * Math.max(...results.map((one) => one.timings.waitMs))).length;
    if (parallel === 1) assert.ok(waited > 2, 'the last ones wait');
    const { pages, used, remembered } = model.info.memory.cache;
    assert.ok(pages >= model.info.contextSize / 32 && used + remembered <= pages && remembered > 0, JSON.stringify(model.info.memory.cache));
  });
}

test('a pool that is too small for all: some let go, and say the same', async (t) => {
  const model = await open(t, DEMO, { threads: 2, contextSize: 1024, kvPositions: 1024, parallel: 8 });
  const ids = await model.tokenize(LONG);
  const request = (seed) => [ids.slice(0, 300 + 20 * seed), { seed, maxTokens: 100, temperature: 1 }];
  const texts = [];
  const single = await open(t, DEMO, { threads: 1, contextSize: 1024, parallel: 1 });
  for (let seed = 0; seed < 6; seed++) texts.push(essence(await single.complete(...request(seed)).result));
  const together = await Promise.all(texts.map((_, seed) => model.complete(...request(seed)).result));
  assert.deepEqual(together.map(essence), texts);
  assert.equal(model.info.memory.cache.used, 0);
});

// --- one of them ends ---

let steady;
let others;       // what two endless ones say alone
const OTHERS = ['Tell me a story about an owl.', 'What is quern?'];
const MOST = 300;
before(async () => {
  steady = await load(DEMO, { ...STEADY, parallel: 3, kvPositions: 4096 });
  others = [];
  for (const question of OTHERS) others.push((await steady.chat(question, { ...endless(steady), maxTokens: MOST }).result).text);
});
after(() => steady.dispose());

/** How a reply can be ended, and how it then ends. */
const WAYS = {
  'stop()': { act: ({ reply }) => reply.stop() },
  break: { act: ({ iterator }) => iterator.return() },
  throw: { act: ({ iterator }) => iterator.throw(new Error('mine')).catch(() => {}) },
  signal: { act: ({ controller }) => controller.abort(), fails: 'AbortError' },
  'a handler that throws': { act: ({ fail }) => fail(), fails: 'Error', only: 'reading' },
};

let attempt = 0;  // begins each prompt, so that none is known already

/** A reply, brought to one of its phases beside two others. */
async function bring(phase) {
  const companions = OTHERS.map((question) => steady.chat(question, { ...endless(steady), maxTokens: MOST }));
  if (phase === 'waiting') companions.push(steady.chat('Hello!', endless(steady)));
  let settled = 0;
  for (const { result } of companions) result.finally(() => settled++);
  const seen = { done: 0, total: 0, texts: 0, fails: false };
  const controller = new AbortController();
  const onPrefill = ({ done, total }) => {
    Object.assign(seen, { done, total });
    if (seen.fails) throw new Error('mine');
  };
  const prompt = phase === 'writing' ? 'Hello!' : LONG;
  const reply = steady.chat(`${attempt++} ${prompt}`, { ...endless(steady), signal: controller.signal, onPrefill });
  const iterator = reply[Symbol.asyncIterator]();
  if (phase === 'reading') await until(() => seen.done > 0 && seen.done < seen.total);
  if (phase === 'writing') await iterator.next();
  if (phase === 'waiting') await new Promise((done) => { setTimeout(done, 30); });
  assert.deepEqual([seen.done > 0, settled], [phase !== 'waiting', 0]);
  return { companions, reply, iterator, controller, seen, fail: () => { seen.fails = true; } };
}

for (const phase of ['waiting', 'reading', 'writing']) {
  for (const [name, { act, fails, only = phase }] of Object.entries(WAYS)) {
    if (only !== phase) continue;
    test(`${name} while ${phase} ends that reply and no other`, async () => {
      const { companions, ...it } = await bring(phase);
      act(it);
      const outcome = await it.reply.result.then(({ finishReason }) => finishReason, (error) => error.name);
      assert.equal(outcome, fails ?? 'aborted');
      companions[2]?.stop();
      assert.deepEqual((await Promise.all(companions.slice(0, 2).map(({ result }) => result))).map(({ text }) => text), others);
    });
  }
}

test('a time limit holds while waiting, reading and writing', async () => {
  const blockers = Array.from({ length: 3 }, (_, i) => steady.chat(`${i} Hello!`, endless(steady)));
  const signal = () => AbortSignal.timeout(40);
  let begun = false;
  await assert.rejects(steady.chat('x', { signal: signal(), onPrefill: () => { begun = true; } }).result, { name: 'TimeoutError' });
  assert.equal(begun, false);
  for (const blocker of blockers) blocker.stop();
  await Promise.all(blockers.map(({ result }) => result));
  await assert.rejects(steady.chat(`${attempt++} ${LONG}`, { ...endless(steady), signal: signal() }).result, { name: 'TimeoutError' });
  await assert.rejects(steady.chat('x', { ...endless(steady), signal: signal() }).result, { name: 'TimeoutError' });
});

test('stop() among 15 others takes effect within 200 ms', async (t) => {
  const model = await open(t, DEMO, { ...SLOW, parallel: 16, contextSize: 1024, kvPositions: 16 * 256 });
  const replies = Array.from({ length: 15 }, (_, i) => model.complete([65 + i], endless(model)));
  const firsts = replies.map((reply) => reply[Symbol.asyncIterator]().next());
  await Promise.all(firsts);
  for (const prompt of [LONG, 'Tell me a story.']) {
    await soon(200, async () => {
      let begun = false;
      const reply = model.chat(`${attempt++} ${prompt}`, { ...endless(model), onPrefill: () => { begun = true; } });
      await until(() => begun);
      reply.stop();
      const took = await timed(() => reply.result);
      assert.equal((await reply.result).finishReason, 'aborted');
      return took;
    });
  }
  await soon(200, async () => {
    const reply = model.complete([64], endless(model));
    await reply[Symbol.asyncIterator]().next();
    reply.stop();
    const took = await timed(() => reply.result);
    assert.equal((await reply.result).finishReason, 'aborted');
    return took;
  });
});

test('the 69th is refused at once and may come again', async (t) => {
  const model = await open(t, DEMO, STEADY);
  assert.equal(model.info.parallel, 4);
  const replies = Array.from({ length: 69 }, (_, i) => model.complete([65 + i, 66, 67], endless(model)));
  const error = await rejectsWith(replies[68].result, 'use/busy', /68/);
  assert.deepEqual([error.retryable, error.detail], [true, { parallel: 4, waiting: 64 }]);
  assert.ok(error.hint.length > 0);
  for (const reply of replies.slice(2)) reply.stop();
  for (const { result } of replies.slice(2, 68)) assert.equal((await result).finishReason, 'aborted');
  assert.equal((await model.complete([65], { maxTokens: 3, temperature: 0 }).result).usage.completionTokens, 3);
});

test('dispose() settles all, wherever they are', async () => {
  const model = await load(DEMO, { ...SLOW, parallel: 2 });
  const replies = Array.from({ length: 12 }, (_, i) => model.chat(`${i} ${i % 2 ? LONG : 'x'}`, endless(model)));
  const scores = model.logits(Array(200).fill(65));
  scores.catch(() => {});
  await Promise.race(replies.map((reply) => reply[Symbol.asyncIterator]().next()));
  await model.dispose();
  for (const { result } of replies) await rejectsWith(result, 'engine/disposed');
  await rejectsWith(scores, 'engine/disposed');
});

test('a crash fails all, and the next load works', async (t) => {
  const model = await load(NANO, { threads: 2, variant: 'simd', workerUrl: FAULTS });
  const replies = Array.from({ length: 9 }, (_, i) => model.complete([i], endless(model)));
  const pending = [model.logits(Array(400).fill(1)), model.tokenize('fault trap 0'), ...replies.map(({ result }) => result)];
  for (const outcome of await Promise.allSettled(pending)) assert.equal(outcome.reason?.code, 'engine/trap');
  await model.dispose();
  const next = await open(t, NANO);
  assert.equal((await next.complete([1], { ...endless(next), maxTokens: 3 }).result).usage.completionTokens, 3);
});

// --- beside replies ---

test('scores beside replies are the same', async (t) => {
  const model = await open(t, DEMO, { threads: 1 });
  const ids = (await model.tokenize(LONG)).slice(0, 150);
  const expected = await model.logits(ids);
  const texts = Promise.all(QUESTIONS.slice(0, 4).map(([messages, options]) => model.chat(messages, options).result));
  const abort = new AbortController();
  const dropped = model.logits(ids, { signal: abort.signal });
  const both = await Promise.all([model.logits(ids), model.logits(ids)]);
  for (const rows of both) assert.deepEqual(rows, expected);
  abort.abort();
  await rejectsWithAbort(dropped).catch(() => dropped);
  assert.deepEqual((await texts).map(essence), alone.slice(0, 4));
});

test('scores give way to replies that come later, and are there in the end', async (t) => {
  const model = await open(t, DEMO, { ...STEADY, parallel: 1 });
  const ids = (await model.tokenize(LONG)).slice(0, 600);
  const expected = await model.logits(ids);
  await model.chat('Hello!', { maxTokens: 1 }).result;    // templates have their worker: the scores would be over before it is there
  const ended = [];
  const scores = model.logits(ids).then((rows) => { ended.push('scores'); return rows; });
  const { rows: before } = model.info.work;
  const replies = QUESTIONS.slice(0, 2).map(async ([messages, options]) => {
    const result = await model.chat(messages, options).result;
    ended.push('reply');
    return essence(result);
  });
  assert.deepEqual(await Promise.all(replies), alone.slice(0, 2));
  assert.deepEqual(await scores, expected);
  assert.deepEqual(ended, ['reply', 'reply', 'scores']);
  assert.ok(model.info.work.rows - before >= ids.length);
});

test('a scope knows nothing of what another one has asked', async (t) => {
  const model = await open(t, DEMO, STEADY);
  const question = 'What is the capital of Kenya, and what is it called by those who live there?';
  const known = async (cacheScope) => (await model.chat(question, { temperature: 0, maxTokens: 5, cacheScope }).result).usage;
  const [first, ...later] = [await known(1), await known(2), await known(1), await known(2 ** 32 - 1), await known(undefined), await known(0), await known(2)];
  const all = first.promptTokens - 1;
  assert.deepEqual([first, ...later].map(({ cachedTokens }) => cachedTokens), [0, 0, all, 0, 0, all, all]);
  await rejectsWith(model.chat(question, { cacheScope: 2 ** 32 }).result, 'use/param', /options\.cacheScope must be a whole number from 0 to 4294967295/);
});

test('profile() and tokenize() do not wait for replies', async (t) => {
  const model = await open(t, DEMO, { ...STEADY, profile: true });
  const reply = model.chat(LONG, endless(model));
  assert.equal((await model.profile()).threads, 1);
  assert.equal((await model.tokenize('')).length, 0);
  reply.stop();
  assert.equal((await reply.result).finishReason, 'aborted');
});

test('the events of all replies in a step come in one message', async () => {
  const bytes = await readFile(NANO);
  const posted = [];
  let receive;
  const host = testHost({ openParts: async () => ({ cached: false, async discard() {}, ...opened(partOf(bytes)) }), rest: turn, post: (message) => posted.push(message) });
  const service = new Service({ ...host, listen: (handler) => { receive = handler; }, template: () => assert.fail('no template') });
  assert.ok(service);
  const answered = (count) => until(() => posted.filter(({ type }) => type === 'done').length === count);
  receive({ type: 'load', id: 1, source: {}, options: {} });
  await answered(1);
  const options = { seed: 1, bias: [], stops: [], maxTokens: 40, temperature: 0 };
  for (let id = 2; id < 6; id++) receive({ type: 'complete', id, prompt: Int32Array.of(id, 7, 9), options: { ...options, seed: id, temperature: 1 } });
  await answered(5);
  const messages = posted.filter(({ type }) => type === 'events').map(({ events }) => events.filter(([, { type }]) => type === 'text'));
  assert.ok(messages.filter((events) => new Set(events.map(([id]) => id)).size > 1).length > 5);
  assert.ok(messages.length < 70, `${messages.length} messages for four times 40 tokens`);
  for (const [at, message] of posted.entries()) {
    if (message.type === 'done') assert.ok(!posted.slice(at).some(({ type, events }) => type === 'events' && events.some(([id]) => id === message.id)), 'nothing follows an answer');
  }
});

// --- schedules ---

/** Random questions at random times, some of which are stopped, in a pool that is too small for all. */
async function play(model, wanted, seed) {
  const draw = random(seed);
  const ends = { whole: 0, aborted: 0 };
  const one = async (i) => {
    const [prompt, options, text] = wanted[Math.floor(draw() * wanted.length)];
    const after = draw() < 0.4 ? Math.floor(8 * draw()) : Infinity;
    const reply = model.complete(prompt, { ...options, priority: draw() < 0.3 ? 'background' : 'normal' });
    let n = 0;
    for await (const _ of reply) if (n++ >= after) break;
    const result = await reply.result;
    ends[result.finishReason === 'aborted' ? 'aborted' : 'whole']++;
    if (result.finishReason !== 'aborted') return assert.equal(result.text, text, `reply ${i}`);
    const begun = result.text.replace(/\ufffd+$/, '');     // a letter that was cut off
    return assert.equal(text.slice(0, begun.length), begun, `reply ${i}`);
  };
  const all = [];
  for (let i = 0; i < 12; i++) {
    all.push(one(i));
    if (draw() < 0.5) await new Promise((done) => { setTimeout(done, 8 * draw()); });
  }
  await Promise.all(all);
  return ends;
}

test(`${SCHEDULES} random schedules`, async (t) => {
  const model = await open(t, NANO, { threads: 2, contextSize: 192, kvPositions: 256, parallel: 5 });
  const single = await open(t, NANO, { threads: 1, contextSize: 192, parallel: 1 });
  const wanted = [];
  for (let i = 0; i < 12; i++) {
    const prompt = Array.from({ length: 5 + 11 * i }, (_, at) => (at < 40 ? at * 7 : at * (7 + i)) % 250);
    const options = { seed: i, temperature: 1, maxTokens: 20 + 5 * i };
    wanted.push([prompt, options, (await single.complete(prompt, options).result).text]);
  }
  const sums = { whole: 0, aborted: 0 };
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const ends = await play(model, wanted, seed).catch((error) => { throw new Error(`seed ${seed}: ${error.message}`, { cause: error }); });
    sums.whole += ends.whole;
    sums.aborted += ends.aborted;
  }
  assert.ok(sums.whole > 2 * SCHEDULES && sums.aborted > SCHEDULES, JSON.stringify(sums));
  await model.tokenize('');
  assert.equal(model.info.memory.cache.used, 0, 'no page is lost');
});
