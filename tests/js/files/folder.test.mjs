// SPDX-License-Identifier: MIT
// Folders and checkpoints through the package: by path in Node, as picked files in any order, on the command line.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { modelOf } from '../../../js/shared/folder.js';
import { foreignOf } from '../../../js/shared/foreign.js';
import { ajc1Model } from '../../fixtures/ajc1.mjs';
import { beside, mistaken } from '../../fixtures/beside-gguf.mjs';
import { PROJECT } from '../../fixtures/golden.mjs';
import { tinyFolder } from '../../fixtures/folder.mjs';
import { SOURCES } from '../../fixtures/hf/sources.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { platform } from '../../../js/page/platform-node.js';
import { openParts } from '../../../js/store/loader.js';
import { described } from '../../../js/worker/described.js';
import { startEngine } from '../../../js/worker/start.js';
import { testHost } from '../support/engine-host.mjs';
import { rejectsWith } from '../support/helper.mjs';

const FOLDER = join(PROJECT, 'tests/fixtures/hf/f32');
const IDS = [1, 2, 3, 40, 280, 100];

/** The native command line. */
const native = (...args) => spawnSync(join(PROJECT, 'build/release/quern'), args, { input: 'the<think>', encoding: 'utf8' });

async function logitsOf(source) {
  const model = await load(source, { threads: 1, store: false });
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

test('which files are a model where there are folders below', () => {
  const order = (...names) => modelOf(names)?.map((i) => names[i]);
  const saved = ['st/1_Pooling/config.json', 'st/2_Normalize/config.json', 'st/sentence_bert_config.json', 'st/modules.json', 'st/config.json', 'st/tokenizer.json', 'st/model.safetensors', 'st/chat_template.jinja',
    'st/additional_chat_templates/tool_use.jinja', 'st/additional_chat_templates/rag.jinja', 'st/additional_chat_templates/README.md', 'st/old/model.safetensors', 'st/onnx/model.onnx'];
  const wanted = ['config.json', 'chat_template.jinja', 'additional_chat_templates/rag.jinja', 'additional_chat_templates/tool_use.jinja', 'tokenizer.json', 'modules.json',
    '1_Pooling/config.json', 'sentence_bert_config.json', 'model.safetensors'].map((name) => `st/${name}`);
  for (const names of [saved, saved.toReversed()]) assert.deepEqual(order(...names), wanted);
  assert.deepEqual(order(...saved.map((name) => name.slice(3))), wanted.map((name) => name.slice(3)));
  assert.deepEqual(order('chat_template.jinja', 'a.gguf', 'additional_chat_templates/tool_use.jinja', 'modules.json'), ['chat_template.jinja', 'additional_chat_templates/tool_use.jinja', 'a.gguf']);
  assert.deepEqual(order('chat_template.json', 'chat_template.jinja', 'tokenizer_config.json', 'a.safetensors'), ['chat_template.jinja', 'chat_template.json', 'tokenizer_config.json', 'a.safetensors']);
  for (const [names, words] of [[['config.json', 'config.json', 'a.safetensors'], /several files called config.json/], [['a/m.safetensors', 'b/m.safetensors'], /several folders/]]) {
    assert.throws(() => modelOf(names), { code: 'use/param', message: words });
  }
});

test('other programs\' models are named, with what to take instead', () => {
  const SAFE = ['config.json', 'model.safetensors'];
  const cases = [
    ['lora', /adapter \(LoRA\).*merge it/, ['adapter_config.json', 'adapter_model.safetensors', 'tokenizer.json'], ['adapter_config.json', 'adapter_model.bin'], ['adapter_config.json', 'adapters.safetensors']],
    ['uqff', /UQFF.*GGUF/, ['q4k-0.uqff'], ['config.json', 'residual.safetensors', 'q4k-0.uqff']], ['quantisation', /quanto/, [...SAFE, 'quanto_qmap.json']],
    ['quantisation', /MLX/, ['config.json', 'weights.npz']], ['mlc', /MLC \(WebLLM\)/, ['mlc-chat-config.json', 'params_shard_0.bin'], ['mlc-chat-config.json', 'ndarray-cache.json']],
    ['onnx', /ONNX/, ['config.json', 'onnx'], ['config.json', 'onnx/model_q4.onnx'], ['a.onnx', 'a.onnx_data']], ['openvino', /OpenVINO/, ['config.json', 'openvino_model.xml', 'openvino_model.bin']],
    ['tensorrt-llm', /TensorRT-LLM/, ['config.json', 'rank0.engine'], ['config.json', 'rank0.safetensors']], ['nemo', /NeMo.*export/, ['q.nemo']], ['task', /MediaPipe/, ['q.task']],
    ['litertlm', /LiteRT-LM/, ['q.litertlm']], ['ctranslate2', /CTranslate2/, ['config.json', 'model.bin', 'vocabulary.json']],
    ['vocabulary', /vocab\.json and merges\.txt.*save_pretrained/, [...SAFE, 'vocab.json', 'merges.txt']], ['vocabulary', /tiktoken/, [...SAFE, 'qwen.tiktoken']],
    ['pickle', /pickled/, ['config.json', 'pytorch_model-00001-of-00002.bin'], ['vocab.json', 'merges.txt', 'pytorch_model.bin']],
    ...['q.gguf.part1of2', 'q.gguf.part-aa', 'q.gguf.part01', 'q.gguf-split-a', 'q.gguf.00', 'q.gguf.001', 'q.gguf.aa'].map((name) => (
      ['pieces', /one piece .*join all of them in order \(cat .*> q\.gguf\)/, [name], ['README.md', name], [`/a/${name}`]])),
  ];
  for (const [rule, message, ...sets] of cases) {
    for (const names of sets) {
      const found = foreignOf(names);
      assert.equal(found?.rule, rule, names.join());
      assert.match(found.message, message);
    }
  }
  for (const names of [[...SAFE, 'tokenizer.json', 'vocab.json', 'merges.txt', 'onnx', 'openvino_model.xml', 'pytorch_model.bin', 'x.task', 'adapter_config.json'],
    ['a.gguf', 'tokenizer.json', 'a.onnx', 'vocab.json', 'a.gguf.part1of2'], ['pytorch_model.bin'], ['q.gguf.part'], ['q.gguf.gz'], []]) assert.equal(foreignOf(names), null, names.join());
});

test('a load that fails says what the files are, by path and picked', { timeout: 60_000 }, async () => {
  const half = tinyModel({ type: 'F32' }).subarray(0, 50_000);
  const [config, generation, tokenizer, weights] = tinyFolder();
  for (const [files, rule] of [
    [{ 'q.gguf.part1of2': half }, 'pieces'], [{ 'q.gguf.part1of2': half, 'q.gguf.part2of2': half }, 'pieces'], [{ 'q.task': 'PK\x03\x04' }, 'task'],
    [{ 'adapter_config.json': '{"peft_type":"LORA"}', 'adapter_model.safetensors': weights, 'tokenizer.json': tokenizer }, 'lora'],
    [{ 'config.json': config, 'model.safetensors': weights, 'vocab.json': '{"a":0}', 'merges.txt': '#version: 0.2' }, 'vocabulary'],
    [{ 'config.json': config, 'generation_config.json': generation, 'openvino_model.xml': '<?xml', 'openvino_model.bin': 'x' }, 'openvino'],
  ]) {
    const folder = await written(files);
    const alone = Object.keys(files).length === 1;
    for (const source of [alone ? join(folder, Object.keys(files)[0]) : folder, picked(files)]) {
      const error = await rejectsWith(load(source, { threads: 1, store: false }), 'model/unsupported', /^This is /);
      assert.equal(error.detail.rule, rule);
    }
    await rm(folder, { recursive: true });
  }
  for (const source of [Object.create(null), Symbol('s'), [], null]) await rejectsWith(load(source), 'use/param', /^source must be/);
  const signal = AbortSignal.abort(null);
  assert.equal(await load(new Blob([weights]), { signal }).catch((reason) => reason), null);
  const model = await load(picked({ 'config.json': config, 'model.safetensors': weights, 'tokenizer.json': tokenizer, 'adapter_config.json': '{}', 'vocab.json': '{}' }), { threads: 1, store: false });
  await model.dispose();
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
  const model = await load(FOLDER, { threads: 1, store: false });
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
    const model = await load(source, { threads: 1, store: false });
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

/** A folder as transformers 5 writes it: no template in tokenizer_config.json, but files of their own. */
function savedFolder(more = {}) {
  const [config, generation, tokenizer, weights] = tinyFolder();
  return {
    'config.json': config, 'generation_config.json': generation, 'tokenizer.json': tokenizer, 'model.safetensors': weights, 'tokenizer_config.json': '{"backend":"tokenizers","is_local":true}',
    'chat_template.jinja': JINJA, 'additional_chat_templates/tool_use.jinja': `{# "tools" \\ */ é 😀 #}${JINJA}{{ tools[0].function.name }}`, 'modules.json': MODULES,
    '1_Pooling/config.json': '{"word_embedding_dimension":32,"pooling_mode_lasttoken":true,"include_prompt":true}', '2_Normalize/config.json': '{}', ...more,
  };
}

const JINJA = '{%- for m in messages %}\r\n\t{{- m.role ~ ":" + m.content + "\\\\" }}\n{%- endfor %}';
const MODULES = '[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]';

async function written(files) {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  for (const [name, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), bytes);
  }
  return folder;
}

/** As a browser's picker gives the files of a folder. */
const picked = (files) => Object.entries(files).map(([path, bytes]) => (
  Object.defineProperty(new File([bytes], path.split('/').at(-1)), 'webkitRelativePath', { value: `saved/${path}` })));

async function engineOf(source) {
  const { source: { paths, streams } } = platform.resolveSource(source);
  const read = async (path) => ({ name: path, stream: new Blob([await readFile(path)]).stream(), size: 0 });
  return startEngine(testHost({ openParts }), { kind: 'streams', streams: streams ?? await Promise.all(paths.map(read)) }, { threads: 1 }, () => {});
}

async function templatesOf(source) {
  const engine = await engineOf(source);
  const found = [engine.chatTemplate(), engine.chatTemplate(true)];
  engine.close();
  return found;
}

test('templates in files of their own: by path, picked, and converted', { timeout: 60_000 }, async () => {
  const files = savedFolder();
  const [chat, tools] = [files['chat_template.jinja'], files['additional_chat_templates/tool_use.jinja']];
  const folder = await written(files);
  for (const source of [folder, picked(files), picked(files).reverse()]) assert.deepEqual(await templatesOf(source), [chat, tools]);
  for (const source of [folder, picked(files)]) {
    const model = await load(source, { threads: 1, store: false });
    const reply = await model.chat('the', { maxTokens: 1, temperature: 0 }).result;
    const { usage } = await model.chat('the', { maxTokens: 1, temperature: 0, tools: [{ name: 'adds' }] }).result;
    assert.equal(usage.promptTokens - reply.usage.promptTokens, (await model.tokenize('adds')).length, 'the name of the tool is in that template');
    await model.dispose();
  }
  for (const program of [[join(PROJECT, 'build/release/quern')], [process.execPath, join(PROJECT, 'dist/cli.js')]]) {
    const out = join(folder, 'out.gguf');
    execFileSync(program[0], [...program.slice(1), 'quantize', folder, out, '--type', 'q8_0']);
    assert.deepEqual(await templatesOf(out), [chat, tools]);
    await rm(out);
  }
  await rm(folder, { recursive: true });
});

test('which template counts', { timeout: 60_000 }, async () => {
  const named = { chat_template: [{ name: 'default', template: 'b' }, { name: 'tool_use', template: 'c' }] };
  const without = { 'chat_template.jinja': undefined, 'additional_chat_templates/tool_use.jinja': undefined };
  for (const [more, wanted] of [
    [{ 'tokenizer_config.json': JSON.stringify(named), 'chat_template.jinja': 'a', 'additional_chat_templates/tool_use.jinja': undefined }, ['a', 'a']],
    [{ 'chat_template.json': '{"chat_template":"d"}', 'chat_template.jinja': 'a' }, ['a', null]],
    [{ ...without, 'tokenizer_config.json': JSON.stringify(named) }, ['b', 'c']], [without, ['', '']],
    [{ ...without, 'chat_template.json': '{"chat_template":"d"}', 'tokenizer_config.json': JSON.stringify(named) }, ['d', 'd']],
    [{ 'chat_template.jinja': '\n<!DOCTYPE html><html>404', 'additional_chat_templates/tool_use.jinja': undefined, 'tokenizer_config.json': JSON.stringify(named) }, ['b', 'c']],
  ]) {
    const files = Object.fromEntries(Object.entries(savedFolder(more)).filter(([, bytes]) => bytes !== undefined));
    const found = await templatesOf(picked(files));
    assert.deepEqual([found[0], wanted[1] === null ? null : found[1]], wanted);
  }
});

test('a template without an end is read no further than 10 MiB', async () => {
  let read = 0;
  async function* endless() { for (;; read++) yield new Uint8Array(1 << 20).fill(0x20); }
  const chunks = described('m/chat_template.jinja', endless());
  await assert.rejects(async () => { for await (const _ of chunks); }, { code: 'model/format', detail: { rule: 'template' } });
  assert.ok(read <= 11, `${read} MiB`);
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
