// SPDX-License-Identifier: MIT
// Drafts by a model's own block: the text, the reason of its end and every count are those without drafts, at any temperature, with any penalty, beside
// others, and whatever ends the reply or reads it token by token. Conversations of every kind: drafts-random.test.mjs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { atLast } from '../support/soon.mjs';

const MODEL = new Blob([tiny35({ drafts: 1, agrees: true, context: 512, type: 'F32' })]);
const OPTIONS = { contextSize: 256, store: false };

let plain;
let drafting;
before(async () => { [plain, drafting] = await Promise.all([load(MODEL, { ...OPTIONS, drafts: false }), load(MODEL, OPTIONS)]); });
after(() => Promise.all([plain.dispose(), drafting.dispose()]));

const PROMPT = 'What is ground here?';
const WAYS = [
  { temperature: 0 }, { temperature: 1, topK: 2, seed: 1 }, { temperature: 1, topK: 5, seed: 2 }, { temperature: 0.7, topP: 0.8, seed: 3 }, { temperature: 1, topK: 3, presencePenalty: 0.5, repeatPenalty: 1.2, seed: 4 },
];

/** Everything of a result that time and drafts do not change. */
function essence({ usage: { draftedTokens, acceptedTokens, ...usage }, timings, ...result }) {
  return { ...result, usage };
}

async function both(options) {
  const results = await Promise.all([plain, drafting].map((model) => model.complete(PROMPT, { maxTokens: 60, ...options }).result));
  const [expected, found] = results.map(essence);
  delete expected.usage.cachedTokens;
  delete found.usage.cachedTokens;
  assert.deepEqual(found, expected, JSON.stringify(options));
  assert.ok(!('draftedTokens' in results[0].usage));
  return results[1].usage;
}

test('the model tells that it drafts', () => {
  assert.deepEqual([plain.info.drafts, drafting.info.drafts], [false, true]);
});

test('the text is the same, and drafts are accepted', async () => {
  await atLast(async () => {
    let accepted = 0;
    for (const options of WAYS) {
      const { draftedTokens = 0, acceptedTokens = 0 } = await both(options);
      assert.ok(acceptedTokens <= draftedTokens);
      accepted += acceptedTokens;
    }
    return accepted > 0;
  }, 'some are accepted');
});

test('side by side, and cut at any length', async () => {
  await Promise.all(WAYS.flatMap((options) => [1, 2, 3, 17].map((maxTokens) => both({ ...options, maxTokens }))));
});

test('what sees each token drafts too', async () => {
  for (const options of [{ stop: ['zzz'] }, { logprobs: 2 }, { regex: '[^#]+' }]) {
    await atLast(async () => (await both({ temperature: 1, topK: 2, seed: 1, ...options })).acceptedTokens > 0, JSON.stringify(options));
  }
});

test('a conversation goes on from the cache, as without drafts', async () => {
  const ids = [drafting, plain].map(async (model) => {
    const first = await model.complete(PROMPT, { temperature: 0, maxTokens: 40 }).result;
    const next = await model.complete(`${PROMPT}${first.text} And then?`, { temperature: 0, maxTokens: 10 }).result;
    return [first.text, next.text];
  });
  assert.deepEqual(await ids[0], await ids[1]);
});

// The logits of drafts lie as far apart as those of the whole head, of which drafts read the first 32,768.
test('replies that draft in the same step, with a larger vocabulary', async () => {
  const file = new Blob([tiny35({ drafts: 1, agrees: true, context: 512, type: 'F32', vocab: 40_000 })]);
  const prompts = ['What is ground here?', 'A mill', 'The river runs', 'Four stones!'];
  const [alone, together] = await Promise.all([{ parallel: 1, drafts: false }, { parallel: 4, kvPositions: 1024, chunk: 8 }].map((options) => load(file, { ...OPTIONS, ...options })));
  const ask = (model) => Promise.all(prompts.map((prompt) => model.complete(prompt, { temperature: 0, maxTokens: 24 }).result));
  const expected = await ask(alone);
  await atLast(async () => {
    const found = await ask(together);
    assert.deepEqual(found.map(({ text, finishReason }) => [text, finishReason]), expected.map(({ text, finishReason }) => [text, finishReason]));
    const counts = found.map(({ usage: { draftedTokens = 0, acceptedTokens = 0 } }) => [acceptedTokens, draftedTokens]);
    assert.ok(counts.every(([accepted, drafted]) => accepted === drafted), JSON.stringify(counts));
    return counts.filter(([, drafted]) => drafted).length > 1;
  }, 'two draft');
  await Promise.all([alone.dispose(), together.dispose()]);
});

test('a profile counts drafts as decoding, and tells how many there were', async () => {
  const model = await load(MODEL, { ...OPTIONS, profile: true });
  const { usage } = await model.complete(PROMPT, { maxTokens: 60, temperature: 0 }).result;
  const { prefill, decode, mixed } = await model.profile();
  assert.ok(usage.draftedTokens > 0);
  assert.deepEqual([prefill.drafts, decode.drafts, mixed.drafts, mixed.calls], [0, usage.draftedTokens, 0, 0]);
  // The first token comes from the prompt's own step. A wrong draft's row is one more than the tokens.
  assert.equal(decode.tokens, usage.completionTokens - 1 + usage.draftedTokens - usage.acceptedTokens);
  await model.dispose();
});
