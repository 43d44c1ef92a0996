// SPDX-License-Identifier: MIT
// `quern serve` as the official client of the OpenAI API sees it: objects and streams, several choices, seeds, stops, leaving early, the
// classes of errors after the client's own repetitions; and what llama-server's clients ask for.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { Metrics } from '../../../js/cli/serve-metrics.js';
import { ServedModel } from '../../../js/cli/serve-model.js';
import { QuernError } from '../../../js/shared/errors.js';
import { collect, until } from '../support/helper.mjs';
import { dataOf, endless, loadDemo, playedModel, result, startServer } from '../support/serve-host.mjs';
import { soon } from '../support/soon.mjs';

const QUESTION = [{ role: 'user', content: 'What is the capital of Kenya?' }];
const SEEDED = { model: 'any', messages: QUESTION, seed: 7, temperature: 1.2, max_tokens: 40 };

let model;
let server;
let client;
before(async () => {
  model = await loadDemo();
  server = await startServer({ model, site: { slots: true } });
  client = new OpenAI({ baseURL: server.url, apiKey: 'none' });
});
after(() => server?.end());

/** What the model itself says. */
const own = (options, messages = QUESTION) => model.chat(messages, options).result;

test('an answer is what the model says, with usage and fingerprint', async () => {
  const answer = await client.chat.completions.create({ ...SEEDED });
  const { text, usage } = await own({ seed: 7, temperature: 1.2, maxTokens: 40 });
  assert.match(answer.id, /^chatcmpl-[0-9a-f]{24}$/);
  assert.match(answer.system_fingerprint, /^quern-1\.2\.3-[0-9a-f]{8}$/);
  assert.deepEqual([answer.object, answer.model, answer.choices.length], ['chat.completion', 'demo', 1]);
  const [{ index, message, finish_reason: reason, logprobs }] = answer.choices;
  assert.deepEqual([index, message.role, message.content, reason, logprobs], [0, 'assistant', text, 'stop', null]);
  assert.ok(text.length > 5);
  assert.deepEqual([answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens],
    [usage.promptTokens, usage.completionTokens, usage.promptTokens + usage.completionTokens]);
  const again = await client.chat.completions.create({ ...SEEDED });
  assert.ok(again.usage.prompt_tokens_details.cached_tokens > 0);
  assert.deepEqual([again.choices[0].message.content, again.system_fingerprint], [text, answer.system_fingerprint]);
});

const PLACE = { type: 'object', properties: { city: { type: 'string', maxLength: 20 }, letters: { type: 'integer', minimum: 0, maximum: 20 } }, required: ['city', 'letters'], additionalProperties: false };

test('answers obey a schema, a grammar, or are JSON: whole, and in pieces', async () => {
  const format = { type: 'json_schema', json_schema: { name: 'place', strict: true, schema: PLACE } };
  const { choices: [{ message }] } = await client.chat.completions.create({ ...SEEDED, max_tokens: 200, response_format: format });
  const { city, letters, ...rest } = JSON.parse(message.content);
  assert.ok(typeof city === 'string' && Number.isInteger(letters) && letters <= 20 && Object.keys(rest).length === 0);
  const pieces = await collect(await client.chat.completions.create({ ...SEEDED, max_tokens: 200, response_format: format, stream: true }));
  assert.equal(pieces.map(({ choices: [{ delta }] }) => delta.content ?? '').join(''), message.content);
  const { choices: [json] } = await client.chat.completions.create({ ...SEEDED, max_tokens: 100, temperature: 0, response_format: { type: 'json_object' } });
  if (json.finish_reason === 'stop') JSON.parse(json.message.content);
  const { choices: [plain] } = await client.completions.create({ model: 'any', prompt: 'a', max_tokens: 20, grammar: 'root ::= "x" [0-9]' });
  assert.match(plain.text, /^x\d$/);
  const refused = await client.chat.completions.create({ ...SEEDED, response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'strong' } } } }).catch((error) => error);
  assert.ok(refused instanceof OpenAI.BadRequestError && refused.code === 'invalid_schema', String(refused));
});

test('probabilities of tokens, as chats and completions have them', async () => {
  const body = { ...SEEDED, max_tokens: 12, logprobs: true, top_logprobs: 2 };
  const { logprobs: wanted } = await own({ seed: 7, temperature: 1.2, maxTokens: 12, logprobs: 2 });
  const { choices: [{ message, logprobs }] } = await client.chat.completions.create(body);
  assert.deepEqual(logprobs.content.map(({ token, logprob, top_logprobs: top }) => [token, logprob, top.length]), wanted.map(({ text, logprob }) => [text, logprob, 2]));
  assert.equal(logprobs.content.map(({ token }) => token).join(''), message.content);
  const pieces = await collect(await client.chat.completions.create({ ...body, stream: true }));
  assert.deepEqual(pieces.flatMap(({ choices: [{ logprobs: some }] }) => some?.content ?? []), logprobs.content);
  const { choices: [text] } = await client.completions.create({ model: 'any', prompt: 'The mill', max_tokens: 6, temperature: 0, logprobs: 1 });
  const ended = text.finish_reason === 'stop' ? [model.info.specialTokens.eos_token] : [];
  assert.equal(text.logprobs.tokens.join(''), text.text + ended, 'the token that ended it counts');
  assert.deepEqual(text.logprobs.text_offset.slice(0, 2), [0, text.logprobs.tokens[0].length]);
  assert.ok(text.logprobs.top_logprobs.every((top, i) => top[text.logprobs.tokens[i]] === text.logprobs.token_logprobs[i]), 'greedy takes the likeliest');
});

test('the client runs tools by itself: whole, and in pieces', async () => {
  const parameters = { type: 'object', properties: { a: { type: 'integer', minimum: 0, maximum: 99 }, b: { type: 'integer', minimum: 0, maximum: 99 } }, required: ['a', 'b'] };
  const sums = [];
  const add = { type: 'function', function: { name: 'add', description: 'A sum', parameters, parse: JSON.parse, function: ({ a, b }) => { sums.push(a + b); return `${a + b}`; } } };
  for (const stream of [false, true]) {
    const body = { model: 'any', messages: QUESTION, temperature: 0, max_tokens: 100, tool_choice: 'required', tools: [add] };
    const runner = client.chat.completions.runTools({ ...body, stream }, { maxChatCompletions: 1 });
    await runner.done();
    const [, { tool_calls: [call] }, answer] = runner.messages;
    const { a, b } = JSON.parse(call.function.arguments);
    assert.deepEqual([sums.at(-1), answer.role, answer.tool_call_id, answer.content], [a + b, 'tool', call.id, `${a + b}`]);
    const { choices: [{ message, finish_reason: reason }] } = await client.chat.completions.create({ ...body, tool_choice: 'auto', messages: runner.messages, tools: [{ type: 'function', function: { name: 'add', parameters } }] });
    assert.ok(reason === 'stop' && message.content.length > 0, 'the result is read');
  }
  assert.equal(sums[0], sums[1]);
});

test('the fingerprint is of what decides the text, and of nothing else', async () => {
  const fingerprints = [];
  for (const options of [{}, { threads: 2, chunk: 7, parallel: 1, contextSize: 300, variant: 'scalar' }, { kv: 'q8' }, { quantize: 'q4' }]) {
    const one = await startServer({ model: await loadDemo(options) });
    fingerprints.push(one.served.fingerprint);
    await one.end();
  }
  assert.deepEqual([fingerprints[0], fingerprints[1]], [server.served.fingerprint, server.served.fingerprint]);
  assert.equal(new Set(fingerprints).size, 3);
});

test('a stream is the same text, its reason only in the last chunk, usage only if asked for', async () => {
  const { choices: [{ message: { content } }], usage } = await client.chat.completions.create(SEEDED);
  for (const include of [true, false]) {
    const stream = await client.chat.completions.create({ ...SEEDED, stream: true, ...(include && { stream_options: { include_usage: true } }) });
    const chunks = await collect(stream);
    if (include) {
      const { choices, usage: last } = chunks.pop();
      assert.deepEqual([choices, last.completion_tokens, last.prompt_tokens], [[], usage.completion_tokens, usage.prompt_tokens]);
    }
    assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
    assert.deepEqual([chunks.at(-1).choices[0].delta, chunks.at(-1).choices[0].finish_reason], [{}, 'stop']);
    assert.ok(chunks.slice(0, -1).every(({ choices: [{ finish_reason: reason }] }) => reason === null));
    assert.equal(chunks.map(({ choices: [{ delta }] }) => delta.content ?? '').join(''), content);
    assert.deepEqual(new Set(chunks.map(({ object, id, usage: none = 'absent' }) => `${object} ${id} ${none}`)).size, 1);
    assert.equal(chunks[0].usage, include ? null : undefined);
  }
});

test('n choices are what each seed says alone, streamed or not, and share the prompt', async () => {
  const messages = [{ role: 'user', content: 'Tell me a story about an owl.' }];
  const alone = await Promise.all([7, 8, 9].map((seed) => own({ seed, temperature: 1.2, maxTokens: 40 }, messages)));
  const texts = alone.map(({ text }) => text);
  assert.equal(new Set(texts).size, 3);
  const { choices, usage } = await client.chat.completions.create({ ...SEEDED, messages, n: 3 });
  assert.deepEqual(choices.map(({ index, message }) => [index, message.content]), texts.map((text, i) => [i, text]));
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens],
    [alone[0].usage.promptTokens, alone.reduce((sum, one) => sum + one.usage.completionTokens, 0)]);
  const streamed = ['', '', ''];
  for await (const { choices: [{ index, delta }] } of await client.chat.completions.create({ ...SEEDED, messages, n: 3, stream: true })) streamed[index] += delta.content ?? '';
  assert.deepEqual(streamed, texts);
});

test('eight requests at once each get what they get alone', async () => {
  const contents = ['What is the capital of France?', 'Hi!', 'Tell me a story about an owl.', 'What is 2 plus 2?'];
  const ask = (content, seed) => client.chat.completions.create({ ...SEEDED, messages: [{ role: 'user', content }], seed }).then(({ choices }) => choices[0].message.content);
  const wanted = [];
  for (let i = 0; i < 8; i++) wanted.push(await ask(contents[i % 4], i));
  assert.deepEqual(await Promise.all(wanted.map((_, i) => ask(contents[i % 4], i))), wanted);
});

test('stop texts, limits and thinking', async () => {
  const create = (more) => client.chat.completions.create({ ...SEEDED, temperature: 0, ...more }).then(({ choices }) => choices[0]);
  const { message: { content } } = await create({});
  const cut = content.slice(4, 8);
  const stopped = await create({ stop: ['\u2603', cut] });
  assert.deepEqual([stopped.message.content, stopped.finish_reason], [content.slice(0, content.indexOf(cut)), 'stop']);
  assert.equal((await create({ max_tokens: 3 })).finish_reason, 'length');
  assert.equal((await create({ max_tokens: undefined, max_completion_tokens: 3 })).finish_reason, 'length');
  assert.equal(stopped.message.reasoning_content, undefined);
  for (const more of [{ reasoning_effort: 'high' }, { chat_template_kwargs: { enable_thinking: true } }]) {
    const thought = await create({ ...more, max_tokens: 200 });
    assert.equal(thought.message.reasoning_content, (await own({ temperature: 0, thinking: true, maxTokens: 200 })).thinking);
    assert.ok(thought.message.reasoning_content.length > 0);
  }
  assert.equal((await create({ reasoning_effort: 'none' })).message.reasoning_content, undefined);
  const pieces = await collect(await client.chat.completions.create({ ...SEEDED, reasoning_effort: 'high', temperature: 0, stream: true, max_tokens: 200 }));
  assert.ok(pieces.some(({ choices: [{ delta }] }) => delta.reasoning_content));
});

test('messages in parts, of a developer, with an end to go on with', async () => {
  const create = (messages, more) => client.chat.completions.create({ ...SEEDED, messages, temperature: 0, ...more }).then(({ choices }) => choices[0].message.content);
  const told = [{ role: 'system', content: 'You are a pirate.' }, ...QUESTION];
  const parts = [{ type: 'text', text: 'What is the capital' }, { type: 'text', text: ' of Kenya?' }];
  assert.equal(await create([{ role: 'developer', content: 'You are a pirate.' }, { role: 'user', content: parts }]), await create(told));
  const begun = [...QUESTION, { role: 'assistant', content: 'The capital of' }];
  assert.equal(await create(begun, { continue_final_message: true }), (await own({ temperature: 0, maxTokens: 40, continue: true }, begun)).text);
});

test('completions of texts, of ids and of several of them', async () => {
  const prompt = 'Once upon a time';
  const ids = await model.tokenize(prompt);
  const greedy = { model: 'any', temperature: 0 };
  const { text } = await model.complete(prompt, { temperature: 0, maxTokens: 16 }).result;
  const one = await client.completions.create({ ...greedy, prompt });
  assert.match(one.id, /^cmpl-/);
  assert.deepEqual([one.object, one.choices[0].text, one.choices[0].finish_reason, one.usage.completion_tokens], ['text_completion', text, 'length', 16]);
  for (const many of [[prompt, ids], [ids, ids], [prompt, prompt]]) {
    const { choices, usage } = await client.completions.create({ ...greedy, prompt: many });
    assert.deepEqual(choices.map((choice) => choice.text), [text, text]);
    assert.equal(usage.prompt_tokens, 2 * ids.length);
  }
  assert.equal((await client.completions.create({ ...greedy, prompt: ids })).choices[0].text, text);
  const streamed = await collect(await client.completions.create({ ...greedy, prompt, stream: true }));
  assert.equal(streamed.map(({ choices }) => choices[0].text).join(''), text);
  const endings = await client.completions.create({ ...greedy, prompt: 'Hi', max_tokens: 300, ignore_eos: true });
  assert.deepEqual([endings.usage.completion_tokens, endings.choices[0].finish_reason], [300, 'length']);
});

test('options have their effect under the names of the API', async () => {
  const same = { seed: 3, temperature: 1.5, maxTokens: 24 };
  const fields = { model: 'any', prompt: 'Once upon a time', seed: 3, temperature: 1.5, max_tokens: 24 };
  const words = await model.tokenize(' the');
  const seen = new Set();
  for (const [more, options] of [
    [{}, {}], [{ top_p: 0.3 }, { topP: 0.3 }], [{ top_k: 2 }, { topK: 2 }], [{ top_k: -1 }, { topK: 0 }], [{ min_p: 0.4 }, { minP: 0.4 }], [{ top_p: 0 }, { topK: 1 }],
    [{ repeat_penalty: 2 }, { repeatPenalty: 2 }], [{ presence_penalty: 2 }, { presencePenalty: 2 }], [{ frequency_penalty: 2 }, { frequencyPenalty: 2 }],
    [{ logit_bias: { [words[0]]: 100 } }, { logitBias: { [words[0]]: 100 } }],
  ]) {
    const { text } = await model.complete(fields.prompt, { ...same, ...options }).result;
    assert.equal((await client.completions.create({ ...fields, ...more })).choices[0].text, text, JSON.stringify(more));
    seen.add(text);
  }
  assert.ok(seen.size > 6);
  const free = await Promise.all([1, 2, 3].map(() => client.completions.create({ ...fields, seed: -1, temperature: 2, top_k: 0, top_p: 1 })));
  assert.ok(new Set(free.map(({ choices }) => choices[0].text)).size > 1, 'the seed -1 is any');
});

test('who leaves a stream ends the work, and only his', { timeout: 60_000 }, async () => {
  const long = { ...SEEDED, messages: [{ role: 'user', content: 'Tell me a long story about an owl.' }], max_tokens: 2000, logit_bias: Object.fromEntries(model.info.endTokens.map((id) => [id, -100])) };
  const other = client.chat.completions.create(SEEDED);
  const reply = await other;
  const pagesUsed = async () => {         // by the engine's own account, which comes with every answer
    await model.tokenize('a');
    return model.info.memory.cache.used;
  };
  for (const leave of ['break', 'abort']) {
    await soon(200, async () => {
      const stream = await client.chat.completions.create({ ...long, stream: true });
      let left;
      for await (const { choices: [{ delta }] } of stream) {
        if (!delta.content) continue;
        left = performance.now();
        if (leave === 'abort') stream.controller.abort();
        break;
      }
      while (await pagesUsed() > 0);
      return performance.now() - left;
    });
  }
  const next = client.chat.completions.create(SEEDED);
  const whole = new AbortController();
  const unread = client.chat.completions.create(long, { signal: whole.signal }).catch((error) => error);
  await until(() => server.served.jobs.some(({ phase }) => phase === 'writing'));
  whole.abort();
  await server.idle(5000);
  assert.ok((await unread) instanceof OpenAI.APIUserAbortError);
  const { text } = await own({ seed: 7, temperature: 1.2, maxTokens: 40 });
  assert.deepEqual([reply, await next].map(({ choices }) => choices[0].message.content), [text, text]);
});

test('a request that brings a template of its own gets the model\'s', async () => {
  const chat_template = '{{ raise_exception("of a request") }}';
  const said = [];
  for (const more of [{}, { chat_template }, { chat_template_kwargs: { chat_template } }]) said.push((await post('/v1/chat/completions', { ...SEEDED, ...more })).choices[0].message);
  assert.deepEqual(said.slice(1), [said[0], said[0]]);
  assert.ok(said[0].content.length > 5);
  assert.equal((await post('/apply-template', { messages: QUESTION, chat_template })).prompt, (await post('/apply-template', { messages: QUESTION })).prompt);
});

test('the models, one under any name', async () => {
  const { data } = await client.models.list();
  assert.deepEqual(data.map(({ id, object, owned_by: owner, max_model_len: context }) => [id, object, owner, context]), [['demo', 'model', 'quern', model.info.contextSize]]);
  assert.equal((await client.models.retrieve('demo')).id, 'demo');
});

test('a request in the background is one, by a word or by vLLM\'s numbers', async () => {
  const seen = [];
  const own_ = await startServer({ model: playedModel((push, { options }) => { seen.push(options.priority); return { promise: Promise.resolve(result('x')) }; }) });
  const of = new OpenAI({ baseURL: own_.url, apiKey: 'none' });
  for (const priority of ['background', 'normal', 3, 0, -1, undefined]) await of.chat.completions.create({ ...SEEDED, priority });
  await own_.end();
  assert.deepEqual(seen, ['background', 'normal', 'background', 'normal', 'normal', undefined]);
});

test('requests of many choices wait for each other', { timeout: 60_000 }, async () => {
  const small = await loadDemo({ parallel: 2, contextSize: 256 });
  const own_ = await startServer({ model: small });
  const of = new OpenAI({ baseURL: own_.url, apiKey: 'none', maxRetries: 0 });
  const many = () => of.completions.create({ model: 'x', prompt: Array(40).fill('Once'), seed: 1, max_tokens: 20, ignore_eos: true });
  for (const { choices, usage } of await Promise.all([many(), many()])) {
    assert.deepEqual([choices.length, new Set(choices.map(({ text }) => text)).size, usage.completion_tokens], [40, 1, 800]);
  }
  await own_.end();
});

// --- errors, as classes of the client ---

const CALLED = { role: 'assistant', content: 'So.', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] };

test('wrong requests are BadRequestErrors that name the field, and are not repeated', async () => {
  const fails = (body, more) => client.chat.completions.create({ ...SEEDED, ...body }, more).then(() => assert.fail('did not fail'), (error) => error);
  for (const [body, param, code = 'invalid_value', words = /./] of [
    [{ temperature: 'hot' }, 'temperature'], [{ top_p: 2 }, 'top_p', 'invalid_value', /^400 top_p must be a number above 0/], [{ n: 9 }, 'n'], [{ n: 0 }, 'n'],
    [{ max_tokens: -5 }, 'max_tokens'], [{ max_tokens: undefined, max_completion_tokens: 1.5 }, 'max_completion_tokens'], [{ seed: -2 }, 'seed'],
    [{ messages: [] }, 'messages'], [{ messages: 'Hi' }, 'messages'], [{ messages: [{ role: 'boss', content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'], [{ messages: [...QUESTION, 5] }, 'messages[1]'],
    [{ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] }, 'messages[0].content[0].image_url', 'unsupported_parameter'],
    [{ messages: [{ role: 'tool', content: 'x', tool_call_id: 'y' }] }, 'messages[0]'], [{ messages: [{ role: 'function', content: 'x' }] }, 'messages[0]'],
    [{ temperature: 3 }, 'temperature', 'decimal_above_max_value', /from 0 to 2, but is 3/], [{ tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice.function.name', 'invalid_value', /^400 tool_choice\.function\.name/],
    [{ tools: [{ type: 'function', function: { name: 'f g' } }] }, 'tools[0].function.name'], [{ tool_choice: 'required' }, 'tool_choice'], [{ logprobs: 'yes' }, 'logprobs'], [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs'], [{ top_logprobs: 2 }, 'top_logprobs'],
    [{ continue_final_message: true }, 'messages'], [{ logit_bias: { 999_999: 1 } }, 'logit_bias'], [{ tools: [{ type: 'function', function: { name: 'f' } }, { type: 'function', function: { name: 'f' } }] }, 'tools[1].function.name'],
    [{ tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] }, 'tools[0].function.parameters.type'], [{ tools: [{ type: 'function', function: { name: 'f', parameters: 5 } }] }, 'tools[0].function.parameters'],
    [{ messages: [...QUESTION, CALLED, { role: 'tool', content: 'x' }] }, 'messages[2].tool_call_id'], [{ messages: [...QUESTION, CALLED, ...['a', 'a'].map((id) => ({ role: 'tool', tool_call_id: id, content: 'x' }))] }, 'messages[3].tool_call_id'],
    [{ messages: [...QUESTION, CALLED], continue_final_message: true }, 'messages'], [{ messages: [...QUESTION, { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '[]' } }] }] }, 'messages[1].tool_calls[0].function.arguments'],
    [{ messages: [...QUESTION, { ...CALLED, role: 'user' }] }, 'messages[1].tool_calls'], [{ tools: [{ type: 'custom', custom: { name: 'f g' } }] }, 'tools[0].custom.name'],
    [{ response_format: { type: 'xml' } }, 'response_format.type', 'unsupported_parameter'], [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema.schema'],
    [{ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: 5 } } }, 'response_format'], [{ response_format: { type: 'json_object' }, grammar: 'root ::= "a"' }, 'grammar', 'invalid_value', /^400 grammar and response_format exclude each other/], [{ stop: [''] }, 'stop'], [{ stream: 'yes' }, 'stream'],
    [{ stop: Array.from({ length: 65 }, String) }, 'stop'], [{ logit_bias: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [i, 1])) }, 'logit_bias'],
    [{ reasoning_effort: 5 }, 'reasoning_effort'], [{ priority: 'soon' }, 'priority'], [{ chat_template_kwargs: [] }, 'chat_template_kwargs'], [{ chat_template_kwargs: { enable_thinking: 'no' } }, 'chat_template_kwargs.enable_thinking'],
  ]) {
    for (const stream of body.stream ? [undefined] : [false, true]) {
      const error = await fails({ ...body, ...(stream !== undefined && { stream }) });
      assert.ok(error instanceof OpenAI.BadRequestError, `${JSON.stringify(body)}: ${error}`);
      assert.deepEqual([error.param, error.code, error.type], [param, code, 'invalid_request_error'], error.message);
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, /\b[a-z]+[A-Z]\w*/, 'the server\'s words, not the library\'s');
    }
  }
  const untaken = { tools: [], tool_choice: 'auto', response_format: { type: 'text' }, logprobs: false, user: 'me', store: false, unknown: { x: 1 }, max_tokens: 1 };
  assert.equal((await client.chat.completions.create({ ...SEEDED, ...untaken })).choices.length, 1);
});

test('a prompt that does not fit says by how much', async () => {
  const long = [{ role: 'user', content: 'What is it? '.repeat(2000) }];
  for (const stream of [false, true]) {
    const error = await client.chat.completions.create({ ...SEEDED, messages: long, stream }).catch((reason) => reason);
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.deepEqual([error.code, error.error.n_ctx], ['context_length_exceeded', model.info.contextSize]);
    assert.ok(error.error.n_prompt_tokens >= model.info.contextSize);
  }
});

/** A server whose every reply fails so, and how often it was asked. */
async function failing(error, use, options) {
  let asked = 0;
  const own_ = await startServer({ model: playedModel((push, call) => {
    asked++;
    return typeof error === 'function' ? error(push, call) : { promise: Promise.reject(error) };
  }), ...options });
  try {
    await use(new OpenAI({ baseURL: own_.url, apiKey: 'none' }), () => asked, own_);
  } finally {
    await own_.end();
  }
}

const create = (of, more) => of.chat.completions.create({ model: 'x', messages: QUESTION, ...more });
const failure = (promise) => promise.then(() => assert.fail('did not fail'), (error) => error);

test('a full server is a RateLimitError after two repetitions', async () => {
  await failing(new QuernError('use/busy', 'The engine has enough to do.'), async (of, asked) => {
    const error = await failure(create(of));
    assert.ok(error instanceof OpenAI.RateLimitError, String(error));
    assert.deepEqual([error.status, error.headers.get('retry-after'), asked()], [429, '1', 3]);
  });
});

test('numbers that are none are an InternalServerError that is not repeated', async () => {
  await failing(new QuernError('model/nonfinite', 'The model has made a number that is none.'), async (of, asked) => {
    for (const stream of [false, true]) {
      const error = await failure(create(of, { stream }));
      assert.ok(error instanceof OpenAI.InternalServerError, String(error));
      assert.equal(error.headers.get('x-should-retry'), 'false');
    }
    assert.equal(asked(), 2);
  });
});

test('what fails within a stream is thrown to whoever reads it', async () => {
  const broken = (push, { options }) => {
    options.onPrefill({ done: 1, total: 1, cached: 0 });
    push({ type: 'text', text: 'so ' });
    return { promise: new Promise((_, reject) => { setTimeout(reject, 30, new QuernError('model/nonfinite', 'None.')); }) };
  };
  await failing(broken, async (of, asked, { base }) => {
    const texts = [];
    const error = await failure((async () => { for await (const { choices } of await create(of, { stream: true })) texts.push(choices[0]?.delta.content); })());
    assert.deepEqual([texts.join(''), error instanceof OpenAI.APIError, error.message], ['so ', true, 'None.']);
    const body = await (await fetch(`${base}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ messages: QUESTION, stream: true }) })).text();
    assert.deepEqual([dataOf(body).at(-1).error.code, body.includes('[DONE]')], ['model_failed', false]);
  });
});

test('an engine that fails is an InternalServerError; the model is loaded again, once in its time', async () => {
  const loads = [];
  let letIt;
  const loaded = new Promise((resolve) => { letIt = resolve; });
  const dying = () => playedModel(() => ({ promise: Promise.reject(new QuernError('engine/trap', 'The engine crashed.')) }));
  const living = () => playedModel((push, { options }) => { options.onPrefill({ done: 1, total: 1, cached: 0 }); return { promise: Promise.resolve(result('well')) }; });
  const opened = async () => {
    loads.push(performance.now());
    if (loads.length === 1) return dying();
    await loaded;
    return living();
  };
  const own_ = await startServer({ opened, reloadMs: 300 });
  const of = new OpenAI({ baseURL: own_.url, apiKey: 'none', maxRetries: 0 });
  try {
    const error = await failure(create(of));
    assert.deepEqual([error.status, error.code], [500, 'engine_failed']);
    const next = await failure(create(of));
    assert.deepEqual([next.status, next.headers.get('retry-after')], [503, '5']);
    assert.equal((await fetch(`${own_.base}/health`)).status, 503);
    letIt();
    await until(() => own_.served.obstacle === null, 5000);
    assert.ok(loads[1] - loads[0] >= 290);
    assert.equal((await create(of)).choices[0].message.content, 'well');
    assert.deepEqual([loads.length, own_.said.length], [2, 1]);
    assert.match(await (await fetch(`${own_.base}/metrics`)).text(), /^quern_engine_restarts_total 1$/m);
  } finally {
    await own_.end();
  }
});

test('an engine that fails under another path is loaded again, too; a model without a fingerprint is let go', async () => {
  for (const [path, body, name] of [['/tokenize', { content: 'x' }, 'tokenize'], ['/detokenize', { tokens: [1] }, 'detokenize'], ['/apply-template', { messages: QUESTION }, 'tokenize']]) {
    let loads = 0;
    const dying = { [name]: async () => { throw new QuernError('engine/trap', 'The engine crashed.'); } };
    const own_ = await startServer({ opened: async () => playedModel(() => {}, loads++ ? {} : dying), reloadMs: 50 });
    const answer = await fetch(own_.base + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
    assert.deepEqual([answer.status, (await answer.json()).error.code], [500, 'engine_failed'], path);
    await until(() => loads === 2 && own_.served.obstacle === null, 5000);
    await own_.end();
  }
  let disposed = 0;
  const model_ = playedModel(() => {}, { logits: async () => { throw new QuernError('mem/load', 'No memory.'); }, dispose: async () => { disposed++; } });
  await assert.rejects(new ServedModel({ load: async () => model_, metrics: new Metrics(), say() {} }).open(), { code: 'mem/load' });
  assert.equal(disposed, 1);
});

test('wrong keys and models are AuthenticationErrors and NotFoundErrors', async () => {
  const own_ = await startServer({ model, rules: { keys: ['right', 'other'] }, site: { onlyName: true } });
  try {
    for (const apiKey of ['wrong', 'right-']) {
      const error = await failure(create(new OpenAI({ baseURL: own_.url, apiKey })));
      assert.ok(error instanceof OpenAI.AuthenticationError);
      assert.equal(error.type, 'authentication_error');
    }
    for (const apiKey of ['right', 'other']) {
      const of = new OpenAI({ baseURL: own_.url, apiKey });
      assert.equal((await create(of, { model: 'demo', max_tokens: 1 })).choices.length, 1);
      const error = await failure(create(of));
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.deepEqual([error.code, error.param], ['model_not_found', 'model']);
      assert.ok(await failure(of.models.retrieve('x')) instanceof OpenAI.NotFoundError);
    }
  } finally {
    await own_.http.close(100);     // the model is the others' too
  }
});

// --- llama-server's paths ---

const post = async (path, body, base = server.base) => {
  const response = await fetch(base + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  return { status: response.status, ...await response.json() };
};
const get = async (path) => (await fetch(server.base + path)).json();

test('tokens of texts and texts of tokens', async () => {
  const content = 'What is the capital of France ? 媽 🤗';
  const { tokens } = await post('/tokenize', { content });
  assert.deepEqual(tokens, await model.tokenize(content));
  assert.equal((await post('/detokenize', { tokens })).content, content);
  const { tokens: pieces } = await post('/tokenize', { content, with_pieces: true });
  assert.deepEqual(pieces.map(({ id }) => id), tokens);
  assert.equal(pieces[0].piece, 'What');
  assert.ok(pieces.some(({ piece }) => Array.isArray(piece)), 'no token is a part of a character');
  assert.equal(Buffer.concat(pieces.map(({ piece }) => Buffer.from(piece))).toString(), content);
  for (const [path, body] of [['/tokenize', {}], ['/tokenize', { content: 5 }], ['/tokenize', { content: 'x', parse_special: true }], ['/tokenize', { content: 'x'.repeat(2 ** 20 + 1) }],
    ['/detokenize', { tokens: [-1] }], ['/detokenize', {}], ['/apply-template', {}], ['/apply-template', null], ['/apply-template', { messages: QUESTION, tools: [{}] }], ['/tokenize', null], ['/detokenize', null]]) {
    assert.equal((await post(path, body)).status, 400, `${path} ${JSON.stringify(body).slice(0, 50)}`);
  }
});

test('a conversation as the template makes it', async () => {
  const { prompt } = await post('/apply-template', { messages: [{ role: 'system', content: 'Be <|im_end|> brief.' }, ...QUESTION] });
  assert.match(prompt, /^<\|im_start\|>system\nBe <\|im_end\|> brief\.<\|im_end\|>\n<\|im_start\|>user\nWhat is the capital of Kenya\?<\|im_end\|>\n<\|im_start\|>assistant\n/);
  const thinking = await post('/apply-template', { messages: QUESTION, chat_template_kwargs: { enable_thinking: true } });
  const opened = (await post('/apply-template', { messages: QUESTION })).prompt;
  assert.notEqual(thinking.prompt, opened);
  const said = (await post('/apply-template', { messages: QUESTION, add_generation_prompt: false })).prompt;
  assert.match(said, /What is the capital of Kenya\?<\|im_end\|>\n$/);
  const described = { name: 'clock', description: 'Tells the time', parameters: { type: 'object', properties: {} } };
  const tools = await model.tokenize(QUESTION, { tools: [described] });
  assert.equal((await post('/apply-template', { messages: QUESTION, tools: [{ type: 'function', function: described }] })).prompt, await model.detokenize(tools));
  assert.ok(opened.startsWith(`${said}<|im_start|>assistant\n`));
  const more = { type: 'function', function: { ...described, strict: true }, note: null };
  assert.ok((await post('/apply-template', { messages: QUESTION, tools: [more] })).prompt.includes('"strict": true}, "note": null}'), 'as transformers shows a tool, whatever it has');
  const call = (text) => ({ role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'clock', arguments: text } }] });
  const [written, spaced] = await Promise.all(['{"a":[1,null]}', ' { "a" : [ 1,\nnull ] }'].map((text) => (
    post('/apply-template', { messages: [...QUESTION, call(text), { role: 'tool', tool_call_id: 'a', content: 'x' }], tools: [more] }))));
  assert.deepEqual([written.prompt.includes('"arguments": {"a": [1, null]}}'), spaced.prompt], [true, written.prompt], 'not as the client has spaced it');
  const thought = await Promise.all(['reasoning_content', 'thinking', 'reasoning'].map((name) => post('/apply-template', { messages: [...QUESTION, { role: 'assistant', content: 'Nairobi', [name]: 'Hm.' }] })));
  assert.deepEqual(thought.map(({ prompt: made }) => made.includes('<think>\nHm.\n</think>\n\nNairobi')), [true, true, true]);
});

test('what one key has asked, another one does not find; without keys all share', async () => {
  const messages = [{ role: 'user', content: 'A secret that nobody should be able to guess, letter by letter: '.repeat(3) }];
  for (const keys of [['one', 'two'], []]) {
    const own_ = await startServer({ model: await loadDemo(), rules: { keys } });
    const as = (apiKey) => new OpenAI({ baseURL: own_.url, apiKey });
    const ask = async (key, more) => {
      const { choices, usage } = await as(key).chat.completions.create({ ...SEEDED, messages, max_tokens: 8, ...more });
      return { text: choices[0].message.content, cached: usage.prompt_tokens_details.cached_tokens, prompt: usage.prompt_tokens };
    };
    const first = await ask('one');
    const [others, again, aloud] = [await ask('two'), await ask('one'), await ask('two', { stream: false, n: 2 })];
    assert.deepEqual([first, others, again, aloud].map(({ cached }) => cached), [0, keys.length ? 0 : first.prompt - 1, first.prompt - 1, first.prompt - 1]);
    assert.deepEqual([others.text, again.text, aloud.text], [first.text, first.text, first.text]);
    const together = await Promise.all(['one', 'two'].map((key) => ask(key, { messages: [...messages, ...messages] })));      // side by side neither
    if (keys.length) for (const { cached, prompt } of together) assert.ok(cached < prompt / 2 + 20, `${cached} of ${prompt}`);
    const text = await as('two').completions.create({ model: 'any', prompt: messages[0].content, max_tokens: 1 });
    assert.equal(text.usage.prompt_tokens_details.cached_tokens, 0);
    await own_.end();
  }
});

test('vectors and ranks are the model\'s, in floats and in base64, of texts and of ids', async () => {
  const texts = ['What is quern?', 'A hand mill.'];
  const { vectors, tokens } = await model.embed(texts);
  for (const format of ['float', 'base64', undefined]) {     // the client asks for base64 where nothing is said
    const { data, usage, object, model: name } = await client.embeddings.create({ model: 'any', input: texts, ...(format && { encoding_format: format }) });
    const read = (embedding) => (typeof embedding === 'string' ? Array.from(new Float32Array(Uint8Array.from(Buffer.from(embedding, 'base64')).buffer)) : embedding);
    assert.deepEqual([object, name, usage, data.map(({ index }) => index)], ['list', 'demo', { prompt_tokens: tokens, total_tokens: tokens }, [0, 1]]);
    assert.deepEqual(data.map(({ embedding }) => read(embedding)), vectors.map((vector) => Array.from(vector)));
  }
  const ids = await model.tokenize(texts[0]);
  for (const input of [ids, [ids], texts[0]]) {
    const { data: [{ embedding }], ...more } = await client.embeddings.create({ model: 'any', input, dimensions: 16, encoding_format: 'float' });
    assert.deepEqual([embedding, more.truncated], [Array.from((await model.embed(texts[0], { dimensions: 16 })).vectors[0]), undefined]);
  }
  await assert.rejects(client.embeddings.create({ model: 'any', input: [[10 ** 6]] }), ({ status, param }) => status === 400 && param === 'input[0][0]');
  await assert.rejects(client.embeddings.create({ model: 'any', input: 'x', dimensions: 10 ** 5 }), ({ status, param }) => status === 400 && param === 'dimensions');
  const long = await client.embeddings.create({ model: 'any', input: 'word '.repeat(20_000) });
  assert.deepEqual(long.truncated, [0]);
  const failed = await post('/v1/rerank', { query: 'q', documents: texts });
  assert.deepEqual([failed.status, failed.error.type, failed.error.code], [400, 'invalid_request_error', 'unsupported_model']);
  assert.match(failed.error.message, /^The model cannot rank: its vocabulary has no token 'yes'\./);
  for (const [path, body, param] of [
    ['/v1/rerank', { query: null, documents: ['a'] }, 'query'], ['/v1/rerank', { query: ['a'], documents: ['a'] }, 'query'], ['/v1/rerank', { query: 'a', documents: [{}] }, 'documents[0]'],
    ['/v1/rerank', { query: 'a', documents: ['a', { text: 5 }] }, 'documents[1]'], ['/v1/rerank', { query: 'a', documents: ['a'], instruction: 5 }, 'instruction'],
    ['/v1/rerank', { query: 'a', documents: ['a'], top_n: '1' }, 'top_n'], ['/v1/rerank', { query: 'a', documents: Array(2049).fill('a') }, 'documents'], ['/v1/rerank', [], 'The body'],
    ['/v1/embeddings', { input: 'a', dimensions: 'x' }, 'dimensions'], ['/v1/embeddings', { input: 'a', dimensions: 0 }, 'dimensions'], ['/v1/embeddings', { input: 'a', instruction: {} }, 'instruction'],
    ['/v1/embeddings', { input: ['a', null] }, 'input'], ['/v1/embeddings', { input: [1, 'a'] }, 'input[0][1]'], ['/v1/embeddings', { input: [[1], [1.5]] }, 'input[1][0]'], ['/v1/embeddings', { input: {} }, 'input'],
    ['/v1/embeddings', { input: [-1] }, 'input[0][0]'], ['/v1/embeddings', null, 'The body'],
  ]) {
    const { status, error } = await post(path, body);
    assert.deepEqual([status, error?.type, error?.param], [400, 'invalid_request_error', param], `${path} ${JSON.stringify(body).slice(0, 80)}: ${error?.message}`);
    assert.ok(error.message.startsWith(param), error.message);
  }
  const ranks = [{ index: 1, score: 0.75 }, { index: 0, score: 0.5 }];
  const played = await startServer({ model: playedModel(endless, { rank: async () => ranks }) });
  const { results } = await post('/v1/rerank', { query: 'q', documents: [{ text: 'a' }, 'b'], top_n: 1, return_documents: true }, played.base);
  assert.deepEqual(results, [{ index: 1, relevance_score: 0.75, document: { text: 'b' } }]);
  await played.end();
});

test('who goes away ends the list that is made for him, and so does the end of the server', async () => {
  const signals = [];
  const embed = (texts, { signal }) => new Promise((_, reject) => {
    signals.push(signal);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
  const own_ = await startServer({ model: playedModel(endless, { embed }) });
  const controller = new AbortController();
  const ask = (signal) => fetch(`${own_.base}/v1/embeddings`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"input":"x"}', signal });
  const gone = assert.rejects(ask(controller.signal));
  await until(() => signals.length === 1);
  controller.abort();
  await gone;
  await until(() => signals[0].aborted);
  await own_.idle();
  const last = ask();
  await until(() => signals.length === 2);
  await own_.end();
  assert.equal((await last).status, 503);
});

test('facts, slots, health and what is not there', async () => {
  const props = await get('/props');
  assert.deepEqual([props.default_generation_settings.n_ctx, props.total_slots, props.model_path, props.chat_template], [model.info.contextSize, 4, 'demo.gguf', 'template']);
  assert.deepEqual((await get('/slots')).map(({ id, is_processing: busy, n_ctx: n }) => [id, busy, n]), [0, 1, 2, 3].map((id) => [id, false, model.info.contextSize]));
  assert.deepEqual(await get('/health'), { status: 'ok' });
  const hidden = await startServer({ model: playedModel(endless) });
  assert.equal((await fetch(`${hidden.base}/slots`)).status, 501);
  await hidden.end();
});

test('every answer has the id of its request: the one it brought, or one of its own', async () => {
  const { base: at, end } = await startServer({ model: playedModel((push) => { push({ type: 'text', text: 'x' }); return { promise: Promise.resolve(result('x')) }; }) });
  const ask = (path, how, headers = {}) => fetch(`${at}${path}`, { ...how, headers: { ...how.headers, ...headers } });
  const post_ = (body) => ({ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  for (const [path, how, status] of [
    ['/v1/models', {}, 200], ['/nowhere', {}, 404], ['/v1/chat/completions', {}, 405], ['/v1/chat/completions', post_({ messages: 5 }), 400], ['/v1/chat/completions', post_({ messages: QUESTION }), 200],
    ['/v1/chat/completions', post_({ messages: QUESTION, stream: true }), 200],
  ]) {
    const given = await ask(path, how, { 'X-Request-Id': 'abc-1' });
    assert.deepEqual([given.status, given.headers.get('x-request-id')], [status, 'abc-1']);
    await given.text();
    for (const odd of ['', 'a b', 'x'.repeat(200)]) {
      const made = await ask(path, how, { 'X-Request-Id': odd });
      assert.match(made.headers.get('x-request-id'), /^req_[0-9a-f]{24}$/);
      await made.text();
    }
  }
  await end();
});

test('metrics count what was done', async () => {
  const own_ = await startServer({ model: playedModel((push, { options }) => { options.onPrefill({ done: 3, total: 3, cached: 1 }); return { promise: Promise.resolve(result('x')) }; }) });
  await post('/v1/chat/completions', { messages: QUESTION }, own_.base);
  await post('/v1/chat/completions', { messages: 5 }, own_.base);
  await fetch(`${own_.base}/nowhere`);
  const response = await fetch(`${own_.base}/metrics`);
  const text = await response.text();
  assert.match(response.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  for (const line of [
    'quern_requests_total{path="/chat/completions",code="200"} 1', 'quern_requests_total{path="/chat/completions",code="400"} 1', 'quern_requests_total{path="other",code="404"} 1',
    'quern_requests_running 0', 'quern_requests_waiting 0', 'quern_prompt_tokens_total 3', 'quern_cached_tokens_total 1', 'quern_completion_tokens_total 2', 'quern_drafted_tokens_total 0', 'quern_ttft_seconds_count 1',
    'quern_token_seconds_bucket{le="0.005"} 1', 'quern_request_seconds_count 3', 'quern_memory_bytes{kind="used"} 7', 'quern_aborted_total 0', 'quern_step_rows_bucket{le="1"} 1', 'quern_step_rows_bucket{le="4"} 3', 'quern_step_rows_bucket{le="+Inf"} 3', 'quern_step_rows_sum 9', 'quern_step_rows_count 3', 'quern_let_go_total 1', 'quern_recomputed_tokens_total 2',
  ]) assert.ok(text.includes(`\n${line}\n`), `${line} in\n${text}`);
  const names = text.match(/^# TYPE .*$/gm);
  assert.equal(new Set(names).size, names.length);
  await own_.end();
});
