// SPDX-License-Identifier: MIT
// Replies that are held to grammars whose masks take long, hundreds of milliseconds each: the worker answers meanwhile, the others write on, and such a
// reply ends as it would alone, by its limit, or when it is stopped.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { load } from '../../../dist/node.js';
import { DEMO, rejectsWith } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const [PING, PONG] = ['ping', 'pong'];

/** Of many alternatives, all of which have to be followed at once. */
const all = (n, alternative) => Array.from({ length: n }, (_, i) => alternative(i)).join('|');
const several = (n) => all(n, (i) => `.{0,${i + 1}}w.{0,${i + 2}}x`);
const [MIDDLE, SLOW] = [several(300), several(500)];

/** Each of its masks takes longer than the one before. */
const TOO_MUCH = `(${all(40, (i) => `.{0,${99 - i}}${'aeiostnrhldu'[i % 12]}.{0,${80 - i}}${'nrhlduaeiost'[i % 12]}`)}){2,99}`;

/** Workers that are started from now on. */
const started = new Set();
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function post(...values) {
  started.add(this);
  return Reflect.apply(postMessage, this, values);
};

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

/** The longest time that the engine's worker takes to answer while `work` is under way. */
async function slowestAnswer(worker, work) {
  let isOver = false;
  let slowest = 0;
  const alive = setInterval(() => {}, 1000);
  const over = work.finally(() => { isOver = true; });
  while (!isOver) {
    const began = performance.now();
    const answered = new Promise((resolve) => {
      worker.on('message', function listen(message) {
        if (message?.type !== PONG) return;
        worker.off('message', listen);
        resolve(undefined);
      });
    });
    worker.postMessage({ type: PING });
    await answered;
    slowest = Math.max(slowest, performance.now() - began);
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
  clearInterval(alive);
  await over;
  return slowest;
}

const PLAIN = { temperature: 1, maxTokens: 60, cacheScope: 1 };

/** Times between the pieces of four plain replies. */
async function gaps(model) {
  const found = [];
  await Promise.all([1, 2, 3, 4].map(async (seed) => {
    let last;
    for await (const { type } of model.chat('Tell me about the sea.', { ...PLAIN, seed }).events) {
      if (type !== 'text') continue;
      const now = performance.now();
      if (last !== undefined) found.push(now - last);
      last = now;
    }
  }));
  return median(found);
}

/** A reply that is held to such an expression. */
const limited = (model, regex, options = {}) => model.chat('Tell me about the sea.', { regex, temperature: 1, topK: 0, seed: 7, maxTokens: 20, cacheScope: 2, ...options });

/** One that has begun to write. */
async function begun(model, regex, options) {
  const reply = limited(model, regex, options);
  await reply.events[Symbol.asyncIterator]().next();
  return reply;
}

/** @param {import('node:test').TestContext} t */
async function open(t) {
  started.clear();
  const model = await load(DEMO, { threads: 1, contextSize: 1024, parallel: 12 });
  t.after(() => model.dispose());
  const [worker] = started;
  return { model, worker };
}

test('the worker answers, and others write on, while a mask takes long', { timeout: 300_000 }, async (t) => {
  const { model, worker } = await open(t);
  const text = async (seed) => (await limited(model, MIDDLE, { seed }).result).text;
  const seeds = [2, 4, 5, 9, 11, 12, 13, 14];
  const alone = [];
  for (const seed of seeds) alone.push(await text(seed));
  assert.deepEqual((await Promise.all([...seeds.map(text), gaps(model)])).slice(0, -1), alone, 'in company the same texts');
  await soon(100, async () => {
    const reply = await begun(model, SLOW, { seed: 8 });
    return slowestAnswer(worker, Promise.all([reply.result, gaps(model)]));
  });
  const ratios = [];
  for (let round = 0; round < 4 && !(Math.min(...ratios) <= 1.5); round++) {
    const before = await gaps(model);
    const reply = await begun(model, SLOW, { seed: 20 + round, maxTokens: 1000 });
    const beside = await gaps(model);
    reply.stop();
    await reply.result.catch(() => {});
    ratios.push(beside / before);
  }
  assert.ok(Math.min(...ratios) <= 1.5, `gaps of others are ${ratios.map((ratio) => ratio.toFixed(2))} times as long`);
});

test('such a reply ends by its limit, and is stopped at once', { timeout: 300_000 }, async (t) => {
  const { model, worker } = await open(t);
  const { detail } = await rejectsWith(limited(model, TOO_MUCH).result, 'use/schema', /too many steps/);
  assert.equal(detail.rule, 'limit');
  await soon(100, async () => slowestAnswer(worker, limited(model, TOO_MUCH, { seed: 3 }).result.catch(() => {})));
  await soon(200, async () => {
    const reply = await begun(model, SLOW, { seed: 9, maxTokens: 1000 });
    await new Promise((resolve) => { setTimeout(resolve, 50); });
    return timed(async () => {
      reply.stop();
      assert.equal((await reply.result).finishReason, 'aborted');
    });
  });
});
