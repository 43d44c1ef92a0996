// SPDX-License-Identifier: MIT
// quern/openai: the official client over openaiFetch(), and openai() beside it. Both say the same, object for object, over the demo model and a script.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, test } from 'node:test';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI } from '@langchain/openai';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { load } from 'quern';
import { APIError, openai, openaiFetch } from 'quern/openai';
import { QuernError, fakeModel } from 'quern/testing';
import { z } from 'zod';
import { DEMO, collect, until } from '../support/helper.mjs';
import { playedModel, result } from '../support/serve-host.mjs';

let model;
before(async () => { model = await load(DEMO, { threads: 1 }); });
after(() => model.dispose());

const clientOf = (over, options) => new OpenAI({ apiKey: 'none', maxRetries: 0, ...options, fetch: openaiFetch(over) });
const facesOf = (over) => [clientOf(over), openai(over)];

const messages = [{ role: /** @type {const} */ ('user'), content: 'Tell me a story.' }];
const ASK = { model: 'any', messages, temperature: 0, max_tokens: 12 };
const PARAMETERS = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } }, required: ['city'] };
const TOOL = { type: /** @type {const} */ ('function'), function: { name: 'weather', description: 'of a city', parameters: PARAMETERS } };
const CALL = { text: 'Wait.', toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] };

/** An answer without what differs from call to call: when it was made, and how much of the prompt was known from the call before. */
function same({ id, created, usage, ...answer }) {
  const { prompt_tokens_details: known, ...counts } = usage ?? {};
  assert.ok(/^(chatcmpl|cmpl)-[0-9a-f]{24}$/.test(id) && created > 1.7e9);
  return { ...answer, ...(usage && { usage: counts }) };
}

/** The text of a stream's chunks by choice. */
function textsOf(chunks) {
  const texts = [];
  for (const { index, delta, text } of chunks.flatMap(({ choices }) => choices)) texts[index] = (texts[index] ?? '') + (text ?? delta.content ?? '');
  return texts;
}

test('a chat, whole: both faces say what the model says', async () => {
  const alone = await model.chat(messages, { temperature: 0, maxTokens: 12, logprobs: 2 }).result;
  const answers = [];
  for (const face of facesOf(model)) answers.push(await face.chat.completions.create({ ...ASK, logprobs: true, top_logprobs: 2 }));
  assert.deepEqual(same(answers[0]), same(answers[1]));
  const [{ object, model: name, choices: [choice], usage }] = answers;
  assert.deepEqual([object, name, choice.message.content, choice.finish_reason], ['chat.completion', model.info.name, alone.text, 'length']);
  assert.deepEqual(choice.logprobs.content.map(({ token, logprob }) => [token, logprob]), alone.logprobs.map(({ text, logprob }) => [text, logprob]));
  assert.deepEqual(choice.logprobs.content[0].bytes, [...new TextEncoder().encode(alone.logprobs[0].text)]);
  assert.equal(choice.logprobs.content[0].top_logprobs.length, 2);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens, usage.total_tokens], [alone.usage.promptTokens, 12, alone.usage.promptTokens + 12]);
  for (const face of facesOf(fakeModel({ thinking: 'Hm.', text: 'Yes.' }))) {
    const { choices: [{ message }] } = await face.chat.completions.create(ASK);
    assert.deepEqual(message, { role: 'assistant', content: 'Yes.', reasoning_content: 'Hm.', refusal: null });
  }
});

test('a chat in chunks: the same pieces, their usage, their bytes', async () => {
  const body = { ...ASK, stream: /** @type {const} */ (true), stream_options: { include_usage: true } };
  const all = [];
  for (const face of facesOf(model)) {
    all.push(await collect(await face.chat.completions.create(body)));
    const bytes = (await face.chat.completions.create(body)).toReadableStream();
    const lines = (await new Response(bytes).text()).trimEnd().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(lines.map(same), all.at(-1).map(same));
  }
  assert.deepEqual(all[0].map(same), all[1].map(same));
  const [chunks] = all;
  const whole = await openai(model).chat.completions.create(ASK);
  assert.deepEqual(textsOf(chunks), [whole.choices[0].message.content]);
  assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
  assert.deepEqual(chunks.at(-2).choices, [{ index: 0, delta: {}, logprobs: null, finish_reason: 'length' }]);
  assert.deepEqual([chunks.at(-1).choices, chunks.at(-1).usage.completion_tokens], [[], 12]);
  assert.equal(new Set(chunks.map(({ id }) => id)).size, 1);
  const silent = await collect(await openai(model).chat.completions.create({ ...ASK, stream: true }));
  assert.ok(silent.every((chunk) => !('usage' in chunk)), 'none where none was asked for');
  const gathered = await clientOf(model).chat.completions.stream({ ...ASK, logprobs: true }).finalChatCompletion();
  assert.equal(gathered.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(gathered.choices[0].logprobs.content.length, 12);
});

test('several choices, seeds, stop texts', async () => {
  const body = { ...ASK, temperature: 1.5, n: 3, seed: 5, max_tokens: 16 };
  const texts = [];
  for (const face of facesOf(model)) {
    texts.push((await face.chat.completions.create(body)).choices.map(({ message }) => message.content));
    texts.push(textsOf(await collect(await face.chat.completions.create({ ...body, stream: true }))));
  }
  for (const other of texts.slice(1)) assert.deepEqual(other, texts[0]);
  assert.equal(new Set(texts[0]).size, 3, 'each choice has a seed of its own');
  const { text } = await model.chat(messages, { temperature: 1.5, seed: 6, maxTokens: 16 }).result;
  assert.equal(texts[0][1], text, 'seeds follow each other');
  for (const face of facesOf(fakeModel('one two three'))) {
    const { choices: [{ message, finish_reason: reason }] } = await face.chat.completions.create({ ...ASK, stop: [' three'] });
    assert.deepEqual([message.content, reason], ['one two', 'stop']);
  }
});

test('an abort ends the work: by a signal, by the stream\'s controller, by leaving it', async () => {
  const body = { model: 'any', messages: [{ role: /** @type {const} */ ('user'), content: 'Tell me a long story.' }] };
  for (const face of facesOf(fakeModel({ text: 'word '.repeat(1000), pauseMs: 1 }))) {
    const signal = AbortSignal.timeout(30);
    await assert.rejects(face.chat.completions.create(body, { signal }), (error) => error.name === 'TimeoutError' || error instanceof OpenAI.APIUserAbortError);
    const gone = AbortSignal.abort();
    await assert.rejects(face.chat.completions.create(body, { signal: gone }), (error) => error.name === 'AbortError' || error instanceof OpenAI.APIUserAbortError);
    await assert.rejects(face.embeddings.create({ model: 'any', input: 'x' }, { signal: gone }));
    for (const end of [(stream) => stream.controller.abort(), () => 'leave']) {
      const stream = await face.chat.completions.create({ ...body, stream: true });
      let seen = 0;
      for await (const chunk of stream) if (chunk.choices[0].delta.content && ++seen === 3 && end(stream)) break;
      assert.ok(seen < 20, `${seen} pieces after the end`);
    }
  }
  const stream = await clientOf(model).chat.completions.create({ ...body, stream: true });
  for await (const _ of stream) stream.controller.abort();
  assert.ok((await openai(model).chat.completions.create(ASK)).choices.length, 'the engine goes on');
});

test('a body that is cancelled while a piece is waited for ends the work', async () => {
  let stopped = 0;
  const reading = playedModel((push, { options }) => {
    options.onPrefill({ done: 1, total: 9, cached: 0 });
    let stop;
    const promise = new Promise((resolve) => { stop = () => resolve(result('', { finishReason: 'aborted' })); });
    promise.then(() => { stopped++; });
    return { promise, stop };
  });
  const request = { method: 'POST', body: JSON.stringify({ messages, stream: true }) };
  const { body } = await openaiFetch(reading)('/v1/chat/completions', request);
  const reader = body.getReader();
  await reader.read();
  const waiting = reader.read();
  await reader.cancel();
  assert.deepEqual([stopped, (await waiting).done], [1, true]);
  const stream = (await openai(reading).chat.completions.create({ model: 'any', messages, stream: true })).toReadableStream().getReader();
  await stream.read();
  stream.read();
  await stream.cancel();
  assert.equal(stopped, 2);
});

test('a signal that lives longer than what it was given to holds nothing', async () => {
  const { signal } = new AbortController();
  const quick = fakeModel('So.');
  for (let i = 0; i < 3; i++) {
    await openai(quick).chat.completions.create({ model: 'any', messages }, { signal });
    await collect(await openai(quick).chat.completions.create({ model: 'any', messages, stream: true }, { signal }));
    await openai(quick).embeddings.create({ model: 'any', input: 'x' }, { signal });
    await openai(quick).chat.completions.create({ model: 'any', messages: 5 }, { signal }).catch(() => {});
  }
  await until(() => getEventListeners(signal, 'abort').length === 0, 2000);
});

test('a format that the reply keeps', async () => {
  const schema = z.object({ answer: z.enum(['yes', 'no']), certain: z.boolean() });
  const body = { ...ASK, max_tokens: 60, response_format: zodResponseFormat(schema, 'answer') };
  const { choices: [{ message }] } = await clientOf(model).chat.completions.parse(body);
  assert.deepEqual(schema.parse(message.parsed), message.parsed);
  assert.equal((await openai(model).chat.completions.create(body)).choices[0].message.content, message.content);
  for (const face of facesOf(model)) {
    const { choices } = await face.chat.completions.create({ ...ASK, seed: 2, max_tokens: 100, response_format: { type: 'json_object' } });
    assert.match(choices[0].message.content, /^\{/);
    if (choices[0].finish_reason === 'stop') JSON.parse(choices[0].message.content);
    const unheard = { ...ASK, response_format: { type: /** @type {const} */ ('json_schema'), json_schema: { name: 'x', schema: { type: 'string', contentEncoding: 'base64', format: 'idn-hostname' } } } };
    await assert.rejects(face.chat.completions.create(unheard), { status: 400, code: 'invalid_schema' });
  }
});

test('tools: the official client carries them out, whole and streamed; a call is the same in both faces', async () => {
  const run = { ...TOOL.function, parse: JSON.parse, function: ({ city }) => `Rain in ${city}.` };
  for (const stream of [false, true]) {
    const fake = fakeModel([CALL, 'Take a coat.']);
    const runner = clientOf(fake).chat.completions.runTools({ ...ASK, max_tokens: 40, stream: /** @type {any} */ (stream), tools: [{ type: 'function', function: run }] });
    assert.equal(await runner.finalContent(), 'Take a coat.');
    assert.deepEqual(fake.calls[1].input.slice(1), [
      { role: 'assistant', content: 'Wait.', toolCalls: [{ id: 'call_0', name: 'weather', arguments: '{"city":"Oslo"}' }] },
      { role: 'tool', content: 'Rain in Oslo.', toolCallId: 'call_0' },
    ]);
  }
  const whole = [];
  for (const face of facesOf(model)) {
    const { choices: [{ message, finish_reason: reason }] } = await face.chat.completions.create({ ...ASK, max_tokens: 100, tools: [TOOL], tool_choice: 'required' });
    const [{ id, type, function: { name, arguments: given } }] = message.tool_calls;
    assert.deepEqual([reason, type, name, typeof JSON.parse(given).city, typeof id], ['tool_calls', 'function', 'weather', 'string', 'string']);
    whole.push(given);
  }
  assert.equal(whole[0], whole[1]);
});

test('tools and a format in one request: calls, or an answer of that form', async () => {
  const schema = z.object({ answer: z.enum(['yes', 'no']) });
  const agent = fakeModel([{ toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] }, '{"answer":"yes"}']);
  const run = { ...TOOL.function, parse: JSON.parse, function: ({ city }) => `Rain in ${city}.` };
  const runner = clientOf(agent).chat.completions.runTools({ ...ASK, tools: [{ type: 'function', function: run }], response_format: zodResponseFormat(schema, 'answer'), parallel_tool_calls: false });
  assert.deepEqual((await runner.finalChatCompletion()).choices[0].message.parsed, { answer: 'yes' });
  assert.deepEqual(agent.calls.map(({ options: { tools, schema: asked, parallelToolCalls } }) => [tools.length, typeof asked, parallelToolCalls]), [[1, 'string', false], [1, 'string', false]]);
  for (const face of facesOf(model)) {
    for (const more of [{ tool_choice: /** @type {const} */ ('auto') }, { tool_choice: /** @type {const} */ ('required') }, { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'weather' } }] } } }]) {
      const { choices: [{ message, finish_reason: reason }] } = await face.chat.completions.create(/** @type {any} */ ({ ...ASK, ...more, max_tokens: 120, tools: [TOOL], response_format: zodResponseFormat(schema, 'answer'), parallel_tool_calls: false }));
      if (more.tool_choice !== 'auto') assert.equal(reason, 'tool_calls');
      if (reason === 'stop') assert.ok(schema.parse(JSON.parse(message.content)));
      else assert.deepEqual([message.content, message.tool_calls.length, typeof JSON.parse(message.tool_calls[0].function.arguments).city], [null, 1, 'string']);
    }
  }
});

test('LangChain: one call at most, an object by a schema, tools beside it, chunks of calls', async () => {
  const weather = tool(({ city }) => `Rain in ${city}.`, { name: 'weather', description: 'of a city', schema: z.object({ city: z.string().max(20) }) });
  const Answer = z.object({ answer: z.enum(['yes', 'no']) });
  const over = (one) => new ChatOpenAI({ model: 'any', apiKey: 'none', maxTokens: 120, temperature: 0, maxRetries: 0, configuration: { fetch: openaiFetch(one) } });
  const bound = over(model).bindTools([weather], { tool_choice: 'weather', parallel_tool_calls: false });
  const { tool_calls: [call, ...more], response_metadata: { finish_reason: reason } } = await bound.invoke([new HumanMessage('Oslo?')]);
  assert.deepEqual([call.name, typeof call.args.city, more.length, reason], ['weather', 'string', 0, 'tool_calls']);
  const pieces = await collect(await bound.stream('Oslo?'));
  const whole = pieces.reduce((all, piece) => all.concat(piece));
  assert.deepEqual(whole.tool_calls.map(({ name, args }) => [name, args]), [['weather', call.args]]);
  assert.ok(Answer.parse(await over(model).withStructuredOutput(Answer).invoke('Is the sea wet?')));
  const fake = fakeModel('{"answer":"no"}');
  const plain = await over(fake).invoke('x', { parallel_tool_calls: false });
  assert.equal(plain.text, '{"answer":"no"}', 'without tools too');
});

test('a call that max_tokens cuts off is no text, and comes back in the next request', async () => {
  const begun = await model.tokenize('<tool_call>\n{"name": "weather", "arguments": {"city":');
  const body = { ...ASK, max_tokens: begun.length + 3, tools: [TOOL], tool_choice: /** @type {const} */ ('required') };
  for (const face of facesOf(model)) {
    const { choices: [{ message, finish_reason: reason }] } = await face.chat.completions.create(body);
    const [{ id, function: { name, arguments: given } }] = message.tool_calls;
    assert.deepEqual([message.content, reason, name, /^\{"city":/.test(given)], [null, 'length', 'weather', true]);
    assert.throws(() => JSON.parse(given));
    const chunks = await collect(await face.chat.completions.create({ ...body, stream: true }));
    const deltas = chunks.flatMap(({ choices: [{ delta }] }) => delta.tool_calls ?? []);
    assert.deepEqual([textsOf(chunks), deltas.map((one) => one.function.arguments).join(''), chunks.at(-1).choices[0].finish_reason], [[''], given, 'length']);
    const next = await face.chat.completions.create(/** @type {any} */ ({ ...ASK, messages: [...messages, message, { role: 'tool', tool_call_id: id, content: 'It was cut off.' }] }));
    assert.equal(next.choices.length, 1);
  }
});

test('tools of the type custom, and functions, by the official client', async () => {
  const custom = { type: /** @type {const} */ ('custom'), custom: { name: 'write', format: { type: /** @type {const} */ ('grammar'), grammar: { syntax: /** @type {const} */ ('regex'), definition: '[a-c]{2,5}' } } } };
  const old = { ...ASK, max_tokens: 120, functions: [TOOL.function], function_call: { name: 'weather' } };
  for (const face of facesOf(model)) {
    const body = { ...ASK, max_tokens: 120, tools: [custom], tool_choice: /** @type {const} */ ('required') };
    const { choices: [{ message: { tool_calls: [call] } }] } = await face.chat.completions.create(body);
    assert.match(call.custom.input, /^[a-c]{2,5}$/);
    const chunks = await collect(await face.chat.completions.create({ ...body, stream: true }));
    assert.equal(chunks.flatMap(({ choices: [{ delta }] }) => delta.tool_calls ?? []).map((one) => /** @type {any} */ (one).custom.input).join(''), call.custom.input);
    const { choices: [{ message, finish_reason: reason }] } = await face.chat.completions.create(old);
    assert.deepEqual([reason, message.function_call.name, typeof JSON.parse(message.function_call.arguments).city], ['function_call', 'weather', 'string']);
    const next = { ...ASK, messages: [...messages, message, { role: 'function', name: 'weather', content: 'Rain' }] };
    assert.equal((await face.chat.completions.create(/** @type {any} */ (next))).choices.length, 1);
  }
});

test('what was said no to, limits that are none, unknown details, ids of requests, tokens of thinking', async () => {
  const fake = fakeModel({ thinking: 'Hm, hm.', text: 'Yes.' }, { vision: /** @type {any} */ ({}) });
  const image = (detail) => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail } });
  for (const face of facesOf(fake)) {
    fake.calls.length = 0;
    const said = [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }, { role: 'assistant', content: null, refusal: 'Never.' }];
    const body = { model: 'any', max_tokens: -1, messages: [{ role: 'user', content: ['original', 'auto', 'finest'].map(image) }, ...said, ...messages] };
    const answer = await face.chat.completions.create(/** @type {any} */ (body));
    const [{ input, options }] = fake.calls;
    assert.deepEqual([input[0].content.map(({ detail }) => detail), input[1].content, input[2].content, options.maxTokens], [['high', 'auto', 'auto'], 'No.', 'Never.', undefined]);
    assert.deepEqual(answer.usage.completion_tokens_details, { reasoning_tokens: 2 });
    await face.chat.completions.create({ ...ASK, parallel_tool_calls: false });
  }
  assert.match((await clientOf(fake).chat.completions.create(ASK))._request_id, /^req_[0-9a-f]{24}$/);
  const headers = { 'X-Request-Id': 'mine-1' };
  for (const [path, status] of [['/v1/models', 200], ['/nowhere', 404]]) {
    const response = await openaiFetch(fake)(path, { headers });
    assert.deepEqual([response.status, response.headers.get('x-request-id')], [status, 'mine-1']);
  }
});

test('completions of one prompt and of several', async () => {
  const body = { model: 'any', prompt: ['Once upon a time', 'Long ago, a small'], temperature: 0, max_tokens: 6, logprobs: 2 };
  const answers = [];
  for (const face of facesOf(model)) answers.push(await face.completions.create(body));
  assert.deepEqual(same(answers[0]), same(answers[1]));
  const [{ object, choices }] = answers;
  assert.equal(object, 'text_completion');
  for (const [i, { index, text, logprobs }] of choices.entries()) {
    assert.equal(index, i);
    assert.equal(text, (await model.complete(body.prompt[i], { temperature: 0, maxTokens: 6 }).result).text);
    assert.equal(logprobs.tokens.join(''), text);
  }
  for (const face of facesOf(model)) {
    const chunks = await collect(await face.completions.create({ ...body, logprobs: undefined, stream: true }));
    assert.deepEqual(textsOf(chunks), choices.map(({ text }) => text));
    const [ids] = [Array.from(await model.tokenize('Once upon a time'))];
    assert.equal((await face.completions.create({ ...body, prompt: ids })).choices[0].text, choices[0].text);
  }
});

test('vectors as numbers and as bytes, ranks, the list of models', async () => {
  const input = ['an owl', 'a hand mill'];
  const { vectors, tokens } = await model.embed(input);
  for (const face of facesOf(model)) {
    const { data, usage, object } = await face.embeddings.create({ model: 'any', input, encoding_format: 'float' });
    assert.deepEqual([object, usage], ['list', { prompt_tokens: tokens, total_tokens: tokens }]);
    assert.deepEqual(data.map(({ embedding }) => embedding), vectors.map((vector) => Array.from(vector)));
    const { data: [{ embedding }] } = await face.embeddings.create({ model: 'any', input: 'an owl', encoding_format: 'base64' });
    const bytes = Buffer.from(/** @type {any} */ (embedding), 'base64');
    assert.deepEqual(new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), vectors[0]);
    const { data: [short] } = await face.embeddings.create({ model: 'any', input: 'an owl', dimensions: 8 });
    assert.equal(short.embedding.length, 8, 'the official client asks for bytes and makes numbers of them');
    const { data: [listed] } = await face.models.list();
    assert.deepEqual([listed.id, listed.owned_by, (await face.models.retrieve('any')).id], [model.info.name, 'quern', model.info.name]);
  }
  const fake = fakeModel('x');
  const query = { query: 'hand mill', documents: input, top_n: 1, return_documents: true };
  const ranking = await openai(fake).rerank(query);
  assert.deepEqual(ranking.results, [{ index: 1, relevance_score: 1, document: { text: 'a hand mill' } }]);
  assert.deepEqual(await clientOf(fake).post('/rerank', { body: query }), ranking);
});

test('failures are of the official classes, with the request\'s own names', async () => {
  for (const [more, param, code] of [[{ top_p: 9 }, 'top_p', 'invalid_value'], [{ messages: [] }, 'messages', 'invalid_value'], [{ functions: [{}] }, 'functions[0].name', 'invalid_value'], [{ temperature: 2.5 }, 'temperature', 'decimal_above_max_value'], [{ temperature: -1 }, 'temperature', 'decimal_below_min_value'], [{ modalities: ['audio'] }, 'modalities', 'unsupported_parameter']]) {
    const [official, own] = await Promise.all(facesOf(model).map((face) => face.chat.completions.create({ ...ASK, ...more }).then(() => null, (error) => error)));
    assert.ok(official instanceof OpenAI.BadRequestError && own instanceof APIError);
    for (const { status, param: named, code: said, type } of [official, own]) assert.deepEqual([status, named, said, type], [400, param, code, 'invalid_request_error']);
    assert.equal(own.message, official.message);
    assert.ok(own.cause instanceof QuernError);
  }
  await assert.rejects(clientOf(model).get('/files'), (error) => error instanceof OpenAI.NotFoundError && error.code === 'not_found');
  await assert.rejects(clientOf(model).get('/chat/completions'), { status: 405, code: 'method_not_allowed' });
  const long = fakeModel('x', { contextSize: 2 });
  for (const face of facesOf(long)) await assert.rejects(face.chat.completions.create({ ...ASK, messages: [{ role: 'user', content: 'a b c' }] }), { code: 'context_length_exceeded', param: 'messages' });
  const busy = fakeModel([new QuernError('use/busy', 'Too many.'), 'There.']);
  assert.equal((await clientOf(busy, { maxRetries: 1 }).chat.completions.create(ASK)).choices[0].message.content, 'There.', 'what may pass is asked again');
  const broken = fakeModel([new QuernError('model/template', 'It fails.')]);
  await assert.rejects(clientOf(broken, { maxRetries: 3 }).chat.completions.create(ASK), { status: 500, code: 'model_failed' });
  for (const face of facesOf(fakeModel({ text: 'So', error: new QuernError('engine/trap', 'Over.') }))) {
    const stream = await face.chat.completions.create({ ...ASK, stream: true });
    await assert.rejects(collect(stream), { code: 'engine_failed' });
  }
});

test('a fetch takes what fetch takes', async () => {
  const fake = fakeModel('Hello!');
  const ask = openaiFetch(fake, { name: 'mine' });
  const body = JSON.stringify({ messages });
  const of = async (...args) => (await ask(...args)).json();
  const path = 'https://model.invalid/v1/chat/completions';
  for (const args of [[new Request(path, { method: 'POST', body })], [new URL(path), { method: 'post', body }], ['/chat/completions', { method: 'POST', body: new Blob([body]) }],
    [new Request(path), { method: 'POST', body: new TextEncoder().encode(body) }]]) {
    const { model: name, choices } = await of(...args);
    assert.deepEqual([name, choices[0].message.content], ['mine', 'Hello!']);
  }
  assert.equal((await ask(path, { method: 'POST', body: '{' })).status, 400);
  assert.equal((await of(path, { method: 'POST', body: '[]' })).error.code, 'invalid_value');
  assert.equal((await of('/v1/models')).data[0].id, 'mine');
  const abort = new AbortController();
  abort.abort(new Error('enough'));
  await assert.rejects(ask(new Request(path, { method: 'POST', body, signal: abort.signal })), /enough/);
});
