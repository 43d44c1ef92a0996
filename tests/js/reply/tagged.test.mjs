// SPDX-License-Identifier: MIT
// Calls between tags, as the templates of Qwen3-Coder and Qwen3.5 ask for them: chosen by the template, read however they are cut, and held to schemas.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { FORMS, formOf } from '../../../js/reply/calls.js';
import { ReplyText } from '../../../js/reply/text.js';
import { Tools, callLimits } from '../../../js/reply/tools.js';
import { DEMO, TEMPLATE, rejectsWith } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const [OPEN, CLOSE] = ['<tool_call>', '</tool_call>'];

/** A template of the kind, made for these tests. */
const TAGGED = `{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool|tojson }}
{% endfor %}Call so: <tool_call><function=NAME><parameter=KEY><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for call in m.tool_calls or [] %}{{ '\\n\\n' if m.content and loop.first else '\\n' if not loop.first else '' }}<tool_call>
<function={{ call.function.name }}>
{% for key, value in call.function.arguments|items %}<parameter={{ key }}>
{{ value if value is string else value|tojson }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const type = (name) => ({ type: name });
const TOOLS = [
  { name: 'f', parameters: { properties: {
    s: type('string'), n: type('integer'), x: type('number'), b: type('boolean'), o: type('object'), l: type('array'), u: {}, e: { enum: ['1', 'a'] }, m: { anyOf: [type('string'), type('null')] },
    r: { $ref: '#/$defs/word' }, i: { oneOf: [{ $ref: '#/$defs/word' }, { const: 5 }] }, 'a b': { allOf: [type(['string', 'integer']), type(['null', 'integer'])] },
  }, $defs: { word: type('string') } } },
  { name: 'g.h-1' },
  { name: 'open', parameters: { additionalProperties: type('string') } },
];

/** What a reply of these pieces is; the marks are tokens. */
function reply(pieces, tools = TOOLS) {
  const events = [];
  const { channels } = new Tools([], { tools }, FORMS.tagged);
  const text = new ReplyText({ channels, inside: null, stops: [], emit: (event) => events.push({ ...event }) });
  for (const piece of pieces) {
    if (!text.mark(piece)) text.push(piece);
  }
  text.end();
  const deltas = (index) => events.filter((event) => event.type === 'tool-call-delta' && event.index === index).map((event) => event.delta);
  return { events, deltas, ...text.parts, calls: text.parts.toolCalls.map(({ name, arguments: given }) => [name, given]) };
}

const cut = (body, size) => body.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
const P = (key, value) => `<parameter=${key}>\n${value}\n</parameter>\n`;
const F = (inside, name = 'f') => `\n<function=${name}>\n${inside}</function>\n`;

test('the template says which form calls have, whatever the model is called; where it shows none, the architecture does', () => {
  for (const callForm of ['json', 'tagged']) assert.equal(formOf(TAGGED, { callForm }), FORMS.tagged);
  for (const template of ['', TEMPLATE, '<function=a>{"x": 1}</function> <tool_call>', '<seed:tool_call><function=a><parameter=b>']) {
    for (const callForm of ['json', 'tagged']) assert.equal(formOf(template, { callForm }), FORMS[callForm]);
  }
});

test('every architecture has a form', async () => {
  const source = await readFile(new URL('../../../src/load/architecture.c', import.meta.url), 'utf8');
  const named = [...source.matchAll(/\.call_form = "([^"]*)"/g)].map(([, name]) => name);
  assert.ok(named.length > 0 && named.every((name) => Object.hasOwn(FORMS, name)), String(named));
});

test('a value means what the schema says, however the call is cut into pieces', () => {
  for (const [inside, given, json] of [
    ['', {}, '{}'],
    [P('s', 'Köln') + P('n', '3'), { s: 'Köln', n: 3 }, '{"s": "Köln", "n": 3}'],
    [P('s', ''), { s: '' }], [P('s', '12'), { s: '12' }], [P('s', 'null'), { s: 'null' }], [P('s', '\n a\n\n'), { s: '\n a\n\n' }], [P('s', '"q" \\n \t'), { s: '"q" \\n \t' }],
    [P('s', 'if (a < b) return "<b>"; </div> </parameter\n</param>'), { s: 'if (a < b) return "<b>"; </div> </parameter\n</param>' }],
    ['<parameter=s>\na</parameter>', { s: 'a' }], ['<parameter=s>\n\n</parameter>', { s: '' }], ['<parameter=s>\n\n\n</parameter>', { s: '\n' }],
    [P('s', '👩‍👧\n'), { s: '👩‍👧\n' }, '{"s": "👩‍👧\\n"}'],
    ['<parameter=s>\n</parameter>\n', { s: '' }], ['<parameter=s>a</parameter><parameter=n>2</parameter>', { s: 'a', n: 2 }], ['<parameter=s>a\n</parameter>', { s: 'a' }],
    [P('n', '1.0') + P('x', '1e-5') + P('l', '[9223372036854775807]'), { n: 1, x: 1e-5, l: [9223372036854776000] }, '{"n": 1.0, "x": 1e-5, "l": [9223372036854775807]}'],
    [P('n', ' 3 '), { n: 3 }], [P('n', 'three'), { n: 'three' }], [P('n', '"3"'), { n: '3' }], [P('x', 'null'), { x: null }],
    [P('b', 'true') + P('u', 'None'), { b: true, u: null }, '{"b": true, "u": null}'], [P('b', 'True'), { b: true }], [P('b', 'TRUE'), { b: 'TRUE' }],
    [P('o', '{"a": [1, "ü"]}') + P('l', '[\n  {"b": 1}\n]'), { o: { a: [1, 'ü'] }, l: [{ b: 1 }] }], [P('o', '{"a": '), { o: '{"a": ' }], [P('l', '[1,]'), { l: '[1,]' }],
    [P('u', 'x y') + P('u', '4'), { u: 4 }], [P('u', '"q"'), { u: '"q"' }], [P('zzz', '[4]'), { zzz: [4] }],
    [P('e', '1'), { e: '1' }], [P('m', 'null'), { m: null }], [P('m', 'None'), { m: null }], [P('m', '5'), { m: '5' }], [P('m', '{}'), { m: '{}' }], [P('r', '5'), { r: '5' }],
    [P('i', '5'), { i: 5 }], [P('i', 'true'), { i: 'true' }], [P('a b', '5'), { 'a b': 5 }], [P('__proto__', '1') + P('10', 'a') + P('2', 'b'), JSON.parse('{"__proto__": 1, "10": "a", "2": "b"}'), '{"__proto__": 1, "10": "a", "2": "b"}'],
  ]) {
    for (const size of [1, 2, 3, 7, 1000]) {
      const { calls, text, events, deltas } = reply(['Wait.', '\n', '\n', OPEN, ...cut(F(inside), size), CLOSE, '\n']);
      assert.deepEqual([text, calls], ['Wait.', [['f', given]]], inside);
      assert.deepEqual(events.map((event) => event.type).filter((name) => name !== 'tool-call-delta'), ['text', 'tool-call-start', 'tool-call']);
      assert.deepEqual(JSON.parse(deltas(0).join('')), given);
      if (json) assert.equal(deltas(0).join(''), json);
    }
  }
  const { deltas } = reply([OPEN, ...cut(F(P('s', 'word '.repeat(20))), 4), CLOSE]);
  assert.ok(deltas(0).length > 20, 'a string is told while it is written');
});

test('several calls, one that forgets to end its function, and one of no declared parameters', () => {
  const { calls, deltas, text } = reply([OPEN, F(P('n', '1')), CLOSE, '\n', OPEN, '\n<function=g.h-1>\n', CLOSE, '\n', OPEN, F(P('any', '5'), 'open'), CLOSE]);
  assert.deepEqual([text, calls], ['', [['f', { n: 1 }], ['g.h-1', {}], ['open', { any: '5' }]]]);
  assert.deepEqual([0, 1, 2].map((i) => deltas(i).join('')), ['{"n": 1}', '{}', '{"any": "5"}']);
});

test('what is no call is text, with nothing lost', () => {
  for (const body of [
    '', '\n{"name": "f", "arguments": {}}\n', F('', 'other'), F(P('s', 'a')).replace('</parameter>', ''), `${F('')}x`, F('') + F(''), `x${F('')}`, F('x'), '<function=f', '<function=f>\n<parameter=s',
    `<function=${'f'.repeat(3000)}>`, `<function=f><parameter=${'s'.repeat(3000)}>a</parameter></function>`, '<function=f\n></function>', '<function=>\n</function>',
  ]) {
    for (const size of [1, 1000]) {
      const { text, calls, events } = reply(['a', OPEN, ...cut(body, size), CLOSE, 'b']);
      assert.deepEqual([text, calls], [`a${OPEN}${body}${CLOSE}b`, []]);
      assert.ok(!events.some((event) => event.type === 'tool-call'), body);
    }
  }
  const begun = '<function=f>\n<parameter=s>\nhalf';
  const { text, unfinishedCall } = reply(['a', OPEN, ...cut(begun, 1)]);
  assert.deepEqual([text, unfinishedCall.name, unfinishedCall.text], ['a', 'f', '{"s": "'], 'cut off: as much as was told');
});

test('calls that could not go back in the next turn are text, those before them are calls', () => {
  const many = reply(Array.from({ length: 130 }, () => [OPEN, F('', 'g.h-1'), CLOSE]).flat());
  assert.deepEqual([many.calls.length, many.text], [128, `${OPEN}${F('', 'g.h-1')}${CLOSE}`.repeat(2)]);
  const deep = (n) => F(P('l', `${'['.repeat(n)}${']'.repeat(n)}`));
  assert.deepEqual([reply([OPEN, deep(64), CLOSE]).calls.length, reply([OPEN, deep(63), CLOSE]).calls.length], [0, 1]);
});

test('replies and schemas that are made to take long do not', () => soon(2500, () => timed(() => {
  const n = 20_000;
  for (const body of [
    F(P('s', 'a'.repeat(n))), F(P('s', '\n</parameter'.repeat(n / 12))), F(P('u', '\n'.repeat(n))), F(P('n', '1'.repeat(n))), F(P('b', `${' '.repeat(n)}True${' '.repeat(n)}x`)), '\n'.repeat(n), `<function=${'f'.repeat(n)}`,
    F(P('s', '').repeat(n / 28)), F('\n'.repeat(n)), F(P('u', '['.repeat(n))),
  ]) {
    for (const size of [1, n]) reply([OPEN, ...cut(body, size), CLOSE]);
  }
  const refs = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`d${i}`, { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] }]));
  const loop = { $ref: '#/properties/s' };
  for (const s of [{ $ref: '#/$defs/d0' }, loop, { anyOf: [loop, loop] }]) {
    assert.deepEqual(reply([OPEN, F(P('s', '1')), CLOSE], [{ name: 'f', parameters: { properties: { s }, $defs: refs } }]).calls, [['f', { s: 1 }]]);
  }
})));

test('what calls are limited to: the form\'s own grammar, and names that its tags can hold', () => {
  const { text, kind, names } = callLimits({ tools: [{ name: 'g' }] }, FORMS.tagged);
  assert.deepEqual([text, kind, names], ['\n<function=g>\n\0{"type":"object","properties":{}}\0</function>\n', 'taggedCalls', ['g']]);
  for (const make of [() => callLimits({ tools: [{ name: 'a>b' }] }, FORMS.tagged), () => new Tools([], { tools: [{ name: 'x' }, { name: 'a>b' }] }, FORMS.tagged)]) {
    assert.throws(make, (error) => error.code === 'use/param' && /^options\.tools\[\d\]\.name$/.test(error.detail.param) && /'>'/.test(error.message));
  }
  assert.deepEqual(callLimits({ tools: [{ name: 'a>b' }] }, FORMS.json).names, ['a>b']);
});

// --- the demo model with such a template ---

test('a model whose template asks for it calls between tags, by its tools\' schemas, and its call is found again', { timeout: 120_000 }, async () => {
  const files = [new File([JSON.stringify({ chat_template: TAGGED })], 'tokenizer_config.json'), new File([await readFile(DEMO)], 'demo.gguf')];
  const model = await load(files, { threads: 1 });
  const properties = {
    city: { type: 'string', maxLength: 8 }, day: { type: 'integer', minimum: 1, maximum: 31 }, unit: { enum: ['C', 'F\n'] }, rain: { type: 'boolean' }, note: { anyOf: [{ type: 'string', pattern: '^[a-z]?$' }, { type: 'null' }] },
  };
  const weather = { name: 'weather', parameters: { type: 'object', properties, required: ['city', 'day', 'unit', 'rain', 'note'] } };
  const tools = [weather, { name: 'now' }];
  const names = new Set();
  for (let seed = 1; seed <= 8; seed++) {
    const { toolCalls, text, finishReason } = await model.chat('Weather?', { tools, toolChoice: seed % 2 ? { name: 'weather' } : 'required', seed, temperature: 1.5, repeatPenalty: 5, maxTokens: 200 }).result;
    const [{ name, arguments: given }] = toolCalls;
    assert.ok(['tool-calls', 'length'].includes(finishReason) && !text.includes('<function'), text);
    names.add(name);
    if (name === 'now') { assert.deepEqual(given, {}); continue; }
    assert.deepEqual(Object.keys(given), Object.keys(properties));
    const { city, day, unit, rain, note } = given;
    assert.ok([...city].length <= 8 && Number.isInteger(day) && day >= 1 && day <= 31 && ['C', 'F\n'].includes(unit) && typeof rain === 'boolean' && (note === null || /^[a-z]?$/.test(note)), JSON.stringify(given));
  }
  assert.ok(names.has('weather'));
  const first = await model.chat('Weather?', { tools, toolChoice: { name: 'now' }, temperature: 0, maxTokens: 60 }).result;
  const messages = [{ role: 'user', content: 'Weather?' }, { role: 'assistant', content: '', toolCalls: first.toolCalls.slice(0, 1) }, { role: 'tool', toolCallId: first.toolCalls[0].id, content: 'noon' }];
  const asText = messages.map((message) => (message.toolCalls ? { ...message, toolCalls: message.toolCalls.map((call) => ({ ...call, arguments: ' {\n}' })) } : message));
  assert.deepEqual(await model.tokenize(asText, { tools }), await model.tokenize(messages, { tools }), 'the template walks through arguments that were JSON as text');
  const { usage } = await model.chat(messages, { tools, maxTokens: 1 }).result;
  assert.ok(usage.cachedTokens >= first.usage.promptTokens + 2, `${usage.cachedTokens} of ${first.usage.promptTokens} and the call`);
  const bad = { name: 'bad', parameters: { properties: { 'a>b': {} } } };
  await rejectsWith(model.chat('x', { tools: [bad] }).result, 'use/schema', /^The parameters of 'bad': .*'>'/);
  await model.dispose();
});
