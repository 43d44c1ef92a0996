// SPDX-License-Identifier: MIT
// The package in Node with the real engine and the demo model: the whole way from load() to dispose().

import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { QuernError, load, support } from '../../../dist/node.js';
import { DEMO, NANO, collect, rejectsWith, rejectsWithAbort, until, withServer } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const GREEDY = { temperature: 0, thinking: false };

/** The scalar kernels on one thread: slow enough to be stopped in the middle of something. */
const SLOW = { variant: 'scalar', threads: 1 };

const LONG = 'Tell me about the mill. '.repeat(90);

let model;
before(async () => { model = await load(DEMO, { threads: 2 }); });
after(() => model.dispose());

test('info says what runs', () => {
  const { variant } = support();
  assert.equal(model.info.variant, variant);
  assert.deepEqual([model.info.architecture, model.info.layers, model.info.vocabSize, model.info.threads], ['qwen3', 4, 1536, 2]);
  assert.ok((variant === 'relaxed' ? ['u8', 's8', 'u7'] : ['i16']).includes(model.info.dots), model.info.dots);
  assert.ok(model.info.chatTemplate && model.info.thinking);
  assert.ok(model.info.memory.peak >= model.info.memory.used && model.info.memory.wasm >= model.info.memory.used);
  assert.ok(Object.isFrozen(model.info));
});

test('a path, a file: URL, a Blob and a server give the same replies', async () => {
  const bytes = await readFile(DEMO);
  const question = 'What is the capital of Kenya?';
  const expected = (await model.chat(question, GREEDY).result).text;
  assert.match(expected, /Nairobi/);
  await withServer((request, response) => {
    assert.equal(request.headers.range, 'bytes=0-');
    response.end(bytes);
  }, async (base) => {
    for (const source of [pathToFileURL(DEMO), await openAsBlob(DEMO), new Blob([bytes]), `${base}/demo.gguf`, new URL(`${base}/demo.gguf`)]) {
      const progress = [];
      const other = await load(source, { threads: 1, store: false, onProgress: (event) => progress.push(event) });
      assert.equal((await other.chat(question, GREEDY).result).text, expected);
      await other.dispose();
      assert.deepEqual(progress.at(-1), { phase: 'load', loaded: bytes.length, total: bytes.length, cached: false });
      assert.ok(progress.every(({ loaded }, i) => i === 0 || loaded >= progress[i - 1].loaded));
    }
  });
});

test('variants and threads give the same text', async () => {
  const replies = new Set();
  for (const variant of ['scalar', 'simd', 'relaxed']) {
    for (const threads of [1, 3]) {
      const other = await load(DEMO, { variant, threads });
      assert.deepEqual([other.info.variant, other.info.threads], [variant, threads]);
      replies.add((await other.chat('Tell me a story about an owl.', { temperature: 1, seed: 7, maxTokens: 60 }).result).text);
      await other.dispose();
    }
  }
  assert.equal(replies.size, 1);
});

test('a chat streams, and the result is what was streamed', async () => {
  const prefill = [];
  const reply = model.chat([{ role: 'user', content: 'What is quern?' }], { ...GREEDY, onPrefill: (event) => prefill.push(event) });
  const pieces = await collect(reply);
  const result = await reply.result;
  assert.ok(pieces.length > 3);
  assert.equal(pieces.join(''), result.text);
  assert.equal(result.finishReason, 'stop');
  assert.equal(result.usage.completionTokens > 3, true);
  assert.ok(result.timings.prefillMs > 0 && result.timings.decodeMs > 0 && result.timings.tokensPerSecond > 0);
  const { total } = prefill[0];
  assert.deepEqual(prefill.at(-1), { phase: 'text', done: total, total, cached: prefill[0].cached });
  assert.equal(total, result.usage.promptTokens);
});

test('the second turn reuses the first', async () => {
  const messages = [{ role: 'user', content: 'Please tell me a story about a fox and a lantern in the forest.' }];
  const first = await model.chat(messages, GREEDY).result;
  messages.push({ role: 'assistant', content: first.text }, { role: 'user', content: 'And now about a bear.' });
  const second = await model.chat(messages, GREEDY).result;
  assert.ok(second.usage.cachedTokens > 20, `${second.usage.cachedTokens} of ${second.usage.promptTokens}`);
  const fresh = await load(DEMO, { threads: 1 });
  assert.equal((await fresh.chat(messages, GREEDY).result).text, second.text, 'the same as without reuse');
  await fresh.dispose();
});

test('thinking is kept apart', async () => {
  const reply = model.chat('What is the capital of France?', { temperature: 0, thinking: true });
  const events = await collect(reply.events);
  const result = await reply.result;
  assert.ok(result.thinking.length > 0 && !/<\/?think>/.test(result.text + result.thinking));
  assert.equal(events.filter(({ type }) => type === 'thinking').map(({ text }) => text).join(''), result.thinking);
  assert.equal(events.findIndex(({ type }) => type === 'text'), events.findLastIndex(({ type }) => type === 'thinking') + 1);
  const without = await model.chat('What is the capital of France?', GREEDY).result;
  assert.equal(without.thinking, '');
  assert.equal((await model.chat('What is the capital of France?', { temperature: 0 }).result).text, without.text, 'and that is the default');
  const ask = [{ role: 'user', content: 'What is the capital of France?' }];
  assert.equal(await model.countTokens(ask), await model.countTokens(ask, { thinking: false }));
});

test('a reply that was cut off goes on where it stood', async () => {
  const question = { role: 'user', content: 'Tell me a story about an owl.' };
  for (const thinking of [false, true]) {
    const whole = await model.chat([question], { ...GREEDY, thinking }).result;
    const count = whole.usage.completionTokens;
    for (const maxTokens of new Set([2, count >> 1, count - 3])) {
      const cut = await model.chat([question], { ...GREEDY, thinking, maxTokens }).result;
      const begun = { role: 'assistant', content: cut.text, thinking: cut.thinking };
      const rest = await model.chat([question, begun], { ...GREEDY, thinking, continue: true }).result;
      assert.equal(cut.text + rest.text, whole.text, `after ${maxTokens} of ${count} tokens`);
      assert.equal(cut.thinking + rest.thinking, whole.thinking);
    }
  }
  for (const messages of ['x', [question], []]) await rejectsWith(model.chat(messages, { continue: true }).result, 'use/param');
});

test('what a person types stays text', async () => {
  const count = (content) => model.countTokens([{ role: 'user', content }]);
  const plain = await count('');
  for (const typed of ['<|im_end|>', '</think>', '<|im_start|>system']) {
    const spelled = (await count(typed)) - plain;
    assert.ok(spelled > 1, `${typed} is ${spelled} tokens`);
  }
  const two = (a, b) => model.countTokens([{ role: 'user', content: a }, { role: 'user', content: b }]);
  assert.ok(await two('<|im_', 'end|>') - await two('', '') >= 4);
});

test('maxTokens, stop texts and seeds', async () => {
  const none = await model.chat(LONG, { ...GREEDY, maxTokens: 0 }).result;
  assert.deepEqual([none.text, none.finishReason, none.usage.completionTokens], ['', 'length', 0]);
  const after = await model.chat(LONG, { ...GREEDY, maxTokens: 1 }).result;
  assert.equal(after.usage.cachedTokens, after.usage.promptTokens - 1);
  assert.deepEqual([after.finishReason, after.usage.completionTokens], ['length', 1]);
  const { text } = await model.chat('Hi there, how are you today?', GREEDY).result;
  const stopped = await model.chat('Hi there, how are you today?', { ...GREEDY, stop: [text.slice(9, 14), 'zzz'] }).result;
  assert.deepEqual([stopped.text, stopped.finishReason], [text.slice(0, text.indexOf(text.slice(9, 14))), 'stop']);
  const draw = async (seed) => (await model.chat('Tell me a story.', { seed, temperature: 1.5, topP: 1, topK: 0, maxTokens: 30 }).result).text;
  assert.equal(await draw(5), await draw(5));
  assert.notEqual(await draw(5), await draw(6));
});

test('options reach the sampler', async () => {
  const { text } = await model.chat('Hi there, how are you today?', GREEDY).result;
  const [first] = await model.tokenize(text);
  const banned = await model.chat('Hi there, how are you today?', { ...GREEDY, logitBias: { [first]: -Infinity } }).result;
  assert.notEqual((await model.tokenize(banned.text))[0], first);
});

test('complete() continues a text or token ids', async () => {
  const options = { temperature: 0, maxTokens: 12 };
  const text = await model.complete('The capital of France is', options).result;
  const ids = await model.complete(await model.tokenize('The capital of France is'), options).result;
  assert.equal(text.text, ids.text);
  assert.equal(text.thinking, '');
  await rejectsWith(model.complete('').result, 'use/empty');
  await rejectsWith(model.complete([]).result, 'use/empty');
  await rejectsWith(model.complete([1536]).result, 'use/param', /prompt\[0\]/);
});

test('tokenize, detokenize and countTokens', async () => {
  const text = 'Hello <think> <|im_end|> Grüße 😊';
  const ids = await model.tokenize(text);
  assert.equal(await model.detokenize(ids), text);
  assert.equal(await model.countTokens(text), ids.length);
  assert.deepEqual(await model.tokenize(new TextEncoder().encode(text)), ids);
  assert.deepEqual([await model.tokenize(''), await model.detokenize([])], [[], '']);
  assert.equal(await model.detokenize(await model.tokenize('a\ud800b\0c\ufeffd')), 'a\ufffdb\0c\ufeffd');
  await rejectsWith(model.detokenize([0, 1536]), 'use/param', /tokens\[1\]/);
  const pieces = await model.detokenize(ids, { bytes: true });
  assert.equal(pieces.length, ids.length);
  assert.deepEqual(Buffer.concat(pieces), Buffer.from(text));
  await rejectsWith(model.detokenize(ids, { bytes: 1 }), 'use/param', /bytes/);
  await rejectsWith(model.tokenize(5), 'use/param');
  await rejectsWithAbort(model.tokenize('x', { signal: AbortSignal.abort() }));
});

test('logits do not depend on steps', async () => {
  const other = await load(NANO, { threads: 2, chunk: 7, kv: 'f32' });
  const whole = await load(NANO, { threads: 1, variant: 'scalar', kv: 'f32' });
  const ids = Array.from({ length: 50 }, (_, i) => (i * 37) % 250);
  const rows = await other.logits(ids);
  assert.equal(rows.length, 50 * other.info.vocabSize);
  assert.deepEqual(rows, await whole.logits(ids));
  assert.deepEqual(await other.logits([]), new Float32Array(0));
  await Promise.all([other.dispose(), whole.dispose()]);
});

test('profile() tells what the work since the last call has cost', async () => {
  const profiled = await load(DEMO, { profile: true, threads: 1 });
  const plain = await load(DEMO, { threads: 1 });
  const ids = [1, 2, 3, 4, 5];
  assert.deepEqual(await profiled.logits(ids), await plain.logits(ids));
  assert.equal(await plain.profile(), null);
  const { prefill, decode, barrierUs } = await profiled.profile();
  assert.deepEqual([prefill.tokens, decode.tokens, decode.calls, barrierUs], [5, 0, 0, 0]);
  assert.equal(prefill.operations.find(({ name }) => name === 'attention').calls, profiled.info.layers);
  assert.ok(prefill.operations.every(({ layerMs }) => layerMs.length === profiled.info.layers));
  const heads = ({ operations }) => operations.filter(({ name }) => name.includes(`[${profiled.info.vocabSize},`));
  assert.equal(heads(prefill).length, 1);
  assert.equal((await profiled.profile()).prefill.calls, 0);
  await profiled.embed('an owl');
  const embedding = (await profiled.profile()).prefill;
  assert.ok(embedding.calls > 0 && heads(embedding).length === 0, 'vectors need no output head');
  await Promise.all([profiled.dispose(), plain.dispose()]);
});

test('several replies at once keep apart', async () => {
  const questions = ['What is the capital of France?', 'Hi there, how are you today?', 'What is the opposite of big?'];
  const alone = [];
  for (const question of questions) alone.push((await model.chat(question, GREEDY).result).text);
  const together = await Promise.all(questions.map((question) => collect(model.chat(question, GREEDY))));
  assert.deepEqual(together.map((pieces) => pieces.join('')), alone);
});

test('questions about tokens are answered while a reply is made', async () => {
  const slow = await load(DEMO, SLOW);
  let done = false;
  const reply = slow.chat(LONG, { ...GREEDY, maxTokens: 1 });
  reply.result.then(() => { done = true; }, () => {});
  await slow.tokenize('hello');
  assert.equal(done, false);
  await slow.dispose();
});

test('stop() and break take effect within 200 ms, while reading too, and the next reply is right', async () => {
  const slow = await load(DEMO, SLOW);
  let attempt = 0;   // begins each prompt, so that none is known already
  await soon(200, async () => {
    let prefill = 0;
    const reply = slow.chat(`${attempt++} ${LONG}`, { ...GREEDY, onPrefill: ({ done, total }) => { prefill = done / total; } });
    await until(() => prefill > 0);
    reply.stop();
    const took = await timed(() => reply.result);
    const { finishReason, text } = await reply.result;
    assert.deepEqual([finishReason, text, prefill < 1], ['aborted', '', true]);
    return took;
  });
  await soon(200, async () => {
    const writing = slow.chat('Tell me a story.', GREEDY);
    for await (const _ of writing) break;
    return timed(async () => assert.equal((await writing.result).finishReason, 'aborted'));
  });
  assert.equal((await slow.chat('Hi there, how are you today?', GREEDY).result).text, (await model.chat('Hi there, how are you today?', GREEDY).result).text);
  await slow.dispose();
});

/** When the first of some replies is read. */
function beginning() {
  let onPrefill;
  const begun = new Promise((done) => { onPrefill = () => done(); });
  return { begun, onPrefill };
}

test('a signal fails the reply with its reason; others are not touched', async () => {
  const slow = await load(DEMO, SLOW);
  await soon(300, async () => {
    const abort = new AbortController();
    const { begun, onPrefill } = beginning();
    const first = slow.chat(LONG, { ...GREEDY, signal: abort.signal, onPrefill });
    const second = slow.chat(LONG, { ...GREEDY, signal: abort.signal });
    const third = slow.chat('Hi', { ...GREEDY, maxTokens: 3 });
    await begun;
    abort.abort();
    const took = await timed(() => rejectsWithAbort(first.result));
    await rejectsWithAbort(collect(second));
    assert.equal((await third.result).usage.completionTokens, 3);
    return took;
  });
  const reason = new Error('mine');
  await assert.rejects(slow.chat('x', { signal: AbortSignal.abort(reason) }).result, reason);
  await slow.dispose();
});

test('stopping one of several replies stops that one', async () => {
  const slow = await load(DEMO, SLOW);
  const { begun, onPrefill } = beginning();
  const replies = ['one', 'two', 'three'].map((word) => slow.chat(`${word} ${LONG}`, { ...GREEDY, maxTokens: word === 'two' ? 2 : 1000, onPrefill }));
  await begun;
  for (const i of [0, 2]) replies[i].stop();
  const reasons = (await Promise.all(replies.map(({ result }) => result))).map(({ finishReason }) => finishReason);
  assert.deepEqual(reasons, ['aborted', 'length', 'aborted']);
  await slow.dispose();
});

test('a prompt that is too long is refused before any work', async () => {
  const small = await load(DEMO, { contextSize: 64 });
  let begun = false;
  const error = await rejectsWith(small.chat(LONG, { onPrefill() { begun = true; } }).result, 'use/context', /64/);
  assert.ok(error.detail.found > 64 && error.detail.limit === 64 && !begun);
  await soon(3000, () => timed(() => rejectsWith(small.chat('word '.repeat(2_000_000)).result, 'use/context', /at least/)));
  const ids = Array(60).fill(65);
  const rest = await small.complete(ids, { temperature: 0, logitBias: { 0: 1 } }).result;
  assert.ok(rest.usage.completionTokens <= 4);
  await rejectsWith(small.complete(Array(64).fill(65)).result, 'use/context');
  assert.ok(await small.countTokens([{ role: 'user', content: LONG }]) > 400, 'counting has no limit');
  assert.equal((await small.chat('Hi', { ...GREEDY, maxTokens: 2 }).result).usage.completionTokens, 2, 'usable afterwards');
  await small.dispose();
});

test('bad arguments fail the reply and nothing else', async () => {
  await rejectsWith(model.chat([{ role: 'x', content: '' }]).result, 'use/param', /messages\[0\]\.role/);
  await rejectsWith(collect(model.chat('x', { temperature: -1 })), 'use/param', /options\.temperature/);
  await rejectsWith(model.complete('x', { thinking: true }).result, 'use/param');
  await assert.rejects(model.chat('x', { onPrefill() { throw new Error('mine'); } }).result, /mine/);
  assert.equal((await model.chat('Hi', { ...GREEDY, maxTokens: 1 }).result).usage.completionTokens, 1);
});

test('dispose() rejects what is pending and everything after it', async () => {
  const other = await load(DEMO, SLOW);
  const { begun, onPrefill } = beginning();
  const reply = other.chat(LONG, { ...GREEDY, onPrefill });
  const waiting = other.chat('x');
  begun.then(() => other.dispose());
  await rejectsWith(collect(reply), 'engine/disposed');
  await rejectsWith(waiting.result, 'engine/disposed');
  await rejectsWith(other.tokenize('x'), 'engine/disposed');
  await rejectsWith(other.chat('x').result, 'engine/disposed');
  reply.stop();
  await other.dispose();
  await other[Symbol.asyncDispose]();
});

test('errors are of the exported class', async () => {
  const error = await model.tokenize(5).catch((reason) => reason);
  assert.ok(error instanceof QuernError && error instanceof Error);
});

test('a text that is too long for a list of tokens is refused at once', async () => {
  for (const text of ['7'.repeat(2 ** 24 + 1), new Uint8Array(2 ** 24 + 1)]) {
    await soon(1000, () => timed(() => rejectsWith(model.tokenize(text), 'mem/load', /parts of at most 16777216/)));
  }
  await rejectsWith(model.countTokens('7'.repeat(2 ** 24 + 1)), 'mem/load', /too long/);
  assert.equal((await model.tokenize('7'.repeat(2 ** 20))).length, 2 ** 20);
});

test('a text for which there is no memory leaves the model usable', async () => {
  const other = await load(DEMO, { threads: 1, memoryLimit: 40e6 });
  const error = await rejectsWith(other.tokenize('a'.repeat(2 ** 24)), 'mem/load', /not enough memory/);
  assert.equal(error.phase, 'call');
  assert.equal((await other.chat('What is the capital of Kenya?', GREEDY).result).text, (await model.chat('What is the capital of Kenya?', GREEDY).result).text);
  await other.dispose();
});
