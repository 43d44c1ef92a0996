// SPDX-License-Identifier: MIT
// What `quern serve` says to clients of other APIs: Anthropic's /v1/messages, Ollama's /api/, llama-server's /completion. Requests are written out here as
// those clients send them, and answers read as they read them; the clients themselves ask in test:places.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fakeModel } from '../../../js/testing.js';
import { dataOf, loadDemo, playedModel, result, startServer } from '../support/serve-host.mjs';

const SCHEMA = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } }, required: ['city'] };
const CALL = { thinking: 'Hm.', text: 'Wait.', toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] };
const HI = [{ role: 'user', content: 'Hi' }];
const PIXEL = 'iVBORw0KGgo=';

let model;
let demo;
const hosts = [];

/** A server that ends with the tests. */
async function serverOf(options) {
  const host = await startServer(options);
  hosts.push(host);
  return host;
}

before(async () => {
  model = await loadDemo();
  demo = await serverOf({ model });
});
after(() => Promise.all(hosts.map((host) => host.end())));

/** A server whose model says what a script has, and tells what it was asked. */
async function scripted(script) {
  const fake = fakeModel(script);
  const asked = [];
  const told = (kind) => (input, options) => { asked.push({ input, options }); return fake[kind](input, options); };
  const host = await serverOf({ model: playedModel(() => {}, { chat: told('chat'), complete: told('complete') }) });
  return { ...host, asked };
}

async function send(host, path, body, { method = 'POST', headers = {} } = {}) {
  const init = { method, headers: { 'content-type': 'application/json', ...headers }, ...(method === 'POST' && { body: JSON.stringify(body) }) };
  const answer = await fetch(host.base + path, init);
  return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() };
}

async function post(host, path, body) {
  const { status, text } = await send(host, path, body);
  return { status, ...JSON.parse(text) };
}

/** What a stream tells: events, or lines. */
async function told(host, path, body) {
  const { status, type, text } = await send(host, path, body);
  assert.equal(status, 200, text);
  if (type.startsWith('text/event-stream')) return { type, pieces: dataOf(text), names: [...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name) };
  return { type, pieces: text.trimEnd().split('\n').map((line) => JSON.parse(line)) };
}

// --- Anthropic's ---

const TOOLS = [{ name: 'weather', description: 'of a city', input_schema: SCHEMA }];
const MESSAGE = { model: 'any', max_tokens: 50, messages: HI };

test('/v1/messages: blocks of thinking, text and uses of tools, and results that go back', async () => {
  const host = await scripted([CALL, 'Cold.', CALL, CALL]);
  const first = await post(host, '/v1/messages', { ...MESSAGE, system: [{ type: 'text', text: 'Be brief.' }], tools: TOOLS, thinking: { type: 'enabled', budget_tokens: 1024 }, stop_sequences: ['X'], top_k: 5 });
  const [thinking, text, use] = first.content;
  assert.deepEqual([first.type, first.role, first.model, first.stop_reason, first.content.length], ['message', 'assistant', 'demo', 'tool_use', 3]);
  assert.deepEqual([thinking.thinking, text.text, use.name, use.input], ['Hm.', 'Wait.', 'weather', { city: 'Oslo' }]);
  assert.ok(thinking.signature.length > 0, 'clients send back only what is signed');
  const { input, options } = host.asked[0];
  assert.deepEqual(input, [{ role: 'system', content: 'Be brief.' }, ...HI]);
  assert.deepEqual([options.maxTokens, options.thinking, options.stop, options.topK, options.tools[0].parameters], [50, true, ['X'], 5, SCHEMA]);
  const content = [{ type: 'tool_result', tool_use_id: use.id, is_error: true, content: [{ type: 'text', text: 'gone' }] }, { type: 'text', text: 'So?' }];
  const second = await post(host, '/v1/messages', { ...MESSAGE, tools: TOOLS, tool_choice: { type: 'none' }, messages: [...HI, { role: 'assistant', content: first.content }, { role: 'user', content }] });
  assert.deepEqual([second.content, second.stop_reason], [[{ type: 'text', text: 'Cold.' }], 'end_turn']);
  assert.deepEqual(host.asked[1].input.slice(1), [
    { role: 'assistant', content: 'Wait.', reasoning_content: 'Hm.', toolCalls: [{ id: use.id, name: 'weather', arguments: { city: 'Oslo' } }] },
    { role: 'tool', content: 'Error: gone', toolCallId: use.id }, { role: 'user', content: 'So?' },
  ]);
  await post(host, '/v1/messages', { ...MESSAGE, tools: TOOLS, tool_choice: { type: 'any', disable_parallel_tool_use: true } });
  await post(host, '/v1/messages', { ...MESSAGE, tools: TOOLS, tool_choice: { type: 'tool', name: 'weather' } });
  const choices = host.asked.map(({ options: { toolChoice, parallelToolCalls } }) => [toolChoice, parallelToolCalls]);
  assert.deepEqual(choices, [[undefined, undefined], ['none', undefined], ['required', false], [{ name: 'weather' }, undefined]]);
});

test('/v1/messages: the events of a stream, each by its name', async () => {
  const host = await scripted([CALL]);
  const { pieces, names } = await told(host, '/v1/messages', { ...MESSAGE, tools: TOOLS, stream: true });
  assert.deepEqual(pieces.map(({ type }) => type), names);
  const block = ['content_block_start', 'content_block_delta', 'content_block_stop'];
  assert.deepEqual(names, ['message_start', block[0], block[1], block[1], block[2], ...block, ...block, 'message_delta', 'message_stop']);
  const deltas = pieces.filter(({ delta, index }) => delta && index !== undefined).map(({ index, delta }) => [index, delta]);
  assert.deepEqual(deltas.map(([index, { type }]) => `${index} ${type}`), ['0 thinking_delta', '0 signature_delta', '1 text_delta', '2 input_json_delta']);
  assert.deepEqual([pieces[0].message.content, JSON.parse(deltas[3][1].partial_json)], [[], { city: 'Oslo' }]);
  const last = pieces.at(-2);
  assert.deepEqual([last.delta, last.usage.output_tokens > 0], [{ stop_reason: 'tool_use', stop_sequence: null }, true]);
});

test('/v1/messages: what the model itself says, how it ended, and how much of the prompt was known', async () => {
  const said = await model.chat(HI, { temperature: 0, maxTokens: 9 }).result;
  const asked = { ...MESSAGE, temperature: 0 };
  const whole = await post(demo, '/v1/messages', { ...asked, max_tokens: 9 });
  assert.deepEqual([whole.content[0].text, whole.stop_reason, whole.stop_sequence], [said.text, said.finishReason === 'length' ? 'max_tokens' : 'end_turn', null]);
  const { input_tokens: fresh, cache_read_input_tokens: known, output_tokens: written } = whole.usage;
  assert.deepEqual([fresh + known, written], [said.usage.promptTokens, said.usage.completionTokens]);
  const { pieces } = await told(demo, '/v1/messages', { ...asked, max_tokens: 9, stream: true });
  assert.deepEqual(pieces.filter(({ delta }) => delta?.text).map(({ delta }) => delta.text).join(''), said.text);
  const { usage: start } = pieces[0].message;
  assert.equal(start.input_tokens + start.cache_read_input_tokens, said.usage.promptTokens, 'known when it begins');
  const letter = said.text[3];
  const cut = await post(demo, '/v1/messages', { ...asked, stop_sequences: ['never', letter] });
  assert.deepEqual([cut.stop_reason, cut.stop_sequence, cut.content[0]?.text ?? ''], ['stop_sequence', letter, said.text.slice(0, said.text.indexOf(letter))]);
  const goesOn = await post(demo, '/v1/messages', { ...asked, max_tokens: 4, messages: [...HI, { role: 'assistant', content: said.text.slice(0, 5) }] });
  const own = await model.chat([...HI, { role: 'assistant', content: said.text.slice(0, 5) }], { temperature: 0, maxTokens: 4, continue: true }).result;
  assert.equal(goesOn.content[0].text, own.text);
  const format = { type: 'json_schema', schema: { ...SCHEMA, additionalProperties: false } };
  const json = await post(demo, '/v1/messages', { ...asked, output_config: { format } });
  assert.equal(typeof JSON.parse(json.content[0].text).city, 'string');
});

test('a call that is cut off is no text, in any of them', async () => {
  const schema = { type: 'object', properties: { text: { type: 'string', minLength: 40, maxLength: 60 } }, required: ['text'] };
  const cut = { ...MESSAGE, temperature: 0, max_tokens: 40, tools: [{ name: 'weather', input_schema: schema }], tool_choice: { type: 'any' } };
  const { content, stop_reason: reason } = await post(demo, '/v1/messages', cut);
  assert.deepEqual([content.map(({ type }) => type), content[0].input, reason], [['tool_use'], {}, 'max_tokens']);
  const { pieces } = await told(demo, '/v1/messages', { ...cut, stream: true });
  assert.equal(pieces.filter(({ type }) => type === 'content_block_start').length, 1);
});

test('/v1/messages: refusals in its words and its shape, at the door too', async () => {
  const rows = [
    [{ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools[0].type'], [{ max_tokens: 'a' }, 'max_tokens'], [{ messages: [] }, 'messages'],
    [{ tools: [{ name: 'a', input_schema: 5 }] }, 'tools[0].input_schema'], [{ stop_sequences: 5 }, 'stop_sequences'], [{ tool_choice: { type: 'one' } }, 'tool_choice.type'],
    [{ messages: [{ role: 'user', content: [{ type: 'document' }] }] }, 'messages[0].content[0].type'], [{ messages: [{ role: 'system', content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'http://x' } }] }] }, 'messages[0].content[0].source.type'],
    [{ messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x' }, { type: 'text', text: 5 }] }] }, 'messages[0].content[1].text'],
    [{ messages: [...HI, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x', content: 'y' }] }] }, 'messages[1].content[0]'],
    [{ mcp_servers: [{}] }, 'mcp_servers'], [{ thinking: { type: 'much' } }, 'thinking.type'],
  ];
  for (const [more, param] of rows) {
    const { status, type, error } = await post(demo, '/v1/messages', { ...MESSAGE, ...more });
    assert.deepEqual([status, type, error.type, error.param], [400, 'error', 'invalid_request_error', param], JSON.stringify(more));
    assert.ok(error.message.startsWith(param), error.message);
  }
  const host = await serverOf({ model: playedModel(() => ({ promise: Promise.resolve(result('x')) })), rules: { keys: ['one'] }, site: { onlyName: true } });
  const locked = JSON.parse((await send(host, '/v1/messages', MESSAGE)).text);
  assert.deepEqual([locked.type, locked.error.type], ['error', 'authentication_error']);
  const headers = { 'x-api-key': 'one', 'anthropic-version': '2023-06-01' };
  assert.equal((await send(host, '/v1/messages', { ...MESSAGE, model: 'demo' }, { headers })).status, 200);
  const other = JSON.parse((await send(host, '/v1/messages', { ...MESSAGE, model: 'claude' }, { headers })).text);
  assert.deepEqual([other.error.type, other.error.code], ['not_found_error', 'model_not_found']);
});

test('images come in base64, with a kind or without', async () => {
  const host = await scripted(['a', 'b', 'c']);
  await post(host, '/v1/messages', { ...MESSAGE, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }, { type: 'text', text: 'What?' }] }] });
  await post(host, '/api/chat', { messages: [{ role: 'user', content: 'What?', images: [PIXEL] }], stream: false });
  await post(host, '/api/generate', { prompt: 'What?', images: [PIXEL], stream: false });
  const [messages, ...ollama] = host.asked.map(({ input: [{ content }] }) => content);
  assert.deepEqual(messages, [{ type: 'image', image: `data:image/png;base64,${PIXEL}` }, { type: 'text', text: 'What?' }]);
  for (const one of ollama) assert.deepEqual([one[0].type, one[0].image.split(',')[1], one[1]], ['image', PIXEL, { type: 'text', text: 'What?' }]);
});

test('tokens of a request are counted as its usage would say', async () => {
  const request = { ...MESSAGE, max_tokens: 1, system: 'Be brief.', tools: TOOLS };
  const { usage } = await post(demo, '/v1/messages', request);
  const { input_tokens: count } = await post(demo, '/v1/messages/count_tokens', request);
  assert.equal(count, usage.input_tokens + usage.cache_read_input_tokens);
  const first = await post(demo, '/v1/responses', { input: 'Hi', max_output_tokens: 3 });
  const next = { input: 'And?', previous_response_id: first.id, max_output_tokens: 1 };
  const counted = await post(demo, '/v1/responses/input_tokens', next);
  assert.deepEqual([counted.object, counted.input_tokens], ['response.input_tokens', (await post(demo, '/v1/responses', next)).usage.input_tokens]);
  const refused = await post(demo, '/v1/messages/count_tokens', { ...MESSAGE, messages: [{ role: 'user', content: 'x'.repeat(2 ** 20 + 1) }] });
  assert.deepEqual([refused.status, refused.error.param], [400, 'messages']);
});

test('what a request repeats by the hundred thousand takes time by its length', async () => {
  const many = (n, one) => Array.from({ length: n }, (_, i) => one(i));
  const call = { function: { name: 'a' } };
  const kept = await post(demo, '/v1/responses', { input: 'Hi', max_output_tokens: 3 });
  const rows = [
    ['/v1/responses', { input: many(40_000, (i) => ({ type: 'function_call', call_id: `${i}`, name: 'a', arguments: '{}' })) }],
    ['/v1/responses', { input: [{ type: 'function_call', call_id: 'a', name: 'a', arguments: '{}' }, ...many(60_000, (i) => (
      i % 2 ? { role: 'assistant', content: 'x' } : { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'y' }] }))] }],
    ['/v1/responses', { input: many(60_000, () => ({ type: 'item_reference', id: kept.output[0].id })) }],
    ['/v1/responses', { input: [{ role: 'user', content: many(100_000, () => ({ type: 'input_text', text: '' })) }], metadata: [] }],
    ['/api/chat', { messages: [{ role: 'assistant', tool_calls: many(60_000, () => call) }, ...many(60_000, () => ({ role: 'tool', tool_name: 'a' }))] }],
    ['/v1/messages', { messages: [{ role: 'user', content: many(90_000, () => ({ type: 'tool_result', content: '' })) }] }],
    ['/v1/messages', { messages: many(60_000, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: [{ type: 'text', text: 5 }] })) }],
    ['/completion', { prompt: many(500_000, () => 1), logit_bias: many(100_000, () => [1, 1]) }],
  ];
  for (const [path, body] of rows) {
    const start = performance.now();
    const { status } = await post(demo, path, body);
    assert.ok(status >= 400 && status < 500, `${path} ${status}`);
    assert.ok(performance.now() - start < 20_000, `${path} took ${performance.now() - start} ms`);
  }
});

// --- Ollama's ---

const OLLAMA_TOOLS = [{ type: 'function', function: { name: 'weather', description: 'of a city', parameters: SCHEMA } }];

test('/api/chat: lines unless stream is false, with thinking, calls, and results by names', async () => {
  const host = await scripted([CALL, CALL, 'Cold.']);
  const body = { model: 'demo:latest', messages: HI, tools: OLLAMA_TOOLS, think: true, keep_alive: '5m', options: { num_predict: 9, num_ctx: 4096, temperature: 0 } };
  const { type, pieces } = await told(host, '/api/chat', body);
  assert.equal(type, 'application/x-ndjson');
  assert.deepEqual(pieces.map(({ done }) => done), [false, false, false, true]);
  const [thinking, text, call, end] = pieces;
  assert.deepEqual([thinking.message.thinking, text.message.content, call.message.tool_calls[0].function], ['Hm.', 'Wait.', { index: 0, name: 'weather', arguments: { city: 'Oslo' } }]);
  assert.deepEqual([end.done_reason, end.message.content, end.prompt_eval_count > 0, end.eval_count > 0], ['stop', '', true, true]);
  const whole = await post(host, '/api/chat', { ...body, stream: false });
  assert.deepEqual([whole.message.content, whole.message.thinking, whole.message.tool_calls[0].function.arguments, whole.done], ['Wait.', 'Hm.', { city: 'Oslo' }, true]);
  const { options } = host.asked[0];
  assert.deepEqual([options.maxTokens, options.thinking, options.temperature, options.tools.length], [9, true, 0, 1]);
  const call2 = { function: { name: 'other', arguments: {} } };
  const messages = [...HI, { role: 'assistant', content: '', tool_calls: [call2, { function: whole.message.tool_calls[0].function }] }, { role: 'tool', tool_name: 'weather', content: '-3' }, { role: 'tool', content: 'x' }];
  await post(host, '/api/chat', { messages, stream: false });
  const [, { toolCalls }, first, second] = host.asked[2].input;
  assert.deepEqual([first.toolCallId, second.toolCallId], [toolCalls[1].id, toolCalls[0].id]);
});

test('/api/chat and /api/generate: what the model says, formats, raw prompts, and who only asks whether it is there', async () => {
  const options = { temperature: 0, num_predict: 8 };
  const said = await model.chat(HI, { temperature: 0, maxTokens: 8 }).result;
  const chat = await post(demo, '/api/chat', { messages: HI, options, stream: false });
  assert.deepEqual([chat.message.content, chat.done_reason, chat.eval_count], [said.text, 'length', 8]);
  assert.ok(chat.total_duration >= chat.prompt_eval_duration + chat.eval_duration && chat.eval_duration > 0);
  const { pieces } = await told(demo, '/api/generate', { prompt: 'Hi', options });
  assert.equal(pieces.map(({ response }) => response).join(''), said.text);
  const schema = { ...SCHEMA, additionalProperties: false };
  for (const [path, body, text] of [['/api/chat', { messages: HI }, (a) => a.message.content], ['/api/generate', { prompt: 'Hi' }, (a) => a.response]]) {
    assert.equal(typeof JSON.parse(text(await post(demo, path, { ...body, format: schema, stream: false, options: { temperature: 0 } }))).city, 'string');
  }
  const raw = await post(demo, '/api/generate', { prompt: 'The mill', raw: true, stream: false, options: { ...options, stop: ['.'] } });
  const own = await model.complete('The mill', { temperature: 0, maxTokens: 8, stop: '.' }).result;
  assert.equal(raw.response, own.text);
  for (const path of ['/api/chat', '/api/generate']) {
    const there = await post(demo, path, { model: 'demo', stream: false });
    assert.deepEqual([there.status, there.done, there.done_reason], [200, true, 'load']);
    assert.equal((await told(demo, path, { model: 'demo' })).pieces.length, 1);
  }
});

test("Ollama's vectors, and what is known of the model", async () => {
  const { vectors: [wanted] } = await model.embed(['a']);
  const { embeddings, prompt_eval_count: count } = await post(demo, '/api/embed', { input: ['a', 'b'] });
  assert.deepEqual([embeddings.length, embeddings[0], count > 0], [2, [...wanted], true]);
  assert.deepEqual((await post(demo, '/api/embed', { input: 'a', dimensions: 8 })).embeddings[0].length, 8);
  assert.deepEqual((await post(demo, '/api/embeddings', { prompt: 'a' })).embedding, [...wanted]);
  const long = 'a b c d '.repeat(1000);
  assert.equal((await post(demo, '/api/embed', { input: ['a', long], truncate: false })).status, 400);
  assert.equal((await post(demo, '/api/embed', { input: long })).status, 200);
  const get = async (path) => JSON.parse((await send(demo, path, undefined, { method: 'GET' })).text);
  const [{ name, size, digest, details }] = (await get('/api/tags')).models;
  assert.deepEqual([name, size, details.family, details.quantization_level, digest.length], ['demo', model.info.fileBytes, 'qwen3', 'Q8_0', 64]);
  assert.equal((await get('/api/ps')).models[0].context_length, model.info.contextSize);
  assert.match((await get('/api/version')).version, /^\d+\.\d+\.\d+$/);
  const shown = await post(demo, '/api/show', { model: 'demo' });
  assert.deepEqual([shown.capabilities.includes('tools'), shown.model_info['qwen3.context_length'], shown.template], [true, model.info.contextLength, 'template']);
  assert.equal((await send(demo, '/', undefined, { method: 'GET' })).status, 200);
});

test("Ollama's refusals: its words, its shape", async () => {
  const rows = [
    ['/api/chat', { options: { temperature: 'x' } }, 'options.temperature'], ['/api/chat', { options: { num_predict: 'x' } }, 'options.num_predict'], ['/api/chat', { format: 'xml' }, 'format'],
    ['/api/chat', { options: { mirostat: 2 } }, 'mirostat'], ['/api/chat', { tools: 5 }, 'tools'], ['/api/chat', { messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    ['/api/chat', { messages: [{ role: 'user', content: 'x', images: [5] }] }, 'messages[0].images'], ['/api/chat', { options: 5 }, 'options'],
    ['/api/generate', { template: 'x' }, 'template'], ['/api/generate', { context: [1] }, 'context'], ['/api/generate', { prompt: 5 }, 'prompt'],
    ['/api/embed', { input: 5 }, 'input'], ['/api/embeddings', { prompt: 5 }, 'prompt'], ['/api/chat', { stream: 'x' }, 'stream'],
  ];
  for (const [path, more, param] of rows) {
    const { status, error, code, ...rest } = await post(demo, path, { messages: HI, prompt: 'x', ...more });
    assert.deepEqual([status, typeof error, typeof code], [400, 'string', 'string'], JSON.stringify(more));
    assert.ok(error.includes(param) || rest.param?.includes(param), `${error} ${JSON.stringify(rest)}`);
  }
  assert.equal((await post(demo, '/api/chat', { messages: HI, format: { type: 'strong' } })).code, 'invalid_schema');
  const gone = await post(demo, '/api/pull', { model: 'x' });
  assert.deepEqual([gone.status, typeof gone.error, gone.code], [404, 'string', 'not_found']);
  const host = await serverOf({ model: playedModel(() => {}), site: { onlyName: true } });
  for (const name of ['x', 'demo:7b']) assert.equal((await post(host, '/api/show', { model: name })).code, 'model_not_found');
  assert.equal((await post(host, '/api/show', { name: 'demo:latest' })).status, 200);
});

test('a failure in the middle is a piece of its API', async () => {
  const play = (push, { options }) => {
    options.onPrefill({ done: 3, total: 3, cached: 0 });
    push({ type: 'text', text: 'half' });
    return { promise: new Promise((_, reject) => { setTimeout(reject, 50, new Error('lost')); }) };
  };
  const host = await serverOf({ model: playedModel(play) });
  const { pieces: events, names } = await told(host, '/v1/messages', { ...MESSAGE, stream: true });
  assert.deepEqual([names.at(-1), events.at(-1).error.type], ['error', 'api_error']);
  const { pieces: lines } = await told(host, '/api/chat', { messages: HI });
  assert.deepEqual([lines.at(-1).code, typeof lines.at(-1).error], ['engine_failed', 'string']);
});

// --- llama-server's own ---

test('/completion: fields and answers of its own, whole and in pieces', async () => {
  const said = await model.complete('The mill', { temperature: 0, maxTokens: 6, stop: '.', logprobs: 1 }).result;
  const body = { prompt: 'The mill', n_predict: 6, temperature: 0, stop: ['.'], n_probs: 1, cache_prompt: true };
  const whole = await post(demo, '/completion', body);
  assert.deepEqual([whole.content, whole.stop, whole.stop_type, whole.stopping_word], [said.text, true, said.stopText ? 'word' : 'limit', said.stopText ?? '']);
  assert.deepEqual([whole.tokens_predicted, whole.tokens_evaluated, whole.timings.predicted_n], [said.usage.completionTokens, said.usage.promptTokens, said.usage.completionTokens]);
  assert.ok(whole.timings.predicted_ms > 0 && whole.timings.cache_n + whole.timings.prompt_n === said.usage.promptTokens);
  assert.deepEqual(whole.completion_probabilities.map(({ id, top_logprobs: top }) => [id, top.length]), said.logprobs.map(({ id }) => [id, 1]));
  const { pieces } = await told(demo, '/completion', { ...body, stream: true });
  assert.equal(pieces.map(({ content }) => content).join(''), said.text);
  assert.deepEqual(pieces.map(({ stop }) => stop), pieces.map((_, i) => i === pieces.length - 1));
  const ids = await model.tokenize('The mill');
  assert.equal((await post(demo, '/completion', { ...body, prompt: ids })).content, said.text);
  assert.match((await post(demo, '/completion', { prompt: 'a', grammar: 'root ::= "x" [0-9]', n_predict: -1 })).content, /^x\d$/);
  const schema = await post(demo, '/completion', { prompt: 'a', json_schema: { type: 'integer', minimum: 1, maximum: 3 }, logit_bias: [[5, false], [6, 1.5]] });
  assert.ok([1, 2, 3].includes(JSON.parse(schema.content)));
  const rows = [[{ prompt: ['a', 'b'] }, 'prompt'], [{ n_predict: 'x' }, 'n_predict'], [{ mirostat: 2 }, 'mirostat'], [{ logit_bias: [5] }, 'logit_bias'], [{ n_probs: -1 }, 'n_probs']];
  for (const [more, param] of rows) assert.deepEqual([(await post(demo, '/completion', { prompt: 'a', n_predict: 1, ...more })).error?.param], [param]);
});

test('chats tell timings where they are asked for them', async () => {
  const body = { messages: HI, max_tokens: 4, temperature: 0 };
  assert.equal((await post(demo, '/v1/chat/completions', body)).timings, undefined);
  const { timings, usage } = await post(demo, '/v1/chat/completions', { ...body, timings_per_token: true });
  assert.deepEqual([timings.predicted_n, timings.prompt_n + timings.cache_n], [usage.completion_tokens, usage.prompt_tokens]);
  const { pieces } = await told(demo, '/v1/chat/completions', { ...body, timings_per_token: true, stream: true });
  assert.deepEqual(pieces.filter((piece) => piece.timings).map(({ timings: { predicted_n: n } }) => n), [4], 'with the last piece');
});
