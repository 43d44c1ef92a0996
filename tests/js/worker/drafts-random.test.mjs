// SPDX-License-Identifier: MIT
// Conversations of every kind, with drafts and without: sampled in every way, held to formats, with tools, stop texts and probabilities, beside
// others, let go for lack of pages and stopped at any moment. Events and results are the same, and some drafts of each kind were right.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../../../dist/node.js';
import { LONG, length } from '../../fixtures/lengths.mjs';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { random } from '../../fixtures/random.mjs';
import { DEMO } from '../support/helper.mjs';

const CONVERSATIONS = length(100, 1000);
const MOST_TOGETHER = 6;

/** Drafts are looked up and given by formats, also made by a draft model, or by the model itself. No pool has room for all who write. */
const MODELS = {
  demo: [DEMO, { threads: 2, contextSize: 256, parallel: 4, kvPositions: 256 }],
  helped: [DEMO, { threads: 1, contextSize: 1024, parallel: 4, kvPositions: 1100 }, { draft: DEMO }],
  mtp: [new Blob([tiny35({ drafts: 1, agrees: true, context: 512, type: 'F32' })]), { threads: 1, contextSize: 256, parallel: 4, kvPositions: 256 }],
};

const opened = {};
before(async () => {
  for (const [name, [source, options, more]] of Object.entries(MODELS))
    opened[name] = await Promise.all([{ drafts: false }, more].map((how) => load(source, { ...options, ...how, store: false })));
});
after(() => Promise.all(Object.values(opened).flat().map((model) => model.dispose())));

const PERSON = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, occupation: { enum: ['miller', 'baker'] }, age: { type: 'integer', minimum: 0, maximum: 99 } },
  required: ['name', 'occupation', 'age'],
};

const TOOLS = [
  { name: 'get_weather', parameters: { type: 'object', properties: { location: { type: 'string', maxLength: 10 }, unit: { enum: ['celsius', 'fahrenheit'] } }, required: ['location', 'unit'] } },
  { name: 'get_time', parameters: { type: 'object', properties: { timezone: { type: 'string', maxLength: 8 } }, required: ['timezone'] } },
];

/** What holds a reply, or ends or reads it at each token. */
const KINDS = {
  free: [{}],
  schema: [{ schema: PERSON }, { schema: { type: 'array', items: PERSON, minItems: 2, maxItems: 3 } }, { schema: PERSON, whitespace: 'flexible' }],
  pattern: [{ regex: 'The mill stands (on the river|beside the old bridge)\\. It is [0-9]{1,3} years old\\.' }, { grammar: 'root ::= "water " ("flows " "down " | "turns ")+ "the wheel"' }, { choices: ['the river', 'the road', 'a mill'] }],
  json: [{ json: true }],
  tools: [{ tools: TOOLS, toolChoice: 'required' }, { tools: TOOLS, toolChoice: { name: 'get_weather' } }, { tools: TOOLS }],
  stop: [{ stop: ['zzz'] }, { stop: ['. ', ' and'] }, { stop: ['e'] }],
  logprobs: [{ logprobs: 0 }, { logprobs: 3 }, { logprobs: 2, schema: PERSON }],
};

const WAYS = [
  { temperature: 0 }, { temperature: 0 }, { temperature: 0.5, topP: 0.9 }, { temperature: 1, topK: 3 }, { temperature: 1.2, topK: 0, topP: 1, minP: 0.02 },
  { temperature: 0, repeatPenalty: 1.2 }, { temperature: 1, topK: 8, presencePenalty: 0.4, frequencyPenalty: 0.2 }, { temperature: 0, logitBias: { 40: 3, 41: -Infinity } },
];

const TEXTS = [
  'What is quern?', 'Tell me a story about an owl.', 'Please repeat: the mill stands on the river, the mill stands on the river, the mill stands', 'Who are you?',
  'Say it as JSON: {"name":"Ada","occupation":"miller","age":36}, {"name":"Bob","occupation":"baker","age":7}', 'What is the weather in Rome?',
];

/** A conversation with a model: its kind, and what chat() or complete() gets. */
function conversation(seed, model) {
  const next = random(seed);
  const pick = (list) => list[Math.floor(next() * list.length)];
  const kinds = Object.keys(KINDS).filter((kind) => model === 'helped' || kind !== 'tools');
  const kind = pick(kinds);
  const isChat = model !== 'mtp' && (kind === 'tools' || next() < 0.7);
  const options = {
    ...pick(KINDS[kind]), ...pick(WAYS), seed,
    maxTokens: pick([1, 20, 60, 120, 180]),
    ...(next() < 0.4 && { priority: 'background' }),
    ...(isChat && next() < 0.3 && { thinking: true }),
  };
  const said = isChat && next() < 0.4 ? [{ role: 'user', content: pick(TEXTS) }, { role: 'assistant', content: 'The mill stands on the river.' }] : [];
  const text = pick(TEXTS);
  return { model, kind, options, input: isChat ? [...said, { role: 'user', content: text }] : text, stopsAfter: next() < 0.1 ? 1 + Math.floor(next() * 6) : Infinity, afterMs: next() * 30 };
}

/** Events with those joined that only time cuts apart, and without ids, which are random. */
function joined(events) {
  const all = [];
  for (const { id, ...event } of events) {
    const last = all.at(-1);
    if (last?.type !== event.type || !['text', 'thinking', 'tool-call-delta'].includes(event.type)) {
      all.push({ ...event });
      continue;
    }
    last.text += event.text;
    if (event.delta !== undefined) last.delta += event.delta;
    if (event.logprobs) last.logprobs = [...last.logprobs ?? [], ...event.logprobs];
  }
  return all;
}

/** All of a result but times and what drafts may change. */
function essence({ usage: { draftedTokens, acceptedTokens, cachedTokens, ...usage }, timings, toolCalls, unfinishedCall, ...result }) {
  const known = ({ id, ...call }) => call;
  return { ...result, toolCalls: toolCalls.map(known), unfinishedCall: unfinishedCall && known(unfinishedCall), usage };
}

async function hold(model, { input, options, stopsAfter, afterMs }) {
  await sleep(afterMs);
  const reply = typeof input === 'string' ? model.complete(input, options) : model.chat(input, options);
  const events = [];
  for await (const event of reply.events) {
    events.push(event);
    if (events.length >= stopsAfter) reply.stop();
  }
  return { events: joined(events), result: await reply.result };
}

/** Checks that what a stopped reply has said is the beginning of what it would have said, but for half a character at its end. */
function checkBeginning({ result }, { result: whole }, name) {
  for (const part of ['text', 'thinking']) {
    const said = result[part].replace(/\ufffd+$/, '');
    assert.equal(whole[part].slice(0, said.length), said, name);
  }
}

const counts = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, { drafted: 0, accepted: 0, stopped: 0 }]));

async function compare(seed, model) {
  const talk = conversation(seed, model);
  const [plain, drafting] = opened[talk.model];
  const [expected, found] = await Promise.all([hold(plain, { ...talk, stopsAfter: Infinity }), hold(drafting, talk)]);
  const { draftedTokens = 0, acceptedTokens = 0 } = found.result.usage;
  const count = counts[talk.kind];
  const name = `seed ${seed}: ${JSON.stringify(talk)}`;
  assert.equal(expected.result.usage.draftedTokens, undefined, name);
  assert.ok(acceptedTokens <= draftedTokens && acceptedTokens < Math.max(1, found.result.usage.completionTokens), name);
  count.drafted += draftedTokens;
  count.accepted += acceptedTokens;
  if (found.result.finishReason === 'aborted') {
    count.stopped++;
    return checkBeginning(found, expected, name);
  }
  assert.deepEqual(found.events, expected.events, name);
  return assert.deepEqual(essence(found.result), essence(expected.result), name);
}

test(`${CONVERSATIONS} conversations are the same with drafts`, async (t) => {
  const next = random(1);
  for (let seed = 1; seed <= CONVERSATIONS;) {
    const together = Math.min(1 + Math.floor(next() * MOST_TOGETHER), CONVERSATIONS + 1 - seed);
    const model = Object.keys(MODELS)[Math.floor(next() * 3)];
    await Promise.all(Array.from({ length: together }, (_, i) => compare(seed + i, model)));
    seed += together;
  }
  const accepted = (...kinds) => kinds.reduce((sum, kind) => sum + counts[kind].accepted, 0);
  t.diagnostic(JSON.stringify(counts));
  const letGo = Object.values(opened).flat().map(({ info }) => info.work.letGo);
  if (LONG) assert.ok(letGo.every((times, i) => times > 0 || i === 2 || i === 3), `let go: ${letGo}`);      // the second pool is large
  t.diagnostic(`let go: ${letGo}`);
  for (const kinds of [['schema'], ['pattern', 'json'], ['tools'], ['free', 'stop', 'logprobs']]) assert.ok(accepted(...kinds) > 0, `${kinds}: ${JSON.stringify(counts)}`);
});
