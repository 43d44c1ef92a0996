// SPDX-License-Identifier: MIT
// Hugging Face folders, quantised into a GGUF file and while they load: whatever order and files their weights, and their experts, come in,
// it is what the GGUF file of the same weights becomes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { shardedFolder, tinyFolder } from '../../fixtures/folder.mjs';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { writeGguf } from '../../fixtures/gguf-writer.mjs';
import { PROJECT } from '../../fixtures/golden.mjs';
import { SOURCES } from '../../fixtures/hf/sources.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { TINY_MOE, patchSpec, tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { modelFile, modelFolder } from '../../fixtures/transformers.mjs';
import { CLI, rejectsWith } from '../support/helper.mjs';

const IDS = [1, 2, 3, 40, 280, 100];
const WIDE_MOE = { ...TINY_MOE, experts: 11, hidden: 64, expertFfn: 256, headDim: 32 };
const hf = (name) => join(PROJECT, 'tests/fixtures/hf', name);
const place = mkdtempSync(join(tmpdir(), 'quantize-folder-'));
after(() => rmSync(place, { recursive: true }));

const cli = (input, output, type) => spawnSync(process.execPath, [CLI, 'quantize', input, output, '--type', type, '--threads', '2'], { encoding: 'utf8' });

/** Writes a file, or a folder of the files that `tinyFolder` and `shardedFolder` make. @returns {string} its path */
function saved(name, content) {
  const path = join(place, name);
  if (content instanceof Uint8Array) writeFileSync(path, content);
  else {
    const weights = content.length === 4 ? ['model.safetensors'] : ['model.safetensors.index.json', ...content.slice(4).map((_, i) => `model-${i + 1}.safetensors`)];
    mkdirSync(path);
    for (const [i, file] of ['config.json', 'generation_config.json', 'tokenizer.json', ...weights].entries()) writeFileSync(join(path, file), content[i]);
  }
  return path;
}

function quantized(input, type) {
  const out = `${input.replace(/.*\//, `${place}/`)}.${type}.gguf`;
  const { status, stderr } = cli(input, out, type);
  assert.equal(status, 0, stderr);
  return out;
}

/** Name -> type, dimensions and bytes, in no order. */
const tensorsOf = (path) => Object.fromEntries([...readGguf(readFileSync(path)).tensors].map(([name, { type, dims, data }]) => [name, { type, dims, data }]).sort());

async function logitsOf(source, options) {
  const model = await load(source, { threads: 2, kv: 'f32', store: false, ...options });
  try {
    return await model.logits(IDS);
  } finally {
    await model.dispose();
  }
}

/** A GGUF file with its experts one by one, as older ones have them, the last first. */
function singles(spec) {
  const tensors = spec.tensors.flatMap(({ name, dims: [cols, rows, n = 0], data, ...rest }) => (n === 0 ? [{ name, dims: rows ? [cols, rows] : [cols], data, ...rest }]
    : Array.from({ length: n }, (_, e) => ({ ...rest, name: name.replace('_exps', `.${n - 1 - e}`), dims: [cols, rows], data: data.subarray((n - 1 - e) * data.length / n, (n - e) * data.length / n) }))));
  return writeGguf(patchSpec({ ...spec, tensors }));
}

const ARRIVALS = {
  'one by one': (spec) => tinyFolder({ spec }),
  'from behind': (spec) => tinyFolder({ spec, tensors: (list) => list.reverse() }),
  'over nine files in another order': (spec) => shardedFolder({ spec, parts: 9, given: (files) => [...files.slice(4), ...files.slice(0, 4)] }),
  'in a GGUF file': (spec) => singles(tinySpec(spec)),
};

for (const [type, spec] of [['q4_k', WIDE_MOE], ['q8_0', { ...WIDE_MOE, type: 'BF16', experts: 1, used: 1 }]]) {
  test(`experts ${Object.keys(ARRIVALS).join(', ')}: the stacks of the GGUF file (${type})`, async () => {
    const twin = quantized(saved(`twin-${type}.gguf`, tinyModel({ type: 'F32', ...spec })), type);
    const wanted = tensorsOf(twin);
    assert.deepEqual(wanted['blk.2.ffn_down_exps.weight'].dims, [256, 64, spec.experts]);
    const logits = await logitsOf(twin);
    for (const [how, files] of some(Object.entries(ARRIVALS), 2, Number(type === 'q8_0'))) {
      const out = quantized(saved(`${type}-${how}`, files({ type: 'F32', ...spec })), type);
      assert.deepEqual(tensorsOf(out), wanted, how);
      assert.deepEqual(await logitsOf(out), logits, how);
    }
  });
}

for (const name of ['qwen2-untied', 'llama-tied', 'llama-scaled', 'smollm3']) {
  test(`${name}: a folder becomes what its GGUF file becomes`, async () => {
    const [config, tokenizer, weights] = modelFolder(name);
    const folder = saved(name, [config, new TextEncoder().encode('{"eos_token_id": 264}'), tokenizer, weights]);
    const [a, b] = [quantized(saved(`${name}.gguf`, modelFile(name)), 'q8_0'), quantized(folder, 'q8_0')];
    assert.deepEqual(tensorsOf(b), tensorsOf(a));
    assert.deepEqual(await logitsOf(b), await logitsOf(a));
    const keys = [...readGguf(readFileSync(b)).kv].map(([key]) => key);
    assert.ok(keys.some((key) => key.endsWith('.rope.freq_base')) && !keys.some((key) => /rope\.(halves|scaling)/.test(key)));
  });
}

test('a folder by the format\'s own package: keys, tensors and logits of its twin', async () => {
  const [a, b] = [quantized(saved('moe.gguf', SOURCES.moe()), 'q4_0'), quantized(hf('moe'), 'q4_0')];
  assert.deepEqual(tensorsOf(b), tensorsOf(a));
  const keys = (path) => Object.fromEntries([...readGguf(readFileSync(path)).kv].filter(([key]) => key !== 'general.name').sort());
  assert.deepEqual(keys(b), { ...keys(a), 'general.sampling.temp': Math.fround(0.6) }, "and what the folder's generation_config.json says");
  const some = { expert_count: 12, expert_used_count: 3, expert_feed_forward_length: 16, expert_weights_norm: false };
  for (const [key, value] of Object.entries(some)) assert.equal(keys(b)[`qwen3moe.${key}`], value, key);
  assert.deepEqual(await logitsOf(b), await logitsOf(a));
});

test('refused: FP8, and experts of different types; nothing is left', async () => {
  const other = (list) => list.map((tensor) => (tensor.name.endsWith('experts.3.up_proj.weight') ? { ...tensor, dtype: 'F16', data: tensor.data.subarray(0, tensor.data.length / 2) } : tensor));
  const mixed = saved('mixed', tinyFolder({ spec: TINY_MOE, tensors: other }));
  const cases = [
    [hf('moe-f8'), /^quern: model\/unsupported: .*quantised already \(F8_E4M3\)/],
    [hf('f8'), /^quern: model\/unsupported: .*quantised already \(F8_E4M3\)/],
    [mixed, /^quern: model\/inconsistent: .*ffn_up\.3\.weight has the type F16, but other tensors of this weight need F32/],
  ];
  const before = readdirSync(place).sort();
  for (const [folder, wanted] of cases) {
    const { status, stderr } = cli(folder, join(place, 'x.gguf'), 'q8_0');
    assert.equal(status, 1, folder);
    assert.match(stderr, wanted);
    assert.deepEqual(readdirSync(place).sort(), before);
  }
  for (const quantize of ['q8', 'q4']) assert.equal((await rejectsWith(load(mixed, { threads: 1, quantize }), 'model/inconsistent', /F16/)).detail.rule, 'type');
});

async function served(folder, use) {
  const server = await new LyingServer((url) => {
    const name = new URL(url, 'http://x').pathname.split('/').at(-1);
    return readdirSync(folder).includes(name) ? { bytes: readFileSync(join(folder, name)) } : null;
  }).start();
  try {
    return await use(`${server.base}/org/model/`);
  } finally {
    await server.close();
  }
}

test('quantised while loading, by path and by address: the bits of the twin', { timeout: 60_000 }, async () => {
  for (const name of some(['moe', 'f16', 'bf16'], 2)) {
    const twin = new Blob([SOURCES[name]()]);
    const plain = await logitsOf(twin);
    for (const quantize of ['q8', 'q4']) {
      const wanted = await logitsOf(twin, { quantize });
      assert.notDeepEqual(wanted, plain, name);
      assert.deepEqual(await logitsOf(hf(name), { quantize }), wanted, `${name}, ${quantize}, by path`);
      if (name === 'moe') await served(hf(name), async (url) => assert.deepEqual(await logitsOf(url, { quantize, chunk: 7 }), wanted, `${name}, ${quantize}, by address`));
    }
  }
});

test('quantised while loading: the bits of the file by quern quantize', async () => {
  for (const [name, spec] of Object.entries({ dense: { type: 'F16', layers: 2 }, experts: { ...WIDE_MOE, type: 'BF16' } })) {
    const folder = saved(`while-${name}`, shardedFolder({ spec, parts: 3, given: (files) => files.reverse() }));
    assert.deepEqual(await logitsOf(folder, { quantize: 'q8' }), await logitsOf(quantized(folder, 'q8_0')), name);
  }
});
