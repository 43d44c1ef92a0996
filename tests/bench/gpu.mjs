#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A graphics device, with exact and with fast kernels, beside the processor, on one machine in one run: whether the
// device passes the trial, whether the golden models have the scalar kernels' bits on it, and tokens per second of the
// given models, in turn. If exact kernels are refused, the others are measured.
//
//   node tests/bench/gpu.mjs [--runs 3] [--prompt 512] [--generate 64] [--chunk 64] [--threads 2] [--no-bits] [MODEL.gguf ...]
//   node tests/bench/gpu.mjs --commands MODEL.gguf ...
//
// With --commands it only counts the commands of a token by kernel, and measures what they take before the device
// works: recording them (the engine's step), and encoding and submitting them.
//
// It needs `make dist native` and the package webgpu with a Vulkan, Metal or D3D12 driver; VK_DRIVER_FILES chooses one.

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { readFile } from 'node:fs/promises';
import { create } from 'webgpu';
import { Device } from '../../js/gpu/device.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '3' }, prompt: { type: 'string', default: '512' },
    generate: { type: 'string', default: '64' }, chunk: { type: 'string', default: '64' }, threads: { type: 'string', default: '2' },
    'no-bits': { type: 'boolean', default: false }, commands: { type: 'boolean', default: false },
  },
});

const { load } = await import(join(PROJECT, 'dist/node.js'));
const say = (text) => process.stdout.write(`${text}\n`);
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];

/** Loads a golden model on the device and compares its logits; a refusal is told. */
async function compareBits(name) {
  const expected = new Uint32Array((await readFile(join(PROJECT, nativeLogits(name, 'f16')))).buffer.slice(0));
  const model = await load(join(PROJECT, `tests/fixtures/golden/${name}.gguf`), { backend: 'webgpu' }).catch((error) => error);
  if (model instanceof Error) return say(`${name}: ${model.code}: ${model.message}`);
  const found = await model.logits(tokens);
  const bits = new Uint32Array(found.buffer, found.byteOffset, found.length);
  await model.dispose();
  say(`${name}: ${expected.reduce((sum, word, i) => sum + (word !== bits[i]), 0)} of ${expected.length} logits differ`);
}

/** What computes, by the options of load(). */
const WAYS = {
  exact: { backend: 'webgpu' },
  fast: { backend: 'webgpu', gpu: 'fast' },
  processor: { backend: 'cpu', threads: Number(values.threads) },
};

/**
 * Tokens per second of reading and writing, and seconds of the processor for both, which tell more of devices in
 * software than a clock on a busy machine. Each run has another prompt, which no cache knows.
 */
async function measured(model, run) {
  const [prompt, generate] = [Number(values.prompt), Number(values.generate)];
  const { tokens: all, endTokens } = model.info;
  const ids = Array.from({ length: prompt }, (_, i) => (i * 7919 + 13 + 101 * run) % Math.min(all, 50_000));
  const logitBias = Object.fromEntries(endTokens.map((id) => [id, -Infinity]));
  const before = process.cpuUsage();
  const { timings } = await model.complete(ids, { maxTokens: generate, temperature: 0, logitBias }).result;
  const { user, system } = process.cpuUsage(before);
  return { prefill: (1000 * prompt) / timings.prefillMs, decode: timings.tokensPerSecond, used: (user + system) / 1e6 };
}

/** Runs in turn, after one of each that is not counted: drivers compile at the first use. */
async function compareSpeeds(path, ways) {
  const found = Object.fromEntries(ways.map((way) => [way, []]));
  const models = {};
  for (const way of ways) models[way] = await load(path, { ...WAYS[way], chunk: Number(values.chunk), drafts: false, parallel: 1 });
  for (let run = 0; run <= Number(values.runs); run++) {
    for (const way of ways) {
      const figures = await measured(models[way], run);
      if (run > 0) found[way].push(figures);
    }
  }
  for (const way of ways) await models[way].dispose();
  const UNITS = { prefill: 'tokens per second', decode: 'tokens per second', used: 'seconds of the processor' };
  for (const [what, unit] of Object.entries(UNITS)) {
    const medians = ways.map((way) => `${way} ${median(found[way].map((figures) => figures[what])).toPrecision(3)}`);
    say(`${path}: ${what}, ${unit}: ${medians.join(', ')}`);
  }
}

/** Tokens that are written before and while times are taken. */
const WARM = 60;
const TIMED = 60;

/** Dawn takes all commands, and nothing computes: times are its own and ours. It would fail the trial. */
async function deviceThatDoesNothing() {
  const gpu = create(['backend=null']);
  globalThis.kept = gpu;    // a device goes with it
  const adapter = await gpu.requestAdapter();
  return new Device(gpu, adapter, await adapter.requestDevice(), { copies: true });
}

/** Milliseconds of processor time, which a busy machine hardly changes. */
function processorTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Counts and times the commands of tokens that are written one by one. */
async function countCommands(model) {
  const { open } = await import('../js/gpu/engines.mjs');
  const { COMMAND, KERNELS } = await import('../../js/gpu/commands.js');
  const device = await deviceThatDoesNothing();
  let memory, kernels, submitting;
  const submit = device.submit.bind(device);
  Object.defineProperty(device, 'memory', { set(given) { Reflect.set(Device.prototype, 'memory', memory = given, device); } });
  device.submit = (...given) => {
    const [, commands, n] = given;
    const words = new Uint32Array(memory.buffer, commands, n * COMMAND.words);
    for (let i = 0; i < n; i++) {
      const name = KERNELS[words[i * COMMAND.words + COMMAND.kernel]];
      kernels.set(name, (kernels.get(name) ?? 0) + 1);
    }
    const began = processorTime();
    submit(...given);
    submitting += processorTime() - began;
  };
  const { engine } = await open(await readFile(model), { device, parallel: 1, context: 512 });
  const sequence = engine.sequence();
  const times = { recording: [], submitting: [] };
  for (let i = 1; i <= WARM + TIMED; i++) {
    sequence.set(Int32Array.from({ length: i }, (_, j) => 11 + j), 'last');
    [kernels, submitting] = [new Map(), 0];
    const began = processorTime();
    engine.step(0);
    const all = processorTime() - began;
    await engine.answer();
    if (i <= WARM) continue;
    times.recording.push(all - submitting);
    times.submitting.push(submitting);
  }
  const all = [...kernels.values()].reduce((sum, n) => sum + n, 0);
  say(`${model}: ${all} commands a token: ${[...kernels].map(([name, n]) => `${name} ${n}`).join(', ')}`);
  for (const [what, list] of Object.entries(times)) say(`  ${what}: ${median(list).toFixed(2)} ms a token`);
  device.close();
}

if (values.commands) {
  for (const model of positionals) await countCommands(model);
  process.exit();
}

const ways = [];
for (const gpu of ['exact', 'fast']) {
  const one = await load(join(PROJECT, 'tests/fixtures/golden/nano.Q8_0.gguf'), WAYS[gpu]).catch((error) => error);
  say(`${gpu}: ${one instanceof Error ? `${one.code}: ${one.message}` : JSON.stringify(one.info.gpu)}`);
  if (one instanceof Error) continue;
  ways.push(gpu);
  await one.dispose();
}
if (ways.includes('exact') && !values['no-bits']) for (const name of names) await compareBits(name);
for (const path of positionals) await compareSpeeds(path, [...ways, 'processor']);
process.exit();
