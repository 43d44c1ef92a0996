// SPDX-License-Identifier: MIT
// Replies that a schema, an expression, a grammar or a list limits: whatever the weights and the temperature, the text is what was asked for, alone
// and beside others; what cannot be honoured is refused by name before any work.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { some } from '../../fixtures/lengths.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { DEMO, collect, rejectsWith, rejectsWithAbort } from '../support/helper.mjs';

const PERSON = {
  type: 'object', additionalProperties: false, required: ['name', 'age'],
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 150 }, tags: { type: 'array', items: { enum: ['a', 'b'] }, maxItems: 3 } },
};
const OWL = 'Tell me about an owl.';

/** As random as it gets. */
const WILD = { temperature: 1.5, topK: 0, topP: 1 };

let model;      // that has learnt to write
let noise;      // random weights
before(async () => {
  [model, noise] = await Promise.all([load(DEMO, { threads: 2, contextSize: 1024 }), load(new Blob([tinyModel()]), { threads: 1, contextSize: 1024 })]);
});
after(() => Promise.all([model.dispose(), noise.dispose()]));

function checkPerson({ name, age, tags = [], ...rest }) {
  assert.ok(typeof name === 'string' && [...name].length <= 12 && Number.isInteger(age) && age >= 0 && age <= 150, JSON.stringify({ name, age }));
  assert.ok(tags.length <= 3 && tags.every((tag) => ['a', 'b'].includes(tag)) && Object.keys(rest).length === 0);
}

test('what a schema asks for, whatever the weights', async () => {
  for (const one of [model, noise]) {
    const replies = await Promise.all(Array.from({ length: 8 }, (_, seed) => one.chat(OWL, { ...WILD, schema: PERSON, seed }).result));
    for (const { text, value, finishReason } of replies) {
      assert.equal(finishReason, 'stop');
      assert.deepEqual(value, JSON.parse(text));
      assert.equal(JSON.stringify(value), text, 'compact, without needless escapes');
      checkPerson(value);
    }
    assert.ok(new Set(replies.map(({ text }) => text)).size > 4);
  }
});

test('choices, expressions, grammars and JSON', async () => {
  for (let seed = 0; seed < 6; seed++) {
    const ask = (options) => noise.complete('a', { ...WILD, seed, maxTokens: 200, ...options }).result;
    const [choice, pattern, flags, grammar, json] = await Promise.all([
      ask({ choices: ['yes', 'no', 'é"\\'] }), ask({ regex: '[a-f]{3}-\\d{2,4}' }), ask({ regex: seed % 2 ? /a.b|\p{Lu}\p{sc=Grek}$/su : /(?:ab\n?)$/imv }), ask({ grammar: 'root ::= "x" ("," item)*\nitem ::= [0-9] | "(" item ")"' }),
      ask({ json: true }),
    ]);
    assert.ok(['yes', 'no', 'é"\\'].includes(choice.text) && choice.value === choice.text);
    assert.match(pattern.text, /^[a-f]{3}-\d{2,4}$/);
    assert.match(flags.text, seed % 2 ? /^(a.b|\p{Lu}\p{sc=Grek})$/su : /^ab\n?$/i);
    if (grammar.finishReason === 'stop') assert.match(grammar.text, /^x(,\(*\d\)*)*$/);
    if (json.finishReason === 'stop') assert.deepEqual(json.value, JSON.parse(json.text));
    for (const { value } of [pattern, grammar]) assert.equal(value, undefined);
  }
});

test('the same alone and beside others, on any kernels, with what is known of the prompt', async () => {
  const options = { ...WILD, schema: PERSON, seed: 11 };
  const { text } = await model.chat(OWL, options).result;
  const beside = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => model.chat(OWL, i % 2 ? { ...WILD, regex: '[a-z ]{5,40}', seed: i } : options).result));
  for (const i of [0, 2, 4]) assert.equal(beside[i].text, text);
  for (const i of [1, 3, 5]) assert.match(beside[i].text, /^[a-z ]{5,40}$/);
  const scalar = await load(DEMO, { variant: 'scalar', threads: 1, contextSize: 1024 });
  assert.equal((await scalar.chat(OWL, options).result).text, text);
  await scalar.dispose();
});

test('white space where it is wanted', async () => {
  const seen = new Set();
  for (let seed = 0; seed < 20; seed++) {
    const { text, value, finishReason } = await model.complete('a', { ...WILD, schema: PERSON, whitespace: 'flexible', seed, maxTokens: 300 }).result;
    if (finishReason !== 'stop') continue;
    checkPerson(value);
    seen.add(text === JSON.stringify(value));
  }
  assert.ok(seen.has(false), 'some of it has white space');
});

test('a text that is cut off has no value', async () => {
  const cut = await noise.complete('a', { ...WILD, schema: { type: 'array', items: PERSON, minItems: 5 }, seed: 1, maxTokens: 10 }).result;
  assert.deepEqual([cut.finishReason, cut.value], ['length', undefined]);
  const reply = noise.complete('a', { ...WILD, json: true, seed: 2, stop: [':', '}', ']', '"', '1', 'e'] });
  const stopped = await reply.result;
  assert.ok(stopped.value === undefined || JSON.stringify(stopped.value) === stopped.text.trim());
  const left = noise.chat(OWL, { schema: { type: 'string', minLength: 500 }, seed: 1 });
  await left[Symbol.asyncIterator]().next();
  left.stop();
  assert.equal((await left.result).value, undefined);
});

test('what is stopped before its grammar is compiled costs no compilation', async () => {
  const tooMuch = { allOf: Array.from({ length: 40 }, (_, i) => ({ type: 'string', pattern: `a.{${i}}b` })) };
  for (const options of [{ schema: tooMuch }, { tools: [{ name: 'f', parameters: { type: 'object', properties: { a: tooMuch } } }] }]) {
    const reply = model.chat('a', options);
    reply.stop();
    assert.equal((await reply.result).finishReason, 'aborted');
    const controller = new AbortController();
    const aborted = model.chat('a', { ...options, signal: controller.signal }).result;
    controller.abort();
    await rejectsWithAbort(aborted);
    await rejectsWith(model.chat('a', options).result, 'use/schema', /too many steps/);
  }
});

test('thinking comes first, and is free', async () => {
  for (const seed of [1, 2, 3]) {
    const reply = model.chat(OWL, { ...WILD, thinking: true, schema: PERSON, seed, logitBias: { [(await model.tokenize('</think>'))[0]]: 20 } });
    const events = await collect(reply.events);
    const { text, thinking, value, finishReason } = await reply.result;
    assert.equal(finishReason, 'stop');
    checkPerson(value);
    assert.equal(text, JSON.stringify(value));
    assert.equal(events.filter(({ type }) => type === 'thinking').map((event) => event.text).join(''), thinking);
  }
});

test('probabilities are those without limits', async () => {
  const { logprobs, text } = await noise.complete('a', { ...WILD, regex: '[a-z]{5,20}', seed: 4, logprobs: 1 }).result;
  const end = logprobs.pop();
  assert.deepEqual([logprobs.map((one) => one.text).join(''), noise.info.endTokens.includes(end.id)], [text, true], 'the token that ended it counts');
  assert.ok(logprobs.some(({ id, top }) => top[0].id !== id), 'the likeliest was not allowed');
});

const cyclic = { type: 'object' };
cyclic.properties = { self: cyclic };

/** Written out it is of 2^60 values: its parts are shared. */
let shared = { type: 'string' };
for (let i = 0; i < 60; i++) shared = { anyOf: [shared, shared] };

/** Fields that JSON passes over. */
class Typed { get type() { return 'string'; } }
const PASSED_OVER = [new Map([['type', 'string']]), new Set(), Object.create({ type: 'string' }), new Typed(), { type: String }, { properties: { a: new Map() } }, { enum: [Symbol('a')] }, new Float32Array(1)];

test('what is no limit is refused, and the model goes on', async () => {
  for (const [options, param] of [
    [{ schema: cyclic }, 'options.schema'], [{ get schema() { throw new Error('no'); } }, 'options.schema'], [{ schema: { get type() { throw new Error('no'); } } }, 'options.schema'],
    [{ schema: shared }, 'options.schema'], [{ choices: Array(2 ** 31) }, 'options.choices'], [{ choices: new Set(['a']) }, 'options.choices'], ...PASSED_OVER.map((schema) => [{ schema }, 'options.schema']),
    [{ schema: 'x' }, 'options.schema'], [{ schema: [] }, 'options.schema'], [{ schema: 5 }, 'options.schema'], [{ schema: () => {} }, 'options.schema'], [{ schema: { minimum: 1n } }, 'options.schema'],
    [{ regex: '' }, 'options.regex'], [{ regex: 5 }, 'options.regex'], [{ regex: {} }, 'options.regex'], [{ regex: { source: 'a' } }, 'options.regex'], [{ regex: { source: 'a', flags: 'ix' } }, 'options.regex'],
    [{ regex: { source: '[\\w--\\d]', flags: 'v' } }, 'options.regex'], [{ regex: { source: '[^a]', flags: 'iv' } }, 'options.regex'], [{ regex: { source: '[[a]b]', flags: 'v' } }, 'options.regex'],
    [{ grammar: '' }, 'options.grammar'], [{ grammar: ['x'] }, 'options.grammar'], [{ json: 'yes' }, 'options.json'],
    [{ choices: [] }, 'options.choices'], [{ choices: 'yes' }, 'options.choices'], [{ choices: ['a', ''] }, 'options.choices'], [{ choices: [5] }, 'options.choices'],
    [{ choices: Array.from({ length: 10_001 }, String) }, 'options.choices'], [{ whitespace: 'some', json: true }, 'options.whitespace'],
    [{ schema: true, regex: 'a' }, 'options.regex'], [{ json: true, choices: ['a'] }, 'options.choices'],
  ]) {
    for (const ask of [(how) => noise.chat('a', how), (how) => noise.complete('a', how)]) {
      const error = await rejectsWith(ask(options).result, 'use/param');
      assert.equal(error.detail.param, param, error.message);
    }
  }
  for (const parameters of PASSED_OVER) {
    const error = await rejectsWith(noise.chat('a', { tools: [{ name: 'f', parameters }] }).result, 'use/param');
    assert.equal(error.detail.param, 'options.tools');
  }
  assert.equal((await noise.complete('a', { choices: ['b'], json: false, schema: null }).result).text, 'b');
});

test('what cannot be honoured is refused by name', async () => {
  for (const [options, words] of [
    [{ schema: { type: 'string', pattern: '(?=a)b' } }, /./], [{ schema: { $ref: 'https://example.org/x' } }, /\$ref/], [{ schema: { type: 'strong' } }, /type/], [{ schema: false }, /./],
    [{ schema: { type: 'integer', minimum: 5, maximum: 2 } }, /./], [{ regex: '(a' }, /./], [{ regex: '(?<=a)b' }, /./], [{ regex: '(a)\\1' }, /./], [{ regex: `${'a'.repeat(2 ** 20)}b` }, /./],
    [{ schema: { allOf: Array.from({ length: 40 }, (_, i) => ({ type: 'string', pattern: `a.{${i}}b` })) } }, /^pattern at #\/allOf\/1?\d: .*too many steps/],
    [{ grammar: 'root ::= missing' }, /missing/], [{ grammar: 'root ::= root "a"' }, /root/], [{ grammar: 'x ::= "a"' }, /root/], [{ schema: { enum: ['x'.repeat(2 ** 20)] } }, /./],
  ]) {
    const started = performance.now();
    const error = await rejectsWith(noise.complete('a', options).result, 'use/schema', words);
    assert.ok(error.hint.length > 0 && performance.now() - started < 5000, error.message);
  }
  checkPerson((await noise.complete('a', { schema: PERSON, seed: 1 }).result).value);
});

test('what of a schema says nothing is told, or refused where that is asked for', async () => {
  const schema = { type: 'object', properties: { id: { type: 'integer', format: 'int64', minimum: 0, maximum: 9 }, a: { type: 'null', nullable: true, 'x-y': 1 } }, required: ['id', 'a', 'b'], additionalProperties: { const: 1 }, maxProperties: 3 };
  const { value, schemaNotes } = await noise.complete('a', { ...WILD, seed: 3, schema }).result;
  assert.deepEqual({ ...value, id: 0 }, { id: 0, a: null, b: 1 });
  const [format, nullable, ...more] = (schemaNotes ?? []).toSorted((a, b) => (a.rule < b.rule ? -1 : 1));
  assert.deepEqual([nullable.rule, more], ['nullable', []]);
  assert.match(format.message, /^format at #\/properties\/id: the format "int64"/);
  await assert.rejects(noise.complete('a', { schema, strictSchema: true }).result, { code: 'use/schema' });
  assert.equal((await noise.complete('a', { ...WILD, schema: { const: 1, title: 'one', 'x-y': 2 }, strictSchema: true }).result).schemaNotes, undefined);
  const tools = [{ name: 'go', parameters: { type: 'object', properties: { far: { type: 'number', format: 'double' } } } }];
  const called = await model.chat(OWL, { tools, toolChoice: 'required', maxTokens: 40, seed: 1 }).result;
  assert.match(called.schemaNotes?.[0].message ?? '', /^The parameters of 'go': format at #\/properties\/far/);
  await assert.rejects(model.chat(OWL, { tools, strictSchema: true }).result, { code: 'use/schema', message: /The parameters of 'go': format at .*double/ });
});

test('a hostile expression of nearly a megabyte is refused, or works, in bounded time', async () => {
  const filled = (unit, rest = '') => unit.repeat(Math.floor((2 ** 20 - rest.length) / unit.length)) + rest;
  const open = 2 ** 19;
  for (const [regex, words] of some([
    [filled('.*'), /simpler/], [filled('a?'), /simpler/], [filled('\\p{L}?'), /too complicated/], [filled('\\p{ID_Continue}'), /too complicated/], [filled('(?i:k)'), /too complicated|simpler/], [filled('(a|a)*'), /too complicated/], [filled('(.{0,999}x){0,999}'), /simpler/],
    ['('.repeat(open) + ')'.repeat(open), /nested too deeply/], [filled('a', '(?<=b)'), /lookaround/], [filled('(?=a*)'), /too many lookaheads/], [filled('(?=.*a)'.repeat(60)), /too many|too complicated/], [filled('a'), null], [filled('(a+)+'), null], [`[${filled('a-z', '[]')}`.slice(0, -2).concat(']'), null],
  ], 2)) {
    const before = process.cpuUsage();
    const asked = noise.complete('a', { regex, maxTokens: 3, seed: 1 }).result;
    if (words) await rejectsWith(asked, 'use/schema', words);
    else assert.match((await asked).text, /^[a-z]{1,3}$/);
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 10e6, `${regex.slice(0, 20)}: ${user + system} us of the processor's time`);
  }
  assert.equal((await noise.complete('a', { regex: 'bc' }).result).text, 'bc');
});

test('many schemas, one after the other', async () => {
  for (let i = 0; i < 80; i++) {
    const { value } = await noise.complete('a', { choices: [`a${i}`, `b${i}`], seed: i }).result;
    assert.ok(value === `a${i}` || value === `b${i}`);
  }
});

test('a limit and a bias may leave nothing', async () => {
  const ids = await noise.tokenize('b');
  const error = await rejectsWith(noise.complete('a', { choices: ['b'], logitBias: { [ids[0]]: -Infinity } }).result, 'use/empty');
  assert.match(error.message, /forbidden/);
});

test('a begun text counts: the whole of it is what was asked for', async () => {
  const begun = (content) => [{ role: 'user', content: OWL }, { role: 'assistant', content }];
  const goOn = (content, options, one = noise) => one.chat(begun(content), { ...WILD, ...options, continue: true }).result;
  for (let seed = 0; seed < 4; seed++) {
    for (const content of ['{ "name": "Ow', '{"name":"', '{"name":"x","age":1', '{"name":"<b>","age": 7}']) {
      const { text, value, finishReason } = await goOn(content, { schema: PERSON, seed }, content.includes(' ') ? model : noise);
      assert.equal(finishReason, 'stop');
      assert.deepEqual(value, JSON.parse(content + text));
      checkPerson(value);
    }
    assert.match(`ab${(await goOn('ab', { regex: '[a-f]{3}-\\d{2,4}', seed })).text}`, /^[a-f]{3}-\d{2,4}$/);
    assert.match((await goOn('y', { choices: ['yes', 'yet', 'no'], seed })).value, /^ye[st]$/);
  }
  assert.equal((await goOn('{"name":"x","age":1}', { schema: PERSON, whitespace: 'compact' })).text, '');
  for (const options of [{ schema: PERSON }, { regex: '[a-f]{3}' }, { choices: ['yes'] }]) await rejectsWith(goOn('Well: ', options), 'use/param', /cannot begin/);
  await rejectsWith(goOn('{ "name"', { schema: PERSON, whitespace: 'compact' }), 'use/param', /cannot begin/);
  const thoughtful = await model.chat(begun('{"name":"'), { ...WILD, schema: PERSON, thinking: true, continue: true }).result;
  checkPerson(thoughtful.value);
  assert.equal((await noise.chat(OWL, { ...WILD, schema: PERSON }).result).finishReason, 'stop', 'the engine goes on');
});
