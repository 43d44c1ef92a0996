// SPDX-License-Identifier: MIT
// A draft model: another model's likeliest tokens, verified by the model itself. That texts are the same: drafts-random.test.mjs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { connect } from '../../../js/worker/drafter.js';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { DEMO, NANO, rejectsWith } from '../support/helper.mjs';
import { atLast } from '../support/soon.mjs';

const OPTIONS = { contextSize: 512, store: false, threads: 1 };
const QUESTION = 'What is quern?';

async function open(t, source, options) {
  const model = await load(source, { ...OPTIONS, ...options });
  t.after(() => model.dispose());
  return model;
}

test('a model that drafts for itself is always right, and takes fewer steps', async (t) => {
  const [plain, drafting] = [await open(t, DEMO, { drafts: false }), await open(t, DEMO, { draft: DEMO })];
  const ask = async (model) => {
    const before = model.info.work.steps;
    const { text, usage } = await model.chat(QUESTION, { temperature: 0 }).result;
    return { text, usage, steps: model.info.work.steps - before };
  };
  const expected = await ask(plain);
  await atLast(async () => {
    const { text, usage: { draftedTokens = 0, acceptedTokens = 0 }, steps } = await ask(drafting);
    assert.equal(text, expected.text);
    assert.ok(acceptedTokens >= 0.8 * draftedTokens, `${acceptedTokens} of ${draftedTokens}`);
    return draftedTokens > 0 && steps < expected.steps;
  }, 'a step fewer');
});

test('a long prompt is read a little at a time, and then drafted for', async (t) => {
  const drafting = await open(t, DEMO, { draft: DEMO });
  const never = Object.fromEntries(drafting.info.endTokens.map((id) => [id, -Infinity]));
  const ask = (seed) => drafting.chat(`${'The mill stands on the river. '.repeat(20)}${QUESTION}`, { temperature: 1, seed, maxTokens: 60, logitBias: never }).result;
  let seed = 0;
  await atLast(async () => {
    const { promptTokens, acceptedTokens } = (await ask(++seed)).usage;
    assert.ok(promptTokens > 120);
    return acceptedTokens > 0;
  }, 'a draft is right');
});

test('replies side by side get drafts together', async (t) => {
  const [plain, drafting] = [await open(t, DEMO, { drafts: false }), await open(t, DEMO, { draft: DEMO, parallel: 4, kvPositions: 2048 })];
  const ask = (model) => Promise.all(['a mill', 'an owl', 'a fox', 'the river'].map((what) => model.chat(`Tell me a story about ${what}.`, { temperature: 0.5, seed: 1, maxTokens: 40 }).result));
  const [expected, found] = [await ask(plain), await ask(drafting)];
  assert.deepEqual(found.map(({ text }) => text), expected.map(({ text }) => text));
});

test('what cannot draft is refused', async () => {
  await rejectsWith(load(DEMO, { ...OPTIONS, draft: NANO }), 'use/param', /^options\.draft is a model with another vocabulary/);
  await rejectsWith(load(DEMO, { ...OPTIONS, draft: new Blob([tiny35()]) }), 'use/param', /^options\.draft is not for models with a state/);
  await rejectsWith(load(DEMO, { ...OPTIONS, draft: DEMO, drafts: false }), 'use/param', /options\.drafts: false exclude each other/);
  await rejectsWith(load(DEMO, { ...OPTIONS, draft: '/nowhere.gguf' }), 'use/param', /^options\.draft cannot be read/);
  await rejectsWith(load(DEMO, { ...OPTIONS, draft: 5 }), 'use/param', /^options\.draft must be where the model is/);
  await rejectsWith(load('/nowhere.gguf', { ...OPTIONS, draft: DEMO }), 'use/param', /^'\/nowhere\.gguf' cannot be read/);
});

test('both share the memory limit', async (t) => {
  const large = { ...OPTIONS, kvPositions: 4096, memoryLimit: 30e6 };
  const { planned } = (await open(t, DEMO, large)).info.memory;
  await rejectsWith(load(DEMO, { ...large, draft: DEMO }), 'mem/plan', /can be used here/);
  const both = await open(t, DEMO, { ...large, draft: DEMO, memoryLimit: 30e6 + planned });
  assert.equal(both.info.memory.planned, planned);
});

test('nothing waits for a worker that has ended', async () => {
  const { port1, port2 } = new MessageChannel();
  const engine = /** @type {any} */ ({ tokens: () => ({ starts: Int32Array.of(0), bytes: new Uint8Array(0), types: new Uint8Array(0) }) });
  const runner = /** @type {any} */ ({});
  const checking = connect(engine, runner, { port: port1 });      // no answer comes
  await connect(engine, runner, {});
  await checking;
  const run = { sequence: { number: 1, wants: () => 3, draft: () => assert.fail('nobody drafts') }, work: { ids: [1, 2], place: {} } };
  await runner.drafter.draft(new Map([[1, run]]), 1);
  port1.close();
  port2.close();
});

test('where drafts do not pay, they are tried in a fiftieth of the time', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.after(() => { port1.close(); port2.close(); });
  const answers = [];     // the others are a draft for each
  let asked = 0;
  port2.on('message', ({ asked: all }) => {
    asked += Boolean(all);
    port2.postMessage(all ? answers.shift() ?? all.map(() => [7]) : true);
  });
  const engine = /** @type {any} */ ({ tokens: () => ({ starts: Int32Array.of(0), bytes: new Uint8Array(0), types: new Uint8Array(0) }) });
  const runner = /** @type {any} */ ({});
  await connect(engine, runner, { port: port1 });
  let drafted = 0;
  const run = { sequence: { number: 1, wants: () => -1, draft: () => { drafted++; } }, work: { ids: [1, 2], place: {} } };
  const runs = new Map([[1, run]]);
  const steps = async (n) => {
    asked = drafted = 0;
    for (let i = 0; i < n; i++) await runner.drafter.draft(runs, 5000);     // a large model's step
    return [asked, drafted];
  };
  const [some] = await steps(1000);
  assert.ok(some >= 15 && some <= 20, `${some} of 1,000 steps`);
  // What is read little by little is asked for until it is there, and what will not come is not asked for again.
  answers.push([[]], [[]], [[]]);
  const [reading, got] = await steps(60);
  assert.ok(got >= 1 && reading - got === 3, `${reading} and ${got}`);
  answers.push([null]);
  const [none, then] = await steps(60);
  assert.ok(none - then === 1 && none <= 2, `${none} and ${then}`);
});
