// SPDX-License-Identifier: MIT
// Tools: a conversation with them has transformers' tokens, nothing that anybody writes becomes a mark, and calls are told as they are written.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { run } from '../../../dist/run.js';
import { checkMessages } from '../../../js/page/messages.js';
import { checkOptions } from '../../../js/page/options.js';
import { FORMS, formOf } from '../../../js/reply/calls.js';
import { Chat } from '../../../js/reply/chat.js';
import { protect as protectSteps } from '../../../js/reply/guard.js';
import { MARKS } from '../../../js/reply/marks.js';
import { atOnce } from '../../../js/shared/steps.js';
import { jsonText } from '../../../js/shared/raw-json.js';
import { ReplyText } from '../../../js/reply/text.js';
import { CallGuide } from '../../../js/reply/call-guide.js';
import { Guide } from '../../../js/reply/guide.js';
import { Tools as AnyTools, callLimits as anyLimits } from '../../../js/reply/tools.js';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { modelSpec } from '../../fixtures/make-model.mjs';
import { engineOver } from '../support/engine-host.mjs';
import { DEMO, TEMPLATE, rejectsWith, render } from '../support/helper.mjs';

const protect = (/** @type {any} */ messages, /** @type {string} */ template, /** @type {any} */ list) => atOnce(protectSteps(messages, template, MARKS.qwen, list));
const callLimits = (/** @type {any} */ options, /** @type {any} */ form = FORMS.json) => anyLimits(options, form);

class Tools extends AnyTools {
  constructor(/** @type {any} */ messages, /** @type {any} */ options) { super(messages, options, FORMS.json); }
}

const json = async (name) => JSON.parse(await readFile(new URL(`../../fixtures/tools/${name}`, import.meta.url), 'utf8'));
const { tools: TOOLS, conversations } = await json('conversations.json');
const IDS = await json('ids.json');

let engine;
before(async () => {
  engine = await engineOver(writeHeader(modelSpec({ preset: 'qwen3-0.6b', type: 'q8_0' })).header, { inspect: true });
  engine.finish();
});

/** The prompt's ids of a conversation, checked as the page and the worker do. */
async function idsOf(messages, { tools, thinking, template = TEMPLATE } = {}) {
  const given = checkMessages(messages);
  const options = checkOptions('chat', { tools });
  const own = { tokenize: (...all) => engine.tokenize(...all), facts: engine.facts, chatTemplate: () => template, contextSize: 1e6, longestToken: () => 256 };
  const chat = new Chat(/** @type {any} */ (own), async (text, variables) => render(text, variables));
  return Array.from((await chat.prompt(given, { thinking, tools: new Tools(given, options) })).ids);
}

for (const { name, messages, thinking, without } of conversations) {
  test(`${name}: the tokens of transformers`, async () => {
    const ids = await idsOf(messages, { tools: without ? undefined : TOOLS, thinking });
    assert.equal(engine.detokenize(ids), engine.detokenize(IDS[name]));
    assert.deepEqual(ids, IDS[name]);
  });
}

test('a file without a template has Qwen3\'s own form', async () => {
  for (const { name, messages, thinking, without } of conversations) {
    if (messages.some((message) => message.thinking)) continue;     // built-in ChatML writes none
    assert.deepEqual(await idsOf(messages, { tools: without ? undefined : TOOLS, thinking, template: '' }), IDS[name], name);
  }
});

test('JSON goes to the template as it is written, with the sentinel in it; what it says limits calls', () => {
  const json = '{"type": "function", "function": {"name": "f", "strict": true, "parameters": {"properties": {"10": {"maximum": 9223372036854775807, "default": null}, "2<": {"minimum": 1.0}}}}}';
  const tool = { name: 'f', parameters: JSON.parse(json).function.parameters, json };
  const given = '{"10": 1.0,  "2": 1e-5, "e\\u0301<|im_end|>": [null, 9223372036854775807]}';
  const { messages, list } = new Tools(checkMessages([ask, call({ arguments: given })]), { tools: [tool] });
  const { messages: guarded, tools } = protect(messages, TEMPLATE, list);
  const point = '\ufdd0';
  assert.equal(jsonText(tools), `[${json.replace('<', `<${point}`)}]`);
  assert.equal(jsonText(guarded[1].tool_calls[0].function.arguments), given.replace('e\\u0301<', `\u00e9<${point}`));
  assert.equal(callLimits({ tools: [tool] }).text.split('\0')[1], '{"type":"object","properties": {"10": {"maximum": 9223372036854775807, "default": null}, "2<": {"minimum": 1.0}}}');
  for (const odd of ['5', '[]', '{', 5, '{"function": {"parameters": null}}', '{}']) {
    const make = () => callLimits({ tools: [{ ...tool, json: odd }] }).text.split('\0')[1];
    if (odd[0] === '{' && odd !== '{') assert.equal(JSON.parse(make()).properties['2<'].minimum, 1);
    else assert.throws(make, (error) => error.detail.param === 'options.tools[0].json');
  }
});

test('arguments that are JSON as text reach the template as an object, and null stays null', async () => {
  const walks = '{% for m in messages %}{% for c in m.tool_calls or [] %}{% for key, value in c.function.arguments|items %}{{ key }}={{ value|tojson }};{% endfor %}{% endfor %}{% endfor %}';
  for (const given of [{ a: null, b: [null, 'x'] }, '{"a":null,"b":[null,"x"]}', '{ "a" : null,\n"b" : [ null, "x" ] }']) {
    assert.equal(engine.detokenize(await idsOf([ask, call({ arguments: given })], { template: walks })), 'a=null;b=[null, "x"];');
  }
  const shown = '{{ tools|tojson }}';
  const parameters = { type: 'object', properties: { a: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null } } };
  assert.match(engine.detokenize(await idsOf([ask], { template: shown, tools: [{ name: 'f', parameters }] })), /"default": null/);
});

const call = (more) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'f', arguments: {}, ...more }] });
const tool = (content, toolCallId = 'a') => ({ role: 'tool', toolCallId, content });
const ask = { role: 'user', content: 'q' };

test('no text becomes a mark, wherever it stands', async () => {
  const marks = ['<|im_end|>', '</tool_call>', '<tool_call>', '</tool_response>', '<tool_response>', '<|im_start|>', '</think>'];
  const count = (ids) => Object.fromEntries([...marks, '<think>', '<|endoftext|>'].map((mark) => {
    const [id] = engine.tokenize(mark, 'chat');
    return [mark, ids.filter((one) => one === id).length];
  }));
  const places = {
    'a name': (text) => [[ask], [{ name: text, parameters: {} }]],
    'a description': (text) => [[ask], [{ name: 'f', description: text }]],
    'a field of parameters': (text) => [[ask], [{ name: 'f', parameters: { properties: { [text]: { description: text, enum: [text] } } } }]],
    'a call\'s name': (text) => [[ask, call({ name: text }), tool('x')]],
    'arguments': (text) => [[ask, call({ arguments: { [text]: [text] } }), tool('x')]],
    'arguments as JSON': (text) => [[ask, call({ arguments: JSON.stringify({ [text]: text }) }), tool('x')]],
    'an id': (text) => [[ask, call({ id: text }), tool('x', text)]],
    'a result': (text) => [[ask, call(), tool(text)]],
    'content beside a call': (text) => [[ask, { ...call(), content: text }, tool('x')]],
  };
  for (const template of [TEMPLATE, '']) {
    for (const [place, make] of Object.entries(places)) {
      const counts = async (text) => {
        const [messages, tools] = make(text);
        return count(await idsOf(messages, { tools, template }));
      };
      const harmless = await counts('word');
      for (const mark of marks) assert.deepEqual(await counts(mark), harmless, `${mark} in ${place}`);
      assert.deepEqual(await counts('<<|im_end|>'), harmless, place);
    }
  }
});

test('bad tools, calls and results are refused by name', async () => {
  const deep = (n) => Array.from({ length: n }).reduce((inner) => ({ a: inner }), {});
  const cyclic = {};
  cyclic.self = cyclic;
  const bad = Object.defineProperty({}, 'name', { get() { throw new Error('mine'); }, enumerable: true });
  for (const [tools, path, words] of [
    [5, 'options.tools', /array/], [[5], 'options.tools[0]', /object/], [[{}], 'options.tools[0].name', /missing/], [[{ name: 'a b' }], 'options.tools[0].name', /without spaces/],
    [[{ name: '' }], 'options.tools[0].name'], [[{ name: 'x'.repeat(65) }], 'options.tools[0].name'], [[{ name: 'a"b' }], 'options.tools[0].name'], [[{ name: 'a\u0007' }], 'options.tools[0].name'],
    [[{ name: 'a', description: 5 }], 'options.tools[0].description'], [[{ name: 'a', parameters: [] }], 'options.tools[0].parameters'],
    [[{ name: 'a', schema: {} }], 'options.tools[0].schema', /not a field/], [[{ name: 'a' }, { name: 'a' }], 'options.tools[1].name', /another/],
    [Array.from({ length: 129 }, (_, i) => ({ name: `f${i}` })), 'options.tools', /at most 128/], [[{ name: 'a', parameters: { x: 'x'.repeat(2 ** 20) } }], 'options.tools[0].parameters', /letters/],
    [[{ name: 'a', parameters: deep(70) }], 'options.tools[0].parameters', /deep/], [[{ name: 'a', parameters: deep(1e5) }], 'options.tools', /cannot be read/],
    [[{ name: 'a', parameters: cyclic }], 'options.tools', /cannot be read .*circular/], [[bad], 'options.tools', /cannot be read \(mine\)/], [() => 5, 'options.tools'],
  ]) {
    const error = await idsOf([ask], { tools }).then(() => assert.fail(JSON.stringify(path)), (reason) => reason);
    assert.deepEqual([error.code, error.detail.param], ['use/param', path], error.stack);
    if (words) assert.match(error.message, words);
  }
  for (const [messages, path] of [
    [[tool('x')], 'messages[0]'], [[ask, tool('x')], 'messages[1]'], [[ask, call(), ask, tool('x')], 'messages[3]'], [[ask, call(), tool('x', 'b')], 'messages[2].toolCallId'],
    [[ask, call(), { role: 'tool', content: 'x' }], 'messages[2].toolCallId'], [[ask, call(), tool('x'), tool('y')], 'messages[3].toolCallId'], [[ask, call(), tool('x', 5)], 'messages[2].toolCallId'],
    [[{ ...ask, toolCalls: [] }], 'messages[0].toolCalls'], [[ask, { ...call(), toolCalls: 5 }], 'messages[1].toolCalls'], [[ask, call({ arguments: 'x' })], 'messages[1].toolCalls[0].arguments'],
    [[ask, call({ arguments: '[]' })], 'messages[1].toolCalls[0].arguments'], [[ask, call({ arguments: cyclic })], 'messages[1].toolCalls'], [[ask, call({ name: 'a b' })], 'messages[1].toolCalls[0].name'],
    [[{ ...ask, toolCallId: { deep: [] } }], 'messages[0].toolCallId'], [[ask, call({ id: null })], 'messages[1].toolCalls[0].id'], [[ask, call(), tool([{ type: 'image', image: 'x' }])], 'messages'], [[ask, call(), tool()], 'messages[2].content'],
  ]) {
    const error = await idsOf(messages).then(() => assert.fail(path), (reason) => reason);
    assert.deepEqual([error.code, error.detail.param], ['use/param', path], error.stack);
  }
  assert.throws(() => new Tools(checkMessages([ask, call()], true), { continue: true }), /must end with a message without calls/);
});

test('without a template a result with an image becomes parts, also behind another one', () => {
  const image = { type: 'image' };
  const messages = [ask, { ...call(), toolCalls: ['a', 'b'].map((id) => ({ id, name: 'f', arguments: {} })) }, tool([image], 'b'), tool('x')];
  const tools = new Tools(messages, {});
  const text = (words) => ({ type: 'text', text: words });
  assert.deepEqual(tools.spelled(tools.messages).at(-1).content, [
    text('<tool_response>\nx\n</tool_response>'), text('\n'), text('<tool_response>\n'), image, text('\n</tool_response>'),
  ]);
  assert.deepEqual(tools.arranged(['one']), ['one']);
});

// --- calls in a reply ---

const [OPEN, CLOSE] = ['<tool_call>', '</tool_call>'];

/** What a reply of these pieces is; the marks are tokens. */
function reply(pieces, tools = TOOLS, form = FORMS.json, inside = null) {
  const events = [];
  const { channels } = new AnyTools([], { tools }, form);     // their marks stand for their ids
  const text = new ReplyText({ channels: inside ? [inside, ...channels] : channels, inside, stops: [], emit: (event) => events.push({ ...event }) });
  for (const piece of pieces) {
    if (!text.mark(piece)) text.push(piece);
  }
  text.end();
  assert.equal(events.filter(({ type }) => type === 'text').map((event) => event.text).join(''), text.parts.text);
  return { events, ...text.parts };
}

const anyId = (events) => events.map(({ id, ...event }) => ({ ...event, ...(id && { id: typeof id }) }));

test('a call is told as it is written, however it is cut into pieces', () => {
  const body = '\n{"name": "weather", "arguments": {"city": "a\\"}{", "list": [{}, "]"]}}\n';
  const given = { city: 'a"}{', list: [{}, ']'] };
  for (const size of [1, 2, 5, 7, 1000]) {
    const pieces = body.match(new RegExp(`[^]{1,${size}}`, 'g'));
    const { events, text, toolCalls } = reply(['Wait.', '\n', OPEN, ...pieces, CLOSE, '\n']);
    assert.deepEqual([text, toolCalls], ['Wait.', [{ id: toolCalls[0].id, name: 'weather', arguments: given }]]);
    assert.match(toolCalls[0].id, /^call_[0-9a-f]{24}$/);
    const [, start, ...rest] = anyId(events);
    assert.deepEqual(start, { type: 'tool-call-start', index: 0, id: 'string', name: 'weather' });
    assert.deepEqual(rest.pop(), { type: 'tool-call', index: 0, id: 'string', name: 'weather', arguments: given });
    assert.ok(rest.every(({ type, index }) => type === 'tool-call-delta' && index === 0));
    assert.equal(rest.map((event) => event.delta).join(''), '{"city": "a\\"}{", "list": [{}, "]"]}');
    if (size === 1) assert.ok(rest.length > 30, 'in pieces');
  }
});

test('several calls in one reply have numbers and ids of their own', () => {
  const { events, toolCalls, text } = reply([OPEN, '{"name":"now","arguments":{}}', CLOSE, '\n', OPEN, '{"arguments": {"city": "x"}, "name": "weather"}', CLOSE]);
  assert.deepEqual([text, toolCalls.map(({ name }) => name)], ['', ['now', 'weather']]);
  assert.notEqual(toolCalls[0].id, toolCalls[1].id);
  assert.deepEqual(anyId(events).map(({ type, index }) => [type, index]), [
    ['tool-call-start', 0], ['tool-call-delta', 0], ['tool-call', 0], ['tool-call-start', 1], ['tool-call-delta', 1], ['tool-call', 1],
  ]);
});

test('what is no call is text, with nothing lost', () => {
  for (const body of [
    '', '\n{"name": "weather"}\n', '{"name": "other", "arguments": {}}', '{"name": "now", "arguments": {}', '{"name": "now", "arguments": "{}"}', 'now()', '{"name": "now", "arguments": []}',
    '{"name": "now", "arguments": {}, "name": "weather"}', '{"name": "now", "arguments": {}} {}', '[]', 'null', '{"name": 5, "arguments": {}}', `{"name": "${'x'.repeat(3000)}", "arguments": {}}`,
  ]) {
    const { text, toolCalls, events } = reply(['a', OPEN, ...body, CLOSE, 'b']);
    assert.deepEqual([text, toolCalls], [`a${OPEN}${body}${CLOSE}b`, []]);
    assert.ok(!events.some(({ type }) => type === 'tool-call'), body);
  }
  const { text, toolCalls } = reply([OPEN, 'no', CLOSE, '\n', OPEN, '{"name": "now", "arguments": {"__proto__": 1}}', CLOSE]);
  assert.deepEqual([text, JSON.stringify(toolCalls[0].arguments)], [`${OPEN}no${CLOSE}`, '{"__proto__":1}']);
});

test('a call that the end cuts off is no text: what there is of it is told, with its id and name once they are known', () => {
  for (const [pieces, name, text] of [
    [['{"name": "now", "arguments": {"x": '], 'now', '{"x": '], [['{"name": "now", "arg'], '', ''], [[], '', ''], [['{"name": "now", "arguments": {}}\n'], 'now', '{}'], [['{"name": "other", "arguments": {'], '', ''],
  ]) {
    const { text: said, toolCalls, unfinishedCall, events } = reply(['a\n', OPEN, ...pieces]);
    assert.deepEqual([said, toolCalls, unfinishedCall], ['a', [], { id: unfinishedCall.id, name, text }]);
    const told = events.filter(({ type }) => type.startsWith('tool-call'));
    assert.deepEqual(told.map(({ id, delta }) => id ?? delta), name ? [unfinishedCall.id, text] : []);
  }
  const { toolCalls, unfinishedCall } = reply([OPEN, '{"name": "now", "arguments": {}}', CLOSE, '\n', OPEN, '{"name": "weather", "arguments": {"ci']);
  assert.deepEqual([toolCalls.length, unfinishedCall.name, unfinishedCall.text], [1, 'weather', '{"ci']);
  assert.ok(!('unfinishedCall' in reply(['a'])));
});

test('calls that could not go back in the next turn are text, those before them are calls', () => {
  const one = '{"name": "now", "arguments": {}}';
  const many = reply(Array.from({ length: 130 }, () => [OPEN, one, CLOSE]).flat());
  assert.deepEqual([many.toolCalls.length, many.text], [128, `${OPEN}${one}${CLOSE}`.repeat(2)]);
  const deep = `{"name": "now", "arguments": {"x": ${'['.repeat(64)}${']'.repeat(64)}}}`;
  assert.deepEqual([reply([OPEN, deep, CLOSE]).toolCalls, reply([OPEN, deep, CLOSE]).text], [[], `${OPEN}${deep}${CLOSE}`]);
  const { toolCalls } = reply([OPEN, deep.replace('[[', '[').replace(']]', ']'), CLOSE]);
  assert.equal(checkMessages([ask, { role: 'assistant', content: '', toolCalls }]).length, 2);
  assert.equal(new Tools(checkMessages([ask, { role: 'assistant', content: '', toolCalls }]), {}).messages.length, 2);
});

test('without tools the marks are text', () => assert.deepEqual(reply(['a', OPEN, 'b', CLOSE], []).text, `a${OPEN}b${CLOSE}`));

// --- calls without marks, as Llama writes them ---

const bare = (pieces, inside = null) => reply(pieces, TOOLS, FORMS.parameters, inside);

test('a reply that is a call without marks is told as it is written, however it is cut into pieces', () => {
  const body = '{"name": "weather", "parameters": {"city": "a\\"}{", "list": [{}, "]"]}}';
  const given = { city: 'a"}{', list: [{}, ']'] };
  const thinking = { open: '<think>', close: '</think>', type: 'thinking' };
  for (const before of ['', '\n', ' \n ']) {
    for (const size of [1, 2, 5, 7, 1000]) {
      const pieces = `${before}${body}`.match(new RegExp(`[^]{1,${size}}`, 'g'));
      for (const [all, inside] of [[pieces, null], [['Hm.', '</think>', ...pieces], thinking]]) {
        const { events, text, toolCalls } = bare(all, inside);
        assert.deepEqual([text, toolCalls], ['', [{ id: toolCalls[0].id, name: 'weather', arguments: given }]]);
        const told = anyId(events).filter(({ type }) => type !== 'thinking');
        assert.deepEqual([told[0].type, told.at(-1).arguments], ['tool-call-start', given]);
        assert.equal(told.slice(1, -1).map(({ delta }) => delta).join(''), '{"city": "a\\"}{", "list": [{}, "]"]}');
      }
    }
  }
});

test('a reply without marks that is no call is text, with nothing lost', () => {
  for (const body of ['', ' ', '{', '{"na', '{"name', '{"other": 1}', 'The call {"name": "now", "parameters": {}}', '{"name": "now"}', '{"name": "other", "parameters": {}}', '{"name": "now", "arguments": {}}',
    '{"name": "now", "parameters": {}} and more', '{"name": "now", "parameters": []}', '[{"name": "now", "parameters": {}}]', '{"name": "', '\n\nHello']) {
    const { text, toolCalls, unfinishedCall } = bare([...body]);
    assert.deepEqual([text, toolCalls, unfinishedCall], [body, [], undefined]);
  }
  const { text, unfinishedCall } = bare(['{"name": "now", "parameters": {"x": ']);
  assert.deepEqual([text, unfinishedCall], ['', { id: unfinishedCall.id, name: 'now', text: '{"x": ' }]);
  assert.deepEqual(new AnyTools([], { tools: TOOLS, toolChoice: 'none' }, FORMS.parameters).channels, []);
});

test('the form of calls is the model\'s own unless its template shows another', () => {
  const of = (template, callForm) => Object.keys(FORMS).find((name) => FORMS[name] === formOf(template, { callForm }));
  assert.deepEqual([of('', 'parameters'), of('{{ "parameters" }}', 'parameters'), of('<tool_call>{"name": x, "arguments": y}', 'parameters')], ['parameters', 'parameters', 'json']);
  assert.deepEqual([of(TEMPLATE, 'json'), of('<tool_call><function=f><parameter=x>', 'parameters'), of('', 'tagged')], ['json', 'tagged', 'tagged']);
});

// --- what calls are held to ---

const WORDS = 8;
const bitsOf = (...ids) => ids.reduce((bits, id) => { bits[id >>> 5] |= 1 << (id & 31); return bits; }, new Uint32Array(WORDS));
const idsOfBits = (bits) => bits && Array.from({ length: 32 * WORDS }, (_, id) => id).filter((id) => (bits[id >>> 5] >>> (id & 31)) & 1);
const [THINK, THOUGHT, CALL, CALLED, END, BREAK] = [1, 2, 3, 4, 5, 6];

/** What a guide allows after each token of a reply; 'all' is everything, 'not' with the few that are missing. */
function guided(choice, ids, { first, inside, most, form, bare } = {}) {
  const thinking = { open: THINK, close: THOUGHT, type: 'thinking' };
  const channel = { open: bare ? -1 : CALL, close: bare ? -1 : CALLED, bare, type: 'tool-call', begin() {} };
  const grammar = { users: 1, start: 10, take: (state, id) => state + (id === 20 + state ? 1 : NaN), mask: (state) => bitsOf(...(state < 12 ? [20 + state] : [END])), forced() {} };
  const own = { facts: { tokens: 32 * WORDS, endTokens: [END] }, tokenize: () => [BREAK] };
  const text = form && new Guide(/** @type {any} */ (own), { grammar: { users: 1, start: 50, take: (state, id) => state + (id === 10 + state ? 1 : NaN), mask: (state) => bitsOf(...(state < 52 ? [10 + state] : [END])), accepts: (state) => state === 52, forced() {} } });
  const guide = new CallGuide(/** @type {any} */ (own), choice === 'none' ? null : grammar, choice, { most, text });
  const said = [];
  let now = [];
  const name = (bits) => {
    const allowed = idsOfBits(bits);
    if (!allowed) return 'all';
    return allowed.length < 32 ? allowed : { not: Array.from({ length: 32 * WORDS }, (_, id) => id).filter((id) => !allowed.includes(id)) };
  };
  const sequence = { wait() {}, draft() {}, allow: (bits, lenient = false) => { now = [name(bits), ...(lenient ? ['lenient'] : [])]; } };
  guide.begin(/** @type {any} */ (sequence), /** @type {any} */ ({ channels: [thinking, channel], first: first && thinking, inside: inside && thinking }));
  if (guide.isBehind) guide.pursue(0);
  said.push(now);
  let open = inside ? thinking : null;
  for (const id of ids) {
    now = ['as before'];
    if (id === THINK || id === CALL) open ??= id === THINK ? thinking : channel;
    else if (id === open?.close) open = null;
    guide.take(id, !open && ![THOUGHT, CALLED].includes(id), open);
    if (guide.isBehind) guide.pursue(0);
    said.push(now);
  }
  guide.end();
  assert.equal(grammar.users, choice === 'none' ? 1 : 0);
  return said;
}

test('a call is held to its grammar without penalties, and only a call', () => {
  const body = [[[30], 'lenient'], [[31], 'lenient'], [[CALLED], 'lenient'], ['all']];
  const before = ['as before'];
  assert.deepEqual(guided('auto', [40, CALL, 30, 31, CALLED, 41, CALL, 30, 31, CALLED]), [[], before, ...body, before, ...body]);
  assert.deepEqual(guided('auto', [THINK, CALL, 40, THOUGHT, 41], { first: true }), [[], before, before, before, before, before], 'a mark in a thought is none');
});

test('what is required comes first, after thinking if there is any; what is forbidden never does', () => {
  const body = [[[30], 'lenient'], [[31], 'lenient'], [[CALLED], 'lenient'], ['all']];
  const free = [{ not: [END] }];
  assert.deepEqual(guided('required', [CALL, 30, 31, CALLED, 40]), [[[CALL]], ...body, ['as before']]);
  assert.deepEqual(guided('required', [THINK, 40, THOUGHT, BREAK, CALL, 30], { first: true }), [[[THINK]], free, free, [[BREAK]], [[CALL]], ...body.slice(0, 2)]);
  assert.deepEqual(guided('required', [40, THOUGHT, BREAK, CALL], { inside: true }), [free, free, [[BREAK]], [[CALL]], body[0]]);
  assert.deepEqual(guided('none', [40, 41]), [[{ not: [CALL] }], ['as before'], ['as before']]);
});

test('a call without marks that is required is the whole reply after thinking; one that is not is free', () => {
  const body = [[[30], 'lenient'], [[31], 'lenient'], [[END], 'lenient']];
  const free = [{ not: [END] }];
  assert.deepEqual(guided('required', [30, 31], { bare: '{' }), body);
  assert.deepEqual(guided('required', [40, THOUGHT, 30, 31], { bare: '{', inside: true }), [free, free, ...body]);
  assert.deepEqual(guided('required', [THINK, 40, THOUGHT, 30], { bare: '{', first: true }), [[[THINK]], free, free, ...body.slice(0, 2)]);
  for (const choice of ['auto', 'none']) assert.deepEqual(guided(choice, [40, 41], { bare: '{' }), [[], ['as before'], ['as before']]);
});

test('where the text has a form a reply is calls or such a text, and behind a call comes another one or the end', () => {
  const body = [[[30], 'lenient'], [[31], 'lenient'], [[CALLED], 'lenient']];
  const more = [[CALL, END, BREAK]];
  const form = true;
  assert.deepEqual(guided('auto', [60, 61], { form }), [[[CALL, 60]], [[61]], [[END]]], 'once begun the text is no call');
  assert.deepEqual(guided('auto', [CALL, 30, 31, CALLED, BREAK, CALL, 30, 31, CALLED], { form }), [[[CALL, 60]], ...body, more, [[CALL, END]], ...body, more]);
  assert.deepEqual(guided('auto', [THINK, 40, THOUGHT, BREAK, CALL, 30], { form, first: true }), [
    [[THINK]], [{ not: [END] }], [{ not: [END] }], [[CALL, BREAK, 60]], [[CALL, 60]], ...body.slice(0, 2),
  ]);
  assert.deepEqual(guided('none', [60, 61], { form }), [[[60]], [[61]], [[END]]]);
  assert.deepEqual(guided('required', [CALL, 30, 31, CALLED, CALL], { form }), [[[CALL]], ...body, more, body[0]]);
});

test('one call at most: the end is all that follows it', () => {
  const body = [[[30], 'lenient'], [[31], 'lenient'], [[CALLED], 'lenient'], [[END]]];
  assert.deepEqual(guided('auto', [40, CALL, 30, 31, CALLED], { most: 1 }), [[], ['as before'], ...body]);
  assert.deepEqual(guided('required', [CALL, 30, 31, CALLED], { most: 1, form: true }), [[[CALL]], ...body]);
});

test('limits: the tools to choose from, their schemas, and what cannot be chosen', () => {
  const [weather, now] = TOOLS;
  const closed = now.parameters;
  assert.deepEqual(callLimits({ tools: TOOLS }).text.split('\0'), [
    '\n{"name": "weather", "arguments": ', JSON.stringify(weather.parameters), '}\n', '\n{"name": "now", "arguments": ', JSON.stringify(closed), '}\n',
  ]);
  assert.deepEqual(callLimits({ tools: TOOLS, toolChoice: { name: 'now' } }), { choice: 'required', text: `\n{"name": "now", "arguments": \0${JSON.stringify(closed)}\0}\n`, names: ['now'], kind: 'calls' });
  const other = { before: (name) => `<${name}>`, after: '</>' };
  assert.equal(callLimits({ tools: [now] }, other).text, `<now>\0${JSON.stringify(closed)}\0</>`);
  assert.deepEqual([callLimits({ tools: TOOLS, toolChoice: 'none' }).text, callLimits({}).text], ['', '']);
  const schemaOf = (parameters) => JSON.parse(callLimits({ tools: [{ name: 'f', parameters }] }).text.split('\0')[1]);
  assert.deepEqual([schemaOf({ anyOf: 1 }), schemaOf({ $ref: 1 })], [{ type: 'object', anyOf: 1, properties: {} }, { type: 'object', $ref: 1 }]);
  for (const [choice, expected] of [[{ names: ['now'] }, 'auto'], [{ names: ['now'], required: true }, 'required'], [{ names: ['now'], required: false }, 'auto']]) {
    const { choice: made, names } = callLimits({ tools: TOOLS, toolChoice: choice });
    assert.deepEqual([made, names], [expected, ['now']]);
  }
  for (const [options, path] of [
    [{ tools: TOOLS, toolChoice: 5 }, 'options.toolChoice'], [{ tools: TOOLS, toolChoice: 'sometimes' }, 'options.toolChoice'], [{ tools: TOOLS, toolChoice: {} }, 'options.toolChoice'],
    [{ tools: TOOLS, toolChoice: { name: 'other' } }, 'options.toolChoice.name'], [{ toolChoice: 'required' }, 'options.toolChoice'],
    [{ tools: TOOLS, toolChoice: { names: [] } }, 'options.toolChoice.names'], [{ tools: TOOLS, toolChoice: { names: ['now', 'x'] } }, 'options.toolChoice.names'], [{ tools: TOOLS, toolChoice: { names: 'now' } }, 'options.toolChoice'],
    [{ tools: TOOLS, toolChoice: { names: ['now'], required: 1 } }, 'options.toolChoice'], [{ tools: [], toolChoice: { name: 'now' } }, 'options.toolChoice'],
    [{ tools: [now, { name: 'x', parameters: { type: 'string' } }] }, 'options.tools[1].parameters.type'],
  ]) assert.throws(() => callLimits(options), (error) => error.code === 'use/param' && error.detail.param === path);
});

// --- the demo model, which knows the page's tools and no others ---

test('the demo model calls what it has to, gets the result and goes on; every call obeys its schema', { timeout: 60_000 }, async () => {
  const model = await load(DEMO, { threads: 1 });
  const ADD = { description: 'A sum', parameters: { type: 'object', properties: { a: { type: 'integer', minimum: 0, maximum: 99 }, b: { $ref: '#/$defs/n' } }, required: ['a', 'b'], $defs: { n: { type: 'integer', minimum: 0, maximum: 9 } } } };
  const tools = [{ name: 'add', ...ADD }, { name: 'now' }];
  const options = { tools, maxTokens: 200, temperature: 1.5 };
  const names = new Set();
  for (let seed = 1; seed <= 12; seed++) {
    const thinking = seed % 4 === 0;
    const how = thinking ? { thinking, temperature: 0 } : { repeatPenalty: 5 };     // which would spoil any JSON
    const question = seed % 2 ? 'What time is it?' : 'What is 3 + 4?';
    const { toolCalls: [{ name, arguments: given }], finishReason, text } = await model.chat(question, { ...options, ...how, seed, toolChoice: 'required' }).result;
    assert.ok(['tool-calls', 'length'].includes(finishReason));
    assert.ok(!text.includes('<tool_call>'), text);
    names.add(name);
    if (name === 'now') assert.deepEqual(given, {});
    else assert.ok(Object.keys(given).join() === 'a,b' && [given.a, given.b].every(Number.isInteger) && given.a <= 99 && given.b <= 9, JSON.stringify(given));
  }
  assert.deepEqual([...names].sort(), ['add', 'now']);
  assert.equal((await model.chat('Add', { ...options, seed: 1, toolChoice: { name: 'add' } }).result).toolCalls[0].name, 'add');
  const { toolCalls, finishReason } = await model.chat('Add', { ...options, seed: 1, toolChoice: 'none' }).result;
  assert.deepEqual([toolCalls, finishReason !== 'tool-calls'], [[], true]);

  const ran = await run(model, 'Add!', { tools: { add: { ...ADD, execute: ({ a, b }) => a + b } }, toolChoice: 'required', temperature: 0, maxTokens: 100 }).result;
  const [asked, result] = ran.messages;
  assert.deepEqual([ran.steps >= 2, result.content], [true, String(asked.toolCalls[0].arguments.a + asked.toolCalls[0].arguments.b)]);
  assert.ok(ran.text.length > 0 && ran.usage.cachedTokens > 300, 'the call stands in the prompt as it was written');

  const bad = { name: 'f', parameters: { type: 'object', properties: { x: { type: 'string', pattern: '(?<=a)' } } } };
  await rejectsWith(model.chat('x', { tools: [{ name: 'now' }, bad] }).result, 'use/schema', /^The parameters of 'f': .*lookaround/);
  assert.match((await model.chat('x', { tools, choices: ['yes', 'no'], toolChoice: 'none' }).result).text, /^(yes|no)$/);
  assert.equal((await model.chat('Hi', { temperature: 0 }).result).finishReason, 'stop', 'the engine goes on');
  await model.dispose();
});

test('the demo model calls, or answers in the form that is asked for; one call where no more may be', { timeout: 60_000 }, async () => {
  const model = await load(DEMO, { threads: 1 });
  const schema = { type: 'object', properties: { answer: { enum: ['yes', 'no'] }, more: { type: 'object', properties: { n: { type: 'integer', maximum: 9, minimum: 0 } } } }, required: ['answer'] };
  const tools = [{ name: 'add', parameters: { type: 'object', properties: { a: { type: 'integer', minimum: 0, maximum: 9 } }, required: ['a'] } }];
  const [open] = await model.tokenize('<tool_call>');
  const seen = new Set();
  for (let seed = 1; seed <= 16; seed++) {
    const how = { schema, tools, seed, temperature: 1.5, maxTokens: 160, thinking: seed % 4 === 0, logitBias: { [open]: [0, 30, -30, 0][seed % 4] } };
    const { text, toolCalls, value, finishReason } = await model.chat('Is it so?', how).result;
    if (finishReason === 'length') continue;
    seen.add(finishReason);
    if (finishReason === 'tool-calls') assert.deepEqual([text, value, toolCalls.every(({ name, arguments: { a, ...rest } }) => name === 'add' && a <= 9 && !Object.keys(rest).length)], ['', undefined, true]);
    else {
      assert.deepEqual([toolCalls, JSON.parse(text)], [[], value]);
      const { answer, more: { n: _, ...none } = {}, ...others } = value;
      assert.deepEqual([['yes', 'no'].includes(answer), none, others], [true, {}, {}], 'objects are closed, inside too');
    }
  }
  assert.deepEqual([...seen].sort(), ['stop', 'tool-calls']);
  const { toolCalls, finishReason } = await model.chat('Add', { tools, toolChoice: 'required', parallelToolCalls: false, temperature: 1.5, seed: 3, logitBias: { [open]: 100 } }).result;
  assert.deepEqual([toolCalls.length, finishReason], [1, 'tool-calls']);
  const cut = await model.chat('Add', { tools, toolChoice: 'required', temperature: 0, maxTokens: 28 }).result;
  assert.deepEqual([cut.text, cut.toolCalls, cut.finishReason, cut.unfinishedCall.name], ['', [], 'length', 'add']);
  const thought = await model.chat('Hi', { thinking: true, temperature: 0, maxTokens: 20 }).result;
  assert.ok(thought.usage.thinkingTokens > 0 && thought.usage.thinkingTokens <= thought.usage.completionTokens && cut.usage.thinkingTokens === 0);
  const carried = { add: { parameters: tools[0].parameters, execute: ({ a }) => a + 1 } };
  const last = await run(model, 'Add!', { tools: carried, schema, toolChoice: 'required', temperature: 0, maxTokens: 160, logitBias: { [(await model.tokenize('{'))[0]]: 5 } }).result;
  assert.deepEqual([last.steps > 1, last.messages[1].role, ['yes', 'no'].includes(last.value?.answer), last.finishReason], [true, 'tool', true, 'stop'], 'the last word of a loop has its form');
  const one = { type: 'object', properties: { a: { const: 1 } } };
  const texts = async (how) => Promise.all([1, 2, 3, 4].map(async (seed) => (await model.chat('x', { schema: one, temperature: 1.5, seed, maxTokens: 8, ...how }).result).text));
  assert.ok((await texts()).every((text) => ['{}', '{"a":1}'].includes(text)));
  for (const how of [{ openObjects: true }, { schema: { ...one, additionalProperties: true } }]) assert.ok((await texts(how)).some((text) => !['{}', '{"a":1}'].includes(text)));
  const any = { tools: [{ name: 'f', parameters: { ...one, required: ['b'] } }], toolChoice: 'required', openObjects: true, temperature: 1.5, maxTokens: 44 };
  const given = await Promise.all([1, 2, 3, 4].map(async (seed) => (await model.chat('x', { ...any, seed }).result)));
  assert.ok(given.some(({ toolCalls: [call], unfinishedCall }) => /^\{"(?!a": 1\})/.test(unfinishedCall?.text ?? JSON.stringify(call.arguments))));
  await model.dispose();
});

test('calls are the same alone and among others, with any threads', { timeout: 60_000 }, async () => {
  const ask = (model, seed) => model.chat('Time?', { tools: TOOLS, toolChoice: 'required', seed, temperature: 1.2, maxTokens: 80 }).result
    .then(({ text, toolCalls }) => ({ text, calls: toolCalls.map(({ name, arguments: given }) => [name, given]) }));
  const [one, two] = [await load(DEMO, { threads: 1, variant: 'simd' }), await load(DEMO, { threads: 2 })];
  const alone = [];
  for (const seed of [1, 2, 3, 4]) alone.push(await ask(one, seed));
  assert.deepEqual(await Promise.all([1, 2, 3, 4].map((seed) => ask(two, seed))), alone);
  assert.ok(alone.some(({ calls }) => calls.length));
  await Promise.all([one.dispose(), two.dispose()]);
});
