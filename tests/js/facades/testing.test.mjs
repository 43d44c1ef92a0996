// SPDX-License-Identifier: MIT
// quern/testing: the fake model, beside what the real one says to the same calls.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from 'quern';
import { run } from 'quern/run';
import { QuernError, fakeModel } from 'quern/testing';
import { DEMO } from '../support/helper.mjs';

const TOOLS = [{ name: 'weather', description: 'of a city', parameters: { type: 'object', properties: { city: { type: 'string' } } } }];
const CALL = { name: 'weather', arguments: { city: 'Oslo' } };

/** Neighbouring words as one: how they are cut is a matter of time. */
async function eventsOf(reply) {
  const events = [];
  for await (const event of reply.events) {
    const last = events.at(-1);
    if (event.type === 'text' && last?.type === 'text') last.text += event.text;
    else events.push(event);
  }
  return events;
}

test('it has what the real one has, and refuses what that refuses', async () => {
  const real = await load(DEMO, { threads: 1 });
  const fake = fakeModel('Hi');
  const names = (model) => Object.getOwnPropertyNames(Object.getPrototypeOf(model)).filter((name) => name !== 'info').sort();
  assert.deepEqual(names(fake), names(real));
  const wrong = [
    (model) => model.chat('x', { topP: 7 }).result, (model) => model.chat([]).result, (model) => model.chat([{ role: 'king', content: 'x' }]).result,
    (model) => model.chat('x', { tmperature: 1 }).result, (model) => model.complete([-1]).result, (model) => model.detokenize([1e9]),
    (model) => model.chat([{ role: 'user', content: [{ type: 'image', image: 'x' }] }]).result, (model) => model.embed([]), (model) => model.rank('x', []),
    (model) => model.embed('x', { dimensions: 0 }), (model) => model.embed('x', { dimension: 3 }), (model) => model.embed([5]), (model) => model.embed({}), (model) => model.embed('x', { normalize: 1 }),
    (model) => model.embed('x', { dimensions: 1e6 }), (model) => model.rank(5, ['x']), (model) => model.rank('x', 'y'), (model) => model.rank('x', [5]), (model) => model.rank('x', ['y'], { instruction: 5 }),
    (model) => model.embed('x', { onProgress: 5 }), (model) => model.saved({ max: 1 }), (model) => model.forget(5), (model) => model.forget('x', 5), (model) => model.profile({ a: 1 }), (model) => model.look('x', { b: 1 }), (model) => model.look('x'),
    (model) => model.complete('').result, (model) => model.complete([]).result, (model) => model.complete('x', { choices: [] }).result, (model) => model.complete('x', { choices: [''] }).result, (model) => model.complete('x', { choices: 'ab' }).result,
    (model) => model.complete('x', { regex: '' }).result, (model) => model.complete('x', { regex: new RegExp('[a--b]', 'v') }).result, (model) => model.complete('x', { grammar: 5 }).result, (model) => model.complete('x', { schema: 5 }).result,
    (model) => model.complete('x', { schema: new Map() }).result, (model) => model.complete('x', { schema: {}, json: true }).result, (model) => model.chat('x', { regex: 'a', choices: ['a'] }).result,
    (model) => model.chat('x', { tools: 5 }).result, (model) => model.chat('x', { tools: [{ name: 'a b' }] }).result, (model) => model.chat('x', { tools: [{ name: 'a' }, { name: 'a' }] }).result, (model) => model.chat('x', { tools: [{ description: 'x' }] }).result,
    (model) => model.chat('x', { tools: [{ name: 'a', parameters: { type: 'array' } }] }).result, (model) => model.chat('x', { tools: [{ name: 'a', function: {} }] }).result, (model) => model.chat('x', { toolChoice: 'required' }).result,
    (model) => model.chat('x', { tools: TOOLS, toolChoice: 'often' }).result, (model) => model.chat('x', { tools: TOOLS, toolChoice: { name: 'other' } }).result, (model) => model.chat([{ role: 'tool', content: 'x', toolCallId: 'a' }]).result,
    (model) => model.chat([{ role: 'user', content: 'x' }, { role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'f', arguments: {} }] }, { role: 'tool', content: 'x', toolCallId: 'b' }]).result,
    (model) => model.chat([{ role: 'assistant', content: '', toolCalls: [{ name: 'f', arguments: {} }] }]).result, (model) => model.chat([{ role: 'user', content: 'x', toolCalls: [{ id: 'a', name: 'f', arguments: {} }] }]).result,
    (model) => model.chat([{ role: 'user', content: 'x', images: ['y'] }]).result, (model) => model.chat([{ role: 'user', content: 'x' }], { continue: true }).result, (model) => model.tokenize([{ role: 'tool', content: 'x' }]), (model) => model.countTokens(5), (model) => model.tokenize('x', { max: 1 }),
    (model) => model.chat('x', { save: '' }).result, (model) => model.chat('x', { cacheScope: -1 }).result, (model) => model.detokenize('x'),
  ];
  for (const ask of wrong) {
    const [one, other] = await Promise.all([fake, real].map((model) => ask(model).then(() => 'nothing', ({ code }) => code)));
    assert.equal(one, other, String(ask));
    assert.match(one, /^use\//, String(ask));
  }
  assert.deepEqual(fake.calls, [], 'what was refused was not asked');
  const results = await Promise.all([fake, real].map((model) => model.chat('Hi', { maxTokens: 3, logprobs: 1 }).result));
  assert.deepEqual(...results.map((result) => Object.keys(result).filter((key) => key !== 'isJson').sort()));
  await real.dispose();
  await fake.dispose();
  await assert.rejects(fake.chat('x').result, { code: 'engine/disposed' });
});

test('a script: texts, thinking, calls, failures, functions', async () => {
  const model = fakeModel([
    'One two', { thinking: 'Hm.', text: 'Three' }, { text: 'See', toolCalls: [CALL] }, new QuernError('engine/trap', 'Over.'), { text: 'So', error: new Error('far') },
  ]);
  assert.deepEqual(await eventsOf(model.chat('a')), [{ type: 'text', text: 'One two' }]);
  assert.deepEqual(await eventsOf(model.chat('b')), [{ type: 'thinking', text: 'Hm.' }, { type: 'text', text: 'Three' }]);
  const reply = model.chat('c', { tools: TOOLS });
  assert.deepEqual(await eventsOf(reply), [
    { type: 'text', text: 'See' }, { type: 'tool-call-start', text: '', index: 0, id: 'call_0', name: 'weather' },
    { type: 'tool-call-delta', text: '', index: 0, delta: '{"city":"Oslo"}' }, { type: 'tool-call', text: '', index: 0, id: 'call_0', ...CALL },
  ]);
  assert.equal((await reply.result).finishReason, 'tool-calls');
  await assert.rejects(model.complete('d').result, { code: 'engine/trap' });
  const failing = model.complete('e');
  await assert.rejects((async () => { for await (const text of failing) assert.equal(text, 'So'); })(), /far/);
  await assert.rejects(model.chat('f').result, /has 5 answers, and this is call 6/);
  assert.deepEqual(model.calls.map(({ kind, input }) => (kind === 'chat' ? input[0].content : input)), ['a', 'b', 'c', 'd', 'e', 'f']);
  assert.equal((await fakeModel(({ input }) => `You said ${input[0].content}.`).chat('no').result).text, 'You said no.');
  await assert.rejects(fakeModel({ txt: 'x' }).chat('x').result, /not txt/);
  await assert.rejects(fakeModel({ toolCalls: [CALL] }).chat('x').result, /not one of the tools/);
  await assert.rejects(fakeModel({ toolCalls: [CALL, CALL] }).chat('x', { tools: [{ name: CALL.name }], parallelToolCalls: false }).result, /several calls/);
  for (const [script, options, words] of [
    ['maybe', { choices: ['yes', 'no'] }, /"maybe" is not one of the choices/], ['12a', { regex: '\\d+' }, /expression/], ['{"a"', { schema: {} }, /JSON/], ['x', { json: true }, /JSON/],
    ['x', { tools: TOOLS, toolChoice: 'required' }, /wants a call/], [{ toolCalls: [CALL] }, { tools: TOOLS, toolChoice: 'none' }, /'none'/],
    [{ toolCalls: [CALL] }, { tools: [...TOOLS, { name: 'now' }], toolChoice: { name: 'now' } }, /toolChoice is now/],
  ]) await assert.rejects(fakeModel(script).chat('x', options).result, (error) => error instanceof TypeError && words.test(error.message));
  assert.equal((await fakeModel('yes').chat('x', { choices: ['yes', 'no'] }).result).value, 'yes');
  assert.equal((await fakeModel('12').chat('x', { regex: /\d+/ }).result).text, '12');
});

test('limits end a reply as they do a real one', async () => {
  const model = fakeModel({ text: 'one two three four', pauseMs: 1 });
  const short = await model.chat('x', { maxTokens: 2 }).result;
  assert.deepEqual([short.text, short.finishReason, short.usage.completionTokens], ['one two', 'length', 2]);
  assert.equal((await model.chat('x', { stop: [' three'] }).result).text, 'one two');
  const stopped = model.chat('x');
  for await (const text of stopped) if (text) stopped.stop();
  assert.equal((await stopped.result).finishReason, 'aborted');
  const abort = new AbortController();
  const aborted = model.chat('x', { signal: abort.signal }).result;
  abort.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  await assert.rejects(fakeModel('x', { contextSize: 2 }).chat('a b c').result, { code: 'use/context' });
  const valued = await fakeModel('{"a": [1]}').chat('x', { schema: { type: 'object' } }).result;
  assert.deepEqual(valued.value, { a: [1] });
  assert.equal((await fakeModel('{"a": [1]}').chat('x', { json: true, maxTokens: 1 }).result).value, undefined);
});

test('tokens, vectors, ranks, and a run of calls', async () => {
  const model = fakeModel([{ toolCalls: [CALL] }, 'Take a coat.']);
  const ids = await model.tokenize('one two one two');
  assert.equal(await model.detokenize(ids), 'one two one two');
  assert.deepEqual((await model.detokenize(ids, { bytes: true })).map((bytes) => String(Buffer.from(bytes))), ['one', ' two', ' one', ' two']);
  assert.equal(await model.countTokens('one two'), 2);
  const { vectors: [cat, cats, tax] } = await model.embed(['the black cat', 'a black cat', 'income tax law']);
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  assert.ok(Math.abs(dot(cat, cat) - 1) < 1e-6 && dot(cat, cats) > dot(cat, tax));
  assert.deepEqual(await model.rank('black cat', ['a tax', 'black cats', 'the black cat', 'no']), [
    { index: 2, score: 1 }, { index: 1, score: 0.5 }, { index: 0, score: 0 }, { index: 3, score: 0 },
  ]);
  const tools = { weather: { parameters: TOOLS[0].parameters, execute: ({ city }) => `Rain in ${city}.` } };
  const { text, steps, messages } = await run(model, 'Coat?', { tools }).result;
  assert.deepEqual([text, steps, messages[1].content], ['Take a coat.', 2, 'Rain in Oslo.']);
});
