// SPDX-License-Identifier: MIT
// Folders that were saved for vectors: the trunk alone, what stands around a text, and the modules of sentence-transformers. What is not built here
// is refused by embed() alone, and a model without an output head writes nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { tinyFolder, tinyVocab } from '../../fixtures/folder.mjs';
import { rejectsWith } from '../support/helper.mjs';

const TEXT = 'the other thing';
const END = tinyVocab().tokens.indexOf('<|endoftext|>');

const module = (path, name) => ({ idx: 0, name: path, path, type: `sentence_transformers.models.${name}` });
const modules = (...more) => [module('', 'Transformer'), module('1_Pooling', 'Pooling'), ...more.map((name, i) => module(`${i + 2}_${name}`, name))];
const pooling = (kind) => ({ word_embedding_dimension: 32, pooling_mode_cls_token: false, pooling_mode_mean_tokens: false, [`pooling_mode_${kind}`]: true });

const SEQUENCE = { Sequence: { id: 'A', type_id: 0 } };
const SPECIAL = { SpecialToken: { id: '<|endoftext|>', type_id: 0 } };
const template = (...single) => ({ type: 'TemplateProcessing', single, pair: [], special_tokens: { '<|endoftext|>': { id: '<|endoftext|>', ids: [END], tokens: ['<|endoftext|>'] } } });

/** A trunk, its tokenizer with a post-processor, and what lies beside it. */
function trunk({ beside = [], post = null, config = {}, options = {} } = {}) {
  const files = tinyFolder({
    config: { architectures: ['Qwen3Model'], ...config }, tensors: (list) => list.map((t) => ({ ...t, name: t.name.replace(/^model\./, '') })),
    tokenizer: (t) => ({ ...t, post_processor: post }), extra: beside.map((one) => JSON.stringify(one, null, 2)),
  });
  return load(files.map((file) => new Blob([file])), { threads: 1, kv: 'f32', chunk: 2, ...options });
}

async function using(promise, use) {
  const model = await promise;
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

/** Vectors as they are. */
const states = (model, texts) => model.embed(texts, { normalize: false }).then(({ vectors }) => vectors);

/** The state behind each token of TEXT, by a folder whose tokenizer adds nothing. */
const LAST = { beside: [modules('Normalize'), pooling('lasttoken')] };
const each = await using(trunk(LAST), async (model) => {
  const ids = await model.tokenize(TEXT);
  return { ids, rows: await states(model, ids.map((_, i) => ids.slice(0, i + 1))) };
});

const near = (a, b, what) => assert.ok(a.every((value, i) => Math.abs(value - b[i]) < 1e-5), what);

test('a folder that says how its vectors are made has nothing added that its tokenizer does not add', async () => {
  await using(trunk(LAST), async (model) => {
    assert.deepEqual([model.info.pooling, model.info.vectors], [3, { described: true, normalize: true, refused: '' }]);
    const { vectors: [vector], tokens } = await model.embed(TEXT);
    assert.equal(tokens, each.ids.length);
    assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-6);
    near((await states(model, [TEXT]))[0], each.rows.at(-1), 'the last token');
    assert.equal((await model.embed([''])).tokens, 1, 'an empty text is its end alone');
  });
  const sequence = { type: 'Sequence', processors: [{ type: 'ByteLevel' }, template(SEQUENCE, SPECIAL)] };
  await using(trunk({ ...LAST, post: sequence }), async (model) => {
    assert.equal((await model.embed(TEXT)).tokens, each.ids.length + 1);
    const [whole, ended] = await states(model, [TEXT, [...each.ids, END]]);
    assert.deepEqual(whole, ended);
    assert.deepEqual(await model.tokenize(TEXT), [...each.ids, END]);
  });
  await using(trunk({ ...LAST, post: template(SPECIAL, SPECIAL, SEQUENCE) }), async (model) => assert.deepEqual(await model.tokenize(TEXT), [END, END, ...each.ids]));
  await using(trunk({ post: template(SEQUENCE) }), async (model) => {
    assert.deepEqual(model.info.vectors, { described: false, normalize: true, refused: '' });
    assert.equal((await model.embed(TEXT)).tokens, each.ids.length + 1, 'where nothing is said, as ever');
  });
});

test('means of all tokens, first tokens, and vectors that are not normalised', async () => {
  const mean = each.rows[0].map((_, i) => each.rows.reduce((sum, row) => sum + row[i], 0) / each.rows.length);
  for (const [file, parallel] of [[pooling('mean_tokens'), 4], [{ embedding_dimension: 32, pooling_mode: 'mean', include_prompt: true }, 1]]) {
    await using(trunk({ beside: [modules(), file], options: { parallel } }), async (model) => {
      assert.deepEqual([model.info.pooling, model.info.vectors.normalize], [1, false]);
      const { vectors } = await model.embed([TEXT, 'a', TEXT, 'the']);
      near(vectors[0], mean, 'the mean');
      assert.deepEqual(vectors[0], vectors[2]);
      near((await model.embed(TEXT, { normalize: true })).vectors[0], mean.map((value) => value / Math.hypot(...mean)), 'its direction');
    });
  }
  await using(trunk({ beside: [modules('Normalize'), pooling('cls_token')] }), async (model) => {
    assert.equal(model.info.pooling, 2);
    near((await states(model, [TEXT]))[0], each.rows[0], 'the first token');
  });
});

test('what is not built is refused by embed() alone, by its name', async () => {
  const refused = [
    [[modules('Dense', 'Normalize'), pooling('lasttoken')], /a module Dense \(2_Dense\)/], [[modules(), pooling('max_tokens')], /pooling by max/],
    [[modules(), { pooling_mode: ['mean', 'cls'] }], /pooling by several kinds, joined/], [[{ pooling_mode: 'attention' }], /pooling by attention/],
    [[{ pooling_mode: 'mean', include_prompt: false }], /after the instruction/], [[...LAST.beside, { modality_config: { text: {}, message: {} } }], /messages/],
    [[...LAST.beside, { max_seq_length: 9, do_lower_case: true }], /lower case/],
  ];
  for (const [beside, words] of refused) {
    await using(trunk({ beside }), async (model) => {
      const { detail } = await rejectsWith(model.embed(TEXT), 'model/unsupported', words);
      assert.equal(detail.rule, 'pooling');
      assert.equal((await model.complete(TEXT, { maxTokens: 2, temperature: 0, minP: 0 }).result).usage.promptTokens, each.ids.length);
    });
  }
});

test('a trunk whose head is not the embedding has vectors alone', async () => {
  await using(trunk({ config: { tie_word_embeddings: false } }), async (model) => {
    assert.deepEqual([model.info.headless, model.info.tied, model.info.pooling], [true, false, 3]);
    const calls = [model.complete('a').result, model.chat([{ role: 'user', content: 'a' }]).result, model.logits([1, 2])];
    for (const call of calls) call.catch(() => {});
    for (const call of calls) assert.equal((await rejectsWith(call, 'model/unsupported', /no output head/)).detail.rule, 'head');
    await rejectsWith(model.rank('a', ['b']), 'model/unsupported');
    near((await states(model, [[...each.ids, END]]))[0], (await using(trunk(), (tied) => states(tied, [[...each.ids, END]])))[0], 'its vectors');
  });
});
