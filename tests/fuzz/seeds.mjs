// SPDX-License-Identifier: MIT
// Writes the seed corpora of the fuzz targets: small valid inputs, from which a mutation reaches the code behind the header.
//
//   node tests/fuzz/seeds.mjs

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { badSets, goodSets } from '../fixtures/bad-sets.mjs';
import { ByteSink } from '../fixtures/gguf-writer.mjs';
import { tinyFolder } from '../fixtures/folder.mjs';
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

/** As fuzz_tokenizer.c reads it. */
function tokenizerInput(tokens, types, merges, text) {
  const parts = [packed(tokens), new Uint8Array(new Int32Array(types).buffer), packed(merges)];
  const sink = new ByteSink();
  for (const n of [tokens.length, merges.length, ...parts.map(({ length }) => length)]) sink.scalar('u16', n);
  for (const part of parts) sink.bytes(part);
  sink.bytes(new TextEncoder().encode(text));
  return sink.take();
}

/** As fuzz_set.c reads it. */
function setInput(files) {
  const sizes = files.flatMap(({ length }) => [length & 255, length >> 8 & 255, length >> 16]);
  return Buffer.concat([Uint8Array.of(files.length, ...sizes), ...files]);
}

const value = new Map(tinySpec().kv.map(([key, , content]) => [key, content]));
const vocabulary = ['tokens', 'token_type', 'merges'].map((name) => value.get(`tokenizer.ggml.${name}`));

write('gguf', 'minimal', minimalModel());
write('gguf', 'minimal-v2', minimalModel({ version: 2 }));
write('gguf', 'cut', minimalModel().slice(0, 3000));
write('gguf', 'q4_0', tinyModel({ type: 'Q4_0', hidden: 32, context: 16 }));
write('gguf', 'experts', tinyModel({ ...TINY_MOE, layers: 2, experts: 3, used: 2, expertFfn: 8, ffn: 8, hidden: 8, heads: 1, headDim: 2, type: 'F16', context: 16 }));
write('gguf', 'yarn', minimalModel({ kv: { 'qwen3.rope.scaling.type': ['string', 'yarn'], 'qwen3.rope.scaling.factor': ['f32', 4] } }));
write('tokenizer', 'chat', tokenizerInput(...vocabulary, '<|im_start|>user\nthe then <think>\n\n</think> 12\u00e9\u{1f600}<|im_end|>'));
write('tokenizer', 'spaces', tokenizerInput(...vocabulary, "  the\t \r\n\n it's  THE 'LL \u00a0\u3000x"));
write('tokenizer', 'untyped', tokenizerInput(vocabulary[0].slice(0, 262), [], vocabulary[2], 'the the'));
const SMALLEST = { spec: { hidden: 2, ffn: 2, heads: 1, headDim: 2, kvHeads: 1, context: 16, type: 'F16' } };
write('set', 'folder', setInput(tinyFolder(SMALLEST)));
write('set', 'strings', setInput(tinyFolder({ ...SMALLEST, tokenizer: (t) => ({ ...t, model: { ...t.model, merges: t.model.merges.map((pair) => pair.join(' ')) } }) })));
write('set', 'untied', setInput(tinyFolder({ ...SMALLEST, spec: { ...SMALLEST.spec, tied: false } })));
for (const id of ['J01a', 'J06a']) write('set', id, setInput(goodSets().find((set) => set.id === id).files));
for (const id of ['J10e']) write('set', `bad-${id}`, setInput(badSets().find((set) => set.id === id).files));
