// SPDX-License-Identifier: MIT
// In Chromium, too, work beside replies runs in slices by turns: while a long text is tokenized, or a prompt is made of
// a conversation that is designed to take long, other requests are answered and a reply goes on. The same in Node, with
// more texts: tests/js/worker/slices.test.mjs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROJECT, station } from './browser.mjs';

const isolated = station({ root: PROJECT, whole: true });

/**
 * Runs in the page.
 * @returns how many small questions were answered during each work, and tokens of a reply during the last
 */
async function answersBeside(source) {
  const { load } = await import('/dist/index.js');
  const model = await load(source, { store: false, contextSize: 1024 });
  const answered = async (work) => {
    let over = false;
    const all = work().catch(() => {}).finally(() => { over = true; });
    let n = 0;
    for (; !over; n++) await model.detokenize([65], { cacheScope: 2 });
    await all;
    return n;
  };
  const text = 'The quick brown fox jumps over the lazy dog. '.repeat(90_000);
  const marks = `aa${'\u0301\u0316'.repeat(450)}`.repeat(600);
  const counts = [
    await answered(() => model.tokenize(text, { cacheScope: 1 })),
    await answered(() => model.countTokens([{ role: 'user', content: marks }], { cacheScope: 1 })),
  ];
  const leave = new AbortController();
  const long = model.tokenize(text.repeat(3), { cacheScope: 1, signal: leave.signal }).then(() => 'over', () => 'left');
  const reply = await model.complete('the', { maxTokens: 20, temperature: 0, cacheScope: 2 }).result;
  leave.abort();
  const ended = await long;
  await model.dispose();
  return { counts, ended, tokens: reply.usage.completionTokens };
}

test('others are answered beside long texts and hostile ones, and a reply goes on', async () => {
  const visit = await isolated.open('tests/web/library.html');
  const { counts, ended, tokens } = await visit.page.evaluate(answersBeside, '/web/models/demo-q8_0.gguf');
  assert.ok(counts.every((n) => n >= 5), counts.join());
  assert.equal(ended, 'left', 'the reply was there before the tokens');
  assert.ok(tokens > 0);
  await visit.close();
});
