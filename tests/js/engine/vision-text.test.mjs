// SPDX-License-Identifier: MIT
// The language models of Qwen3-VL without images: the logits of transformers from GGUF files and folders, the same bits in every build and
// natively, and quantised as llama.cpp has them. Images: tests/c/test_vl.c and test_vision.c.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { PROJECT } from '../../fixtures/golden.mjs';
import { VL_MODELS, floats, vlCases, vlFolder, vlPath } from '../../fixtures/vision-models.mjs';
import { CLI, rejectsWith } from '../support/helper.mjs';

const VOCAB = 320;
const NATIVE = join(PROJECT, 'build/release/quern');
const place = mkdtempSync(join(tmpdir(), 'vision-text-'));
after(() => rmSync(place, { recursive: true }));

const textOf = (model) => vlCases(model).cases.find(({ name }) => name === 'text');

async function logitsOf(source, ids, options) {
  const model = await load(source, { kv: 'f32', store: false, contextSize: 128, ...options });
  try {
    return await model.logits(ids);
  } finally {
    await model.dispose();
  }
}

function native(command, ...args) {
  const { status, stderr } = spawnSync(NATIVE, [command, ...args], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

function nativeLogits(path, ids) {
  const out = join(place, 'native.f32');
  native('logits', path, '--tokens', ids.join(' '), '--kv', 'f32', '--variant', 'scalar', '--threads', '1', '--out', out);
  return floats(out);
}

for (const name of VL_MODELS) {
  test(`${name}: text as transformers reads it, from both containers, with the native bits`, async (t) => {
    const { ids, rows, logit_scale: scale } = textOf(name);
    const golden = floats(vlPath(name, 'logits', 'text.f32'));
    const expected = nativeLogits(vlPath(name, 'f16', 'model.gguf'), ids);
    const worst = rows.reduce((most, row, i) => golden.subarray(i * VOCAB, (i + 1) * VOCAB).reduce((m, x, j) => Math.max(m, Math.abs(x - expected[row * VOCAB + j])), most), 0);
    t.diagnostic(`largest difference ${(worst / scale).toExponential(1)} of the scale`);
    assert.ok(worst <= 2e-4 * scale);
    assert.deepEqual(nativeLogits(vlPath(name, 'hf'), ids), expected);
    const files = vlFolder(name).map((path) => new File([readFileSync(path)], path.split('/').at(-1)));
    const runs = [
      [vlPath(name, 'f16', 'model.gguf'), { variant: 'simd', threads: 1, chunk: 64 }], [vlPath(name, 'f16', 'model.gguf'), { variant: 'relaxed', threads: 2, chunk: 7 }],
      [vlPath(name, 'f16', 'model.gguf'), { variant: 'scalar', threads: 1, chunk: 1 }], [vlPath(name, 'hf'), { variant: 'relaxed', threads: 1 }], [files.reverse(), { variant: 'simd', threads: 2 }],
    ];
    for (const [source, options] of runs) assert.deepEqual(await logitsOf(source, ids, options), expected, JSON.stringify(options));
  });
}

test('a folder that sees answers as text: its template, its end, what it is', async () => {
  const model = await load(vlPath('dense', 'hf'), { threads: 1, store: false, contextSize: 256, kv: 'f32' });
  try {
    const { ids, greedy, messages } = textOf('dense');
    assert.equal(model.info.architecture, 'qwen3vl');
    assert.equal(model.info.format, 'safetensors');
    const { usage, text } = await model.chat(messages, { maxTokens: greedy.length, temperature: 0 }).result;
    assert.equal(usage.promptTokens, ids.length);
    assert.equal(text, await model.detokenize(greedy));
  } finally {
    await model.dispose();
  }
});

test('a projector is no model', async () => {
  await rejectsWith(load(vlPath('dense', 'f16', 'mmproj.gguf'), { store: false }), 'model/unsupported', /Load the language model and give this file as `vision`/);
});

/** Name -> type and bytes, but for those that quantising leaves as they are stored. */
const quantised = (path) => new Map([...readGguf(readFileSync(path)).tensors].filter(([name]) => !name.startsWith('v.patch_embd')).map(([name, { type, data }]) => [name, { type, data: Buffer.from(data) }]));

for (const file of ['model', 'mmproj']) {
  test(`${file}.gguf quantised: the same bytes natively and in Node, llama.cpp's values`, () => {
    const input = vlPath('dense', 'f16', `${file}.gguf`);
    for (const type of ['q8_0', 'q4_k']) {
      const [ours, theirs] = ['node', 'native'].map((name) => join(place, `${file}.${type}.${name}.gguf`));
      const { status, stderr } = spawnSync(process.execPath, [CLI, 'quantize', input, ours, '--type', type, '--threads', '2'], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
      native('quantize', input, theirs, '--type', type, '--threads', '1');
      assert.ok(readFileSync(ours).equals(readFileSync(theirs)), type);
    }
    assert.deepEqual(quantised(join(place, `${file}.q8_0.node.gguf`)), quantised(vlPath('dense', 'q8_0', `${file}.gguf`)));
  });
}

test('a folder becomes the language model\'s file', async () => {
  for (const name of VL_MODELS) {
    const out = join(place, `${name}.gguf`);
    native('quantize', vlPath(name, 'hf'), out, '--type', 'q8_0');
    const { kv, tensors } = readGguf(readFileSync(out));
    const published = readGguf(readFileSync(vlPath(name, 'f16', 'model.gguf')));
    assert.deepEqual([...tensors.keys()].sort(), [...published.tensors.keys()].sort());
    for (const [key, value] of published.kv) {
      if (!/^(?:general\.(?:name|file_type)|tokenizer\.ggml\.(?:token_type|add_eos_token))$/.test(key)) assert.deepEqual(kv.get(key), value, key);
    }
    assert.ok([...kv.keys()].every((key) => !key.startsWith('clip.')));
    const { ids } = textOf(name);
    assert.equal((await logitsOf(out, ids, { threads: 1 })).length, ids.length * VOCAB);
  }
});
