// SPDX-License-Identifier: MIT
// Tools through the faces of the OpenAI API: what a request asks of a model, what its answers say, and quern/remote over a server that does so.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf, chatCompletion, chatRequest, errorOf } from '../../js/facades/openai.js';
import { openaiFetch } from '../../js/facades/openai-client.js';
import { remote } from '../../js/facades/remote.js';
import { badParam } from '../../js/shared/errors.js';
import { collect, withServer } from './helper.mjs';
import { playedModel, result } from './serve-host.mjs';

const FUNCTION = { name: 'weather', description: 'Of a city', parameters: { type: 'object', properties: { city: { type: 'string' } } } };
const CALL = { id: 'c1', name: 'weather', arguments: { city: 'Oslo' } };
const TEXT = JSON.stringify(CALL.arguments);
const ASK = { messages: [{ role: 'user', content: 'Coat?' }], tools: [{ type: 'function', function: { ...FUNCTION, strict: true } }] };
const identity = { name: 'm', fingerprint: 'f' };

/** A model that says something and calls a tool; `asked` is what it was asked. */
function calling(asked = []) {
  return playedModel((push, { input, options }) => {
    asked.push({ messages: input, options });
    options.onPrefill?.({});
    push({ type: 'text', text: 'Wait.' });
    push({ type: 'tool-call-start', index: 0, id: CALL.id, name: CALL.name });
    for (const delta of [TEXT.slice(0, 5), TEXT.slice(5)]) push({ type: 'tool-call-delta', index: 0, delta });
    push({ type: 'tool-call', index: 0, ...CALL });
    return { promise: Promise.resolve(result('Wait.', { toolCalls: [CALL], finishReason: 'tool-calls' })) };
  });
}

const given = (options) => ({ tools: options.tools, toolChoice: options.toolChoice });

test('a request with tools is asked as the model takes it', async () => {
  const asked = [];
  const ask = (more) => chatCompletion(calling(asked), { ...ASK, ...more }, identity).whole();
  await ask({});
  assert.deepEqual(given(asked[0].options), { tools: [{ ...FUNCTION, json: JSON.stringify(ASK.tools[0]) }], toolChoice: undefined });
  for (const [choice, expected] of [['none', 'none'], ['required', 'required'], [{ type: 'function', function: { name: 'weather' } }, { name: 'weather' }]]) {
    await ask({ tool_choice: choice });
    assert.deepEqual(asked.at(-1).options.toolChoice, expected);
  }
  await ask({ tools: [], parallel_tool_calls: true });
  assert.deepEqual(given(asked.at(-1).options), { tools: undefined, toolChoice: undefined });
  await ask({ messages: [
    ...ASK.messages, { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: TEXT } }, { id: 'c2', type: 'function', function: { name: 'weather', arguments: '' } }] },
    { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: '3 °C' }] }, { role: 'assistant', content: 'Yes.', tool_calls: [] },
  ] });
  assert.deepEqual(asked.at(-1).messages.slice(1), [
    { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'weather', arguments: TEXT }, { id: 'c2', name: 'weather', arguments: '{}' }] },
    { role: 'tool', content: '3 °C', toolCallId: 'c1' }, { role: 'assistant', content: 'Yes.' },
  ]);
});

/** A tool as a client may write it: numbers, order and members that JavaScript would not keep, and what else there is. */
const WRITTEN = '{"function": {"strict": true, "parameters": {"type": "object", "properties": {"10": {"type": "number", "minimum": 1.0, "maximum": 9223372036854775807}, '
  + '"2": {"default": null, "multipleOf": 1e-5}}}, "name": "f"}, "type": "function", "cache_control": {"type": "ephemeral"}}';

test('tools come as the client wrote them, and say no more where they need not', async () => {
  const plain = JSON.stringify({ type: 'function', function: FUNCTION }, null, 2);
  const text = `{"messages": [{"role": "user", "content": "\\"tools\\": [1"}], "tools": [0], "n": 1, "\\u0074ools" : [ ${WRITTEN} , ${plain}]}`;
  const { tools } = chatRequest(bodyOf(text)).options;
  assert.deepEqual([tools[0].json, tools[0].name, tools[1]], [WRITTEN, 'f', FUNCTION]);
  const asked = [];
  const fetched = await openaiFetch(calling(asked))('http://m/v1/chat/completions', { method: 'POST', body: text });
  assert.deepEqual([fetched.status, asked[0].options.tools[0].json], [200, WRITTEN]);
  assert.equal(chatRequest(JSON.parse(text)).options.tools[0].json, JSON.stringify(JSON.parse(WRITTEN)), 'of values no text is known');
  const bare = { type: 'function', function: { name: 'now' } };
  assert.equal(chatRequest({ ...ASK, tools: [bare] }).options.tools[0].json, JSON.stringify(bare), 'no parameters are shown where none are said');
  for (const body of ['{"tools": 5}', '{"tools": {"a": 1}}', '[]', 'null', '5', '{"tools": []}', '{"tools": [5, null]}']) assert.deepEqual(bodyOf(body), JSON.parse(body));
  assert.throws(() => bodyOf('{"tools": [}'), SyntaxError);
  const cyclic = { type: 'function', function: { name: 'f' } };
  cyclic.self = cyclic;
  assert.throws(() => chatRequest({ ...ASK, tools: [cyclic] }), (error) => error.code === 'use/param' && error.detail.param === 'tools[0]');
  assert.equal(errorOf(badParam('options.tools[3].json', 'is wrong'), ASK).error.param, 'tools[3]');
});

test('what was thought is taken by each of its names', () => {
  for (const name of ['reasoning_content', 'thinking', 'reasoning']) {
    const { messages } = chatRequest({ messages: [{ role: 'assistant', content: 'a', [name]: 'hm' }, { role: 'assistant', content: 'b', [name]: null }] });
    assert.deepEqual(messages, [{ role: 'assistant', content: 'a', [name]: 'hm' }, { role: 'assistant', content: 'b' }]);
  }
});

test('what cannot be is refused by the request\'s own names', () => {
  for (const [more, param, code] of [
    [{ tools: 5 }, 'tools'], [{ tools: [5] }, 'tools[0]'], [{ tools: [{ type: 'custom' }] }, 'tools[0].type', 'unsupported_parameter'], [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tool_choice: { type: 'allowed_tools' } }, 'tool_choice.type', 'unsupported_parameter'], [{ parallel_tool_calls: false }, 'parallel_tool_calls', 'unsupported_parameter'],
    [{ functions: [FUNCTION] }, 'functions', 'unsupported_parameter'], [{ messages: [{ role: 'function', content: 'x' }] }, 'messages[0].role', 'unsupported_parameter'],
    [{ messages: [{ role: 'assistant', tool_calls: 5 }] }, 'messages[0].tool_calls'], [{ messages: [{ role: 'assistant', tool_calls: [{}] }] }, 'messages[0].tool_calls[0].type', 'unsupported_parameter'],
  ]) {
    assert.throws(() => chatCompletion(calling(), { ...ASK, ...more }, identity), (error) => {
      const { error: said, status } = errorOf(error, ASK);
      assert.deepEqual([status, said.param, said.code], [400, param, code ?? 'invalid_value'], said.message);
      return true;
    });
  }
  for (const [path, theirs] of [
    ['messages[1].toolCalls[0].arguments', 'messages[1].tool_calls[0].function.arguments'], ['options.tools[2].name', 'tools[2].function.name'], ['messages[1].toolCallId', 'messages[1].tool_call_id'],
    ['options.toolChoice', 'tool_choice'], ['messages[0].toolCalls[1].id', 'messages[0].tool_calls[1].id'],
  ]) assert.equal(errorOf(badParam(path, 'is wrong'), ASK).error.param, theirs);
});

test('an answer has its calls, whole and in pieces', async () => {
  const whole = await chatCompletion(calling(), ASK, identity).whole();
  const calls = [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: TEXT } }];
  assert.deepEqual([whole.choices[0].message, whole.choices[0].finish_reason], [{ role: 'assistant', content: 'Wait.', tool_calls: calls, refusal: null }, 'tool_calls']);
  const chunks = await collect(chatCompletion(calling(), { ...ASK, stream: true }, identity).chunks());
  assert.deepEqual(chunks.map(({ choices: [{ delta, finish_reason: reason }] }) => reason ?? delta), [
    { role: 'assistant', content: '' }, { content: 'Wait.' }, { tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '' } }] },
    { tool_calls: [{ index: 0, function: { arguments: TEXT } }] }, 'tool_calls',
  ]);
  const exact = '{"10": 1.0, "2": 9223372036854775807}';
  const precise = playedModel((push) => {
    push({ type: 'tool-call-start', index: 0, id: CALL.id, name: CALL.name });
    push({ type: 'tool-call-delta', index: 0, delta: exact });
    push({ type: 'tool-call', index: 0, ...CALL });
    return { promise: Promise.resolve(result('', { toolCalls: [CALL], finishReason: 'tool-calls' })) };
  });
  assert.equal((await chatCompletion(precise, ASK, identity).whole()).choices[0].message.tool_calls[0].function.arguments, exact, 'numbers and order as the model wrote them');
  const silent = playedModel(() => ({ promise: Promise.resolve(result('', { toolCalls: [CALL], finishReason: 'tool-calls' })) }));
  assert.equal((await chatCompletion(silent, ASK, identity).whole()).choices[0].message.content, null);
});

/** quern/remote over a server that answers so. */
const far = (answer, use) => withServer(async (request, response) => {
  if (request.url.endsWith('/models')) return response.end('{"data": [{"id": "m"}]}');
  let body = '';
  for await (const piece of request) body += piece;
  const chunks = await answer(JSON.parse(body));
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  return response.end(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''));
}, async (base) => use(await remote(`${base}/v1`)));

test('a remote model is asked, and says, what a loaded one does', async () => {
  const asked = [];
  const serve = (body) => collect(chatCompletion(calling(asked), body, identity).chunks());
  await far(serve, async (model) => {
    const messages = [
      { role: 'user', content: 'Coat?' }, { role: 'assistant', content: '', toolCalls: [{ id: 'x', name: 'weather', arguments: { city: 'Kraków' } }] }, { role: 'tool', toolCallId: 'x', content: '3 °C' },
    ];
    const reply = model.chat(messages, { tools: [FUNCTION], toolChoice: { name: 'weather' } });
    const events = await collect(reply.events);
    const { text, toolCalls, finishReason } = await reply.result;
    assert.deepEqual({ text, toolCalls, finishReason }, { text: 'Wait.', toolCalls: [CALL], finishReason: 'tool-calls' });
    assert.deepEqual(events, [
      { type: 'text', text: 'Wait.' }, { type: 'tool-call-start', text: '', index: 0, id: 'c1', name: 'weather' }, { type: 'tool-call-delta', text: '', index: 0, delta: TEXT }, { type: 'tool-call', text: '', index: 0, ...CALL },
    ]);
    assert.deepEqual(given(asked[0].options), { tools: [FUNCTION], toolChoice: { name: 'weather' } });
    assert.deepEqual(asked[0].messages[1].toolCalls, [{ id: 'x', name: 'weather', arguments: '{"city":"Kraków"}' }]);
    assert.equal(asked[0].messages[2].toolCallId, 'x');
    await assert.rejects(model.chat('x', { tools: 5 }).result, { code: 'use/param' });
  });
});

test('other servers\' ways to stream calls', async () => {
  const chunk = (calls, reason = null) => ({ choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: reason }] });
  for (const [chunks, toolCalls, said] of [
    [[chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }, { index: 1, id: 'b', function: { name: 'g' } }], 'tool_calls')], [{ id: 'a', name: 'f', arguments: { x: 1 } }, { id: 'b', name: 'g', arguments: {} }], ''],
    [[chunk([{ function: { name: 'f', arguments: '{' } }]), chunk([{ function: { arguments: '}' } }]), chunk([], 'stop')], [{ id: 'call_0', name: 'f', arguments: {} }], ''],
    [[chunk([{ index: 1e9, id: 'a', function: { name: 'f', arguments: '[]' } }]), chunk(null, 'tool_calls')], [], '<tool_call>\n{"name": "f", "arguments": []}\n</tool_call>'],
  ]) {
    await far(async () => chunks, async (model) => {
      const { text, ...reply } = await model.chat('x', { tools: [FUNCTION] }).result;
      assert.deepEqual([reply.toolCalls, text], [toolCalls, said]);
    });
  }
  await far(async () => [chunk(5)], (model) => assert.rejects(model.chat('x').result, { code: 'net/truncated' }));
});
