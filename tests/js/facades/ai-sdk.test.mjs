// SPDX-License-Identifier: MIT
// quern/ai-sdk through the official `ai` package: what it asks of a model, by a script that answers; and the demo model itself.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as version7 from 'ai';
import * as version6 from 'ai-6';
import { Output, embedMany, generateObject, generateText, rerank, stepCountIs, streamText, tool } from 'ai';
import { load } from 'quern';
import { quern } from 'quern/ai-sdk';
import { QuernError, fakeModel } from 'quern/testing';
import { z } from 'zod';
import { DEMO } from '../support/helper.mjs';
import { playedModel, result } from '../support/serve-host.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

let model;
before(async () => { model = await load(DEMO, { threads: 1 }); });
after(() => model.dispose());

const weather = tool({ description: 'The weather of a city', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `Rain in ${city}.` });
const CALL = { toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] };

const CITY = z.object({ city: z.enum(['Nairobi', 'Oslo']) });

for (const [name, sdk] of Object.entries({ 'version 6': version6, 'version 7': version7 })) {
  test(`${name} of the SDK: text, streams, tools, objects, vectors, files`, async () => {
    const alone = await model.chat('Hi', { temperature: 0, maxTokens: 12 }).result;
    const asked = { model: quern(model)(), prompt: 'Hi', temperature: 0, maxOutputTokens: 12 };
    assert.equal((await sdk.generateText(asked)).text, alone.text);
    assert.equal(await sdk.streamText(asked).text, alone.text);
    const { toolCalls } = await sdk.generateText({ ...asked, maxOutputTokens: 200, tools: { weather: sdk.tool({ inputSchema: CITY }) }, toolChoice: 'required' });
    assert.equal(toolCalls[0].toolName, 'weather');
    const object = sdk.Output.object({ schema: CITY });
    const { output } = await sdk.generateText({ ...asked, maxOutputTokens: 200, output: object });
    assert.ok(['Nairobi', 'Oslo'].includes(output.city));
    assert.equal((await sdk.embedMany({ model: quern(model).embeddingModel(), values: ['one', 'two'] })).embeddings.length, 2);
    const fake = fakeModel('x', { vision: {} });
    const png = Uint8Array.from([137, 80, 78, 71]);
    const files = [png, Buffer.from(png).toString('base64')].map((data) => ({ type: 'file', mediaType: 'image/png', data }));
    await sdk.generateText({ model: quern(fake)(), messages: [{ role: 'user', content: files }] });
    const { content } = fake.calls[0].input[0];
    for (const { image } of content) assert.deepEqual(new Uint8Array(await image.arrayBuffer()), png);
    assert.equal(content.length, 2);
  });
}

test('generateText: what the model itself says, its usage, why it ended', async () => {
  const options = { temperature: 0, maxTokens: 12 };
  const alone = await model.chat([{ role: 'system', content: 'Be short.' }, { role: 'user', content: 'Hi' }], options).result;
  const result = await generateText({ model: quern(model)(), instructions: 'Be short.', prompt: 'Hi', temperature: 0, maxOutputTokens: 12 });
  assert.equal(result.text, alone.text);
  assert.deepEqual([result.finishReason, result.usage.inputTokens, result.usage.outputTokens], [alone.finishReason, alone.usage.promptTokens, alone.usage.completionTokens]);
  assert.ok(result.usage.inputTokenDetails.cacheReadTokens > 0, 'known from before');
  assert.equal(result.response.modelId, model.info.name);
  assert.ok(result.providerMetadata.quern.timings.decodeMs > 0);
});

test('streamText: pieces as they come, thinking apart', async () => {
  const alone = await model.chat('Hi', { temperature: 0, maxTokens: 20 }).result;
  const { textStream, finishReason } = streamText({ model: quern(model)(), prompt: 'Hi', temperature: 0, maxOutputTokens: 20 });
  const pieces = [];
  for await (const piece of textStream) pieces.push(piece);
  assert.equal(pieces.join(''), alone.text);
  assert.ok(pieces.length > 3);
  assert.equal(await finishReason, alone.finishReason);
  const fake = fakeModel({ thinking: 'Let me see.', text: 'Four.' });
  const thought = streamText({ model: quern(fake)(), prompt: '2 + 2?', reasoning: 'high' });
  assert.equal(await thought.text, 'Four.');
  assert.equal(await thought.reasoningText, 'Let me see.');
  const { outputTokenDetails: details } = await thought.usage;
  assert.deepEqual([details.reasoningTokens, details.textTokens], [3, 1]);
  assert.equal(fake.calls[0].options.thinking, true);
  await generateText({ model: quern(fake)(), prompt: '2 + 2?', reasoning: 'none' });
  assert.equal(fake.calls[1].options.thinking, false);
});

test('tools: the model calls, the SDK carries out, the model goes on, streamed and whole', async () => {
  for (const ask of [generateText, streamText]) {
    const fake = fakeModel([{ text: 'Let me look.', ...CALL }, 'Take a coat.']);
    const result = await ask({ model: quern(fake)(), prompt: 'Do I need a coat in Oslo?', tools: { weather }, toolChoice: 'auto', stopWhen: stepCountIs(3) });
    assert.equal(await result.text, 'Take a coat.');
    const [first, second] = await result.steps;
    assert.deepEqual(first.toolCalls.map(({ toolName, input }) => [toolName, input]), [['weather', { city: 'Oslo' }]]);
    assert.deepEqual([first.finishReason, second.finishReason], ['tool-calls', 'stop']);
    const { input, options } = fake.calls[1];
    assert.deepEqual(input.slice(1), [
      { role: 'assistant', content: 'Let me look.', toolCalls: [{ id: 'call_0', name: 'weather', arguments: { city: 'Oslo' } }] },
      { role: 'tool', content: 'Rain in Oslo.', toolCallId: 'call_0' },
    ]);
    assert.deepEqual([options.tools[0].name, options.tools[0].parameters.required, options.toolChoice], ['weather', ['city'], 'auto']);
  }
});

test('the demo model calls a tool that it must call', async () => {
  const provider = quern(model);
  const { toolCalls, finishReason } = await generateText({ model: provider(), prompt: 'Hi', tools: { weather: { ...weather, execute: undefined } }, toolChoice: 'required', maxOutputTokens: 200, seed: 4 });
  assert.equal(finishReason, 'tool-calls');
  assert.equal(toolCalls[0].toolName, 'weather');
  assert.equal(typeof toolCalls[0].input.city, 'string');
});

test('a call that is cut off ends its input, and is neither text nor a call', async () => {
  const cut = playedModel((push, { options }) => {
    options.onPrefill?.({});
    push({ type: 'tool-call-start', index: 0, id: 'c', name: 'weather' });
    push({ type: 'tool-call-delta', index: 0, delta: '{"ci' });
    return { promise: Promise.resolve(result('', { toolCalls: [], unfinishedCall: { id: 'c', name: 'weather', text: '{"ci' }, finishReason: 'length' })) };
  });
  const { stream } = await quern(/** @type {any} */ (cut))('x').doStream({ prompt: [] });
  const parts = [];
  for await (const { type } of stream) parts.push(type);
  assert.deepEqual(parts.slice(2), ['tool-input-start', 'tool-input-delta', 'tool-input-end', 'finish']);
  const { content, finishReason } = await quern(/** @type {any} */ (cut))('x').doGenerate({ prompt: [] });
  assert.deepEqual([content, finishReason.unified], [[], 'length']);
});

test('objects: of generateObject and of Output, from a schema that the engine keeps', async () => {
  const schema = z.object({ answer: z.enum(['yes', 'no']), certain: z.boolean() });
  const { object } = await generateObject({ model: quern(model)(), schema, prompt: 'Is the sea wet?', maxOutputTokens: 60 });
  assert.deepEqual(schema.parse(object), object);
  const { output } = await generateText({ model: quern(model)(), output: Output.object({ schema }), prompt: 'Is the sea wet?', maxOutputTokens: 60 });
  assert.deepEqual(schema.parse(output), output);
  const typed = await generateText({ model: quern(model)(), output: Output.object({ schema }), tools: { weather: { ...weather, execute: undefined } }, prompt: 'x', maxOutputTokens: 200, seed: 1 });
  if (typed.finishReason === 'stop') assert.deepEqual(schema.parse(typed.output), typed.output);
  else assert.equal(typed.toolCalls[0].toolName, 'weather');
  const agent = fakeModel([{ toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] }, '{"answer": "yes", "certain": true}']);
  const { output: said } = await generateText({ model: quern(agent)(), output: Output.object({ schema }), tools: { weather }, prompt: 'x', stopWhen: stepCountIs(3) });
  assert.deepEqual([said.answer, agent.calls.length, agent.calls.every(({ options: { tools, schema: asked } }) => tools && asked)], ['yes', 2, true]);
  const fake = fakeModel('{"answer": "yes", "certain": true}');
  const { partialOutputStream, output: whole } = streamText({ model: quern(fake)(), output: Output.object({ schema }), prompt: 'x' });
  for await (const part of partialOutputStream) assert.equal(typeof part, 'object');
  assert.deepEqual(await whole, { answer: 'yes', certain: true });
  assert.equal(fake.calls[0].options.schema !== undefined, true);
  await generateText({ model: quern(fake)(), output: Output.json(), prompt: 'x' });
  assert.equal(fake.calls[1].options.json, true);
});

test('vectors and ranks', async () => {
  const values = ['an owl', 'a hand mill', 'income tax'];
  const provider = quern(model);
  const { embeddings, usage } = await embedMany({ model: provider.embeddingModel(), values });
  const alone = await model.embed(values);
  assert.deepEqual(embeddings, alone.vectors.map((vector) => Array.from(vector)));
  assert.equal(usage.tokens, alone.tokens);
  const fake = fakeModel('x');
  const { ranking } = await rerank({ model: quern(fake).rerankingModel(), query: 'hand mill', documents: values, topN: 2 });
  assert.deepEqual(ranking.map(({ originalIndex, score, document }) => [originalIndex, score, document]), [[1, 1, 'a hand mill'], [0, 0, 'an owl']]);
  const { embeddings: short } = await embedMany({ model: quern(fake).embeddingModel(), values, providerOptions: { quern: { dimensions: 4, instruction: 'Find' } } });
  assert.deepEqual([short[0].length, fake.calls.at(-1).options.instruction], [4, 'Find']);
});

test('what is asked arrives: settings, images, what only quern has', async () => {
  const fake = fakeModel('x', { vision: {} });
  const png = Uint8Array.from([137, 80, 78, 71]);
  await generateText({
    model: quern(fake)('mine'), topP: 0.5, topK: 7, presencePenalty: 0.1, frequencyPenalty: 0.2, seed: 5, stopSequences: ['END'],
    messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, { type: 'file', mediaType: 'image/png', data: png }] }],
    providerOptions: { quern: { minP: 0.25, save: 'talk' } },
  });
  const [{ input: [message], options }] = fake.calls;
  const { topP, topK, presencePenalty, frequencyPenalty, seed, stop, minP, save } = options;
  assert.deepEqual({ topP, topK, presencePenalty, frequencyPenalty, seed, stop, minP, save },
    { topP: 0.5, topK: 7, presencePenalty: 0.1, frequencyPenalty: 0.2, seed: 5, stop: ['END'], minP: 0.25, save: 'talk' });
  assert.deepEqual(new Uint8Array(await message.content[1].image.arrayBuffer()), png);
  for (const data of [new URL('https://example.org/a.png'), { type: 'url', url: new URL('https://example.org/a.png') }]) {
    await quern(fake)().doGenerate({ prompt: [{ role: 'user', content: [{ type: 'file', mediaType: 'image/png', data }] }] });
    assert.equal(String(fake.calls.at(-1).input[0].content[0].image), 'https://example.org/a.png');
  }
  const file = { role: 'user', content: [{ type: 'file', mediaType: 'application/pdf', data: Uint8Array.from([37, 80, 68, 70, 45]) }] };
  await assert.rejects(generateText({ model: quern(fake)(), messages: [file] }), { name: 'AI_UnsupportedFunctionalityError' });
  const { warnings } = await quern(fake)().doGenerate({ prompt: [{ role: 'user', content: [] }], tools: [{ type: 'provider', name: 'search', id: 'a.search', args: {} }] });
  assert.deepEqual(warnings, [{ type: 'unsupported', feature: "the provider's tool search" }]);
  assert.throws(() => quern(fake).imageModel('x'), { name: 'AI_NoSuchModelError' });
});

test('failures: what may pass is asked again, what may not fails as it is; an abort ends the work', async () => {
  const busy = new QuernError('use/busy', 'Too many.', { retryable: true });
  const fake = fakeModel([busy, 'There.']);
  assert.equal((await generateText({ model: quern(fake)(), prompt: 'x' })).text, 'There.');
  await assert.rejects(generateText({ model: quern(model)(), prompt: 'x', topP: 9 }), { code: 'use/param' });
  const errors = [];
  const broken = streamText({ model: quern(fakeModel({ text: 'So', error: new QuernError('engine/trap', 'Over.') }))(), prompt: 'x', onError: ({ error }) => errors.push(error) });
  for await (const _ of broken.textStream);
  assert.equal(errors[0].code, 'engine/trap');
  const abort = new AbortController();
  const { textStream } = streamText({ model: quern(model)(), prompt: 'Tell me a long story.', abortSignal: abort.signal, onAbort: () => errors.push('aborted') });
  let seen = 0;
  for await (const _ of textStream) if (seen++ === 2) abort.abort();
  assert.equal(errors.at(-1), 'aborted');
  assert.equal(typeof (await model.chat('Hi', { maxTokens: 2 }).result).text, 'string', 'the engine goes on');
});
