// SPDX-License-Identifier: MIT
// Writes the seed corpora of the fuzz targets: small valid inputs, whose mutations reach the code after the header.
//
//   node tests/fuzz/seeds.mjs

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ajc1Model, scoredTokens } from '../fixtures/ajc1.mjs';
import { hybridFolder } from '../fixtures/bad-hybrid.mjs';
import { VIDEOS, IMAGES, VISION, moe, vlFolder } from '../fixtures/bad-vision.mjs';
import { hfTensors, tinyFolder, tinyVocab, writeSafetensors } from '../fixtures/folder.mjs';
import { ByteSink } from '../fixtures/gguf-writer.mjs';
import { projectorBytes } from '../fixtures/make-projector.mjs';
import { tiny35 } from '../fixtures/qwen35-layout.mjs';
import { splitGguf } from '../fixtures/split.mjs';
import { TINY_MOE, minimalModel, tinyModel, tinySpec } from '../fixtures/tiny.mjs';

const corpus = join(dirname(fileURLToPath(import.meta.url)), 'corpus');

function write(target, name, bytes) {
  mkdirSync(join(corpus, target), { recursive: true });
  writeFileSync(join(corpus, target, name), bytes);
}

function packed(strings) {
  const sink = new ByteSink();
  for (const text of strings) sink.string(text);
  return sink.take();
}

/** An input of fuzz_tokenizer.c: `merges` are strings, or scores (floats). */
function tokenizerInput(tokens, types, merges, text) {
  const scored = typeof merges[0] === 'number';
  const last = scored ? new Uint8Array(Float32Array.from(merges).buffer) : packed(merges);
  const parts = [packed(tokens), new Uint8Array(new Int32Array(types).buffer), last];
  const sink = new ByteSink();
  for (const n of [tokens.length, scored ? 65535 : merges.length, ...parts.map(({ length }) => length)]) sink.scalar('u16', n);
  for (const part of parts) sink.bytes(part);
  sink.bytes(new TextEncoder().encode(text));
  return sink.take();
}

/** An input of set.c. */
function setInput(...files) {
  const bytes = files.map((file) => (typeof file === 'string' ? new TextEncoder().encode(file) : file));
  const sizes = bytes.flatMap(({ length }) => [length & 255, length >> 8 & 255, length >> 16]);
  return Buffer.concat([Uint8Array.of(bytes.length, ...sizes), ...bytes]);
}

const SMALLEST = { hidden: 2, ffn: 2, heads: 1, headDim: 2, kvHeads: 1, context: 16, type: 'F16' };
const SETTINGS = { chat_template: '{{ messages }}', eos_token: '<|im_end|>', add_bos_token: false };

/** A small folder, the vocabulary's two files first: fuzz_hf_tokenizer.c mutates these, fuzz_safetensors.c the rest. */
function folderInput({ spec, ...changes } = {}, more = []) {
  const [config, generation, tokenizer, ...weights] = tinyFolder({ spec: { ...SMALLEST, ...spec }, ...changes });
  return setInput(tokenizer, JSON.stringify(SETTINGS), config, generation, ...more, ...weights);
}

/** The same for a model with vision: `changes` of `vlFolder`. */
function seeingInput({ spec, ...changes }) {
  const [config, generation, tokenizer, ...rest] = vlFolder({ ...changes, spec: { ...SMALLEST, type: 'F32', ...spec } })();
  return setInput(tokenizer, JSON.stringify(SETTINGS), config, generation, ...rest);
}

/** The same for a model with linear attention, whose heads of full attention turn two columns. */
function hybridInput() {
  const text = { rope_parameters: { rope_theta: 1e7, mrope_section: [1, 0, 0], mrope_interleaved: true } };
  const [config, generation, tokenizer, weights] = hybridFolder({ text, spec: { ...SMALLEST, headDim: 8, layers: 2, keys: 1, values: 2, type: 'F32' } })();
  return setInput(tokenizer, JSON.stringify(SETTINGS), config, generation, weights);
}

/** Two files with an index. */
function shards() {
  const all = tinySpec(SMALLEST).tensors.flatMap(hfTensors);
  const files = [all.slice(0, 4), all.slice(4)];
  const names = files.flatMap((tensors, i) => tensors.map(({ name }) => [name, `model-${i + 1}.safetensors`]));
  const index = JSON.stringify({ metadata: { total_size: 1 }, weight_map: Object.fromEntries(names) });
  return folderInput({ files: { weights: null } }, [index, ...files.map((tensors) => writeSafetensors(tensors))]);
}

const value = new Map(tinySpec().kv.map(([key, , content]) => [key, content]));
const vocabulary = ['tokens', 'token_type', 'merges'].map((name) => value.get(`tokenizer.ggml.${name}`));

write('gguf', 'minimal', minimalModel());
write('gguf', 'minimal-v2', minimalModel({ version: 2 }));
write('gguf', 'cut', minimalModel().slice(0, 3000));
write('gguf', 'q4_0', tinyModel({ type: 'Q4_0', hidden: 32, context: 16 }));
write('gguf', 'nvfp4', tinyModel({ type: 'NVFP4', hidden: 64, ffn: 64, headDim: 32, context: 16 }, { addTensors: [{ name: 'blk.0.attn_q.scale', dims: [1], type: 'F32', data: new Uint8Array(4).fill(0x3d) }] }));
write('gguf', 'q1_0', tinyModel({ type: 'Q1_0', hidden: 128, ffn: 128, headDim: 64, context: 16 }));
write('gguf', 'experts', tinyModel({ ...TINY_MOE, layers: 2, experts: 3, used: 2, expertFfn: 8, ffn: 8, hidden: 8, heads: 1, headDim: 2, type: 'F16', context: 16 }));
write('gguf', 'hybrid', tiny35({ layers: 2, drafts: 1, hidden: 8, ffn: 8, heads: 1, headDim: 8, valueHeads: 1, context: 16, type: 'F16' }));
write('gguf', 'layered', minimalModel({ kv: {
  'qwen3.attention.head_count': ['u32[]', [1]], 'qwen3.feed_forward_length': ['u16[]', [2]], 'qwen3.attention.key_length': null, 'qwen3.attention.causal': ['bool', true],
  'tokenizer.added.before': ['i32[]', [1, 2]], 'tokenizer.added.after': ['i32[]', [3]], 'tokenizer.bos_token': ['string', 'b'], 'tokenizer.ggml.bos_token_id': ['u32', 4294967295],
} }));
write('gguf', 'yarn', minimalModel({ kv: { 'qwen3.rope.scaling.type': ['string', 'yarn'], 'qwen3.rope.scaling.factor': ['f32', 4] } }));
const EXPERTS = { layers: 1, experts: 2, used: 1, expertFfn: 8, ffn: 8, hidden: 8, heads: 1, headDim: 2 };
write('gguf', 'sees', tinyModel({ ...EXPERTS, arch: 'qwen3vlmoe', type: 'F16', context: 16 },
  { kv: { 'qwen3vlmoe.rope.dimension_sections': ['i32[]', [1, 0, 0, 0]], 'qwen3vlmoe.n_deepstack_layers': ['u32', 1] } }));
write('tokenizer', 'chat', tokenizerInput(...vocabulary, '<|im_start|>user\nthe then <think>\n\n</think> 12\u00e9\u{1f600}<|im_end|>'));
write('tokenizer', 'spaces', tokenizerInput(...vocabulary, "  the\t \r\n\n it's  THE 'LL \u00a0\u3000x"));
write('tokenizer', 'untyped', tokenizerInput(vocabulary[0].slice(0, 262), [], vocabulary[2], 'the the'));
write('tokenizer', 'scores', tokenizerInput(vocabulary[0], [], scoredTokens(tinyVocab()).map(({ score }) => score), 'the then'));

write('hf_tokenizer', 'pairs', folderInput());
write('hf_tokenizer', 'strings', folderInput({ tokenizer: (t) => ({ ...t, model: { ...t.model, merges: t.model.merges.map((pair) => pair.join(' ')) } }) }));

/** Tensors that are wide enough, in FP8 with one scale. */
const fp8 = (tensors) => tensors.flatMap((tensor) => (tensor.shape[1] !== 128 ? [tensor] : [
  { ...tensor, dtype: 'F8_E4M3', data: tensor.data.subarray(0, tensor.data.length / 2) },
  { name: `${tensor.name}_scale_inv`, dtype: 'F32', shape: [1, 1], data: new Uint8Array(Float32Array.of(0.5).buffer) }]));
/** Matrices of layers as codes with numbers beside them, as the programs that quantise write them. `parts`: of a matrix's rows and columns, [name, type, bytes of an element, shape]. */
const coded = (parts) => (tensors) => tensors.flatMap((tensor) => {
  const [rows, cols] = tensor.shape;
  if (!cols || cols % 32 || !tensor.name.includes('layers.')) return [tensor];
  return parts(rows, cols).map(([part, dtype, size, shape]) => {
    const data = new Uint8Array(size * shape.reduce((product, dim) => product * dim));
    for (let i = 0; i < data.length; i++) data[i] = part.endsWith('g_idx') ? (i % 4 ? 0 : i / 4 % (cols / 32)) : dtype === 'I32' ? 37 * i : i % 2 ? 0x2C : i;
    return { name: tensor.name.replace('weight', part), dtype, shape, data };
  });
});
const CODED = {
  mlx: ['mlx', (rows, cols) => [['weight', 'U32', 4, [rows, cols / 8]], ['scales', 'F16', 2, [rows, cols / 32]], ['biases', 'F16', 2, [rows, cols / 32]]]],
  gptq: ['gptq', (rows, cols) => [['g_idx', 'I32', 4, [cols]], ['qweight', 'I32', 4, [cols / 8, rows]], ['qzeros', 'I32', 4, [cols / 32, rows / 8]], ['scales', 'F16', 2, [cols / 32, rows]]]],
  awq: ['awq', (rows, cols) => [['qweight', 'I32', 4, [cols, rows / 8]], ['qzeros', 'I32', 4, [cols / 32, rows / 8]], ['scales', 'F16', 2, [cols / 32, rows]]]],
  packed: ['compressed-tensors', (rows, cols) => [['weight_g_idx', 'I32', 4, [cols]], ['weight_packed', 'I32', 4, [rows, cols / 8]], ['weight_scale', 'F16', 2, [rows, cols / 32]], ['weight_zero_point', 'I32', 4, [rows / 8, cols / 32]]]],
  whole: ['compressed-tensors', (rows, cols) => [['weight', 'I8', 1, [rows, cols]], ['weight_scale', 'F16', 2, [rows, 1]]]],
};
const CODED_SPEC = { spec: { hidden: 32, ffn: 64, heads: 1, kvHeads: 1, headDim: 32, type: 'BF16' } };

const YARN = { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 16, attention_factor: 1 };
write('safetensors', 'tied', folderInput());
write('safetensors', 'untied', folderInput({ spec: { tied: false, type: 'BF16' } }));
write('safetensors', 'templates', folderInput({}, [JSON.stringify({ chat_template_files: [{ name: 'tool_use', template: 'a' }] }), JSON.stringify({ chat_template: [{ name: 'default', template: 'b' }] }), '[{"idx":0}]', '{}']));
write('safetensors', 'yarn', folderInput({ config: { rope_scaling: YARN } }));
write('safetensors', 'fp8', folderInput({ spec: { ffn: 128 }, tensors: fp8, config: { quantization_config: { quant_method: 'fp8', fmt: 'e4m3', weight_block_size: [128, 128] } } }));
for (const [name, [method, parts]] of Object.entries(CODED))
  write('safetensors', name, folderInput({ ...CODED_SPEC, tensors: coded(parts), config: method === 'mlx' ? { quantization: { group_size: 32, bits: 4 } } : { quantization_config: { quant_method: method } } }));
write('safetensors', 'shards', shards());
const SECTIONS = { rope_scaling: { mrope_interleaved: true, mrope_section: [1, 0, 0], rope_type: 'default' } };
write('safetensors', 'sees', seeingInput({ text: SECTIONS, encoding: { ...VISION, depth: 2, hidden_size: 8, num_heads: 1 }, sides: [IMAGES, VIDEOS, { image_processor: IMAGES, video_processor: VIDEOS }] }));
write('safetensors', 'hybrid', hybridInput());
write('safetensors', 'stacks', seeingInput({ ...moe(undefined, { arch: 'qwen3moe', dense: [], ...EXPERTS }), text: SECTIONS, encoding: null }));

const CHECKPOINT = { layers: 1, hidden: 32, ffn: 32, heads: 16, kvHeads: 1, headDim: 2 };
const checkpoint = (options) => {
  const { tokenizer, checkpoint: bytes } = ajc1Model({ ...CHECKPOINT, ...options });
  return setInput(tokenizer, bytes);
};
write('ajc1', 'tied', checkpoint());
write('ajc1', 'padded', checkpoint({ header: { padding: 1, max_seq_len: 40960 } }));

const parts = splitGguf(minimalModel(), [5, 8]);
write('any', 'folder', folderInput());
write('any', 'checkpoint', checkpoint());
write('any', 'split', setInput(...parts));
write('any', 'mixed', setInput(JSON.stringify({ model_type: 'qwen3' }), minimalModel()));
const OTHERS = {
  html: '<!doctype html>', lfs: 'version https://git-lfs.github.com/spec/v1', json: '{"error":"not found"}', zip: 'PK\x03\x04', onnx: '\x08\x07\x12\x07pytorch',
  ggml: 'GGML', pickle: '\x80\x02c',
};
for (const [name, text] of Object.entries(OTHERS)) write('any', name, setInput(Buffer.from(text.padEnd(40, ' '), 'latin1')));

// Inputs of fuzz_saved.c: edits of 5 bytes.
for (const [name, ...edits] of [['whole'], ['ids', 1, 3, 0, 4, 1], ['number', 2, 0, 1, 1, 1], ['before', 3, 20, 1, 128, 1], ['hash', 0, 24, 1, 1, 0], ['page', 1, 0, 2, 255, 0],
  ['page-anew', 1, 0, 2, 255, 1, 1, 1, 2, 126, 1], ['header', 4, 8, 0, 1, 0], ['name-length', 4, 72, 0, 255, 0]]) write('kept', name, Uint8Array.from(edits));

const PROJECTOR = { preset: 'tiny', layers: 1, hidden: 8, ffn: 12, heads: 1, added: [0], side: 2, patch: 8, outDim: 4 };
for (const type of ['f16', 'f32']) write('projector', `tiny-${type}`, Buffer.concat([...projectorBytes({ ...PROJECTOR, type })]));
write('projector', 'blocks', Buffer.concat([...projectorBytes({ ...PROJECTOR, hidden: 32, heads: 2, ffn: 8, added: [], type: 'q8_0' })]));

const FILES = join(corpus, '../../fixtures/vision/files');
for (const name of readdirSync(FILES)) write('image', name, readFileSync(join(FILES, name)));

// Inputs of fuzz_schema.c: options, a schema, a zero, bytes. Each schema of the table comes with a text that it accepts.
const cases = readFileSync(join(corpus, '../../fixtures/schemas/cases.txt'), 'utf8').split('\n');
for (const [i, line] of cases.entries()) {
  const text = cases.slice(i + 1).find((other) => /^[+S]/.test(other)) ?? '';
  const options = { SF: 1, S7: 2 }[line.slice(0, 2)] ?? 0;
  if (line[0] === 'S') write('schema', `case-${i}`, Buffer.from(`${String.fromCharCode(options)}${line.replace(/^\w+ /, '')}\0${text[0] === '+' ? text.slice(2) : ''}`));
}
const tag = (key, value) => `<parameter=${key}>\n${value}\n</parameter>\n`;
for (const [name, schema, text] of [
  ['strings', { properties: { s: { type: 'string', maxLength: 9 }, e: { enum: ['a', null, 1] } }, required: ['s'] }, tag('s', 'a</b>') + tag('e', 'None')],
  ['others', { properties: { a: { $ref: '#' }, b: {} }, patternProperties: { '^x': { type: ['string', 'number'] } }, additionalProperties: false }, tag('a', '{"b": []}') + tag('x1', '5')],
  ['logic', { anyOf: [{ required: ['a'] }, { properties: { b: { not: { type: 'string' } } } }], maxProperties: 2 }, tag('b', '{"a": 1}')],
]) write('schema', `tagged-${name}`, Buffer.from(`\x08${JSON.stringify(schema)}\0${text}`));
