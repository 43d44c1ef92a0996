// SPDX-License-Identifier: MIT
// Tokens that a model's files want around plain texts: in tokenize(), complete() and embed(), in both command lines and the server, never in
// chats; the texts of tokens that templates know by name; and files that say in other words what others say, which compute the same.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { writeGguf } from '../../fixtures/gguf-writer.mjs';
import { tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { rejectsWith } from '../support/helper.mjs';
import { quern } from '../support/program.mjs';
import { ask, playedModel, startServer } from '../support/serve-host.mjs';

const [END, START, STOP] = [262, 263, 264];    // <|endoftext|>, <|im_start|>, <|im_end|>
const TEXT = ' the other one';
const CHAT = [{ role: 'user', content: TEXT }];
const NOTHING = { before: [], after: [] };

const switches = (bos, eos) => ({ 'tokenizer.ggml.add_bos_token': ['bool', bos], 'tokenizer.ggml.add_eos_token': ['bool', eos] });
const lists = (before, behind) => ({ 'tokenizer.added.before': ['i32[]', before], 'tokenizer.added.after': ['i32[]', behind] });
const bytesOf = (kv = {}) => tinyModel({ type: 'F32', context: 400 }, { kv });

async function using(bytes, use) {
  const model = await load(new Blob([bytes]), { threads: 1, kv: 'f32', contextSize: 400 });
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

/** What a model makes of one text. */
const facts = (kv) => using(bytesOf(kv), async (model) => ({
  added: model.info.added,
  text: await model.tokenize(TEXT), bytes: await model.tokenize(Buffer.from(TEXT)), counted: await model.countTokens(TEXT), empty: await model.tokenize(''),
  chat: await model.tokenize(CHAT), chatted: (await model.chat(CHAT, { maxTokens: 1 }).result).usage.promptTokens,
  prompt: (await model.complete(TEXT, { maxTokens: 1 }).result).usage.promptTokens,
  ids: (await model.complete([1, 2], { maxTokens: 1 }).result).usage.promptTokens,
  vectors: await model.embed([TEXT]),
}));

const PLAIN = await facts({});

test('texts get what the files want around them, chats and ids do not', async () => {
  assert.deepEqual(PLAIN.added, NOTHING);
  const own = PLAIN.text;
  for (const [kv, before, behind] of [
    [switches(true, false), [END], []], [switches(false, true), [], [STOP]], [switches(true, true), [END], [STOP]], [switches(false, false), [], []],
    [lists([], []), [], []], [lists([START, 5], [STOP, END, 7]), [START, 5], [STOP, END, 7]],
    [{ ...switches(true, true), ...lists([START], []) }, [START], []], [{ ...switches(true, true), 'tokenizer.added.after': ['i32[]', []] }, [], []],
  ]) {
    const got = await facts(kv);
    const all = [...before, ...own, ...behind];
    assert.deepEqual(got.added, { before, after: behind });
    assert.deepEqual([got.text, got.bytes, got.counted, got.empty, got.prompt], [all, all, all.length, [...before, ...behind], all.length], JSON.stringify(kv));
    assert.deepEqual([got.chat, got.chatted, got.ids], [PLAIN.chat, PLAIN.chatted, 2], 'a chat and ids stay what they are');
    assert.equal(got.vectors.tokens, before.length + own.length + (behind.length || 1), 'a vector\'s text has an end in any case');
  }
});

test('an empty prompt is one where texts get something', async () => {
  await using(bytesOf(), (model) => rejectsWith(model.complete('', { maxTokens: 1 }).result, 'use/empty'));
  await using(bytesOf(switches(true, false)), async (model) => {
    assert.equal((await model.complete('', { maxTokens: 1 }).result).usage.promptTokens, 1);
  });
});

test('a vector is that of the text with everything around it, and a text that is too long loses its own end only', async () => {
  await using(bytesOf(lists([START, 5], [STOP, 7])), async (model) => {
    const [byText, byIds] = (await model.embed([TEXT, [START, 5, ...PLAIN.text, STOP, 7]])).vectors;
    assert.deepEqual(byText, byIds);
    const [withOthers] = (await model.embed([[5, START, ...PLAIN.text, STOP, 7]])).vectors;
    assert.notDeepEqual(byText, withOthers);
    const { tokens, truncated } = await model.embed(['ab'.repeat(300), 'ab'.repeat(198)]);
    assert.deepEqual([tokens, truncated], [800, [0]]);
    await rejectsWith(model.embed('a', { instruction: 'ab'.repeat(200) }), 'use/context', /The instruction/);
  });
});

test('a template of ranking is all that a GGUF file says', async () => {
  const names = tinySpec().kv.find(([key]) => key === 'tokenizer.ggml.tokens')[2].with(256, 'ye').with(257, 'yes').with(258, 'no').with(259, 'x1').with(260, 'x2').with(261, 'x3');
  const ranked = (kv) => using(bytesOf({ 'tokenizer.ggml.tokens': ['string[]', names], 'tokenizer.ggml.merges': ['string[]', ['y e', 'ye s', 'n o']], ...kv }),
    (model) => model.rank('q', ['a', 'b']));
  const wanted = await ranked({});
  assert.deepEqual(await ranked(switches(true, true)), wanted);
  assert.ok(wanted.length === 2 && wanted[0].score > 0);
});

test('tokens that templates know by name', async () => {
  const named = (kv) => using(bytesOf(kv), ({ info }) => info.specialTokens);
  assert.deepEqual(await named({}), { bos_token: '<|endoftext|>', eos_token: '<|im_end|>', pad_token: '<|endoftext|>' });
  const id = (name, value) => ({ [`tokenizer.ggml.${name}_token_id`]: value });
  assert.deepEqual(await named({ ...id('bos', null), ...id('padding', ['u32', 2 ** 32 - 1]), ...id('unknown', ['u32', 97]) }), { eos_token: '<|im_end|>', unk_token: 'a' });
  const text = (name, value) => ({ [`tokenizer.${name}_token`]: ['string', value] });
  assert.deepEqual(await named({ ...text('bos', '<s>'), ...text('unk', '') }), { bos_token: '<s>', eos_token: '<|im_end|>', pad_token: '<|endoftext|>', unk_token: '' });
  await rejectsWith(named({ 'tokenizer.bos_token': ['u32', 1] }), 'model/format');
});

test('both command lines, and the server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'quern-added-'));
  after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'model.gguf');
  writeFileSync(path, bytesOf(switches(true, true)));
  const all = [END, ...PLAIN.text, STOP].join(' ');
  for (const [flags, input, wanted] of [[['--ids'], TEXT, `${all}\n`], [['--ids'], '', `${END} ${STOP}\n`], [['--nul'], `${TEXT}\0${TEXT}`, `${all}\n${all}\n`]]) {
    const args = ['tokenize', path, ...flags];
    const native = spawnSync(join(PROJECT, 'build/release/quern'), args, { input });
    assert.equal(String(native.stdout), wanted);
    assert.equal((await quern(args, { input })).out, wanted);
  }
  const run = ['run', path, TEXT, '--temperature', '0', '--max-tokens', '3', '--threads', '1', '--json'];
  const native = JSON.parse(String(spawnSync(join(PROJECT, 'build/release/quern'), run).stdout));
  const { text, usage } = JSON.parse((await quern(run)).out);
  assert.deepEqual([native.text, native.usage.promptTokens, usage.promptTokens], [text, PLAIN.text.length + 2, PLAIN.text.length + 2]);
});

test('the server gives a text\'s own tokens, and those around it when they are asked for', async () => {
  const { info, ...model } = playedModel(() => ({ promise: Promise.resolve() }));
  const server = await startServer({ model: { ...model, info: { ...info, added: { before: [7], after: [8, 9] } }, tokenize: async () => [7, 1, 2, 8, 9] } });
  try {
    const tokens = async (body) => JSON.parse((await ask(server.port, 'POST', '/tokenize', { body })).body).tokens;
    assert.deepEqual(await tokens({ content: 'x' }), [1, 2]);
    assert.deepEqual(await tokens({ content: 'x', add_special: false }), [1, 2]);
    assert.deepEqual(await tokens({ content: 'x', add_special: true }), [7, 1, 2, 8, 9]);
  } finally {
    await server.end();
  }
});

test('files that say the same in other words compute the same', async () => {
  const options = { layers: 3, kvHeads: 2, type: 'F32' };
  const logits = (bytes) => using(bytes, (model) => model.logits(PLAIN.text));
  const spec = tinySpec(options);
  const wanted = await logits(writeGguf(spec));
  const each = (name, value) => [`qwen3.${name}`, ['u32[]', [value, value, value]]];
  const layered = Object.fromEntries([each('attention.head_count', 2), each('attention.head_count_kv', 2), each('feed_forward_length', 32)]);
  const silent = { 'qwen3.attention.key_length': null, 'qwen3.attention.value_length': null, 'qwen3.attention.head_count_kv': null };
  for (const kv of [layered, silent]) assert.deepEqual(await logits(tinyModel(options, { kv })), wanted);
  const longer = spec.tensors.map((tensor) => ({ ...tensor, dims: [...tensor.dims, 1, 1] }));
  assert.deepEqual(await logits(writeGguf({ ...spec, tensors: longer })), wanted);
});

test('Qwen2\'s split under its other names', async () => {
  const text = 'It\'S 123 of\r\n\n the  others, don\'t  \u00e9t\u00e9 \u4e2d\u6587!!\n x';
  const tokens = (pre) => using(bytesOf({ 'tokenizer.ggml.pre': ['string', pre] }), (model) => model.tokenize(text));
  const wanted = await tokens('qwen2');
  for (const pre of ['deepseek-r1-qwen', 'f2llmv2', 'kormo', 'megrez', 'hunyuan', 'solar-open', 'stablelm2', 'grok-2']) assert.deepEqual(await tokens(pre), wanted, pre);
});
