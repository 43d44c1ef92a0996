// SPDX-License-Identifier: MIT
// Folders as transformers 4.51 to 5.24 and sentence-transformers save them: each loads, computes what the version that saved it
// computes in float32, and makes the same ids of texts and of conversations with tools, thinking and images.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { SAVED, conversation, savedFolder } from '../../fixtures/saved.mjs';
import { rejectsWith } from '../support/helper.mjs';

const VOCAB = 320;
const DIM = 32;

/** Of the largest value of a row. */
const MOST = 1e-5;

const IMAGE = 'a picture';      // its name in saved-conversations.json

function assertNear(ours, theirs, what) {
  assert.equal(ours.length, theirs.length, what);
  const largest = theirs.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const error = theirs.reduce((most, x, i) => Math.max(most, Math.abs(x - ours[i])), 0) / largest;
  assert.ok(error < MOST, `${what}: ${error.toExponential(2)}`);
}

const row = (values, i, length) => values.subarray(i * length, (i + 1) * length);

async function checkLogits(model, { expected: { ids, rows, kind }, logits }) {
  const ours = await model.logits(ids);
  rows.forEach((at, i) => assertNear(row(ours, at, VOCAB), row(logits, i, VOCAB), `position ${at}`));
  if (!kind.sees) return;
  const { messages, options } = conversation(IMAGE, true);
  const all = await model.logits(messages, options);
  assertNear(all.subarray(-VOCAB), row(logits, rows.length, VOCAB), IMAGE);
}

/** Ids of texts are of what is given; transformers composes it first (NFC). */
async function checkTexts(model, { expected: { texts } }) {
  for (const { text, ids } of texts) assert.deepEqual(await model.tokenize(text.normalize('NFC')), ids, JSON.stringify(text));
}

async function checkPrompts(model, { expected: { prompts, kind } }) {
  for (const [name, ids] of Object.entries(prompts)) {
    const { messages, options } = conversation(name, kind.sees);
    const ours = await model.tokenize(messages, options);
    const from = ids.findIndex((id, i) => id !== ours[i]);
    if (from >= 0 || ours.length !== ids.length) {
      const [wanted, got] = await Promise.all([ids, ours].map((list) => model.detokenize(list)));
      assert.equal(got, wanted, name);
      assert.deepEqual(ours, ids, name);
    }
  }
}

/** Vectors of texts and of ids. Nothing in a text whose vector is wanted is a special token, so one with a mark is not compared. */
async function checkVectors(model, { expected: { texts, kind, ids, rows }, vectors, states }) {
  const options = { normalize: Boolean(kind.pooling) && kind.normalize !== false };
  const compared = vectors ? texts.filter(({ text }) => text || !kind.pooling) : [];
  for (const [i, { text, ids: own }] of compared.entries()) {
    const [[ofText], [ofIds]] = await Promise.all([text, own].map(async (one) => (await model.embed([one], options)).vectors));
    assertNear(ofIds, row(vectors, i, DIM), JSON.stringify(own));
    if (!text.includes('<')) assert.deepEqual(ofText, ofIds, JSON.stringify(text));
  }
  for (const [i, at] of states ? rows.entries() : []) {
    const [state] = (await model.embed([ids.slice(0, at + 1)], options)).vectors;
    assertNear(state, row(states, i, DIM), `the state behind ${at + 1} ids`);
  }
}

/** 5.0 cuts the experts of Qwen3-VL-MoE along the wrong side; nothing but itself can put them together. */
const UNUSABLE = ['5.0 vl-moe'];

/** What must not be computed otherwise than it is meant. */
const REFUSED = {
  // sentence-transformers makes a message of each text.
  'st-chat': (model) => rejectsWith(model.embed(['the']), 'model/unsupported'),
};

async function check(t, set, model) {
  await t.test('texts', () => checkTexts(model, set));
  await t.test('prompts', () => checkPrompts(model, set));
  if (REFUSED[set.kind]) await t.test('refused', () => REFUSED[set.kind](model));
  else if (set.logits) await t.test('logits', () => checkLogits(model, set));
  else await t.test('vectors', () => checkVectors(model, set));
}

function open(set) {
  const folder = savedFolder(set);
  return load(folder.path, { kv: 'f32', threads: 1, contextSize: 4096 }).finally(folder.remove);
}

for (const set of SAVED) {
  test(`transformers ${set.name}`, async (t) => {
    if (UNUSABLE.includes(set.name)) {
      await rejectsWith(open(set), 'model/unsupported', /cut in halves/);
      return;
    }
    const model = await open(set);
    try {
      await check(t, set, model);
    } finally {
      await model.dispose();
    }
  });
}
