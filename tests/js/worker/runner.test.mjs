// SPDX-License-Identifier: MIT
// Replies side by side over an engine that the test plays (played-engine.mjs): a thousand schedules of newcomers, stops, failures and crashes.
// Whatever happens to one, each of the others says what it says alone, and nothing stays behind. Over the real engine: batch.test.mjs.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Generation } from '../../../js/reply/generation.js';
import { Scores } from '../../../js/reply/scores.js';
import { Runner } from '../../../js/worker/runner.js';
import { PlayedEngine, expected } from '../../fixtures/played-engine.mjs';
import { random } from '../../fixtures/random.mjs';
import { rejectsWith } from '../support/helper.mjs';

const SCHEDULES = 1000;

const NEUTRAL = { temperature: 0, topP: 1, topK: 0, minP: 0, bias: [], stops: [], seed: 1 };

const promptOf = (ids) => ({ ids: Int32Array.from(ids), channels: [], inside: null, defaults: NEUTRAL });

/** A reply that is asked for, with everything that can be seen of it. */
function ask(runner, engine, ids, options) {
  const seen = { events: [], job: { stopped: false, onStop() {} } };
  const work = new Generation(engine, promptOf(ids), { ...NEUTRAL, ...options }, (event) => seen.events.push(event));
  seen.stop = () => {
    seen.job.stopped = true;
    seen.job.onStop();
  };
  seen.promise = runner.add(work, seen.job).then((result) => ({ result }), (error) => ({ error }));
  return Object.assign(seen, { ids, options });
}

const shown = ({ events }) => events.filter(({ type }) => type === 'text').map(({ text }) => text).join('');

/** Fails unless a reply ended as it had to. */
function check(reply, { result, error }, engine, { stopped, crashed }) {
  const wanted = expected(reply.ids, reply.options, engine.contextSize);
  if (error) return assert.ok([wanted.error, crashed && 'engine/trap'].includes(error.code), error.stack);
  assert.equal(shown(reply), result.text);
  const { waitMs, prefillMs, decodeMs, tokensPerSecond } = result.timings;
  assert.ok([waitMs, prefillMs, decodeMs, tokensPerSecond].every((n) => n >= 0), JSON.stringify(result.timings));
  const done = reply.events.filter(({ type }) => type === 'prefill').map((event) => event.done);
  assert.deepEqual(done, done.toSorted((a, b) => a - b));
  if (result.finishReason === 'aborted') {
    assert.ok(stopped);
    return assert.ok(wanted.error || wanted.text.startsWith(result.text), `${result.text} of ${wanted.text}`);
  }
  assert.deepEqual([result.text, result.finishReason, result.usage.completionTokens], [wanted.text, wanted.finishReason, wanted.tokens]);
  return assert.equal(done.at(-1), reply.ids.length);
}

/** What a schedule asks for. */
function requestOf(draw) {
  const pick = (n) => Math.floor(n * draw());
  const ids = Array.from({ length: 1 + pick(30) }, () => pick(20));
  const options = { seed: pick(1000) };
  if (draw() < 0.3) options.maxTokens = pick(12);
  if (draw() < 0.4) options.stops = Array.from({ length: 1 + pick(3) }, () => 'abcdefgh'[pick(8)] + (draw() < 0.3 ? 'a' : ''));
  if (draw() < 0.3) options.priority = 'background';
  return { ids, options };
}

async function play(seed) {
  const draw = random(seed);
  const crashes = draw() < 0.1;
  const engine = new PlayedEngine({ draw, parallel: 1 + Math.floor(4 * draw()), trapsAt: crashes ? 5 + Math.floor(20 * draw()) : undefined });
  const replies = [];
  const stopped = new Set();
  let left = 3 + Math.floor(8 * draw());
  const act = () => {
    if (left > 0 && draw() < 0.4) {
      left--;
      const { ids, options } = requestOf(draw);
      replies.push(ask(runner, engine, ids, options));
    }
    if (replies.length && draw() < 0.05) {
      const reply = replies[Math.floor(replies.length * draw())];
      stopped.add(reply);
      reply.stop();
    }
  };
  const runner = new Runner(engine, async () => {
    await turn();
    act();
  });
  replies.push(ask(runner, engine, [1], { seed }));
  while (left > 0) {
    act();
    await turn();
  }
  const outcomes = await Promise.all(replies.map(({ promise }) => promise));
  for (const [i, outcome] of outcomes.entries()) check(replies[i], outcome, engine, { stopped: stopped.has(replies[i]), crashed: engine.dead });
  const { steps } = engine;
  for (let i = 0; i < 3; i++) await turn();
  assert.equal(engine.steps, steps, 'nothing is computed for nobody');
  if (!engine.dead) assert.equal(engine.sequences.size, 0);
  return outcomes;
}

test(`${SCHEDULES} schedules, one seed each`, async () => {
  const ends = {};
  for (let seed = 1; seed <= SCHEDULES; seed++) {
    const outcomes = await play(seed).catch((error) => { throw new Error(`seed ${seed}: ${error.message}`, { cause: error }); });
    for (const { result, error } of outcomes) ends[error?.code ?? result.finishReason] = (ends[error?.code ?? result.finishReason] ?? 0) + 1;
  }
  for (const end of ['stop', 'length', 'aborted', 'model/nonfinite', 'engine/trap']) assert.ok(ends[end] > 50, JSON.stringify(ends));
});

test('behind a stop text nothing is computed', async () => {
  const engine = new PlayedEngine();
  const runner = new Runner(engine, turn);
  const options = { seed: 5, stops: ['e', 'a', 'i', 'o', 's', 't', 'n'] };
  const { result } = await ask(runner, engine, [1, 2, 3], options).promise;
  const { tokens, finishReason } = expected([1, 2, 3], options, engine.contextSize);
  assert.deepEqual([result.finishReason, finishReason, engine.rows], ['stop', 'stop', tokens]);
});

test('one more than may run and wait is refused, and may come later', async () => {
  const engine = new PlayedEngine({ parallel: 4 });
  const runner = new Runner(engine, turn);
  const request = (i) => ask(runner, engine, Array(20).fill(i), { seed: i, maxTokens: 2 });
  const replies = Array.from({ length: 69 }, (_, i) => request(i));
  const error = await rejectsWith(replies[68].promise.then((outcome) => { throw outcome.error; }), 'use/busy', /68/);
  assert.deepEqual([error.retryable, error.detail], [true, { parallel: 4, waiting: 64 }]);
  replies[40].stop();
  assert.equal((await replies[40].promise).result.finishReason, 'aborted');
  for (const reply of [...replies.slice(0, 40), ...replies.slice(41, 68), request(68)]) check(reply, await reply.promise, engine, {});
});

test('those in the background leave places to the others', async () => {
  const engine = new PlayedEngine({ parallel: 4 });
  const runner = new Runner(engine, turn);
  const request = (i, priority) => ask(runner, engine, Array(20).fill(i), { seed: i, maxTokens: 2, priority });
  const behind = Array.from({ length: 37 }, (_, i) => request(i, 'background'));
  const { detail } = await rejectsWith(behind[36].promise.then((outcome) => { throw outcome.error; }), 'use/busy', /36 replies and texts in the background/);
  assert.deepEqual(detail, { parallel: 4, waiting: 32 });
  const others = Array.from({ length: 33 }, (_, i) => request(i, 'normal'));
  await rejectsWith(others[32].promise.then((outcome) => { throw outcome.error; }), 'use/busy', /68 replies/);
  for (const reply of [...behind.slice(0, 36), ...others.slice(0, 32)]) check(reply, await reply.promise, engine, {});
});

test('an engine that crashes while one is let go fails all, that one too', async () => {
  for (const fails of [false, true]) {
    const engine = new PlayedEngine({ parallel: 2 });
    const runner = new Runner(engine, turn);
    const begin = engine.sequence.bind(engine);
    engine.sequence = (place) => Object.assign(begin(place), {
      free() {
        engine.dead = true;
        throw new WebAssembly.RuntimeError('unreachable');
      },
    });
    const replies = [1, 2, 3].map((seed) => ask(runner, engine, [seed], { seed, maxTokens: 3 }));
    if (fails) replies[0].job.onStop();
    for (const { error } of await Promise.all(replies.map(({ promise }) => promise))) assert.equal(error?.code, 'engine/trap');
    assert.ok(runner.isDead);
  }
});

test('a stopped one is settled at once: before it begins, and while it waits', async () => {
  const engine = new PlayedEngine({ parallel: 1 });
  const runner = new Runner(engine, turn);
  const first = ask(runner, engine, [1], { seed: 3 });
  const waiting = ask(runner, engine, [2], { seed: 3 });
  await turn();
  waiting.stop();
  const { steps } = engine;
  assert.equal((await waiting.promise).result.finishReason, 'aborted');
  assert.equal(engine.steps, steps);
  const late = { job: { stopped: true } };
  const work = new Generation(engine, promptOf([1, 2]), { ...NEUTRAL }, () => {});
  const { finishReason, usage } = await runner.add(work, late.job);
  assert.deepEqual([finishReason, usage.promptTokens, usage.completionTokens], ['aborted', 2, 0]);
  check(first, await first.promise, engine, {});
});

test('scores are computed beside replies', async () => {
  const engine = new PlayedEngine({ parallel: 2 });
  const runner = new Runner(engine, turn);
  const ids = Int32Array.from({ length: 40 }, (_, i) => i % 9);
  const reply = ask(runner, engine, [4, 5], { seed: 9 });
  const stopped = { stopped: false, onStop() {} };
  const dropped = runner.add(new Scores({ ids }, 2), stopped);
  const scores = await runner.add(new Scores({ ids }, 2), { stopped: false, onStop() {} });
  stopped.onStop();
  assert.deepEqual(scores, Float32Array.from({ length: 80 }, (_, i) => ids[i >> 1] + (i & 1)));
  assert.ok([0, 80].includes((await dropped).length));
  check(reply, await reply.promise, engine, {});
});
