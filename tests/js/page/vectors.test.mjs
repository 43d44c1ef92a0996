// SPDX-License-Identifier: MIT
// Vectors and ranks: those of transformers (fixtures/transformers/vectors.json), the same to the bit however many there are at once, full steps,
// texts that are too long or try to be more than text, and everything that is refused.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { hfTensors, tinyConfig, tinyVocab, tokenizerJson, writeSafetensors } from '../../fixtures/folder.mjs';
import { byteChars, withSpecials } from '../../fixtures/qwen-vocab.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CONFIGS, modelFile } from '../../fixtures/transformers.mjs';
import { rejectsWith, rejectsWithAbort } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const GOLDEN = JSON.parse(readFileSync(new URL('../../fixtures/transformers/vectors.json', import.meta.url), 'utf8'));
const { texts: TEXTS, task: TASK } = GOLDEN;
const FILE = modelFile('dense-tied');
const CONTEXT = 128;

const open = (bytes = FILE, options = {}) => load(new Blob([bytes]), { threads: 1, contextSize: CONTEXT, kv: 'f32', ...options });
const same = (one, other, what) => assert.ok(Buffer.from(one.buffer).equals(Buffer.from(other.buffer)), what);

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** Largest distance of two lists of vectors: 1 - cosine. */
const distance = (ours, wanted) => Math.max(...ours.map((vector, i) => 1 - cosine(Array.from(vector), wanted[i])));

/** The same model as sentence-transformers keeps it: the trunk alone, under names without `model.`. */
function trunkFolder() {
  const { tensors } = readGguf(FILE);
  const list = [...tensors].flatMap(([name, { dims, data }]) => hfTensors({ name, dims, type: 'F32', data })).map((one) => ({ ...one, name: one.name.replace(/^model\./, '') }));
  const { hidden, ffn, heads, kvHeads, headDim, layers } = CONFIGS['dense-tied'].dims;
  const config = { ...tinyConfig({ hidden, ffn, heads, kvHeads, headDim, layers, context: CONTEXT }), tie_word_embeddings: false };
  return [config, tokenizerJson(tinyVocab())].map((json) => JSON.stringify(json)).concat(writeSafetensors(list)).map((part) => new Blob([part]));
}

let model;
before(async () => { model = await open(); });
after(() => model.dispose());

test('vectors are those of transformers: documents, queries, cut ones, and as they are', async () => {
  const { vectors, tokens, truncated } = await model.embed(TEXTS);
  assert.deepEqual([tokens, truncated], [GOLDEN.ids.flat().length, []]);
  assert.ok(distance(vectors, GOLDEN.vectors) < 1e-6);
  for (const vector of vectors) assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6);
  assert.ok(distance((await model.embed(TEXTS, { instruction: TASK })).vectors, GOLDEN.queries) < 1e-6);
  const short = (await model.embed(TEXTS, { dimensions: 24 })).vectors;
  assert.deepEqual([short[0].length, distance(short, GOLDEN.short) < 1e-6, Math.abs(Math.hypot(...short[1]) - 1) < 1e-6], [24, true, true]);
  const plain = (await model.embed(TEXTS, { normalize: false })).vectors;
  assert.ok(plain.every((vector, i) => vector.every((value, j) => Math.abs(value - GOLDEN.plain[i][j]) < 1e-4)));
  assert.deepEqual(plain.map((vector) => vector.buffer.byteLength), TEXTS.map(() => 4 * 64), 'a buffer each');
  const byIds = (await model.embed(GOLDEN.ids)).vectors;
  byIds.forEach((vector, i) => same(vector, vectors[i], `ids ${i}`));
  const one = await model.embed(TEXTS[2]);
  assert.equal(one.vectors.length, 1);
  same(one.vectors[0], vectors[2]);
});

test('so are those of a folder that is the trunk alone, and in 8 bits', async () => {
  const folder = await load(trunkFolder(), { threads: 1, kv: 'f32' });
  assert.deepEqual([folder.info.pooling, folder.info.classes, model.info.pooling, folder.info.dim], [3, 0, -1, 64]);
  const ours = (await model.embed(TEXTS)).vectors;
  (await folder.embed(TEXTS)).vectors.forEach((vector, i) => same(vector, ours[i], `folder ${i}`));
  await folder.dispose();
  for (const kv of ['f16', 'q8']) {
    const small = await open(FILE, { quantize: 'q8', kv });
    assert.ok(distance((await small.embed(TEXTS)).vectors, GOLDEN.vectors) < 1e-3, kv);
    await small.dispose();
  }
});

const MANY = Array.from({ length: 40 }, (_, i) => `${'the other thing '.repeat(i % 7)}${i} of them`);

test('the same bits alone and together, by any threads, chunk, kernels and width', async () => {
  const alone = [];
  for (const text of MANY) alone.push((await model.embed([text])).vectors[0]);
  const check = async (one, what) => (await one.embed(MANY)).vectors.forEach((vector, i) => same(vector, alone[i], `${what}, ${i}`));
  await check(model, 'together');
  for (const options of [{ threads: 2, chunk: 7, parallel: 16 }, { variant: 'scalar', parallel: 1 }, { variant: 'simd', chunk: 256, kvPositions: 4000 }]) {
    const other = await open(FILE, options);
    await check(other, JSON.stringify(options));
    await other.dispose();
  }
});

test('progress is told, and how many texts there are', async () => {
  const told = [];
  await model.embed(MANY, { onProgress: (progress) => told.push(progress) });
  assert.deepEqual(told.at(-1), { done: MANY.length, total: MANY.length });
  assert.ok(told.every(({ done, total }, i) => total === MANY.length && done > (told[i - 1]?.done ?? 0)));
  await rejectsWith(model.embed(MANY, { onProgress: 5 }), 'use/param');
  await assert.rejects(model.embed(MANY, { onProgress() { throw new Error('mine'); } }), /mine/);
});

test('short texts fill the steps, and what they begin with is read once', async () => {
  const wide = await open(FILE, { parallel: 16, chunk: 64, kvPositions: 4000 });
  const texts = Array.from({ length: 256 }, (_, i) => `${i}a${i}`);
  const { tokens } = await wide.embed(texts);
  const { steps, rows } = wide.info.work;
  assert.ok(rows / steps > 20, `${rows} rows in ${steps} steps`);
  assert.ok(rows <= tokens);
  const instruction = 'of things '.repeat(7);
  const queries = await wide.embed(texts, { instruction });
  const read = wide.info.work.rows - rows;
  assert.ok(queries.tokens > 256 * 80 && read < queries.tokens / 3, `${read} rows for ${queries.tokens} tokens`);
  await wide.dispose();
});

test('a text cannot become a special token, nor end itself', async () => {
  const idOf = (token) => tinyVocab().tokens.indexOf(token);
  for (const pieces of [[...'<|im_end|>'], [...'<|endoftext|>'], ['<', 'th', ...'ink>']]) {
    const mark = pieces.join('');
    const { vectors: [typed, spelled, real] } = await model.embed([mark, pieces.map(idOf), [idOf(mark)]]);
    same(typed, spelled, mark);
    assert.ok(1 - cosine(typed, real) > 1e-3, mark);
  }
  const ended = await model.embed([[...GOLDEN.ids[2]], GOLDEN.ids[2].slice(0, -1)]);
  same(ended.vectors[0], ended.vectors[1], 'the end is there once');
});

test('a text over the context loses its end, and it is said', async () => {
  const long = 'ab'.repeat(CONTEXT);
  const { vectors, tokens, truncated } = await model.embed(['x', long, 'y', `${long}z`]);
  assert.deepEqual([truncated, tokens], [[1, 3], 2 * CONTEXT + 4]);
  same(vectors[1], vectors[3]);
  const ids = [...await model.tokenize(long)].slice(0, CONTEXT - 1);
  same((await model.embed([ids])).vectors[0], vectors[1]);
  const huge = await model.embed(['<'.repeat(3_000_000)]);
  assert.deepEqual([huge.truncated, huge.tokens], [[0], CONTEXT]);
});

test('what is refused has its code, and nothing is computed for it', async () => {
  const { rows } = model.info.work;
  const cases = [
    [[[]], 'use/empty'], [[undefined], 'use/param'], [[7], 'use/param'], [[['a', 7]], 'use/param'], [[[[288]]], 'use/param'], [[[[1.5]]], 'use/param'], [[[null]], 'use/param'],
    [['a', { dimensions: 65 }], 'use/param'], [['a', { dimensions: 0 }], 'use/param'], [['a', { normalize: 1 }], 'use/param'], [['a', { instruction: 7 }], 'use/param'],
    [['a', { seed: 1 }], 'use/param'], [['a', { signal: {} }], 'use/param'], [['a', 7], 'use/param'], [['a', { cacheScope: -1 }], 'use/param'],
    [['a', { get instruction() { throw new Error('no'); } }], 'use/param'], [['a', { instruction: 'ab'.repeat(CONTEXT) }], 'use/context'],
  ];
  for (const [given, code] of cases) await rejectsWith(model.embed(...given), code);
  for (const [given, code] of [[['q', []], 'use/empty'], [['q'], 'use/param'], [[7, ['a']], 'use/param'], [['q', [7]], 'use/param'], [['q', 'a'], 'use/param'],
    [['q', ['a'], { dimensions: 3 }], 'use/param'], [['q', ['a']], 'model/unsupported']]) await rejectsWith(model.rank(...given), code);
  assert.equal(model.info.work.rows, rows);
  for (const number of [1, 2]) {
    const other = await open(tinyModel({}, { kv: { 'qwen3.pooling_type': ['u32', number] } }), { contextSize: 64 });
    assert.equal(other.info.pooling, number);
    assert.equal((await other.embed('a')).vectors.length, 1);
    await other.dispose();
  }
  const closed = await open();
  await closed.dispose();
  await rejectsWith(closed.embed('a'), 'engine/disposed');
});

test('weights that make no numbers are told, and the engine goes on', async () => {
  const nan = new Uint8Array(Float32Array.from({ length: 32 }, () => NaN).buffer);
  const broken = await open(tinyModel({}, { tensors: { 'output_norm.weight': { data: nan } } }), { contextSize: 64 });
  await rejectsWith(broken.embed(['a', 'b', 'c']), 'model/nonfinite');
  await rejectsWith(broken.embed(['a']), 'model/nonfinite');
  assert.equal((await broken.tokenize('a')).length, 1);
  await broken.dispose();
});

test('a list is stopped by its signal at once, and replies go on beside it', async () => {
  const texts = Array.from({ length: 20_000 }, (_, i) => `the thing ${i} `.repeat(10));
  const complete = () => model.complete('the', { maxTokens: 40, temperature: 0 }).result;
  await soon(1000, async () => {
    const controller = new AbortController();
    const reply = complete();
    const list = model.embed(texts, { signal: controller.signal });
    const { text } = await reply;
    controller.abort();
    await rejectsWithAbort(list);
    return timed(async () => assert.equal((await complete()).text, text));
  });
  await rejectsWithAbort(model.embed('a', { signal: AbortSignal.abort() }));
  const gone = rejectsWith(model.embed(texts), 'engine/disposed');
  const other = model.embed(TEXTS);
  assert.ok(distance((await other).vectors, GOLDEN.vectors) < 1e-6, 'two lists side by side');
  const busy = await Promise.allSettled(Array.from({ length: 80 }, () => model.embed(['a', 'b'])));
  assert.ok(busy.every(({ status, reason }) => status === 'fulfilled' || reason.code === 'use/busy'));
  await model.dispose();
  await gone;
  model = await open();
});

// --- ranks ---

const RERANK = '<|im_start|>Q {query} D {document}<|endoftext|>';
const MERGES = ['y e', 'ye s', 'n o'];

/** A vocabulary that has the words yes and no. */
function rankVocabulary() {
  const { tokens, types, merges } = withSpecials({ tokens: [...byteChars(), ...MERGES.map((merge) => merge.replace(' ', ''))], merges: MERGES });
  return {
    'tokenizer.ggml.tokens': ['string[]', tokens], 'tokenizer.ggml.token_type': ['i32[]', types], 'tokenizer.ggml.merges': ['string[]', merges],
  };
}

const DIM = 32;
const classes = (seed) => new Uint8Array(Float32Array.from({ length: 2 * DIM }, (_, i) => Math.sin(seed * i)).buffer);
/** `th`, `the` and ` the` are tokens of the small vocabulary. */
function joinedPairs(ids, idOf) {
  const text = ids.join(' ');
  const of = (letters) => [...letters].map((letter) => idOf(letter === ' ' ? '\u0120' : letter)).join(' ');
  return [[' the', '\u0120the'], ['the', 'the'], ['he', 'he'], ['th', 'th']].reduce((all, [from, to]) => all.replaceAll(of(from), idOf(to)), text).split(' ').map(Number);
}

const DOCUMENTS = ['the one', 'another', 'no <|im_end|> at all', '', 'yes'];

test('documents are ranked by yes and no, as their logits say', async () => {
  const ranker = await open(tinyModel({ type: 'F32', context: 1000, tied: false }, { kv: rankVocabulary() }), { contextSize: 700 });
  const ranks = await ranker.rank('what?', DOCUMENTS, { instruction: 'do it' });
  assert.deepEqual(ranks.map(({ index }) => index).sort(), [0, 1, 2, 3, 4]);
  assert.ok(ranks.every(({ score }, i) => score > 0 && score < 1 && (i === 0 || score <= ranks[i - 1].score)));
  const [[yes], [no]] = [await ranker.tokenize('yes'), await ranker.tokenize('no')];
  for (const { index, score } of ranks) {
    const system = 'Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".';
    const user = `<Instruct>: do it\n<Query>: what?\n<Document>: ${DOCUMENTS[index]}`;
    const ids = await ranker.tokenize([{ role: 'system', content: system }, { role: 'user', content: user }], { thinking: false });
    const logits = (await ranker.logits(ids)).subarray(-ranker.info.vocabSize);
    assert.ok(Math.abs(score - 1 / (1 + Math.exp(logits[no] - logits[yes]))) < 1e-4, `${index}`);
  }
  const alone = await ranker.rank('what?', [DOCUMENTS[2]], { instruction: 'do it' });
  assert.equal(alone[0].score, ranks.find(({ index }) => index === 2).score);
  const [cut] = await ranker.rank('what?', ['ab'.repeat(700)]);
  assert.deepEqual([cut.truncated, ranks[0].truncated], [true, undefined]);
  await rejectsWith(ranker.rank('ab'.repeat(700), ['a']), 'use/context', /The query has/);
  await ranker.dispose();
});

test('a file that ranks has classes and words of its own', async () => {
  const changes = { 'qwen3.pooling_type': ['u32', 4], 'tokenizer.chat_template.rerank': ['string', RERANK], 'qwen3.classifier.output_labels': ['string[]', ['yes', 'no']] };
  const file = (seed, more = {}) => tinyModel({ type: 'F32' }, { kv: changes, tensors: { 'cls.output.weight': { dims: [DIM, 2], type: 'F32', data: classes(seed), ...more } } });
  const ranker = await open(file(1), { contextSize: 128 });
  assert.deepEqual([ranker.info.pooling, ranker.info.classes], [4, 2]);
  const ranks = await ranker.rank('w <|im_end|>', DOCUMENTS);
  const other = await open(file(2), { contextSize: 128 });
  assert.notDeepEqual(await other.rank('w <|im_end|>', DOCUMENTS), ranks);
  await other.dispose();
  const idOf = (token) => tinyVocab().tokens.indexOf(token);
  const rows = new Float32Array(classes(1).buffer);
  for (const { index, score } of ranks) {
    const typed = [...Buffer.from(`Q w <|im_end|> D ${DOCUMENTS[index]}`)].map((byte) => idOf(byteChars()[byte]));
    const ids = [idOf('<|im_start|>'), ...joinedPairs(typed, idOf), idOf('<|endoftext|>')];
    const [state] = (await ranker.embed([ids], { normalize: false })).vectors;
    const [yes, no] = [0, 1].map((i) => state.reduce((sum, value, k) => sum + value * rows[DIM * i + k], 0));
    assert.ok(Math.abs(score - 1 / (1 + Math.exp(no - yes))) < 1e-6, `${index}`);
  }
  await ranker.dispose();
  await rejectsWith(open(file(1, { dims: [DIM, 3], data: new Uint8Array(12 * DIM) })), 'model/inconsistent');
  await rejectsWith(open(tinyModel({}, { kv: { 'qwen3.pooling_type': ['u32', 5] } })), 'model/inconsistent');
});
