// SPDX-License-Identifier: MIT
// quern/prompt-api: what the browser's Prompt API promises, by a script that answers; and the demo model itself.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { load } from 'quern';
import { languageModel } from 'quern/prompt-api';
import { QuernError, fakeModel } from 'quern/testing';
import { DEMO } from '../support/helper.mjs';

const USER = (content) => ({ role: 'user', content });
const SAID = (content) => ({ role: 'assistant', content });

/** A session over a script, and the model that is asked. */
async function begin(script, options, info) {
  const model = fakeModel(script, info);
  return { model, session: await languageModel(model).create(options) };
}

const asked = (model, at = -1) => model.calls.at(at).input;
const named = (name) => (error) => error instanceof DOMException && error.name === name;

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return pieces;
}

test('prompt: replies, and the conversation that they stand in', async () => {
  const { model, session } = await begin(['One.', 'Two.'], { initialPrompts: [{ role: 'system', content: 'Be brief.' }], temperature: 0, topK: 3 });
  assert.equal(await session.prompt('First?'), 'One.');
  assert.equal(await session.prompt([USER([{ type: 'text', value: 'Sec' }, { type: 'text', value: 'ond?' }])]), 'Two.');
  assert.deepEqual(asked(model), [{ role: 'system', content: 'Be brief.' }, USER('First?'), SAID('One.'), USER('Second?')]);
  assert.deepEqual([model.calls[0].options.temperature, model.calls[0].options.topK, session.temperature, session.topK], [0, 3, 0, 3]);
});

test('promptStreaming: pieces of text; what is cancelled does not stay', async () => {
  const { model, session } = await begin(['One two three.', { text: 'A long tale.', pauseMs: 5 }, 'Yes.']);
  assert.deepEqual(await collect(session.promptStreaming('Count')), ['One', ' two', ' three.']);
  const reader = session.promptStreaming('Tell').getReader();
  assert.equal((await reader.read()).value, 'A');
  await reader.cancel();
  assert.equal(await session.prompt('Well?'), 'Yes.');
  assert.deepEqual(asked(model), [USER('Count'), SAID('One two three.'), USER('Well?')]);
});

test('prompts of a session follow each other in order', async () => {
  const { model, session } = await begin([{ text: 'Slow one.', pauseMs: 5 }, 'Quick.']);
  assert.deepEqual(await Promise.all([session.prompt('a'), session.prompt('b')]), ['Slow one.', 'Quick.']);
  assert.deepEqual(asked(model), [USER('a'), SAID('Slow one.'), USER('b')]);
});

test('a signal ends a prompt with its reason, before it and within it', async () => {
  const { model, session } = await begin([{ text: 'A long tale.', pauseMs: 5 }, 'Yes.']);
  await assert.rejects(session.prompt('x', { signal: AbortSignal.abort() }), named('AbortError'));
  const why = new Error('enough');
  const controller = new AbortController();
  const reader = session.promptStreaming('Tell', { signal: controller.signal }).getReader();
  await reader.read();
  controller.abort(why);
  await assert.rejects(async () => { while (!(await reader.read()).done); }, why);
  await session.prompt('Well?');
  assert.deepEqual(asked(model), [USER('Well?')]);
});

test('append adds messages, clone takes them along and then goes its own way', async () => {
  const { model, session } = await begin('Yes.');
  await session.append([USER('a'), SAID('b')]);
  assert.equal(model.calls[0].options.maxTokens, 0);
  const twin = await session.clone();
  assert.equal(twin.contextUsage, session.contextUsage);
  await twin.prompt('c');
  await session.prompt('d');
  assert.deepEqual(asked(model, -2), [USER('a'), SAID('b'), USER('c')]);
  assert.deepEqual(asked(model), [USER('a'), SAID('b'), USER('d')]);
});

test('destroy ends what is under way, and everything after it', async () => {
  const { session } = await begin({ text: 'A long tale.', pauseMs: 5 });
  const twin = await session.clone();
  const reader = session.promptStreaming('Tell').getReader();
  await reader.read();
  session.destroy();
  await assert.rejects(async () => { while (!(await reader.read()).done); }, named('InvalidStateError'));
  assert.throws(() => session.promptStreaming('x'), named('InvalidStateError'));
  for (const use of ['prompt', 'append', 'measureContextUsage', 'clone']) await assert.rejects(session[use]('x'), named('InvalidStateError'), use);
  assert.equal(await twin.prompt('x'), 'A long tale.');
});

test('the signal of create ends the making and later the session', async () => {
  const controller = new AbortController();
  const { session } = await begin('x', { signal: controller.signal });
  controller.abort();
  await assert.rejects(session.prompt('x'), named('AbortError'));
  await assert.rejects(begin('x', { signal: controller.signal }), named('AbortError'));
});

test('a signal that lives longer than its sessions holds none of them', async () => {
  const { signal } = new AbortController();
  for (let i = 0; i < 3; i++) (await begin('x', { signal })).session.destroy();
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('usage: what the conversation has, what an input would add', async () => {
  const { session } = await begin('Yes it is.', { initialPrompts: [{ role: 'system', content: 'Be brief.' }] }, { contextSize: 100 });
  assert.deepEqual([session.contextWindow, session.inputQuota, session.contextUsage], [100, 100, 2]);
  assert.equal(await session.measureContextUsage('a b c'), 3);
  assert.equal(await session.measureInputUsage(''), 1);
  assert.ok(await session.measureContextUsage('a b c', { responseConstraint: { type: 'string' } }) > 3);
  await session.prompt('a b c');
  assert.deepEqual([session.contextUsage, session.inputUsage], [8, 8]);
});

test('where the context is full the oldest turns go, told by events, and the first prompts stay', async () => {
  const words = Array.from({ length: 8 }, (_, i) => `w${i}`).join(' ');
  const { model, session } = await begin('Yes.', { initialPrompts: [{ role: 'system', content: 'Be brief.' }] }, { contextSize: 30 });
  const heard = [];
  for (const name of ['contextoverflow', 'quotaoverflow']) session.addEventListener(name, () => heard.push(name));
  session.oncontextoverflow = () => heard.push('on');
  await session.prompt(`1 ${words}`);
  assert.deepEqual(heard, []);
  await session.prompt(`2 ${words}`);
  await session.prompt(`3 ${words}`);
  assert.deepEqual(heard.slice(0, 3), ['contextoverflow', 'on', 'quotaoverflow']);
  assert.equal(asked(model)[0].role, 'system');
  assert.equal(asked(model).at(-1).content, `3 ${words}`);
  assert.ok(!asked(model).some(({ content }) => content.startsWith('1')));
});

test('an input that is too long is refused with its size, and the conversation stays', async () => {
  const { session, model } = await begin('Yes.', {}, { contextSize: 10 });
  await session.prompt('a');
  const isQuota = (error) => named('QuotaExceededError')(error) && error.requested >= 20 && error.quota === 10;
  await assert.rejects(session.prompt('x '.repeat(20)), isQuota);
  await assert.rejects(begin('x', { initialPrompts: [USER('x '.repeat(20))] }, { contextSize: 10 }), isQuota);
  await session.prompt('b');
  assert.deepEqual(asked(model), [USER('a'), SAID('Yes.'), USER('b')]);
});

test('responseConstraint: a schema or an expression, of which the model is told unless that is left out', async () => {
  const { model, session } = await begin(['{"a":1}', '42', '{}']);
  const schema = { type: 'object' };
  assert.equal(await session.prompt('x', { responseConstraint: schema }), '{"a":1}');
  assert.deepEqual(JSON.parse(model.calls[0].options.schema), schema);
  assert.match(asked(model)[0].content, /^x\n\n.*\{"type":"object"\}$/);
  await session.prompt('y', { responseConstraint: /\d+/, omitResponseConstraintInput: true });
  assert.equal(JSON.parse(model.calls[1].options.regex).source, '\\d+');
  assert.deepEqual(asked(model), [USER('x'), SAID('{"a":1}'), USER('y')], 'what was told does not stay');
  await assert.rejects(session.prompt('z', { responseConstraint: 'x' }), TypeError);
  await assert.rejects(session.prompt('z', { omitResponseConstraintInput: true }), TypeError);
});

test('prefix: the reply is the rest of the assistant\'s message', async () => {
  const { model, session } = await begin(['lo!', 'Yes.']);
  assert.equal(await session.prompt([USER('Greet'), { role: 'assistant', content: 'Hel', prefix: true }]), 'lo!');
  assert.equal(model.calls[0].options.continue, true);
  await session.prompt('Well?');
  assert.deepEqual(asked(model), [USER('Greet'), SAID('Hello!'), USER('Well?')]);
  for (const messages of [[{ ...USER('a'), prefix: true }], [{ ...SAID('a'), prefix: true }, USER('b')]]) {
    await assert.rejects(session.prompt(messages), named('SyntaxError'));
  }
  await assert.rejects(session.append([{ ...SAID('a'), prefix: true }]), named('SyntaxError'));
});

test('tools are carried out, and the conversation keeps calls and results', async () => {
  const weather = { name: 'weather', description: 'x', inputSchema: { type: 'object' }, execute: async ({ city }) => [{ type: 'text', value: `Rain in ${city}.` }] };
  const script = [{ toolCalls: [{ id: 'c', name: 'weather', arguments: { city: 'Oslo' } }] }, 'Take a coat.', 'Yes.'];
  const { model, session } = await begin(script, { tools: [weather] });
  assert.equal(await session.prompt('Oslo?'), 'Take a coat.');
  await session.prompt('Sure?');
  assert.deepEqual(asked(model).map(({ role }) => role), ['user', 'assistant', 'tool', 'assistant', 'user']);
  assert.equal(asked(model)[2].content, 'Rain in Oslo.');
  await assert.rejects(session.prompt([USER('x'), { ...SAID('y'), prefix: true }]), named('NotSupportedError'));
  const formed = await begin([script[0], '{"coat":true}'], { tools: [weather] });
  assert.equal(await formed.session.prompt('Oslo?', { responseConstraint: { type: 'object' } }), '{"coat":true}');
  assert.deepEqual(formed.model.calls.map(({ options }) => JSON.parse(options.schema).type), ['object', 'object']);
  for (const tools of [[weather, weather], [{ name: 'x' }], [{ execute() {} }]]) await assert.rejects(begin('x', { tools }), TypeError);
});

test('availability and expectedInputs: what this model can', async () => {
  const [blind, seeing] = [fakeModel('x'), fakeModel('A cat.', { vision: {} })];
  const expected = (type) => ({ expectedInputs: [{ type, languages: ['en'] }] });
  assert.equal(await languageModel(blind).availability(), 'available');
  assert.equal(await languageModel(blind).availability(expected('image')), 'unavailable');
  assert.equal(await languageModel(seeing).availability(expected('image')), 'available');
  assert.equal(await languageModel(seeing).availability(expected('audio')), 'unavailable');
  assert.equal(await languageModel(seeing).availability({ expectedOutputs: [{ type: 'image' }] }), 'unavailable');
  await assert.rejects(languageModel(blind).availability(expected('smell')), TypeError);
  await assert.rejects(languageModel(blind).create(expected('image')), named('NotSupportedError'));
  const look = [USER([{ type: 'text', value: 'What?' }, { type: 'image', value: new Uint8Array(3) }])];
  await assert.rejects((await languageModel(seeing).create()).prompt(look), named('NotSupportedError'), 'it was not expected');
  assert.equal(await (await languageModel(seeing).create(expected('image'))).prompt(look), 'A cat.');
  assert.equal(asked(seeing)[0].content[1].image.size, 3);
});

test('messages that make no sense are TypeErrors before any work', async () => {
  const { model, session } = await begin('x');
  const bad = [[7], [{ role: 'x', content: 'a' }], [{ role: 'user' }], [USER('a'), { role: 'system', content: 'a' }], [USER([{ type: 'text', value: 7 }])], [USER([{ type: 'x' }])]];
  for (const input of bad) await assert.rejects(session.prompt(input), TypeError, JSON.stringify(input));
  await assert.rejects(begin('x', { initialPrompts: [USER('a'), { role: 'system', content: 'b' }] }), TypeError);
  assert.equal(model.calls.length, 0);
  assert.throws(() => new session.constructor(), TypeError);
  assert.throws(() => languageModel({}), (error) => error instanceof QuernError && error.code === 'use/param');
});

test('monitor: the model is there already', async () => {
  const heard = [];
  await begin('x', { monitor: (target) => target.addEventListener('downloadprogress', ({ loaded, total }) => heard.push([loaded, total])) });
  assert.deepEqual(heard, [[0, 1], [1, 1]]);
  await assert.rejects(begin('x', { monitor: 7 }), TypeError);
});

test('failures of the model are exceptions with their cause, and the session goes on', async () => {
  const broken = new QuernError('engine/trap', 'The engine crashed.');
  const refused = new QuernError('use/schema', 'The schema has a keyword that is not known.');
  const { session } = await begin([broken, refused, 'Yes.']);
  await assert.rejects(session.prompt('a'), (error) => named('OperationError')(error) && error.cause === broken);
  await assert.rejects(session.prompt('b'), (error) => named('NotSupportedError')(error) && error.message === refused.message);
  assert.equal(await session.prompt('c'), 'Yes.');
});

test('a reply that ends although its stream was cancelled leaves no trace', async () => {
  const model = fakeModel(['Quick.', 'Yes.']);
  const deaf = { info: model.info, countTokens: (messages) => model.countTokens(messages), chat: (messages, { signal, ...options }) => model.chat(messages, options) };
  const session = await languageModel(deaf).create();
  const reader = session.promptStreaming('Tell').getReader();
  await reader.read();
  await reader.cancel();
  assert.equal(await session.prompt('Well?'), 'Yes.');
  assert.deepEqual(asked(model), [USER('Well?')]);
});

test('a constrained reply that the context has no room for fails, a free one is what there is', async () => {
  const { session, model } = await begin({ text: '[1,', finishReason: 'context' });
  await assert.rejects(session.prompt('x', { responseConstraint: { type: 'array' } }), named('QuotaExceededError'));
  assert.equal(await session.prompt('y'), '[1,');
  assert.deepEqual(asked(model), [USER('y')]);
});

test('where there is a class QuotaExceededError errors are of it', async (t) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'QuotaExceededError');
  t.after(() => (before ? Object.defineProperty(globalThis, 'QuotaExceededError', before) : delete globalThis.QuotaExceededError));
  class Own extends DOMException {
    constructor(message, { requested, quota }) {
      super(message, 'QuotaExceededError');
      this.sizes = [requested, quota];
    }
  }
  Object.defineProperty(globalThis, 'QuotaExceededError', { value: Own, configurable: true });
  await assert.rejects(begin('x', { initialPrompts: [USER('x '.repeat(20))] }, { contextSize: 10 }), (error) => error instanceof Own && error.sizes[1] === 10);
});

test('the demo model says what it says itself, and is held to a constraint', async (t) => {
  const model = await load(DEMO, { threads: 1, contextSize: 512 });
  t.after(() => model.dispose());
  const session = await languageModel(model).create({ temperature: 0, initialPrompts: [USER('Hi'), SAID('Hello.')] });
  const messages = [USER('Hi'), SAID('Hello.'), USER('What is quern?')];
  const alone = await model.chat(messages, { temperature: 0 }).result;
  const added = await session.measureContextUsage('What is quern?');
  assert.equal(session.contextUsage + added, await model.countTokens(messages));
  assert.equal((await collect(session.promptStreaming('What is quern?'))).join(''), alone.text);
  assert.equal(session.contextUsage, alone.usage.promptTokens + alone.usage.completionTokens);
  await session.append('And now a number.');
  assert.match(await session.prompt('Which?', { responseConstraint: /[0-9]{3}/ }), /^\d{3}$/);
  await assert.rejects(session.prompt('x', { responseConstraint: { type: 'nothing' } }), named('NotSupportedError'));
});
