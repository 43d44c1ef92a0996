// SPDX-License-Identifier: MIT
// Folders and checkpoints through the package: by path in Node, as picked files in any order, on the command line.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { modelOf } from '../../js/shared/folder.js';
import { ajc1Model } from '../fixtures/ajc1.mjs';
import { beside, mistaken } from '../fixtures/beside-gguf.mjs';
import { PROJECT } from '../fixtures/golden.mjs';
import { tinyFolder } from '../fixtures/folder.mjs';
import { SOURCES } from '../fixtures/hf/sources.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { rejectsWith } from './helper.mjs';

const FOLDER = join(PROJECT, 'tests/fixtures/hf/f32');
const IDS = [1, 2, 3, 40, 280, 100];

/** The native command line. */
const native = (...args) => spawnSync(join(PROJECT, 'build/release/quern'), args, { input: 'the<think>', encoding: 'utf8' });

async function logitsOf(source) {
  const model = await load(source, { threads: 1, cache: false });
  const logits = await model.logits(IDS);
  const { info } = model;
  await model.dispose();
  return { logits, info };
}

test('which files are a model, and their order', () => {
  const order = (...names) => modelOf(names)?.map((i) => names[i]);
  assert.deepEqual(order('README.md', 'b.safetensors', 'tokenizer.json', 'vocab.json', 'a.safetensors', 'config.json'), ['config.json', 'tokenizer.json', 'a.safetensors', 'b.safetensors']);
  assert.deepEqual(order('m/model.safetensors', 'm\\config.json'), ['m\\config.json', 'm/model.safetensors']);
  assert.deepEqual(order('x.bin', 'x.bin.tokenizer', 'x.bin.template'), ['x.bin.tokenizer', 'x.bin']);
  assert.deepEqual(order('m/a.gguf', 'tokenizer.json', 'config.json', 'tokenizer_config.json', 'model.safetensors.index.json', 'README.md'), ['tokenizer_config.json', 'tokenizer.json', 'm/a.gguf']);
  assert.deepEqual(order('config.json', 'a.gguf'), ['a.gguf']);
  assert.deepEqual(order('a-00002-of-00002.gguf', 'tokenizer.json', 'a-00001-of-00002.gguf'), ['tokenizer.json', 'a-00001-of-00002.gguf', 'a-00002-of-00002.gguf']);
  for (const ggufs of [['a.gguf', 'b.gguf'], ['a-00001-of-00002.gguf'], ['a-00001-of-00002.gguf', 'b-00002-of-00002.gguf']]) assert.equal(order('tokenizer.json', ...ggufs), undefined);
  assert.deepEqual(order('a.safetensors', 'tokenizer.json', 'a.gguf'), ['tokenizer.json', 'a.safetensors']);
  for (const names of [[], ['a.gguf'], ['config.json'], ['a.tokenizer'], ['pytorch_model.bin']]) assert.equal(modelOf(names), null);
});

test('a folder by its path, and as files in any order', { timeout: 60_000 }, async () => {
  const twin = await logitsOf(new Blob([SOURCES.f32()]));
  const names = (await readdir(FOLDER)).reverse();
  const files = await Promise.all([...names, 'README.md'].map(async (name) => (
    new File([name === 'README.md' ? 'no model' : await readFile(join(FOLDER, name))], name))));
  for (const source of [FOLDER, files]) {
    const { logits, info } = await logitsOf(source);
    assert.deepEqual(logits, twin.logits);
    assert.equal(info.format, 'safetensors');
  }
  const model = await load(FOLDER, { threads: 1, cache: false });
  assert.ok((await model.chat('the', { maxTokens: 2, temperature: 0 }).result).usage.completionTokens > 0, 'the chat template is in tokenizer_config.json');
  await model.dispose();
});

test('a GGUF file with files beside it: as files in any order, and as a folder', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  const contents = {
    'model.gguf': mistaken(), 'tokenizer.json': beside.tokenizer(), 'tokenizer_config.json': beside.template(), 'config.json': beside.config(),
    'generation_config.json': beside.generation(), 'model.safetensors.index.json': beside.index(), 'README.md': 'text',
  };
  for (const [name, bytes] of Object.entries(contents)) await writeFile(join(folder, name), bytes);
  const files = Object.entries(contents).map(([name, bytes]) => new File([bytes], name));
  const twin = await logitsOf(new Blob([tinyModel({ type: 'F32' })]));
  for (const source of [folder, files, [contents['tokenizer.json'], contents['model.gguf']].map((bytes) => new Blob([bytes]))]) {
    const { logits, info } = await logitsOf(source);
    assert.deepEqual(logits, twin.logits);
    assert.deepEqual([info.format, info.files], ['gguf', source.length === 2 ? 2 : 4]);
    const model = await load(source, { threads: 1, cache: false });
    assert.deepEqual(await model.tokenize('the<think>'), [258, 286]);
    if (source.length !== 2) assert.ok(model.info.endTokens.includes(5));
    await model.dispose();
  }
  assert.equal(native('tokenize', folder, '--ids').stdout, '258 286\n');
  assert.equal(JSON.parse(native('info', folder, '--json').stdout).files, 4);
  const two = [...files, new File([contents['model.gguf']], 'other.gguf')];
  await rejectsWith(load(two), 'use/param', /several files that are not parts/);
  await writeFile(join(folder, 'other.gguf'), contents['model.gguf']);
  await rejectsWith(load(folder), 'use/param', /folder without a model.*name a GGUF file itself/);
  assert.notEqual(native('tokenize', folder, '--ids').status, 0);
  await rm(folder, { recursive: true });
});

test('a checkpoint by its path, and as files', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  const { checkpoint, tokenizer, gguf } = ajc1Model({ group: 64 });
  const path = join(folder, 'model.bin');
  await writeFile(path, checkpoint);
  await writeFile(`${path}.tokenizer`, tokenizer);
  const twin = await logitsOf(new Blob([gguf]));
  for (const source of [path, folder, [new File([checkpoint], 'x.bin'), new File([tokenizer], 'x.bin.tokenizer')]]) assert.deepEqual((await logitsOf(source)).logits, twin.logits);
  await rm(`${path}.tokenizer`);
  const error = await rejectsWith(load(path, { threads: 1 }), 'model/format', /\.tokenizer/);
  assert.equal(error.detail.rule, 'missing');
  await rejectsWith(load(folder), 'use/param', /folder without a model/);
  for (const name of ['config.json', 'pytorch_model.bin']) await writeFile(join(folder, name), '{}');
  const files = ['config.json', 'pytorch_model.bin.index.json'].map((name) => new File(['{}'], name));
  for (const source of [folder, files]) assert.equal((await rejectsWith(load(source), 'model/unsupported', /pickled.*run whatever code.*safetensors/)).detail.rule, 'pickle');
  await rm(folder, { recursive: true });
});

test('YaRN as a folder says it and as GGUF does', async () => {
  const scaling = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 32, beta_fast: 16, beta_slow: 2 };
  const kv = { type: ['string', 'yarn'], factor: ['f32', 4], original_context_length: ['u32', 32], yarn_beta_fast: ['f32', 16], yarn_beta_slow: ['f32', 2] };
  const growth = 0.1 * Math.log(4) + 1;
  const twin = (more) => tinyModel({ type: 'F32' }, { kv: Object.fromEntries(Object.entries({ ...kv, ...more }).map(([name, value]) => [`qwen3.rope.scaling.${name}`, value])) });
  const folder = (more) => tinyFolder({ config: { rope_scaling: { ...scaling, ...more } } })
    .map((bytes, i) => new File([bytes], ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors'][i]));
  const plain = (await logitsOf(folder())).logits;
  assert.deepEqual(plain, (await logitsOf(new Blob([twin()]))).logits);
  assert.deepEqual((await logitsOf(folder({ attention_factor: growth }))).logits, plain);
  const louder = (await logitsOf(folder({ attention_factor: 2 * growth }))).logits;
  assert.deepEqual(louder, (await logitsOf(new Blob([twin({ attn_factor: ['f32', 2] })]))).logits);
  assert.notDeepEqual(louder, plain);
});

test('the command line takes a folder', () => {
  const info = JSON.parse(execFileSync(process.execPath, [join(PROJECT, 'dist/cli.js'), 'info', FOLDER, '--json', '--threads', '1'], { encoding: 'utf8' }));
  assert.equal(info.format, 'safetensors');
});
