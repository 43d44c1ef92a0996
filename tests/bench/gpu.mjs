#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// A graphics device beside the processor, on one machine in one run: whether the device passes the trial, whether the
// golden models have the scalar kernels' bits on it, and tokens per second of the given models, in turn.
//
//   node tests/bench/gpu.mjs [--runs 3] [--prompt 512] [--generate 64] [--threads 2] [MODEL.gguf ...]
//
// It needs `make dist native` and the package webgpu with a Vulkan, Metal or D3D12 driver; VK_DRIVER_FILES chooses one.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { readFile } from 'node:fs/promises';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: 'string', default: '3' }, prompt: { type: 'string', default: '512' },
    generate: { type: 'string', default: '64' }, threads: { type: 'string', default: '2' },
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

/** Tokens per second of reading and writing, by `quern bench`. */
function benched(model, backend) {
  const { prompt, generate, threads } = values;
  const args = [join(PROJECT, 'dist/cli.js'), 'bench', model, '--backend', backend, '--prompt', prompt, '--generate', generate, '--json'];
  if (backend === 'cpu') args.push('--threads', threads);
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout.trim().split('\n').at(-1));
}

const one = await load(join(PROJECT, 'tests/fixtures/golden/nano.Q8_0.gguf'), { backend: 'webgpu' });
say(`device: ${JSON.stringify(one.info.gpu)}`);
await one.dispose();
for (const name of names) await compareBits(name);
for (const model of positionals) {
  const found = { cpu: [], webgpu: [] };
  for (let i = 0; i < Number(values.runs); i++) for (const backend of ['webgpu', 'cpu']) found[backend].push(benched(model, backend));
  const of = (backend, what) => median(found[backend].map((figures) => figures[what]));
  for (const what of ['prefill_tps', 'decode_tps', 'load_ms']) {
    const [device, processor] = [of('webgpu', what), of('cpu', what)];
    say(`${model}: ${what}: device ${device.toFixed(1)}, processor ${processor.toFixed(1)}, ratio ${(device / processor).toFixed(2)}`);
  }
}
process.exit();
