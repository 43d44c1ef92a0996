// SPDX-License-Identifier: MIT
// An engine in WebAssembly whose backend is a played device, which answers late or is lost: replies side by side, an image and a saved conversation have
// what they have on the processor; a device that is lost ends what was under way with its code, and the next engine is not concerned.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import glue from '../../../build/played/quern-simd.mjs';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { Generation } from '../../../js/reply/generation.js';
import { Runner } from '../../../js/worker/runner.js';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';

const [CPU, PLAYED] = [0, 1];
const NEUTRAL = { temperature: 0, topP: 1, topK: 0, minP: 0, bias: [], stops: [], seed: 1 };

const goldenBytes = (name) => readFile(`${PROJECT}/${GOLDEN}/${name}.gguf`);

const compiled = readFile(new URL('../../../build/played/quern-simd.wasm', import.meta.url)).then((bytes) => WebAssembly.compile(bytes));

/** Answers some milliseconds after it was asked, until it is lost. */
class Device {
  asked = 0;
  isLost = false;
  compute = () => {};      // set once there is an engine

  async answer() {
    this.asked++;
    await sleep(1 + this.asked % 3);
    if (this.isLost) throw new Error('the device is lost');
    this.compute();
    return 5;
  }
}

async function open(backend, bytes, options = {}) {
  const instance = await instantiate(glue, await compiled, 1, 32);
  const device = backend === PLAYED ? new Device() : null;
  const newEngine = instance.wasm._wasm_new;
  const wasm = { ...instance.wasm, _wasm_new: (table) => {
    const address = newEngine(table);
    if (device) device.compute = () => { instance.wasm._played_answer(address); };
    return address;
  } };
  const engine = new Engine({ ...instance, wasm }, { threads: 1, memoryLimit: instance.maximum, backend, device, parallel: 3, ...options });
  engine.feed(bytes);
  engine.finish();
  return { engine, device, runner: new Runner(engine, () => turn()) };
}

function reply({ engine, runner }, ids, options = {}) {
  const events = [];
  const prompt = { ids: Int32Array.from(ids), channels: [], inside: null, defaults: NEUTRAL };
  const job = { stopped: false, onStop() {} };
  const work = new Generation(engine, prompt, { ...NEUTRAL, maxTokens: 12, ...options }, (event) => events.push(event));
  return { events, job, result: runner.add(work, job) };
}

const PROMPTS = [[5, 6, 7, 8, 9, 10, 11], Array.from({ length: 70 }, (_, i) => 20 + (i * 7) % 200), [40, 41], [60, 61, 62, 63]];

test('replies side by side over a device that answers late are those of the processor', async () => {
  const bytes = await goldenBytes('moe-nano.Q4_K_M');
  const all = await Promise.all([CPU, PLAYED].map(async (backend) => {
    const opened = await open(backend, bytes);
    const results = await Promise.all(PROMPTS.map((ids, i) => reply(opened, ids, { temperature: i, seed: 3 + i }).result));
    assert.equal(opened.device === null || opened.device.asked > 12, true);
    return results.map(({ text, finishReason, usage }) => ({ text, finishReason, tokens: usage.completionTokens }));
  }));
  assert.deepEqual(all[1], all[0]);
  assert.ok(all[0].every(({ text }) => text.length > 0));
});

test('slices beside a step that awaits its device let no result be told twice', async () => {
  const opened = await open(PLAYED, await goldenBytes('nano.Q8_0'));
  const alone = await reply(opened, PROMPTS[0]).result;
  const beside = reply(opened, PROMPTS[0]);
  let isOver = false;
  const ended = beside.result.finally(() => { isOver = true; });
  for (let i = 0; !isOver; i++) await opened.runner.turns.run({ scope: 0, guest: i % 3 }, () => true);
  const { text, usage } = await ended;
  assert.deepEqual([text, usage.completionTokens], [alone.text, alone.usage.completionTokens]);
});

test('one that is stopped while the device computes ends, and the others go on', async () => {
  const opened = await open(PLAYED, await goldenBytes('nano.Q8_0'));
  const alone = await reply(opened, PROMPTS[0]).result;
  const [first, second] = [reply(opened, PROMPTS[1], { maxTokens: 500 }), reply(opened, PROMPTS[0])];
  while (!first.events.some(({ type }) => type === 'text')) await turn();
  first.job.stopped = true;
  first.job.onStop();
  assert.equal((await first.result).finishReason, 'aborted');
  assert.equal((await second.result).text, alone.text);
});

test('a device that is lost in a reply ends it with gpu/lost, and everything that is asked for later', async () => {
  const bytes = await goldenBytes('nano.Q8_0');
  const opened = await open(PLAYED, bytes);
  const replies = PROMPTS.slice(0, 3).map((ids) => reply(opened, ids, { maxTokens: 200 }));
  while (!replies[0].events.some(({ type }) => type === 'text')) await turn();
  opened.device.isLost = true;
  for (const { result } of replies) await assert.rejects(result, { code: 'gpu/lost', message: /lost/ });
  await assert.rejects(reply(opened, PROMPTS[0]).result, { code: 'gpu/lost' });
  const next = await open(PLAYED, bytes);
  assert.equal((await reply(next, PROMPTS[0]).result).usage.completionTokens, 12);
});

test('the fingerprint and the records of a saved conversation are those of the processor', async () => {
  const bytes = await goldenBytes('nano.Q8_0');
  const kept = await Promise.all([CPU, PLAYED].map(async (backend) => {
    const opened = await open(backend, bytes);
    const { engine, runner } = opened;
    await reply(opened, PROMPTS[1]).result;
    const owner = { scope: 0, guest: 0 };
    while (!await runner.turns.run(owner, (ms) => engine.identify(Math.ceil(ms))));
    const sequence = engine.sequence();
    sequence.set(Int32Array.from(PROMPTS[1]), 'held');
    const header = sequence.save('a name');
    const room = engine.room(engine.recordBytes);
    const records = [];
    for (let taken; taken !== false;) {
      taken = await runner.turns.run(owner, () => sequence.take(room));
      if (taken) records.push(room.slice());
    }
    return [header, ...records];
  }));
  assert.equal(kept[0].length, 3);
  assert.deepEqual(kept[1], kept[0]);
});
