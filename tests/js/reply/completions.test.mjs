// SPDX-License-Identifier: MIT
// What completions have beside their text: what the model thinks of each token of the prompt, the same bits as its logits say; several choices of which the
// best are given; texts that are filled in between two others. By the library, and over HTTP as lm-eval and the official client ask.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { log, exp } from '../../../js/reply/logprobs.js';
import { fakeModel } from '../../../js/facades/testing.js';
import { openai } from '../../../js/facades/openai-client.js';
import { load } from '../../../js/node.js';
import { nativeLogits, tokens as GOLDEN, PROJECT } from '../../fixtures/golden.mjs';
import { DEMO, NANO, collect, rejectsWith } from '../support/helper.mjs';
import { loadDemo, startServer } from '../support/serve-host.mjs';

const WORKER = new URL('../../../dist/worker.node.mjs', import.meta.url);

/** A log-softmax as the engine's own arithmetic has it, of one row. */
function logSoftmax(row, n) {
  const known = row.subarray(0, n);
  const most = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const rest = log(known.reduce((sum, value) => sum + exp(value - most), 0));
  return Float64Array.from(known, (value) => value - most - rest);
}

/** What the logits say of each token but the first. */
function wantedOf(logits, ids, { vocabSize, tokens }) {
  return Array.from(ids.slice(1), (id, i) => {
    const row = logSoftmax(logits.subarray(i * vocabSize, (i + 1) * vocabSize), tokens);
    return { logprob: row[id], most: row.reduce((a, b) => Math.max(a, b)) };
  });
}

let model;
let server;
let client;
before(async () => {
  model = await loadDemo({ parallel: 2 });
  server = await startServer({ model });
  client = new OpenAI({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
});
after(() => server?.end());

const TEXT = 'The capital of Kenya is Nairobi. What is 2 plus 2? It is 4, said the owl, and slept.';

test('what is thought of a prompt is what the native engine\'s logits say, whatever the chunks, threads and company', { timeout: 120_000 }, async () => {
  const bytes = await readFile(`${PROJECT}/${nativeLogits('nano.Q8_0', 'f16')}`);
  const logits = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  for (const options of [{ threads: 1 }, { threads: 2, chunk: 7 }, { chunk: 3, parallel: 1 }]) {
    const nano = await load(NANO, { workerUrl: WORKER, ...options });
    const others = [nano.complete('a', { maxTokens: 30 }).result, nano.complete(GOLDEN.slice(0, 9), { maxTokens: 9 }).result];
    const { promptLogprobs, logprobs, usage, text } = await nano.complete(GOLDEN, { promptLogprobs: 2, maxTokens: 0 }).result;
    const wanted = wantedOf(logits, GOLDEN, nano.info);
    assert.deepEqual(promptLogprobs.map(({ id }) => id), GOLDEN);
    assert.deepEqual([promptLogprobs[0].logprob, promptLogprobs[0].top, logprobs, text], [null, [], undefined, '']);
    for (const [i, { logprob, top }] of promptLogprobs.slice(1).entries()) {
      assert.equal(logprob, wanted[i].logprob);
      assert.deepEqual([top.length, top[0].logprob], [2, wanted[i].most]);
    }
    assert.deepEqual([usage.promptTokens, usage.cachedTokens, usage.completionTokens], [GOLDEN.length, 0, 0], 'nothing of it was known');
    await Promise.all(others);
    await nano.dispose();
  }
});

test('a prompt and its reply are told together: what stops the reply too, by events and by the result', async () => {
  const options = { promptLogprobs: 1, logprobs: 1, temperature: 0, maxTokens: 3 };
  const plain = await model.complete(TEXT, { temperature: 0, maxTokens: 3, logprobs: 1 }).result;
  const reply = model.complete(TEXT, options);
  const events = await collect(reply.events);
  const result = await reply.result;
  assert.deepEqual([result.text, result.logprobs.slice(0, plain.logprobs.length)], [plain.text, plain.logprobs]);
  assert.equal(events[0].type, 'prompt');
  assert.deepEqual(events[0].logprobs, result.promptLogprobs);
  assert.equal(result.promptLogprobs.map(({ text }) => text).join(''), TEXT);
  const only = await model.complete(TEXT, { promptLogprobs: 0, maxTokens: 1 }).result;
  assert.deepEqual([only.logprobs, only.promptLogprobs.every(({ top }) => top.length === 0)], [undefined, true]);
  const one = await model.complete([GOLDEN[0] % model.info.tokens], { promptLogprobs: 1, maxTokens: 0 }).result;
  assert.deepEqual(one.promptLogprobs.map(({ logprob }) => logprob), [null]);
  const [end] = model.info.endTokens;
  const ended = await model.complete(TEXT, { ...options, logitBias: { [end]: 100 }, maxTokens: 5 }).result;
  assert.deepEqual([ended.text, ended.finishReason, ended.logprobs.map(({ id }) => id)], ['', 'stop', [end]], 'the token that ends it counts, unbiased');
  assert.ok(ended.logprobs[0].logprob < 0);
});

test('who stops while the prompt is thought of has what there is, and others go on', async () => {
  const long = await model.tokenize(TEXT.repeat(20));
  const other = model.complete('a', { seed: 1, maxTokens: 50, logitBias: Object.fromEntries(model.info.endTokens.map((id) => [id, -Infinity])) });
  const reply = model.complete(long, { promptLogprobs: 1 });
  setTimeout(() => reply.stop(), 30);
  const { finishReason, promptLogprobs } = await reply.result;
  assert.deepEqual([finishReason, promptLogprobs], ['aborted', undefined]);
  const controller = new AbortController();
  const aborted = model.complete(long, { promptLogprobs: 1, signal: controller.signal });
  setTimeout(() => controller.abort(), 30);
  await assert.rejects(aborted.result, { name: 'AbortError' });
  assert.equal((await other.result).usage.completionTokens, 50);
  await rejectsWith(model.complete('a', { promptLogprobs: 21 }).result, 'use/param', /options\.promptLogprobs/);
  await rejectsWith(model.chat('a', { promptLogprobs: 1 }).result, 'use/param', /options\.promptLogprobs is not an option here/);
  await rejectsWith(model.complete('many '.repeat(5000), { promptLogprobs: 1 }).result, 'use/context');
  await rejectsWith(model.complete('', { promptLogprobs: 1 }).result, 'use/empty');
});

test('what is thought of a prompt is known to its own scope alone', async () => {
  const prompt = 'Who lives in the third house behind the mill, and what does he grind on Sundays? '.repeat(3);
  const cached = async (cacheScope, promptLogprobs) => (await model.complete(prompt, { cacheScope, promptLogprobs, maxTokens: 1 }).result).usage.cachedTokens;
  await cached(7, 1);
  const [own, others, nobody] = [await cached(7), await cached(8), await cached(undefined)];
  assert.ok(own > 32, `${own} tokens are known to whose prompt it was`);
  assert.deepEqual([others, nobody], [0, 0]);
});

/** The payload of lm-eval's loglikelihood tasks, and what it makes of the answer: the sum over what follows the context, without the last token. */
const lmEval = (prompt) => ({ model: 'x', prompt, temperature: 0, max_tokens: 1, logprobs: 1, seed: 1234, echo: true });
function loglikelihoods({ choices }, contexts) {
  return choices.toSorted((a, b) => a.index - b.index).map(({ logprobs }, i) => {
    const own = logprobs.token_logprobs.slice(contexts[i], -1);
    const isGreedy = logprobs.top_logprobs.slice(contexts[i], -1).every((top, k) => own[k] === Math.max(...Object.values(top)));
    return [own.reduce((sum, number) => sum + number, 0), isGreedy];
  });
}

test('lm-eval\'s loglikelihood requests are answered by the logits', async () => {
  const pairs = [['The capital of Kenya is', ' Nairobi.'], ['What is 2 plus 2?', ' It is 4'], ['Owls', ' sleep \u{1f989} by day'], ['What is the capital of Kenya?', '']];
  const tokenized = await Promise.all(pairs.map(async ([context, more]) => {
    const before_ = await model.tokenize(context);
    return { context: before_.length, ids: [...before_, ...await model.tokenize(more)] };
  }));
  const greedy = await model.complete(tokenized[1].ids.slice(0, tokenized[1].context), { temperature: 0, maxTokens: 4 }).result;
  tokenized.push({ context: tokenized[1].context, ids: [...tokenized[1].ids.slice(0, tokenized[1].context), ...await model.tokenize(greedy.text)] });
  const wanted = await Promise.all(tokenized.map(async ({ ids, context }) => {
    const all = wantedOf(await model.logits(ids), ids, model.info).slice(context - 1);
    return [all.reduce((sum, { logprob }) => sum + logprob, 0), all.every(({ logprob, most }) => logprob === most)];
  }));
  const contexts = tokenized.map(({ context }) => context);
  const ids = tokenized.map((one) => one.ids);
  assert.deepEqual(loglikelihoods(await client.completions.create(lmEval(ids)), contexts), wanted);
  for (const [i, prompt] of ids.entries()) {
    assert.deepEqual(loglikelihoods(await client.completions.create(lmEval([prompt])), [contexts[i]]), [wanted[i]]);
    assert.deepEqual(loglikelihoods(await client.completions.create(lmEval(prompt)), [contexts[i]]), [wanted[i]]);
  }
  const texts = await client.completions.create(lmEval(pairs.slice(0, 2).map((pair) => pair.join(''))));
  assert.ok(texts.choices.every(({ text }, i) => text.startsWith(pairs[i].join(''))));
  const [end] = model.info.endTokens;
  const ended = await client.completions.create({ ...lmEval([ids[0]]), logit_bias: { [end]: 100 } });
  assert.deepEqual(loglikelihoods(ended, contexts), [wanted[0]], 'a reply that is over at once has a token all the same');
});

test('echo: a text, ids, several choices, in pieces; offsets and tokens cover all of it', async () => {
  const ids = await model.tokenize(TEXT);
  for (const prompt of [TEXT, ids]) {
    const body = { model: 'x', prompt, echo: true, temperature: 1, seed: 5, max_tokens: 6, n: 2, logprobs: 3 };
    const whole = await client.completions.create(body);
    const apart = await client.completions.create({ ...body, echo: false });
    for (const [i, { text, logprobs }] of whole.choices.entries()) {
      assert.equal(text, TEXT + apart.choices[i].text);
      assert.equal(logprobs.tokens.slice(0, ids.length).join(''), TEXT);
      assert.deepEqual([logprobs.token_logprobs[0], logprobs.top_logprobs[0], logprobs.text_offset[0]], [null, null, 0]);
      assert.deepEqual(logprobs.text_offset.slice(1, 3), [logprobs.tokens[0].length, logprobs.tokens[0].length + logprobs.tokens[1].length]);
      assert.ok(logprobs.top_logprobs.slice(1).every((top, k) => top[logprobs.tokens[k + 1]] !== undefined && Object.keys(top).length <= 4));
      assert.ok(logprobs.token_logprobs.length > ids.length);
    }
    assert.deepEqual(whole.choices[1].logprobs.token_logprobs.slice(0, ids.length), whole.choices[0].logprobs.token_logprobs.slice(0, ids.length));
    const gathered = whole.choices.map(() => ({ text: '', tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] }));
    for (const { choices } of await collect(await client.completions.create({ ...body, stream: true }))) {
      for (const { index, text, logprobs } of choices) {
        gathered[index].text += text;
        for (const name of ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset']) gathered[index][name].push(...logprobs?.[name] ?? []);
      }
    }
    assert.deepEqual(gathered, whole.choices.map(({ text, logprobs }) => ({ text, ...logprobs })));
  }
  const { choices: [plain] } = await client.completions.create({ model: 'x', prompt: ids, echo: true, max_tokens: 0 });
  assert.deepEqual([plain.text, plain.logprobs, plain.finish_reason], [TEXT, null, 'length']);
  const { choices: [read] } = await client.completions.create({ model: 'x', prompt: ids, echo: true, max_tokens: 0, logprobs: 20 });
  assert.deepEqual([read.logprobs.tokens.length, read.text], [ids.length, TEXT]);
  assert.ok(Object.keys(read.logprobs.top_logprobs[3]).length >= 19);
});

test('best_of gives the choices whose tokens are likeliest', async () => {
  const body = { model: 'x', prompt: TEXT, temperature: 1.5, seed: 3, max_tokens: 6, ignore_eos: true };
  const { choices: all } = await client.completions.create({ ...body, n: 5, logprobs: 0 });
  const mean = ({ logprobs: { token_logprobs: numbers } }) => (numbers.length ? numbers.reduce((a, b) => a + b, 0) / numbers.length : -Infinity);
  const wanted = all.toSorted((a, b) => mean(b) - mean(a)).slice(0, 2);
  const { choices, usage } = await client.completions.create({ ...body, n: 2, best_of: 5 });
  assert.deepEqual(choices.map(({ index, text, logprobs }) => [index, text, logprobs]), wanted.map(({ text }, i) => [i, text, null]));
  assert.ok(usage.completion_tokens > 12 && usage.prompt_tokens > 5);
  const told = await client.completions.create({ ...body, prompt: [TEXT, 'Hi'], best_of: 3, logprobs: 1 });
  assert.deepEqual(told.choices.map(({ index, logprobs }) => [index, logprobs.tokens.length > 0]), [[0, true], [1, true]]);
  for (const [more, param] of [[{ n: 2, best_of: 1 }, 'best_of'], [{ best_of: 9 }, 'best_of'], [{ best_of: 2, stream: true }, 'best_of'], [{ best_of: 'x' }, 'best_of'],
    [{ echo: 1 }, 'echo'], [{ echo: true, best_of: 2 }, 'echo'], [{ echo: true, suffix: 'x' }, 'echo'], [{ suffix: 5 }, 'suffix'], [{ logprobs: 21 }, 'logprobs']]) {
    const error = await client.completions.create({ ...body, ...more }).catch((reason) => reason);
    assert.ok(error instanceof OpenAI.BadRequestError && error.param === param, `${JSON.stringify(more)}: ${error}`);
  }
});

test('a suffix is what the text is filled in before, where the vocabulary has tokens for that', async () => {
  const [[prefix], [behind], [middle]] = await Promise.all(['prefix', 'suffix', 'middle'].map((name) => idOf(`<|fim_${name}|>`)));
  const ids = [prefix, ...await model.tokenize('def f('), behind, ...await model.tokenize('  return x'), middle];
  const options = { temperature: 0, maxTokens: 8 };
  const wanted = await model.complete(ids, options).result;
  const filled = await model.complete('def f(', { ...options, suffix: '  return x' }).result;
  assert.deepEqual([filled.text, filled.usage.promptTokens], [wanted.text, ids.length]);
  const { choices: [choice], usage } = await client.completions.create({ model: 'x', prompt: 'def f(', suffix: '  return x', temperature: 0, max_tokens: 8 });
  assert.deepEqual([choice.text, usage.prompt_tokens], [wanted.text, ids.length]);
  assert.equal((await model.complete('', { ...options, suffix: 'x' }).result).usage.promptTokens, 4);
  await rejectsWith(model.complete('a', { suffix: 'y '.repeat(200_000) }).result, 'use/context');
  const duo = await load(`${PROJECT}/tests/fixtures/golden/duo.F32.gguf`, { workerUrl: WORKER });
  if ((await duo.tokenize('x').catch(() => null)) && !(await hasMarks(duo))) await rejectsWith(duo.complete('a', { suffix: 'b' }).result, 'use/param', /options\.suffix needs a model/);
  await duo.dispose();
});

/** A token by its text. */
async function idOf(text, of = model) {
  const all = await of.detokenize(Array.from({ length: of.info.tokens }, (_, id) => id), { bytes: true });
  const bytes = Buffer.from(text);
  return all.flatMap((one, id) => (bytes.equals(one) ? [id] : []));
}

const hasMarks = async (of) => (await idOf('<|fim_middle|>', of)).length > 0;

test('what lm-eval asks of a tokenizer, in vLLM\'s words', async () => {
  const ask = async (method, path, body) => {
    const response = await fetch(`${server.base}${path}`, { method, ...(body && { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }) });
    return { status: response.status, ...await response.json() };
  };
  const info = await ask('GET', '/tokenizer_info');
  const { specialTokens, contextSize, endTokens } = model.info;
  assert.deepEqual([info.eos_token, info.pad_token, info.model_max_length, info.chat_template, info.add_bos_token],
    [specialTokens.eos_token, specialTokens.pad_token, contextSize, 'template', false]);
  const ids = await model.tokenize(TEXT);
  const said = await ask('POST', '/tokenize', { prompt: TEXT, add_special_tokens: false });
  assert.deepEqual([said.tokens, said.count, said.max_model_len, said.token_strs], [ids, ids.length, contextSize, null]);
  const { token_strs: texts } = await ask('POST', '/tokenize', { prompt: TEXT, return_token_strs: true });
  assert.equal(texts.join(''), TEXT);
  const [eos] = (await ask('POST', '/tokenize', { prompt: info.eos_token, add_special_tokens: false })).tokens;
  assert.ok(endTokens.includes(eos), 'its text alone is the token');
  assert.ok((await ask('POST', '/tokenize', { prompt: `${info.eos_token} ` })).count > 1, 'within a text it is text');
  assert.equal((await ask('POST', '/detokenize', { tokens: ids })).prompt, TEXT);
  const messages = [{ role: 'user', content: 'Hi' }];
  const chat = await ask('POST', '/tokenize', { messages, add_generation_prompt: false });
  assert.deepEqual(chat.tokens, await model.tokenize(messages, { generationPrompt: false }));
  for (const body of [{ prompt: 5 }, { messages: 'x' }, {}]) assert.equal((await ask('POST', '/tokenize', body)).status, 400);
});

test('the tokens that a request\'s prompt would have are those that its usage says', async () => {
  const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object', properties: { a: { type: 'integer' } } } } }];
  const messages = [{ role: 'system', content: 'Be short.' }, { role: 'user', content: TEXT }];
  for (const [path, body] of [
    ['/chat/completions', { messages }], ['/chat/completions', { messages, tools }], ['/chat/completions', { messages, reasoning_effort: 'high' }],
    ['/chat/completions', { messages: [...messages, { role: 'assistant', content: 'It' }], continue_final_message: true }],
    ['/completions', { prompt: TEXT }], ['/completions', { prompt: [TEXT, 'Hi'] }], ['/completions', { prompt: [[5, 6, 7]] }], ['/completions', { prompt: 'a', suffix: 'b c' }],
  ]) {
    const post = (to) => client.post(to, { body: { model: 'x', max_tokens: 1, ...body } });
    const { object, input_tokens: count } = await post(`${path}/input_tokens`);
    assert.deepEqual([object, count], ['response.input_tokens', (await post(path)).usage.prompt_tokens], JSON.stringify(body));
  }
  await assert.rejects(client.post('/chat/completions/input_tokens', { body: { messages: 5 } }), OpenAI.BadRequestError);
});

test('what vLLM\'s clients hold replies to, by its names of now and of before', async () => {
  const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 0, maximum: 9 } }, required: ['n'], additionalProperties: false };
  const messages = [{ role: 'user', content: 'A number?' }];
  const says = async (body) => (await client.post('/chat/completions', { body: { model: 'x', messages, seed: 1, max_tokens: 40, ...body } })).choices[0].message.content;
  for (const body of [{ guided_json: schema }, { guided_json: JSON.stringify(schema) }, { structured_outputs: { json: schema } }, { structured_outputs: { json: JSON.stringify(schema) } }]) {
    assert.match(await says({ ...body, guided_decoding_backend: 'xgrammar' }), /^\{"n":\d\}$/, JSON.stringify(body));
  }
  for (const body of [{ guided_regex: 'a[0-9]{3}' }, { structured_outputs: { regex: 'a[0-9]{3}' } }]) assert.match(await says(body), /^a\d{3}$/);
  for (const body of [{ guided_choice: ['yes', 'no'] }, { structured_outputs: { choice: ['yes', 'no'] } }]) assert.match(await says(body), /^(?:yes|no)$/);
  for (const body of [{ guided_grammar: 'root ::= "x" [0-9]' }, { structured_outputs: { grammar: 'root ::= "x" [0-9]' } }]) assert.match(await says(body), /^x\d$/);
  assert.match(await says({ structured_outputs: { json_object: true, regex: null } }), /^[{[\d"tfn-]/);
  assert.match((await client.completions.create({ model: 'x', prompt: 'a', max_tokens: 20, guided_choice: ['left', 'right'] })).choices[0].text, /^(?:left|right)$/);
  for (const [body, param] of [
    [{ guided_json: '{' }, 'guided_json'], [{ structured_outputs: 5 }, 'structured_outputs'], [{ guided_choice: [] }, 'guided_choice'], [{ structured_outputs: { regex: '(' } }, null],
    [{ structured_outputs: { structural_tag: '{}' } }, 'structured_outputs.structural_tag'], [{ guided_regex: 'a', guided_grammar: 'root ::= "a"' }, 'guided_grammar'],
  ]) {
    const error = await says(body).catch((reason) => reason);
    assert.ok(error instanceof OpenAI.BadRequestError && error.param === param, `${JSON.stringify(body)}: ${error.param} ${error}`);
  }
});

test('the same without a server, and of a model that is a fake', async () => {
  const body = { prompt: TEXT, echo: true, logprobs: 2, max_tokens: 2, temperature: 0 };
  const { choices: wanted } = await client.completions.create({ model: 'x', ...body });
  assert.deepEqual((await openai(model).completions.create(body)).choices, wanted);
  const fake = fakeModel('three four');
  const { choices: [{ text, logprobs }] } = await openai(fake).completions.create({ ...body, prompt: 'one two' });
  assert.deepEqual([text, logprobs.tokens, logprobs.token_logprobs], ['one twothree four', ['one', ' two', 'three', ' four'], [null, 0, 0, 0]]);
  const { choices: [plain] } = await openai(fake).completions.create({ prompt: await fake.tokenize('one two'), echo: true });
  assert.deepEqual([plain.text, plain.logprobs], ['one twothree four', null]);
  assert.deepEqual((await openai(fake).completions.create({ prompt: 'x', best_of: 3, n: 2 })).choices.map(({ index, logprobs: none }) => [index, none]), [[0, null], [1, null]]);
});
