// SPDX-License-Identifier: MIT
// Replies side by side in a page: all of them stream, and each is the same as alone, with threads and without isolation
// headers. A stopped reply does not stop the others. The same in Firefox: firefox.test.mjs; everything else in Node:
// tests/js/worker/batch.test.mjs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AT_ONCE, checkAtOnce } from '../fixtures/at-once.mjs';
import { PROJECT, station } from './browser.mjs';

const isolated = station({ root: PROJECT });
const plain = station({ root: PROJECT, isolate: false });

const seen = new Set();

/** Plays a hidden tab: it paints nothing, and its timers run once a second. (A driver cannot hide a tab.) */
function hide() {
  const { setTimeout: real } = globalThis;
  globalThis.setTimeout = /** @type {any} */ ((work, ms = 0, ...more) => real(work, Math.max(1000, ms), ...more));
  globalThis.requestAnimationFrame = () => 0;
}

for (const [what, here, threads, prepare] of [['two threads', isolated, 2], ['without isolation', plain, 1], ['a tab that nobody sees', isolated, 2, hide]]) {
  test(`chats in one page stream at once, each as alone: ${what}`, async () => {
    const visit = await here.open('tests/web/library.html');
    await visit.page.waitForFunction(() => globalThis.quern);
    if (prepare) await visit.page.evaluate(prepare);
    const found = await visit.page.evaluate((request) => globalThis.quern.atOnce(request), { ...AT_ONCE, options: { threads: 2 } });
    assert.equal(found.threads, threads);
    seen.add(checkAtOnce(found));
    assert.equal(seen.size, 1, 'the same texts everywhere');
    await visit.close();
  });
}

test('one of two is stopped, and the other goes on', async () => {
  const visit = await isolated.open('tests/web/library.html');
  await visit.page.waitForFunction(() => globalThis.quern);
  const { stopped, whole, alone } = await visit.page.evaluate(async ({ source, questions: [question], chat }) => {
    const model = await globalThis.quern.load(source, { threads: 2 });
    const alone = (await model.chat(question, chat).result).text;
    const replies = [model.chat(question, chat), model.chat(question, { ...chat, seed: 2 })];
    for await (const _ of replies[1]) break;
    const [whole, stopped] = await Promise.all(replies.map(({ result }) => result));
    await model.dispose();
    return { stopped: stopped.finishReason, whole: whole.text, alone };
  }, AT_ONCE);
  assert.deepEqual([stopped, whole], ['aborted', alone]);
  await visit.close();
});

test('a model in a worker of its own drafts for another one', async () => {
  const visit = await isolated.open('tests/web/library.html');
  await visit.page.waitForFunction(() => globalThis.quern);
  const [plain, drafted] = await visit.page.evaluate(async ({ source, questions: [question], chat }) => {
    const models = await Promise.all([{ drafts: false }, { draft: source }].map((how) => globalThis.quern.load(source, { threads: 1, ...how })));
    const results = await Promise.all(models.map((model) => model.chat(question, chat).result));
    await Promise.all(models.map((model) => model.dispose()));
    return results.map(({ text, usage }) => ({ text, right: usage.acceptedTokens ?? 0 }));
  }, AT_ONCE);
  assert.equal(drafted.text, plain.text);
  assert.deepEqual([plain.right, drafted.right > 0], [0, true]);
  await visit.close();
});
