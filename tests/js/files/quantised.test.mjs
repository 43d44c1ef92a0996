// SPDX-License-Identifier: MIT
// Folders that other programs have quantised, through the package and the native program: the second decoder's values are the
// library's own, since a model of floats made of them gives transformers' logits; and what both programs say and compute is the same.
// Each value: tests/c/test_quantised.c.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { biasedTensors } from '../../fixtures/bad-quantised.mjs';
import { floatsOf } from '../../fixtures/divergence.mjs';
import { writeSafetensors } from '../../fixtures/folder.mjs';
import { QUANTISED, QUANTISED_TOKENS, QUANTISED_VOCAB, SPLITS, exactFolder, quantisedFolder, splitFolder } from '../../fixtures/quantised.mjs';

const FOLDERS = join(PROJECT, 'tests/fixtures/quantised');
const place = mkdtempSync(join(tmpdir(), 'quern-'));
after(() => rmSync(place, { recursive: true }));

const native = (...args) => execFileSync(join(PROJECT, 'build/release/quern'), args, { encoding: 'utf8' });

/** The native program's logits of the tokens. */
function logitsOf(folder, ...options) {
  const out = join(place, 'logits.f32');
  native('logits', folder, '--tokens', QUANTISED_TOKENS.join(), '--out', out, ...options);
  return floatsOf(out);
}

function write(files) {
  const folder = mkdtempSync(join(place, 'folder-'));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  return folder;
}

/** The largest difference in a row, of the row's largest number. */
function distance(a, b) {
  const n = a.length / QUANTISED_VOCAB;   // of one folder the file has seven rows
  assert.ok(n === QUANTISED_TOKENS.length || n === 7);
  const rows = Array.from({ length: n }, (_, i) => [a, b].map((all) => all.subarray(i * QUANTISED_VOCAB, (i + 1) * QUANTISED_VOCAB)));
  return Math.max(...rows.map(([x, y]) => Math.max(...x.map((v, i) => Math.abs(v - y[i]))) / Math.max(...x.map(Math.abs))));
}

for (const name of QUANTISED) {
  test(`${name}: the decoder of the tests has the library's values`, () => {
    const twin = logitsOf(write(exactFolder(name)), '--kv', 'f32');
    assert.ok(distance(floatsOf(join(FOLDERS, `${name}.f32`)), twin) < 1e-5);
  });
}

test('the same bits and the same facts in Node, from a folder and from its files in another cut', async () => {
  for (const name of QUANTISED) {
    const expected = logitsOf(join(FOLDERS, name));
    for (const folder of [join(FOLDERS, name), write(splitFolder(name, SPLITS.mixed))]) {
      const model = await load(folder, { threads: 2, store: false });
      assert.deepEqual(await model.logits(QUANTISED_TOKENS), expected, folder);
      const facts = JSON.parse(native('info', folder));
      for (const key of ['quantizedBy', 'types', 'parameters', 'fileBytes']) assert.deepEqual(model.info[key], facts[key], key);
      assert.ok(facts.quantizedBy && Object.keys(facts.types).some((type) => type !== 'BF16'));
      await model.dispose();
    }
  }
});

test('an order of columns in other groups than the scales have, which an earlier file has', () => {
  const groups = new Uint8Array(Int32Array.from({ length: 128 }, (_, i) => i % 4).buffer);
  const tensors = quantisedFolder('gptq4-asym').tensors.map((tensor) => (/layers.0.*q_proj.g_idx/.test(tensor.name) ? { ...tensor, data: groups } : tensor));
  const folder = write(splitFolder('gptq4-asym', (name) => (/scales|qzeros/.test(name) ? 0 : 1), { tensors }));
  assert.throws(() => logitsOf(folder), ({ stderr }) => /^quern: model\/inconsistent: .*other groups than its scales have/.test(stderr));
});

test("AutoGPTQ's biases of zeros change nothing", () => {
  for (const name of ['gptq4', 'gptq4-moe']) {
    const { config, tokenizer, tensors } = quantisedFolder(name);
    const folder = write({ 'config.json': JSON.stringify(config), 'tokenizer.json': tokenizer, 'model.safetensors': writeSafetensors(biasedTensors(tensors)) });
    assert.deepEqual(logitsOf(folder), logitsOf(join(FOLDERS, name)), name);
    assert.deepEqual(JSON.parse(native('info', folder)).types, JSON.parse(native('info', join(FOLDERS, name))).types);
  }
});

test('what is not read is refused by its name, with an alternative', () => {
  const methods = { bitsandbytes: 'bitsandbytes', torchao: 'torchao', quanto: 'quanto', hqq: 'HQQ', exl2: 'EXL2', exl3: 'EXL3', 'auto-round': 'auto-round' };
  const refused = (config, tensors, sentence) => {
    const folder = write({ 'config.json': JSON.stringify({ ...plain, ...config }), 'tokenizer.json': tokenizer, 'model.safetensors': writeSafetensors(tensors) });
    assert.throws(() => native('info', folder), ({ stderr }) => stderr.startsWith('quern: model/unsupported: ') && sentence.test(stderr), `${sentence}`);
  };
  const { config, tokenizer, tensors } = quantisedFolder('gptq4');
  const { quantization_config: _, ...plain } = config;
  for (const [method, name] of Object.entries(methods)) {
    refused({ quantization_config: { quant_method: method } }, tensors, new RegExp(`quantised with ${name}, .* take the model's GGUF file`));
    refused({ compression_config: { quant_method: method } }, tensors, new RegExp(`quantised with ${name}, `));
  }
  const ends = { 'weight.absmax': 'bitsandbytes', SCB: 'bitsandbytes', _weight_qdata: 'torchao', 'weight._data': 'quanto', W_q: 'HQQ', q_weight: 'EXL2', trellis: 'EXL3' };
  for (const [end, name] of Object.entries(ends)) {
    const odd = { name: `model.layers.0.self_attn.q_proj.${end}`, dtype: 'U8', shape: [4], data: new Uint8Array(4) };
    refused({}, [...tensors.filter((tensor) => !tensor.name.includes('q_proj')), odd], new RegExp(`quantised with ${name}, `));
  }
  const mlx = quantisedFolder('mlx4');
  const bytes = ({ name, shape: [rows] }) => ({ name, dtype: 'U8', shape: [rows, 4], data: new Uint8Array(4 * rows) });
  refused(mlx.config, mlx.tensors.map((tensor) => (tensor.name.endsWith('.scales') ? bytes(tensor) : tensor)), /mxfp4.*take an affine one/);
  refused({ quantization_config: { quant_method: 'compressed-tensors', format: 'nvfp4-pack-quantized' } }, tensors, /"nvfp4-pack-quantized"/);
});

test('a quantised folder is not quantised again', () => {
  const out = join(place, 'x.gguf');
  for (const name of QUANTISED)
    assert.throws(() => native('quantize', join(FOLDERS, name), out, '--type', 'q4_0'), ({ stderr }) => /model\/unsupported: .*quantised already \([UFQ][2-8]/.test(stderr), name);
  assert.throws(() => readFileSync(out));
});
