// SPDX-License-Identifier: MIT
// Schemas of libraries (Zod, and whatever else follows Standard Schema) as they are: a reply is held to what they take, and becomes what they make.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { z } from 'zod';
import { load } from '../../../dist/node.js';
import { run } from '../../../dist/run.js';
import { fakeModel } from '../../../dist/testing.js';
import { DEMO, rejectsWith } from '../support/helper.mjs';
import { playedModel, result } from '../support/serve-host.mjs';

let model;
before(async () => { model = await load(DEMO, { threads: 1, contextSize: 2048 }); });
after(() => model.dispose());

const ask = (schema) => model.complete('a', { schema, maxTokens: 300, seed: 3, temperature: 1 }).result;

/** As a library writes one that is a function, as ArkType's are, or has no method of its own. */
const standard = (said, validate = (value) => ({ value }), vendor = 'own') => Object.assign(() => {}, {
  '~standard': { version: 1, vendor, validate, ...(said && { jsonSchema: { input: ({ target }) => ({ $schema: target === 'draft-2020-12' ? undefined : target, ...said }), output: () => ({}) } }) },
});

test('a reply by a Zod schema is what that makes of it', async () => {
  const schema = z.strictObject({ city: z.literal('Oslo'), count: z.literal('7').transform(Number), when: z.iso.date().transform((text) => new Date(text)), unit: z.literal('m').default('m') });
  const { value, text, issues, finishReason } = await ask(schema);
  assert.equal(finishReason, 'stop', text);
  assert.ok(value.when instanceof Date && typeof JSON.parse(text).when === 'string');
  assert.deepEqual([value.city, value.count, value.unit, issues], ['Oslo', 7, 'm', undefined]);
});

test('what JSON Schema could not say is told beside the text', async () => {
  const { value, text, issues } = await ask(z.strictObject({ a: z.literal(1) }).refine(() => false, { message: 'never', path: ['a'] }));
  assert.deepEqual([value, JSON.parse(text), issues.map(({ message, path }) => [message, path])], [undefined, { a: 1 }, [['never', ['a']]]]);
  const { value: late } = await ask(z.literal('x').refine(async (given) => given === 'x'));
  assert.equal(late, 'x');
  await assert.rejects(ask(z.literal('x').transform(() => { throw new RangeError('mine'); })), /mine/);
});

test('others are taken by what they say; a plain schema stays what it is', async () => {
  assert.deepEqual((await ask(standard({ const: [1] }, async ([one]) => ({ value: { one } })))).value, { one: 1 });
  const old = Object.assign(standard(null), { toJSONSchema: () => ({ const: 5 }) });
  assert.equal((await ask(old)).value, 5);
  assert.equal((await ask(Object.assign(standard(null), { toJsonSchema: () => ({ const: 6 }) }))).value, 6);
  const typebox = { [Symbol('Kind')]: 'Object', type: 'object', properties: { a: { [Symbol('Kind')]: 'Literal', const: 1 } }, required: ['a'], additionalProperties: false };
  assert.deepEqual((await ask(typebox)).value, { a: 1 });
});

test('fakeModel() makes the same of them', async () => {
  const schema = z.object({ n: z.string().transform(Number) });
  const fake = fakeModel(['{"n":"7"}', '{"n":7}']);
  assert.deepEqual((await fake.chat('x', { schema }).result).value, { n: 7 });
  const { value, issues } = await fake.chat('x', { schema }).result;
  assert.deepEqual([value, issues.map(({ path }) => path)], [undefined, [['n']]]);
});

test('what says no JSON Schema is refused by name, and the model goes on', async () => {
  await rejectsWith(ask(standard(null, undefined, 'valibot')), 'use/param', /options\.schema .*'valibot'.*z\.toJSONSchema/);
  await rejectsWith(ask(z.object({ when: z.date() })), 'use/param', /options\.schema has no JSON Schema .*Date/);
  await rejectsWith(model.chat('x', { tools: [{ name: 'a', parameters: z.date() }] }).result, 'use/param', /options\.tools\[0\]\.parameters has no JSON Schema/);
  assert.equal((await ask(z.literal(1))).value, 1);
});

test("tools' parameters: the model writes what they take, and execute gets what they make of it", async () => {
  const parameters = z.object({ n: z.literal('4').transform(Number) });
  const asked = [];
  const given = [];
  const calls = [[['twice', { n: '4' }], ['twice', { n: 'no' }]], []];
  const played = playedModel((push, { input, options }) => {
    asked.push({ input: structuredClone(input), options });
    const toolCalls = calls[asked.length - 1].map(([name, args], i) => ({ id: `${i}`, name, arguments: args }));
    return { promise: Promise.resolve(result(toolCalls.length ? '' : 'Done.', { toolCalls, finishReason: toolCalls.length ? 'tool-calls' : 'stop' })) };
  }, {});
  const { messages } = await run(played, 'x', { tools: { twice: { parameters, execute: ({ n }) => { given.push(n); return n * 2; } } } }).result;
  assert.deepEqual(given, [4]);
  assert.deepEqual(messages[0].toolCalls.map((call) => call.arguments), [{ n: '4' }, { n: 'no' }], 'as the model wrote them');
  assert.deepEqual([messages[1].content, /^Error: n: /.test(messages[2].content)], ['8', true]);
  const { toolCalls } = await model.chat('x', { tools: [{ name: 'twice', parameters }], toolChoice: 'required', maxTokens: 200 }).result;
  assert.deepEqual(toolCalls.map((call) => [call.name, call.arguments])[0], ['twice', { n: '4' }]);
  assert.ok(await model.countTokens('x', { tools: [{ name: 'twice', parameters }] }) > 0);
});

test('a tool may say inputSchema for parameters, as MCP and the AI SDK do', async () => {
  const call = async (tool) => (await model.chat('Hi', { tools: [{ name: 'pick', ...tool }], toolChoice: 'required', temperature: 0, maxTokens: 200 }).result).toolCalls;
  const plain = { type: 'object', properties: { city: { enum: ['Oslo'] } }, required: ['city'] };
  const [{ arguments: expected }] = await call({ parameters: plain });
  for (const inputSchema of [plain, z.strictObject({ city: z.enum(['Oslo']) })]) assert.deepEqual((await call({ inputSchema }))[0].arguments, expected);
  await rejectsWith(call({ parameters: plain, inputSchema: plain }), 'use/param', /inputSchema is another name of parameters/);
  const given = [];
  const fake = fakeModel([{ toolCalls: [{ name: 'pick', arguments: { city: 'Oslo' } }] }, 'Done.']);
  const inputSchema = z.object({ city: z.string().transform((text) => text.length) });
  await run(fake, 'x', { tools: { pick: { inputSchema, execute: (input) => { given.push(input); return 'x'; } } } }).result;
  assert.deepEqual(given, [{ city: 4 }]);
});
