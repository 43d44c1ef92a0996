// SPDX-License-Identifier: MIT
// The demo model against llama.cpp's greedy replies. Both round activations differently, so where two tokens are nearly
// as likely the replies may part; most have to be the same to the letter.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { DEMO } from '../support/helper.mjs';

const SAME_AT_LEAST = 0.9;

test('replies of the demo model', { timeout: 120_000 }, async () => {
  const { items } = JSON.parse(await readFile(new URL('../../fixtures/demo-evals.json', import.meta.url), 'utf8'));
  const model = await load(DEMO, { threads: 2 });
  const different = [];
  for (const { messages, thinking, reply } of items) {
    const result = await model.chat(messages, { thinking, temperature: 0 }).result;
    assert.equal(result.finishReason, 'stop');
    const whole = result.thinking ? `<think>\n${result.thinking}\n</think>\n\n${result.text}` : result.text;
    if (whole !== reply) different.push({ reply, whole });
  }
  await model.dispose();
  assert.ok(different.length <= (1 - SAME_AT_LEAST) * items.length, JSON.stringify(different, null, 1));
});

test('the prompt of every conversation has llama.cpp\'s tokens', async () => {
  const { items } = JSON.parse(await readFile(new URL('../../fixtures/demo-evals.json', import.meta.url), 'utf8'));
  const model = await load(DEMO, { threads: 1 });
  for (const { messages, thinking, prompt_tokens: expected } of items) {
    assert.equal(await model.countTokens(messages, { thinking }), expected.length, JSON.stringify(messages));
  }
  await model.dispose();
});
