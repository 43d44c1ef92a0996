// SPDX-License-Identifier: MIT
// quern/run over a model that is played: replies, calls carried out and their results are one reply, however it goes on or ends.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '../../../js/facades/run.js';
import { Reply } from '../../../js/page/reply.js';
import { collect, rejectsWith, rejectsWithAbort, until } from '../support/helper.mjs';
import { playedModel, result } from '../support/serve-host.mjs';

/** A model that says these one after the other: texts, or calls as [name, arguments]. `asked` is what it was asked. */
function scripted(...steps) {
  const asked = [];
  return playedModel((push, { input, options }) => {
    asked.push({ messages: structuredClone(input), options });
    const said = steps[asked.length - 1];
    if (typeof said === 'string') push({ type: 'text', text: said });
    const toolCalls = typeof said === 'string' ? [] : said.map(([name, given], i) => ({ id: `${asked.length}-${i}`, name, arguments: given }));
    toolCalls.forEach((call, index) => { push({ type: 'tool-call-start', index, id: call.id, name: call.name }); push({ type: 'tool-call', index, ...call }); });
    const end = result(toolCalls.length ? '' : said, { toolCalls, finishReason: toolCalls.length ? 'tool-calls' : 'stop' });
    return { promise: Promise.resolve(end) };
  }, { asked });
}

const tools = (more) => ({
  add: { description: 'A sum', parameters: { type: 'object' }, execute: ({ a, b }) => a + b },
  fail: { execute() { throw new TypeError('no luck'); } },
  ...more,
});

test('a list of parts with an image is a result as it is; any other list is JSON', async () => {
  const image = new Blob(['x']);
  const seen = [{ type: 'text', text: 'A cat.' }, { type: 'image', image }];
  for (const [value, content] of [
    [seen, seen], [[{ type: 'text', text: 'x' }], '[{"type":"text","text":"x"}]'], [[], '[]'], [[{ type: 'image' }], '[{"type":"image"}]'], [[{ type: 'image', image: 1 }, 5], '[{"type":"image","image":1},5]'],
  ]) {
    const model = scripted([['look', {}]], 'Seen.');
    const reply = run(model, 'Look!', { tools: { look: { execute: () => value } } });
    const events = await collect(reply.events);
    const { content: text, parts } = events.find(({ type }) => type === 'tool-result');
    assert.deepEqual([text, parts], content === seen ? ['A cat.', seen] : [content, undefined]);
    assert.deepEqual((await reply.result).messages[1], { role: 'tool', toolCallId: '1-0', content });
  }
});

test('calls are carried out until a reply has none', async () => {
  const model = scripted([['add', { a: 1, b: 2 }], ['fail', {}]], [['add', { a: 3, b: 3 }]], 'It is 6.');
  const reply = run(model, 'Add!', { tools: tools(), temperature: 0, toolChoice: 'required' });
  const events = await collect(reply.events);
  const end = await reply.result;
  assert.deepEqual([end.text, end.finishReason, end.steps, end.totalUsage.promptTokens, end.usage.promptTokens], ['It is 6.', 'stop', 3, 9, 3]);
  assert.deepEqual(events.filter(({ type }) => type === 'tool-result').sort((a, b) => a.index - b.index), [
    { type: 'tool-result', text: '', index: 0, id: '1-0', name: 'add', content: '3', isError: false }, { type: 'tool-result', text: '', index: 1, id: '1-1', name: 'fail', content: 'Error: no luck', isError: true },
    { type: 'tool-result', text: '', index: 2, id: '2-0', name: 'add', content: '6', isError: false },
  ]);
  assert.deepEqual(events.filter(({ type }) => type === 'tool-call-start').map(({ index }) => index), [0, 1, 2], 'counted through');
  assert.deepEqual(end.messages, [
    { role: 'assistant', content: '', toolCalls: [{ id: '1-0', name: 'add', arguments: { a: 1, b: 2 } }, { id: '1-1', name: 'fail', arguments: {} }] },
    { role: 'tool', toolCallId: '1-0', content: '3' }, { role: 'tool', toolCallId: '1-1', content: 'Error: no luck' },
    { role: 'assistant', content: '', toolCalls: [{ id: '2-0', name: 'add', arguments: { a: 3, b: 3 } }] }, { role: 'tool', toolCallId: '2-0', content: '6' },
    { role: 'assistant', content: 'It is 6.' },
  ]);
  assert.deepEqual(model.asked.map(({ messages }) => messages.length), [1, 4, 6]);
  assert.deepEqual(model.asked.map(({ options }) => [options.temperature, options.toolChoice]), [[0, 'required'], [0, undefined], [0, undefined]]);
  assert.deepEqual(model.asked[0].options.tools, [{ name: 'add', description: 'A sum', parameters: { type: 'object' } }, { name: 'fail' }]);
});

test('what may be called stays what it is, and a form holds for every reply', async () => {
  const schema = { type: 'object' };
  const model = scripted([['add', { a: 1, b: 2 }]], '{"sum":3}');
  const { text } = await run(model, 'Add!', { tools: tools(), schema, toolChoice: { names: ['add'], required: true }, parallelToolCalls: false }).result;
  assert.equal(text, '{"sum":3}');
  assert.deepEqual(model.asked.map(({ options }) => [options.toolChoice, options.schema, options.parallelToolCalls]), [
    [{ names: ['add'], required: true }, schema, false], [{ names: ['add'] }, schema, false],
  ]);
  const none = scripted('No.');
  await run(none, 'x', { tools: tools(), toolChoice: 'none' }).result;
  assert.equal(none.asked[0].options.toolChoice, 'none');
});

test('the text is that of all replies; calls of one are carried out at the same time', async () => {
  let running = 0;
  let most = 0;
  const slow = { async execute() { most = Math.max(most, ++running); await new Promise((done) => { setTimeout(done, 20); }); running--; return undefined; } };
  const model = scripted([['slow', {}], ['slow', {}], ['slow', {}]], 'Done.');
  const reply = run(model, [{ role: 'user', content: 'Go' }], { tools: { slow } });
  assert.equal((await collect(reply)).join(''), 'Done.');
  assert.equal(most, 3);
  assert.deepEqual((await reply.result).messages[1], { role: 'tool', toolCallId: '1-0', content: '' });
});

test('there is an end to it', async () => {
  const call = [['add', { a: 1, b: 1 }]];
  const { finishReason, steps, messages, toolCalls } = await run(scripted(call, call, call), 'x', { tools: tools(), maxSteps: 2 }).result;
  assert.deepEqual([finishReason, steps, messages.length, toolCalls.length], ['tool-calls', 2, 3, 1]);
  const result8 = await run(scripted(...Array(9).fill(call)), 'x', { tools: tools() }).result;
  assert.equal(result8.steps, 8);
});

test('a result that is no JSON is an error that the model is told', async () => {
  const cyclic = {};
  cyclic.self = cyclic;
  for (const value of [cyclic, 5n]) {
    const { messages } = await run(scripted([['odd', {}]], 'ok'), 'x', { tools: { odd: { execute: () => value } } }).result;
    assert.match(messages[1].content, /^Error: /);
  }
});

test('stop, break and signal end what is carried out', async () => {
  let told;
  const hung = () => ({ execute: (_, { signal }) => { told = signal; return new Promise(() => {}); } });
  const ask = (options) => { told = undefined; return run(scripted([['hung', {}]], 'never'), 'x', { tools: { hung: hung() }, ...options }); };
  const stopped = ask();
  await until(() => told);
  stopped.stop();
  const { finishReason, toolCalls, messages } = await stopped.result;
  assert.deepEqual([finishReason, toolCalls.length, messages.length, told.aborted], ['aborted', 1, 1, true]);
  const left = ask();
  for await (const { type } of left.events) if (type === 'tool-call') break;
  assert.equal((await left.result).finishReason, 'aborted');
  const controller = new AbortController();
  const aborted = ask({ signal: controller.signal });
  await until(() => told);
  controller.abort();
  await rejectsWithAbort(aborted.result);
  assert.ok(told.aborted);
});

test('stop() while a reply is made keeps what there is', async () => {
  const model = playedModel((push) => {
    let end;
    push({ type: 'text', text: 'so far' });
    return { promise: new Promise((resolve) => { end = resolve; }), stop: () => end(result('so far', { finishReason: 'aborted', toolCalls: [] })) };
  });
  const reply = run(model, 'x', { tools: {} });
  for await (const text of reply) if (text) reply.stop();
  const { text, finishReason, steps } = await reply.result;
  assert.deepEqual([text, finishReason, steps], ['so far', 'aborted', 1]);
});

test('what is wrong is said, and a failure of the model\'s is the reply\'s', async () => {
  for (const [options, path] of [
    [undefined, 'options.tools'], [{ tools: [] }, 'options.tools'], [{ tools: { f: 5 } }, 'options.tools.f'], [{ tools: { f: {} } }, 'options.tools.f.execute'],
    [5, 'options'], [[], 'options'], [{ tools: null }, 'options.tools'], [{ tools: new Map([['f', { execute() {} }]]) }, 'options.tools'],
    [{ tools: { f: null } }, 'options.tools.f'], [{ tools: { f: { execute: 'f' } } }, 'options.tools.f.execute'], [{ get tools() { throw new Error('no'); } }, 'options.tools'],
    [{ tools: { get f() { throw new Error('no'); } } }, 'options.tools.f'], [{ tools: { f: { get execute() { throw new Error('no'); } } } }, 'options.tools.f.execute'],
    [{ tools: { f: { get parameters() { throw new Error('no'); }, execute() {} } } }, 'options.tools.f.parameters'], [{ tools: {}, get seed() { throw new Error('no'); } }, 'options.seed'],
    [{ tools: {}, signal: {} }, 'options.signal'], [{ tools: {}, signal: 5 }, 'options.signal'], [{ tools: {}, maxSteps: NaN }, 'options.maxSteps'], [{ tools: {}, maxSteps: 1.5 }, 'options.maxSteps'],
    [{ tools: {}, maxSteps: '2' }, 'options.maxSteps'], [{ tools: {}, maxSteps: 0 }, 'options.maxSteps'], [{ tools: {}, maxSteps: 101 }, 'options.maxSteps'], [{ tools: {}, continue: true }, 'options.continue'],
  ]) {
    const error = await rejectsWith(run(scripted('x'), 'x', options).result, 'use/param');
    assert.equal(error.detail.param, path);
  }
  for (const none of [null, undefined, {}, 'x']) assert.equal((await rejectsWith(run(/** @type {any} */ (none), 'x', { tools: {} }).result, 'use/param')).detail.param, 'model');
  const broken = { chat: () => new Reply(() => ({ promise: Promise.reject(new Error('broken')), stop() {} })) };
  await assert.rejects(run(/** @type {any} */ (broken), 'x', { tools: {} }).result, /broken/);
  const bad = { chat: () => { throw new Error('thrown'); } };
  await assert.rejects(collect(run(/** @type {any} */ (bad), 'x', { tools: {} })), /thrown/);
});

test('tools may be of a class, throw anything, and be called by names that none has', async () => {
  class Adder {
    #by = 2;
    get description() { return 'adds'; }
    get parameters() { return { type: 'object', properties: { a: { type: 'number' } } }; }
    execute({ a }) { return a + this.#by; }
  }
  const thrown = [null, undefined, 'words', Object.create(null), { get message() { throw new Error('no'); } }];
  const all = { add: new Adder(), throws: { execute({ i }) { throw thrown[i]; } } };
  const messages = [{ role: 'user', content: 'x' }];
  const model = scripted([['add', { a: 1 }], ['other', {}], ...thrown.map((_, i) => ['throws', { i }])], 'ok');
  const reply = run(model, messages, { tools: all });
  messages.push({ role: 'user', content: 'more' });
  const { messages: made } = await reply.result;
  assert.deepEqual(made.slice(1, -1).map(({ content }) => content),
    ['3', "Error: there is no tool 'other'", 'Error: null', 'Error: undefined', 'Error: words', 'Error: it failed', 'Error: it failed']);
  assert.deepEqual(model.asked[0].options.tools[0], { name: 'add', description: 'adds', parameters: { type: 'object', properties: { a: { type: 'number' } } } });
  assert.deepEqual(model.asked.map((one) => one.messages.length), [1, 9], 'what was given when it began');
});
