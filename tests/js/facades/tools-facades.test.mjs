// SPDX-License-Identifier: MIT
// Tools through the faces of the OpenAI API: what a request asks of a model, what its answers say, and quern/remote over a server that does so.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bodyOf, chatCompletion, chatRequest, errorOf } from '../../../js/facades/openai.js';
import { openaiFetch } from '../../../js/facades/openai-client.js';
import { remote } from '../../../js/facades/remote.js';
import { badParam } from '../../../js/shared/errors.js';
import { collect, withServer } from '../support/helper.mjs';
import { playedModel, result } from '../support/serve-host.mjs';

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
    [{ tools: 5 }, 'tools'], [{ tools: [5] }, 'tools[0]'], [{ tools: [{ type: 'web_search' }] }, 'tools[0].type', 'unsupported_parameter'], [{ tools: [{ type: 'custom' }] }, 'tools[0].custom'],
    [{ tools: [{ type: 'custom', custom: { name: 'f', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } } } }] }, 'tools[0].custom.format.grammar.syntax', 'unsupported_parameter'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tool_choice: { type: 'allowed_tools' } }, 'tool_choice.allowed_tools.tools'], [{ tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'some' } } }, 'tool_choice.allowed_tools.mode'],
    [{ tool_choice: { type: 'mcp' } }, 'tool_choice.type', 'unsupported_parameter'], [{ tool_choice: 'any' }, 'tool_choice'], [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
    [{ functions: [FUNCTION] }, 'functions'], [{ functions: 5 }, 'functions'], [{ tools: [], functions: [FUNCTION], function_call: 'some' }, 'function_call'],
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
    ['options.toolChoice', 'tool_choice'], ['options.toolChoice.name', 'tool_choice.function.name'], ['options.toolChoice.names', 'tool_choice.allowed_tools.tools'], ['messages[0].toolCalls[1].id', 'messages[0].tool_calls[1].id'],
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
    [[chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }, { index: 0, id: 'b', function: { name: 'f', arguments: '{"x":2}' } }]), chunk([], 'stop')], [{ id: 'a', name: 'f', arguments: { x: 1 } }, { id: 'b', name: 'f', arguments: { x: 2 } }], ''],
    [[chunk([{ id: 'a', function: { name: 'f', arguments: '{"x":' } }]), chunk([{ function: { arguments: '1}' } }]), chunk([{ id: 'b', function: { name: 'g', arguments: '{}' } }]), chunk([], 'stop')], [{ id: 'a', name: 'f', arguments: { x: 1 } }, { id: 'b', name: 'g', arguments: {} }], ''],
    [[chunk([{ index: 0, id: '', function: { name: 'f', arguments: '{"x":1}' } }]), chunk([{ index: 0, id: '', function: { name: 'f', arguments: '{"x":2}' } }], 'stop')], [{ id: 'call_0', name: 'f', arguments: { x: 1 } }, { id: 'call_1', name: 'f', arguments: { x: 2 } }], ''],
    [[chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } }]), chunk([{ index: 0, id: 'other', function: { arguments: ':1}' } }]), chunk([], 'stop')], [{ id: 'a', name: 'f', arguments: { x: 1 } }], ''],
    [[chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: { x: 1 } } }, { index: 1, id: 'a', function: { name: 'f', arguments: { x: 2 } } }]), chunk([], 'stop')], [{ id: 'a', name: 'f', arguments: { x: 1 } }, { id: 'call_1', name: 'f', arguments: { x: 2 } }], ''],
    [[chunk([{ index: 1e9, id: 'a', function: { name: 'f', arguments: '[]' } }]), chunk(null, 'tool_calls')], [], '<tool_call>\n{"name": "f", "arguments": []}\n</tool_call>'],
  ]) {
    await far(async () => chunks, async (model) => {
      const { text, ...reply } = await model.chat('x', { tools: [FUNCTION] }).result;
      assert.deepEqual([reply.toolCalls, text], [toolCalls, said]);
      if (toolCalls.length) assert.equal(reply.finishReason, 'tool-calls', 'also where the server says stop');
    });
  }
  await far(async () => [chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }]), chunk([{ index: 1, id: 'b', function: { name: 'g', arguments: '{"x' } }], 'length')], async (model) => {
    const { text, toolCalls, unfinishedCall, finishReason } = await model.chat('x', { tools: [FUNCTION] }).result;
    assert.deepEqual([text, toolCalls.map(({ id }) => id), unfinishedCall, finishReason], ['', ['a'], { id: 'b', name: 'g', text: '{"x' }, 'length']);
  });
  await far(async () => [chunk(5)], (model) => assert.rejects(model.chat('x').result, { code: 'net/truncated' }));
});

// --- one call, some tools, calls that were cut off ---

/** A model that tells these events and has this result; `asked` is what it was asked. */
const telling = (events, end, asked = []) => playedModel((push, { input, options }) => {
  asked.push({ messages: input, options });
  options.onPrefill?.({});
  for (const event of events) push(event);
  return { promise: Promise.resolve(end) };
});

test('one call at most, and some of the tools', () => {
  const optionsOf = (more) => chatRequest({ ...ASK, ...more }).options;
  assert.equal(optionsOf({ parallel_tool_calls: false }).parallelToolCalls, false);
  assert.equal(optionsOf({ open_objects: true }).openObjects, true);
  for (const more of [{ parallel_tool_calls: true }, { parallel_tool_calls: null }, { tools: [], parallel_tool_calls: false }, { tools: undefined, parallel_tool_calls: false }]) assert.ok(!('parallelToolCalls' in optionsOf(more)));
  const tools = [{ type: 'function', function: { name: 'weather' } }, { type: 'custom', custom: { name: 'write' } }];
  for (const [mode, required] of [['auto', false], ['required', true]]) {
    assert.deepEqual(optionsOf({ tool_choice: { type: 'allowed_tools', allowed_tools: { mode, tools } } }).toolChoice, { names: ['weather', 'write'], required });
    assert.deepEqual(optionsOf({ tool_choice: { type: 'allowed_tools', mode, tools: [{ type: 'function', name: 'weather' }] } }).toolChoice, { names: ['weather'], required });
  }
});

test('a call that is cut off: the same whole and in chunks, and back in the next request', async () => {
  const events = [
    { type: 'tool-call-start', index: 0, id: 'c1', name: 'weather' }, { type: 'tool-call-delta', index: 0, delta: TEXT }, { type: 'tool-call', index: 0, ...CALL },
    { type: 'tool-call-start', index: 1, id: 'c2', name: 'weather' }, { type: 'tool-call-delta', index: 1, delta: '{"city": "Par' },
  ];
  const cut = () => telling(events, result('', { toolCalls: [CALL], unfinishedCall: { id: 'c2', name: 'weather', text: '{"city": "Par' }, finishReason: 'length' }));
  const { choices: [{ message, finish_reason: reason }] } = await chatCompletion(cut(), ASK, identity).whole();
  const calls = [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: TEXT } }, { id: 'c2', type: 'function', function: { name: 'weather', arguments: '{"city": "Par' } }];
  assert.deepEqual([message, reason], [{ role: 'assistant', content: null, tool_calls: calls, refusal: null }, 'length']);
  const chunks = await collect(chatCompletion(cut(), { ...ASK, stream: true }, identity).chunks());
  const joined = chunks.flatMap(({ choices: [{ delta }] }) => delta.tool_calls ?? []).map(({ function: { arguments: given } }) => given).join('');
  assert.deepEqual([joined, chunks.at(-1).choices[0].finish_reason, chunks.some(({ choices: [{ delta }] }) => delta.content)], [`${TEXT}{"city": "Par`, 'length', false]);
  const nameless = telling([], result('', { unfinishedCall: { id: '', name: '', text: '' }, finishReason: 'length' }));
  assert.deepEqual((await chatCompletion(nameless, ASK, identity).whole()).choices[0].message, { role: 'assistant', content: '', refusal: null });
  const given = (text) => chatRequest({ ...ASK, messages: [{ ...message, tool_calls: [{ ...calls[1], function: { name: 'weather', arguments: text } }] }] }).messages[0].toolCalls[0].arguments;
  for (const [text, mended] of [
    ['{"city": "Par', '{"city": "Par"}'], ['{"a": 1, "lon', '{"a": 1}'], ['{"a": {"b": [1, tr', '{"a": {"b": [1]}}'], ['{"a": "x\\', '{"a": "x"}'], ['{"a": "\\u00e', '{"a": ""}'], ['{', '{}'], ['', '{}'], [' ', '{}'], ['{"a":', '{}'], ['{"a": fals', '{}'], ['{"a": [1.5e-', '{"a": [1.5]}'], ['{"a": [{"b": "c"}, ', '{"a": [{"b": "c"}]}'], ['{"a": {"b": 1}, "c": [', '{"a": {"b": 1}, "c": []}'],
    ['{"a": "{[\\""', '{"a": "{[\\""}'], ['{"a": -', '{}'],
  ]) assert.equal(given(text), mended);
  for (const other of ['x', '[1', '"a']) assert.equal(given(other), other, 'which the model refuses');
  const long = `{"a": "${'x'.repeat(2 ** 18)}", "${'k'.repeat(2 ** 17)}`;
  const began = performance.now();
  assert.equal(given(long).length, 2 ** 18 + 9);
  assert.ok(performance.now() - began < 5000);
});

test('tools of the type custom are called with a text', async () => {
  const format = { type: 'grammar', grammar: { syntax: 'regex', definition: 'a+|b' } };
  const tools = [{ type: 'custom', custom: { name: 'write', description: 'Of code' } }, { type: 'custom', custom: { name: 'count', format } }, ...ASK.tools];
  const { options, messages } = chatRequest({
    tools, tool_choice: { type: 'custom', custom: { name: 'write' } },
    messages: [...ASK.messages, { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'write', input: 'a "b"' } }] }, { role: 'tool', tool_call_id: 'c', content: 'ok' }],
  });
  assert.equal(errorOf(badParam('options.tools[0].name', 'is wrong'), { tools }).error.param, 'tools[0].custom.name');
  assert.equal(errorOf(badParam('options.tools[2].name', 'is wrong'), { tools }).error.param, 'tools[2].function.name');
  const of = (input) => ({ type: 'object', properties: { input }, required: ['input'] });
  assert.deepEqual(options.tools.slice(0, 2), [
    { name: 'write', description: 'Of code', parameters: of({ type: 'string' }) }, { name: 'count', description: undefined, parameters: of({ type: 'string', pattern: '^(?:a+|b)$' }) },
  ]);
  assert.deepEqual([options.toolChoice, messages[1].toolCalls], [{ name: 'write' }, [{ id: 'c', name: 'write', arguments: { input: 'a "b"' } }]]);
  const text = 'a "b"\\\n\u00fc😀';
  const json = `{"input": ${JSON.stringify(text).replace('😀', '\\ud83d\\ude00')}}`;
  const call = { id: 'c', name: 'write', arguments: { input: text } };
  for (const size of [1, 3, 1000]) {
    const pieces = json.match(new RegExp(`[^]{1,${size}}`, 'gu'));
    const events = [{ type: 'tool-call-start', index: 0, id: 'c', name: 'write' }, ...pieces.map((piece) => ({ type: 'tool-call-delta', index: 0, delta: piece })), { type: 'tool-call', index: 0, ...call }];
    const writer = () => telling(events, result('', { toolCalls: [call], finishReason: 'tool-calls' }));
    const whole = await chatCompletion(writer(), { ...ASK, tools }, identity).whole();
    assert.deepEqual([whole.choices[0].message.tool_calls, whole.choices[0].finish_reason], [[{ id: 'c', type: 'custom', custom: { name: 'write', input: text } }], 'tool_calls']);
    const deltas = (await collect(chatCompletion(writer(), { ...ASK, tools, stream: true }, identity).chunks())).flatMap(({ choices: [{ delta }] }) => delta.tool_calls ?? []);
    assert.deepEqual(deltas[0], { index: 0, id: 'c', type: 'custom', custom: { name: 'write', input: '' } });
    assert.equal(deltas.map(({ custom }) => custom.input).join(''), text);
  }
});

test('functions, the older form, in both directions', async () => {
  const asked = [];
  const legacy = { messages: ASK.messages, functions: [FUNCTION], function_call: { name: 'weather' } };
  const events = [{ type: 'tool-call-start', index: 0, id: 'c1', name: 'weather' }, { type: 'tool-call-delta', index: 0, delta: TEXT }, { type: 'tool-call', index: 0, ...CALL }];
  const model = () => telling(events, result('', { toolCalls: [CALL], finishReason: 'tool-calls' }), asked);
  const whole = await chatCompletion(model(), legacy, identity).whole();
  assert.deepEqual(whole.choices[0], { index: 0, message: { role: 'assistant', content: null, function_call: { name: 'weather', arguments: TEXT }, refusal: null }, logprobs: null, finish_reason: 'function_call' });
  const { tools: [{ name, parameters }], toolChoice, parallelToolCalls } = asked[0].options;
  assert.deepEqual([name, parameters, toolChoice, parallelToolCalls], ['weather', FUNCTION.parameters, { name: 'weather' }, false]);
  const chunks = await collect(chatCompletion(model(), { ...legacy, stream: true }, identity).chunks());
  assert.deepEqual(chunks.map(({ choices: [{ delta, finish_reason: reason }] }) => reason ?? delta), [
    { role: 'assistant', content: '' }, { function_call: { name: 'weather', arguments: '' } }, { function_call: { arguments: TEXT } }, 'function_call',
  ]);
  const { messages } = chatRequest({ messages: [...ASK.messages, whole.choices[0].message, { role: 'function', name: 'weather', content: '3 °C' }] });
  assert.deepEqual(messages.slice(1), [{ role: 'assistant', content: '', toolCalls: [{ id: 'function_call_1', name: 'weather', arguments: TEXT }] }, { role: 'tool', content: '3 °C', toolCallId: 'function_call_1' }]);
  for (const more of [{ function_call: 'none' }, { function_call: 'auto' }]) assert.equal(chatRequest({ ...legacy, ...more }).options.toolChoice, more.function_call);
  assert.ok(!('tools' in chatRequest({ messages: ASK.messages, functions: [], function_call: 'none' }).options));
  for (const [path, theirs] of [['options.tools[1].name', 'functions[1].name'], ['options.tools[0].parameters', 'functions[0].parameters'], ['options.toolChoice', 'function_call']]) {
    assert.equal(errorOf(badParam(path, 'is wrong'), legacy).error.param, theirs);
  }
});
