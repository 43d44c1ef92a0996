// SPDX-License-Identifier: MIT
// What visitors of the page ask the demo model first, and how often its replies are right: at the page's own sampling,
// each with another seed. The questions and the shares are in fixtures/demo-questions.json. Seeds are fixed, so a
// share changes only with the model or with the engine's arithmetic.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { ask as askWithTools } from '../../../web/tools/page-tools.js';
import { length } from '../../fixtures/lengths.mjs';
import { DEMO } from '../support/helper.mjs';

const TIMES = length(25, 200);
const AT_ONCE = 16;

/** The page's markup, which has the suggestions. */
const PAGE = await readFile(new URL('../../../web/index.html', import.meta.url), 'utf8');

const { groups } = JSON.parse(await readFile(new URL('../../fixtures/demo-questions.json', import.meta.url), 'utf8'));

let model;
before(async () => { model = await load(DEMO, { threads: 2, parallel: AT_ONCE, kvPositions: AT_ONCE * 256 }); });
after(() => model.dispose());

/** Numbers below `limit` that look random. */
function numbers(seed) {
  let state = seed;
  return (limit) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 >>> 0;
    return Math.floor(state / 2 ** 32 * limit);
  };
}

const OPERATIONS = { '+': (a, b) => a + b, '-': (a, b) => a - b, '×': (a, b) => a * b };
const WORDS = {
  '+': (a, b) => [`What is ${a} + ${b}?`, `${a}+${b}`, `how much is ${a} plus ${b}`, `${a} + ${b} =`],
  '-': (a, b) => [`What is ${a} - ${b}?`, `${a}-${b}`, `how much is ${a} minus ${b}`, `${a} - ${b} =`],
  '×': (a, b) => [`What is ${a} × ${b}?`, `${a}*${b}`, `how much is ${a} times ${b}`, `${a} x ${b} =`],
};

/** Questions whose numbers and result are from 0 to `most` (factors to `most`), each with the value. */
function computed({ computed: sign, most }) {
  const next = numbers(sign.charCodeAt(0));
  return Array.from({ length: 12 * TIMES }, (_, i) => {
    const [one, other] = [next(most + 1), next(most + 1)];
    const [a, b] = sign === '+' && one + other > most ? [most - one, most - other]
      : sign === '-' && one < other ? [other, one] : [one, other];
    const right = new RegExp(`(^|[^\\d.-])${OPERATIONS[sign](a, b)}(\\*\\*)?\\.?$`);
    return { question: WORDS[sign](a, b)[i % 4], right, seed: i };
  });
}

const TYPES = { string: 'string', number: 'integer' };

/** A system prompt with the schema of an object. */
function schemaFor(value) {
  const properties = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, { type: TYPES[typeof one] }]));
  const schema = { type: 'object', properties, required: Object.keys(value), additionalProperties: false };
  return { schema, system: `Answer as JSON by this schema: ${JSON.stringify(schema)}` };
}

/** Whether a reply first called the tool that it should (or none), and says what is right. */
async function isCalled({ question, right, seed, calls: name }) {
  const reply = askWithTools(model, [{ role: 'user', content: question }], { toolChoice: 'auto', thinking: false, seed }, { texts: [] });
  const calls = [];
  for await (const event of reply.events) {
    if (event.type === 'tool-call') calls.push(event.name);
  }
  const { text } = await reply.result;
  return { isRight: (calls[0] ?? '') === name && new RegExp(right).test(text), text: `${calls} ${text}` };
}

async function isAnswered({ question, right, seed, system }) {
  const value = typeof right === 'object' && !(right instanceof RegExp) ? right : null;
  const { system: asked, schema } = value ? schemaFor(value) : { system, schema: undefined };
  const messages = [...asked ? [{ role: 'system', content: asked }] : [], { role: 'user', content: question }];
  const result = await model.chat(messages, { thinking: false, seed, schema, maxTokens: 200 }).result;
  const isRight = value ? JSON.stringify(result.value) === JSON.stringify(value) : new RegExp(right).test(result.text);
  return { isRight: isRight && result.finishReason === 'stop', text: result.text };
}

/** Asks each question `TIMES` times. */
function asked({ questions, right: all, calls }) {
  return questions.flatMap((one) => {
    const [question, right, system] = Array.isArray(one) ? one : [one, all];
    return Array.from({ length: TIMES }, (_, seed) => ({ question, right, system, seed, calls }));
  });
}

/** Does the work for each of a list, for some at a time: the model takes no more than 80 replies at once. */
async function sideBySide(list, work) {
  const left = list.entries();
  const done = [];
  await Promise.all(Array.from({ length: 2 * AT_ONCE }, async () => {
    for (const [i, one] of left) done[i] = await work(one);
  }));
  return done;
}

for (const group of groups) {
  test(`the demo model: ${group.name}`, { timeout: 1_800_000 }, async (t) => {
    const list = group.computed ? computed(group) : asked(group);
    const replies = await sideBySide(list, async (one) => {
      const { isRight, text } = await (one.calls === undefined ? isAnswered(one) : isCalled(one));
      return { key: group.together ? group.name : [one.system, one.question].filter(Boolean).join(' | '), isRight, text };
    });
    const shares = new Map();
    for (const { key, isRight, text } of replies) {
      const share = shares.get(key) ?? { right: 0, all: 0, wrong: '' };
      share.all++;
      if (isRight) share.right++;
      else share.wrong ||= text;
      shares.set(key, share);
    }
    const lines = Array.from(shares, ([key, { right, all, wrong }]) => ({
      line: `${key}: ${right} of ${all}${wrong && `, and: ${wrong.slice(0, 100)}`}`,
      isEnough: right >= group.atLeast * all,
    }));
    for (const { line } of lines) t.diagnostic(line.replaceAll('\n', ' '));
    assert.deepEqual(lines.filter(({ isEnough }) => !isEnough).map(({ line }) => line), []);
  });
}

test('each suggestion of the page is among the questions', () => {
  const { questions } = groups.find(({ name }) => name === 'suggestions of the page');
  const suggested = [...PAGE.matchAll(/class="chip">([^<]+)</g)].map(([, question]) => question);
  assert.deepEqual(questions.map(([question]) => question), suggested);
});
