// SPDX-License-Identifier: MIT
// POST /v1/responses as the official client asks for it: of openaiFetch(), of openai(), and of a server. The events' order, what is kept and for whom,
// what goes on in the background, and what is refused by the request's own words.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { Reader, Shelf } from '../../../js/facades/responses-store.js';
import { openai, openaiFetch } from '../../../js/openai.js';
import { fakeModel } from '../../../js/testing.js';
import { collect, until } from '../support/helper.mjs';
import { dataOf, endless, loadDemo, playedModel, result, startServer } from '../support/serve-host.mjs';

const PARAMETERS = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } }, required: ['city'] };
const TOOL = { type: /** @type {const} */ ('function'), name: 'weather', description: 'of a city', parameters: PARAMETERS, strict: null };
const CALL = { thinking: 'Hm.', text: 'Wait.', toolCalls: [{ name: 'weather', arguments: { city: 'Oslo' } }] };
const ASK = { model: 'any', input: 'Hi' };

const hosts = [];

/** A server that ends with the tests. */
async function serverOf(options) {
  const host = await startServer(options);
  hosts.push(host);
  return host;
}

let server;
let client;
before(async () => {
  server = await serverOf({ model: await loadDemo(), rules: { keys: ['one', 'two'] } });
  client = new OpenAI({ baseURL: server.url, apiKey: 'one', maxRetries: 0 });
});
after(() => Promise.all(hosts.map((host) => host.end())));

const over = (model) => new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: openaiFetch(model) });
const refusal = (promise) => promise.then(() => assert.fail('it was taken'), (error) => error);

/** A model that says what it is asked, too. */
function listening(script) {
  const model = fakeModel(script);
  const asked = [];
  return { asked, info: model.info, chat: (messages, options) => { asked.push({ messages, options }); return model.chat(messages, options); } };
}

test('a response, whole: what the model says, its usage, what it repeats of its request', async () => {
  const said = await server.served.within(9).chat([{ role: 'user', content: 'Hi' }], { temperature: 0, maxTokens: 12 }).result;
  const answer = await client.responses.create({ ...ASK, temperature: 0, max_output_tokens: 12, metadata: { a: 'b' } });
  assert.deepEqual([answer.object, answer.model, answer.output_text, answer.status], ['response', 'demo', said.text, said.finishReason === 'length' ? 'incomplete' : 'completed']);
  assert.deepEqual([answer.temperature, answer.max_output_tokens, answer.metadata, answer.store, answer.truncation], [0, 12, { a: 'b' }, true, 'disabled']);
  const { input_tokens: read, output_tokens: written, total_tokens: all, input_tokens_details: { cached_tokens: known } } = answer.usage;
  assert.deepEqual([read, written, all, typeof known], [said.usage.promptTokens, said.usage.completionTokens, read + written, 'number']);
  assert.match(answer.id, /^resp_[0-9a-f]{24}$/);
  const short = await client.responses.create({ ...ASK, max_output_tokens: 1 });
  assert.deepEqual([short.status, short.incomplete_details, short.output[0].status], ['incomplete', { reason: 'max_output_tokens' }, 'incomplete']);
});

test('a stream tells each item in order, and ends with the same response', async () => {
  const body = { ...ASK, tools: [TOOL], reasoning: { effort: /** @type {const} */ ('low') }, stream: /** @type {const} */ (true) };
  for (const face of [over(fakeModel([CALL])), openai(fakeModel([CALL]))]) {
    const events = await collect(await face.responses.create(body));
    assert.deepEqual(events.map(({ type }) => type.replace('response.', '')), [
      'created', 'in_progress',
      'output_item.added', 'content_part.added', 'reasoning_text.delta', 'reasoning_text.done', 'content_part.done', 'output_item.done',
      'output_item.added', 'content_part.added', 'output_text.delta', 'output_text.done', 'content_part.done', 'output_item.done',
      'output_item.added', 'function_call_arguments.delta', 'function_call_arguments.done', 'output_item.done', 'completed',
    ]);
    assert.deepEqual(events.map(({ sequence_number: number }) => number), events.map((_, i) => i));
    const { output, status } = events.at(-1).response;
    assert.deepEqual(output, events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item));
    assert.deepEqual([status, output.map(({ type }) => type)], ['completed', ['reasoning', 'message', 'function_call']]);
    assert.deepEqual([output[0].content[0].text, output[1].content[0].text, output[2].name, output[2].arguments], ['Hm.', 'Wait.', 'weather', '{"city":"Oslo"}']);
    assert.ok(events.every(({ item_id: id, output_index: index }) => id === undefined || id === output[index].id));
    assert.deepEqual(events[0].response.output, []);
  }
});

test("the client's own gathering of a stream, a format by zod, and probabilities", async () => {
  const stream = client.responses.stream({ ...ASK, input: 'Tell me a story.', temperature: 0, max_output_tokens: 12, include: ['message.output_text.logprobs'], top_logprobs: 2 });
  const gathered = await stream.finalResponse();
  const [{ content: [{ text, logprobs }] }] = gathered.output;
  assert.ok(text.length > 0 && logprobs.length === 12 && logprobs.every(({ top_logprobs: top }) => top.length === 2));
  assert.equal(logprobs.map(({ token }) => token).join(''), text);
  const format = zodTextFormat(z.object({ city: z.string().max(10), n: z.number().int().min(0).max(9) }), 'place');
  const { output_parsed: parsed } = await client.responses.parse({ ...ASK, temperature: 0, text: { format } });
  assert.ok(typeof parsed.city === 'string' && Number.isInteger(parsed.n));
});

test('a conversation goes on from a response, by calls and their results, by items by their ids, and by items alone', async () => {
  const model = listening([CALL, 'Cold.', 'Yes.', 'Cold.', 'Cold.']);
  const face = over(model);
  const first = await face.responses.create({ ...ASK, instructions: 'Be brief.', tools: [TOOL], reasoning: { effort: 'low', summary: 'auto' } });
  const call = first.output.find(({ type }) => type === 'function_call');
  const output = { type: /** @type {const} */ ('function_call_output'), call_id: call.call_id, output: '-3' };
  const second = await face.responses.create({ ...ASK, previous_response_id: first.id, input: [output], tools: [TOOL] });
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: 'Wait.', reasoning_content: 'Hm.', toolCalls: [{ id: call.call_id, name: 'weather', arguments: '{"city":"Oslo"}' }] },
    { role: 'tool', content: '-3', toolCallId: call.call_id },
  ];
  assert.deepEqual(model.asked[0].messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Hi' }]);
  assert.deepEqual(model.asked[1].messages, messages, 'instructions are of one request');
  await face.responses.create({ ...ASK, previous_response_id: second.id, input: 'Sure?' });
  assert.deepEqual(model.asked[2].messages, [...messages, { role: 'assistant', content: 'Cold.' }, { role: 'user', content: 'Sure?' }]);
  const user = { role: /** @type {const} */ ('user'), content: 'Hi' };
  const references = first.output.map(({ id }) => ({ type: /** @type {const} */ ('item_reference'), id }));
  for (const items of [[user, ...references, output], [user, ...first.output, output]]) {
    await face.responses.create({ ...ASK, input: items, tools: [TOOL] });
    assert.deepEqual(model.asked.at(-1).messages, messages);
  }
  assert.deepEqual([first.output[0].summary[0].text, first.output[0].content], ['Hm.', undefined], 'the summary that was asked for');
});

test('tools of the type custom are given a text', async () => {
  const tool = { type: /** @type {const} */ ('custom'), name: 'say', description: 'it' };
  const script = [{ text: '', toolCalls: [{ name: 'say', arguments: { input: 'a "b"\n' } }] }, 'Done.'];
  const model = listening([script[0], ...script]);
  const face = over(model);
  const events = await collect(await face.responses.create({ ...ASK, tools: [tool], stream: true }));
  assert.deepEqual(events.map(({ type }) => type.replace('response.', '')), [
    'created', 'in_progress', 'output_item.added', 'custom_tool_call_input.delta', 'custom_tool_call_input.done', 'output_item.done', 'completed']);
  const { output: [call], ...first } = await face.responses.create({ ...ASK, tools: [tool] });
  assert.deepEqual([call.type, call.name, call.input, call.status], ['custom_tool_call', 'say', 'a "b"\n', 'completed']);
  const output = { type: /** @type {const} */ ('custom_tool_call_output'), call_id: call.call_id, output: 'ok' };
  await face.responses.create({ ...ASK, tools: [tool], previous_response_id: first.id, input: [output] });
  const [, said, result] = model.asked[2].messages;
  assert.deepEqual([said.toolCalls[0].arguments, result.content, result.toolCallId], [{ input: 'a "b"\n' }, 'ok', call.call_id]);
  const lark = { ...tool, format: { type: /** @type {const} */ ('grammar'), syntax: /** @type {const} */ ('lark'), definition: 'x' } };
  const refused = await refusal(face.responses.create({ ...ASK, tools: [lark] }));
  assert.equal(refused.status, 400);
  assert.match(refused.param, /^tools\[0\]\.format/);
});

test('a text behind a call, and a second thought, belong to the reply with the call', async () => {
  const model = listening(['x']);
  const call = { type: /** @type {const} */ ('function_call'), call_id: 'c', name: 'weather', arguments: '{}' };
  const items = [
    { role: /** @type {const} */ ('assistant'), content: 'Wait' }, call, { role: /** @type {const} */ ('assistant'), content: [{ type: /** @type {const} */ ('output_text'), text: '.' }] },
    { type: /** @type {const} */ ('reasoning'), id: 'r', summary: [{ type: /** @type {const} */ ('summary_text'), text: 'Hm.' }] }, { ...call, call_id: 'd' },
    { type: /** @type {const} */ ('function_call_output'), call_id: 'd', output: '1' }, { type: /** @type {const} */ ('function_call_output'), call_id: 'c', output: '2' },
  ];
  await over(model).responses.create({ ...ASK, input: [{ role: 'user', content: 'Hi' }, ...items], tools: [TOOL] });
  const [, message, ...results] = model.asked[0].messages;
  assert.deepEqual([message.content, message.reasoning_content, message.toolCalls.map(({ id }) => id)], ['Wait.', 'Hm.', ['c', 'd']]);
  assert.deepEqual(results.map(({ toolCallId }) => toolCallId), ['d', 'c']);
});

test('what is thought comes back from clients that keep conversations by themselves', async () => {
  const model = listening([{ thinking: 'Hm, ß.', text: 'A.' }, 'B.']);
  const face = over(model);
  const { output: [{ id, type, encrypted_content: sealed }] } = await face.responses.create({ ...ASK, store: false, include: ['reasoning.encrypted_content'] });
  await face.responses.create({ ...ASK, store: false, input: [{ id, type, summary: [], encrypted_content: sealed }, { role: 'assistant', content: 'A.' }, { role: 'user', content: 'x' }] });
  assert.equal(model.asked[1].messages[0].reasoning_content, 'Hm, ß.');
  const refused = await refusal(face.responses.create({ ...ASK, input: [{ id, type, summary: [], encrypted_content: '?' }] }));
  assert.deepEqual([refused.status, refused.param], [400, 'input[0].encrypted_content']);
});

test('what is kept can be asked for, page by page, and deleted; what is not, cannot', async () => {
  const { id, output } = await client.responses.create({ ...ASK, max_output_tokens: 3 });
  const next = await client.responses.create({ ...ASK, max_output_tokens: 3, previous_response_id: id, input: [{ role: 'user', content: 'And?' }] });
  assert.deepEqual((await client.responses.retrieve(id)).output, output);
  const items = await collect(client.responses.inputItems.list(next.id, { limit: 1, order: 'asc' }));
  assert.deepEqual(items.map(({ role, content: [{ text }] }) => [role, text]), [['user', 'Hi'], ['assistant', output[0].content[0].text], ['user', 'And?']]);
  assert.equal((await client.responses.inputItems.list(next.id)).data[0].content[0].text, 'And?', 'the last one first');
  await client.responses.delete(id);
  for (const ask of [() => client.responses.retrieve(id), () => client.responses.inputItems.list(id)]) assert.ok(await refusal(ask()) instanceof OpenAI.NotFoundError);
  const { status, code, param } = await refusal(client.responses.create({ ...ASK, previous_response_id: next.id }));
  assert.deepEqual([status, code, param], [400, 'previous_response_not_found', 'previous_response_id']);
  const unkept = await client.responses.create({ ...ASK, max_output_tokens: 1, store: false });
  assert.equal((await refusal(client.responses.retrieve(unkept.id))).status, 404);
});

test("nobody sees what another key's are", async () => {
  const other = new OpenAI({ baseURL: server.url, apiKey: 'two', maxRetries: 0 });
  const { id, output: [item] } = await client.responses.create({ ...ASK, max_output_tokens: 3 });
  const asked = [
    () => other.responses.retrieve(id), () => other.responses.delete(id), () => other.responses.cancel(id), () => other.responses.inputItems.list(id),
    () => other.responses.create({ ...ASK, previous_response_id: id }), () => other.responses.create({ ...ASK, input: [{ type: 'item_reference', id: item.id }] }),
  ];
  for (const ask of asked) assert.ok([400, 404].includes((await refusal(ask())).status));
  assert.equal((await client.responses.retrieve(id)).id, id);
});

test('what is kept is bounded for each key, and what a request reads of it', () => {
  const shelf = new Shelf();
  const kept = (id, letters, previous = null) => shelf.store({ response: { id, output: [{ id: `o${id}` }] }, input: [{ id: `i${id}`, text: 'x'.repeat(letters) }], previous });
  for (let i = 0; i < 1100; i++) kept(`r${i}`, 10);
  assert.deepEqual([shelf.response('r99'), shelf.response('r100').id], [null, 'r100'], 'a thousand');
  for (let i = 0; i < 5; i++) kept(`big${i}`, 4e6);
  assert.deepEqual([shelf.response('r1099'), shelf.response('big0'), shelf.response('big4').id], [null, null, 'big4'], 'and sixteen million letters');
  assert.throws(() => new Reader(shelf).item('ibig0', 'input[0]'), { code: 'use/param' });
  const reader = new Reader(shelf);
  assert.equal(reader.item('ibig4', 'input[0]').id, 'ibig4');
  assert.throws(() => reader.item('ibig4', 'input[1]'), /conversation of more than/);
  kept('last', 2e6, 'big4');
  assert.throws(() => new Reader(shelf).before('last'), /conversation of more than/);
  kept('huge', 2 ** 24);
  assert.equal(shelf.response('huge'), null, 'what has no room is not kept');
});

test('one in the background is asked for until it is there, or cancelled', async () => {
  let finish;
  const plays = [(push) => ({ promise: new Promise((resolve) => { finish = () => { push({ type: 'text', text: 'done' }); resolve(result('done')); }; }) }), endless, (push) => ({ promise: Promise.reject(new Error('lost')) })];
  const host = await serverOf({ model: playedModel((push, call) => plays.shift()(push, call)) });
  const face = new OpenAI({ baseURL: host.url, apiKey: 'none', maxRetries: 0 });
  const body = { ...ASK, background: true };
  const first = await face.responses.create(body);
  assert.deepEqual([first.status, first.output, (await face.responses.retrieve(first.id)).status], ['queued', [], 'in_progress']);
  assert.equal((await refusal(face.responses.create({ ...ASK, previous_response_id: first.id }))).code, 'previous_response_not_found');
  finish();
  await until(async () => (await face.responses.retrieve(first.id)).status === 'completed');
  assert.equal((await face.responses.retrieve(first.id)).output_text, 'done');
  const second = await face.responses.create(body);
  const cancelled = await face.responses.cancel(second.id);
  assert.deepEqual([cancelled.status, cancelled.id], ['cancelled', second.id]);
  await host.idle();
  const third = await face.responses.create(body);
  await until(async () => (await face.responses.retrieve(third.id)).status === 'failed');
  assert.match((await face.responses.retrieve(third.id)).error.message, /lost/);
  assert.equal((await refusal(face.responses.create({ ...body, stream: true }))).code, 'unsupported_parameter');
  assert.equal((await refusal(face.responses.create({ ...body, store: false }))).param, 'background');
  assert.equal((await refusal(client.responses.cancel((await client.responses.create({ ...ASK, max_output_tokens: 1 })).id))).status, 400);
});

test('a failure in a stream is told by its events', async () => {
  const play = (push, { options }) => {
    options.onPrefill({ done: 3, total: 3, cached: 0 });
    push({ type: 'text', text: 'half' });
    return { promise: new Promise((_, reject) => { setTimeout(reject, 50, new Error('lost')); }) };
  };
  const host = await serverOf({ model: playedModel(play), site: {} });
  const answer = await fetch(`${host.url}/responses`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ...ASK, stream: true }) });
  const text = await answer.text();
  const events = dataOf(text);
  assert.deepEqual(events.slice(-3).map(({ type }) => type), ['response.output_item.done', 'error', 'response.failed']);
  assert.deepEqual([...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name), events.map(({ type }) => type), 'each event has its name');
  const { response, sequence_number: number } = events.at(-1);
  assert.deepEqual([response.status, response.output[0].status, response.output[0].content[0].text, number], ['failed', 'incomplete', 'half', events.length - 1]);
  assert.match(events.at(-2).message, /lost/);
});

test('what is refused is named in the words of the request', async () => {
  const image = { type: 'input_image', image_url: 'https://example.org/x.png' };
  const rows = [
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type', 'unsupported_parameter'], [{ max_output_tokens: 'a' }, 'max_output_tokens'],
    [{ tools: [{ type: 'function', name: 'a', parameters: 5 }] }, 'tools[0].parameters'],
    [{ input: [{ role: 'user', content: [image] }] }, 'input[0].content[0].image_url', 'unsupported_parameter'],
    [{ input: [{ role: 'user', content: [{ type: 'input_file' }] }] }, 'input[0].content[0].type', 'unsupported_parameter'],
    [{ input: [{ type: 'computer_call' }] }, 'input[0].type', 'unsupported_parameter'], [{ input: 5 }, 'input'], [{ input: [] }, 'input'],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0].id', 'item_not_found'], [{ input: [5] }, 'input[0]'],
    [{ input: [{ role: 'user', content: [{ type: 'input_text', text: 5 }] }], instructions: 'x' }, 'input[0].content[0].text'],
    [{ text: { format: { type: 'json_schema', name: 'x' } } }, 'text.format.schema'], [{ text: { format: { type: 'xml' } } }, 'text.format.type', 'unsupported_parameter'],
    [{ reasoning: { effort: 5 } }, 'reasoning.effort'], [{ conversation: 'conv_1' }, 'conversation', 'unsupported_parameter'],
    [{ prompt: { id: 'x' } }, 'prompt', 'unsupported_parameter'], [{ truncation: 'no' }, 'truncation'], [{ metadata: { a: 1 } }, 'metadata'],
    [{ store: 'yes' }, 'store'], [{ top_logprobs: 99 }, 'top_logprobs'], [{ instructions: [] }, 'instructions'],
  ];
  for (const [more, param, code = 'invalid_value'] of rows) {
    const error = await refusal(client.responses.create({ ...ASK, ...more }));
    assert.deepEqual([error.status, error.param, error.code], [400, param, code], JSON.stringify(more));
    assert.ok(error.message.includes(param), error.message);
  }
  assert.ok(await client.responses.create({ ...ASK, max_output_tokens: 1, service_tier: 'auto', user: 'x', prompt_cache_key: 'y', text: { verbosity: 'low' } }), 'what changes nothing is taken');
});

test('a call that is cut off is told as one, and no text of it', async () => {
  const parameters = { type: 'object', properties: { text: { type: 'string', minLength: 40, maxLength: 60 } }, required: ['text'] };
  const body = { ...ASK, temperature: 0, max_output_tokens: 30, tools: [{ ...TOOL, parameters }], tool_choice: /** @type {const} */ ('required') };
  const whole = await client.responses.create(body);
  const events = await collect(await client.responses.create({ ...body, stream: true }));
  for (const { status, output: [call, ...rest] } of [whole, events.at(-1).response]) {
    assert.deepEqual([status, call.type, call.status, rest], ['incomplete', 'function_call', 'incomplete', []]);
    assert.ok(call.arguments.startsWith('{'), call.arguments);
  }
  const only = await client.responses.create({ ...body, max_output_tokens: 300, parallel_tool_calls: false, tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'weather' }] } });
  assert.deepEqual(only.output.filter(({ type }) => type === 'function_call').length, 1);
  const output = { type: /** @type {const} */ ('function_call_output'), call_id: whole.output[0].call_id, output: 'no' };
  assert.ok(await client.responses.create({ ...ASK, max_output_tokens: 1, tools: body.tools, previous_response_id: whole.id, input: [output] }), 'and comes back');
});

test('a conversation that is too long drops its beginning where the request says so', async () => {
  const model = listening(['x', 'y']);
  await over(model).responses.create({ ...ASK, truncation: 'auto' });
  await over(model).responses.create({ ...ASK, truncation: 'disabled' });
  assert.deepEqual(model.asked.map(({ options: { overflow } }) => overflow), ['drop', undefined]);
});
