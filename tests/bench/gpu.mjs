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

import { spawnSync } from 'node:child_process';
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

/** What computes, by the flags of `quern bench`. */
const WAYS = {
  exact: ['--backend', 'webgpu'],
  fast: ['--backend', 'webgpu', '--gpu', 'fast'],
  processor: ['--backend', 'cpu', '--threads', values.threads],
};

/** Tokens per second of reading and writing, by `quern bench`. */
function benched(model, way) {
  const { prompt, generate, chunk } = values;
  const args = [join(PROJECT, 'dist/cli.js'), 'bench', model, ...WAYS[way], '--prompt', prompt, '--generate', generate, '--chunk', chunk, '--json'];
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout.trim().split('\n').at(-1));
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
  const one = await load(join(PROJECT, 'tests/fixtures/golden/nano.Q8_0.gguf'), { backend: 'webgpu', gpu }).catch((error) => error);
  say(`${gpu}: ${one instanceof Error ? `${one.code}: ${one.message}` : JSON.stringify(one.info.gpu)}`);
  if (one instanceof Error) continue;
  ways.push(gpu);
  await one.dispose();
}
if (ways.includes('exact') && !values['no-bits']) for (const name of names) await compareBits(name);
ways.push('processor');
for (const model of positionals) {
  const found = Object.fromEntries(ways.map((way) => [way, []]));
  for (let i = 0; i < Number(values.runs); i++) for (const way of ways) found[way].push(benched(model, way));
  for (const what of ['prefill_tps', 'decode_tps', 'load_ms']) {
    const medians = ways.map((way) => `${way} ${median(found[way].map((figures) => figures[what])).toFixed(1)}`);
    say(`${model}: ${what}: ${medians.join(', ')}`);
  }
}
process.exit();
