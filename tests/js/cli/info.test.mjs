// SPDX-License-Identifier: MIT
// `quern info`: the report of the engine (src/engine/info.c) against numbers that are computed here from the files' own tables, for every
// container; what of a file it reads; and how the command line sets it.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { load } from '../../../dist/node.js';
import { ajc1Model } from '../../fixtures/ajc1.mjs';
import { readSafetensors } from '../../fixtures/folder.mjs';
import { GOLDEN, PROJECT, names } from '../../fixtures/golden.mjs';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { tensorBytes } from '../../fixtures/gguf-types.mjs';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { modelSpec } from '../../fixtures/make-model.mjs';
import { evenly, splitGguf } from '../../fixtures/split.mjs';
import { OLDER, TINY_MOE, patchSpec, tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { CLI, NANO, withServer } from '../support/helper.mjs';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'quern-info-'));
after(() => rmSync(folder, { recursive: true }));

const VISION = join(PROJECT, 'tests/fixtures/vision/models');
const golden = (name) => join(PROJECT, GOLDEN, `${name}.gguf`);

function file(name, bytes) {
  writeFileSync(join(folder, name), bytes);
  return join(folder, name);
}

const text = async (...args) => (await run(process.execPath, [CLI, 'info', ...args])).stdout;
const info = async (...args) => JSON.parse(await text(...args, '--json'));
const native = async (...args) => JSON.parse((await run(join(PROJECT, 'build/release/quern'), ['info', ...args])).stdout);
const failure = (...args) => text(...args).then(() => assert.fail('was described'), ({ stderr }) => stderr);

const product = (dims) => dims.reduce((a, b) => a * b, 1);
const sum = (list) => list.reduce((a, b) => a + b, 0);

/** What the report must say about these tensors: {name, dims, type}. */
function counted(tensors, share = 1) {
  const types = {};
  for (const { type, dims } of tensors) {
    types[type] ??= { tensors: 0, parameters: 0, bytes: 0 };
    types[type].tensors++;
    types[type].parameters += product(dims);
    types[type].bytes += tensorBytes(type, dims);
  }
  const used = tensors.map(({ name, dims }) => product(dims) * (name.includes('_exps') ? share : 1));
  return { types, parameters: sum(tensors.map(({ dims }) => product(dims))), activeParameters: sum(used) };
}

const pick = (record, like) => Object.fromEntries(Object.keys(like).map((key) => [key, record[key]]));

/** The tokens that end a reply: the file's own, and Qwen's two. */
function endsOf(kv) {
  const tokens = kv.get('tokenizer.ggml.tokens');
  const known = ['<|im_end|>', '<|endoftext|>'].map((text) => tokens.indexOf(text));
  return [...new Set([kv.get('tokenizer.ggml.eos_token_id') ?? -1, ...known])].filter((id) => id >= 0);
}

/** Bytes for a header that a load takes before it knows how long it is. */
const HEADER_ROOM = 200_000;

/** Facts that do not depend on the bits of addresses. */
const lasting = ({ plan, ...facts }) => ({ ...facts, cacheBytes: ['f16', 'f32', 'q8'].map((kv) => plan[kv].bytesPerToken) });

test('golden files: the numbers of their tensor tables, in wasm and natively', async () => {
  for (const name of some(names, 3)) {
    const bytes = readFileSync(golden(name));
    const { kv, tensors } = readGguf(bytes);
    const arch = kv.get('general.architecture');
    const of = (key) => kv.get(`${arch}.${key}`) ?? 0;
    const facts = await info(golden(name));
    const expected = {
      ...counted([...tensors.values()], of('expert_used_count') / of('expert_count')),
      format: 'gguf', architecture: arch, name: kv.get('general.name'), license: '', fileBytes: bytes.length, files: 1,
      layers: of('block_count'), dim: of('embedding_length'), ffnDim: of('feed_forward_length'), heads: of('attention.head_count'),
      kvHeads: of('attention.head_count_kv'), headDim: of('attention.key_length'), experts: of('expert_count'), expertsUsed: of('expert_used_count'),
      expertDim: of('expert_feed_forward_length'), contextLength: of('context_length'), ropeTheta: of('rope.freq_base'), ropeFactor: 1,
      vocabSize: tensors.get('token_embd.weight').dims[1], tied: !tensors.has('output.weight'), tokens: kv.get('tokenizer.ggml.tokens').length,
      tokenizer: 'gpt2', chatTemplate: kv.has('tokenizer.chat_template'), endTokens: endsOf(kv),
    };
    assert.deepEqual(pick(facts, expected), expected, name);
    assert.deepEqual(lasting(await native(golden(name))), lasting(facts), name);
  }
});

test('what depends on the architecture alone, in wasm and natively', async () => {
  const plain = { temperature: 0.7, topP: 0.8, topK: 20, minP: 0 };
  const thinking = { temperature: 0.6, topP: 0.95, topK: 20, minP: 0 };
  const seen = { ...plain, presencePenalty: 1.5 };
  const text = { card: { plain, thinking, images: plain }, marks: 'qwen', callForm: 'json', takesVision: false };
  const seeing = { ...text, card: { plain: seen, thinking: { ...thinking, temperature: 1 }, images: seen }, takesVision: true };
  const paths = { qwen3: NANO, qwen3moe: golden('moe-nano.Q8_0'), qwen3vl: join(VISION, 'dense/hf'), qwen3vlmoe: join(VISION, 'moe/hf') };
  for (const [architecture, path] of Object.entries(paths)) {
    const expected = { architecture, ...(architecture.includes('vl') ? seeing : text) };
    for (const facts of [await info(path), await native(path)]) assert.deepEqual(pick(facts, expected), expected);
  }
});

test('every end token of a list in the file ends a reply', async () => {
  for (const type of ['i32[]', 'u32[]']) {
    const path = file('ends.gguf', tinyModel({}, { addKv: [['tokenizer.ggml.eos_token_ids', type, [5, 264, 7, 5]]] }));
    for (const { endTokens } of [await info(path), await native(path)]) assert.deepEqual(endTokens, [264, 5, 7, 262]);
  }
});

test('a loaded model says the same, and plans the same', async () => {
  for (const path of [NANO, golden('moe-nano.Q8_0')]) {
    const model = await load(path, { threads: 1, contextSize: 100, variant: 'simd' });
    const { plan, ...facts } = await info(path, '--context', '100');
    const { plan: taken, ...all } = model.info;
    await model.dispose();
    assert.deepEqual(pick(all, facts), facts);
    assert.deepEqual([plan.weights, plan.cache, plan.f16, plan.q8], [taken.weights, taken.cache, taken.f16, taken.q8]);
    assert.ok(Math.abs(plan.scratch - taken.scratch) < HEADER_ROOM, `${plan.scratch} and ${taken.scratch}`);
    assert.equal(plan.total, plan.weights + plan.cache + plan.scratch);
  }
});

test('the largest context is the one that is granted', async () => {
  const memory = 16_000_000;
  const path = file('long.gguf', tinyModel({ layers: 8, headDim: 64, context: 100_000 }));
  for (const kv of ['f16', 'q8']) {
    const { plan, contextSize } = await info(path, '--memory', String(memory), '--kv', kv);
    const n = plan[kv].largestContext;
    assert.ok(n > 500 && n < 100_000 && contextSize === Math.min(n, 4096), `${n}`);
    assert.ok(Math.abs(plan.cache - contextSize * plan[kv].bytesPerToken) < 0.05 * plan.cache);
    const error = await load(path, { threads: 1, memoryLimit: memory, kv, contextSize: 100_000 }).then(() => assert.fail(), (reason) => reason);
    assert.ok(Math.abs(error.detail.contextSize - n) * plan[kv].bytesPerToken < HEADER_ROOM, `${error.detail.contextSize} of ${n}`);
  }
});

test('mixed types, experts, licence and YaRN; a file that ends with its header says the same', async () => {
  const changes = {
    kv: {
      'general.license': ['string', 'other'], 'general.license.name': ['string', 'Grain'], 'general.license.link': ['string', 'https://example.com/licence'],
      'qwen3moe.rope.scaling.type': ['string', 'yarn'], 'qwen3moe.rope.scaling.factor': ['f32', 4], 'qwen3moe.rope.scaling.original_context_length': ['u32', 32],
    },
    tensors: { 'blk.0.attn_q.weight': { type: 'Q6_K' }, 'blk.2.ffn_up_exps.weight': { type: 'Q8_0' }, 'output.weight': { type: 'BF16' } },
  };
  const spec = patchSpec(tinySpec({ ...TINY_MOE, hidden: 256, ffn: 256, expertFfn: 256, headDim: 128, tied: false, type: 'Q4_K' }), changes);
  for (const tensor of spec.tensors) delete tensor.data;
  const { header, layout } = writeHeader(spec);
  const { at, size } = layout.at(-1);
  const whole = await info(file('mixed.gguf', Buffer.concat([header, Buffer.alloc(at + size)])));
  const expected = {
    ...counted(spec.tensors, 3 / 6), fileBytes: header.length + at + size, license: 'other', licenseName: 'Grain', licenseLink: 'https://example.com/licence', ropeFactor: 4,
    tied: false, experts: 6, expertsUsed: 3,
  };
  assert.deepEqual(Object.keys(expected.types).sort(), ['BF16', 'F32', 'Q4_K', 'Q6_K', 'Q8_0']);
  assert.deepEqual(pick(whole, expected), expected);
  const cut = file('cut.gguf', header);
  assert.deepEqual(await info(cut), whole);
  assert.deepEqual(lasting(await native(cut)), lasting(whole));
});

test('what a file does not say, or says otherwise, is told', async () => {
  const architecture = { 'general.architecture': 'qwen3' };
  for (const [path, assumed] of [
    [NANO, {}], [file('older.gguf', tinyModel({ ...OLDER, arch: 'qwen2' })), architecture],
    [file('unsaid.gguf', tinyModel({ ...OLDER, arch: 'qwen' }, { kv: { 'tokenizer.ggml.pre': null } })), { ...architecture, 'tokenizer.ggml.pre': 'qwen2' }],
    [file('nameless.gguf', tinyModel({}, { kv: { 'general.architecture': null } })), architecture],
  ]) {
    for (const facts of [await info(path), await native(path)]) assert.deepEqual([facts.assumed, facts.architecture], [assumed, 'qwen3']);
    for (const [key, value] of Object.entries(assumed)) assert.match(await text(path), new RegExp(`(assumed)? +${key} is taken to be ${value}\\n`));
  }
});

test('another architecture is refused, and the sentence names it and those that run', async () => {
  for (const name of ['mamba', 'qwen3next', 'qwen35moe', 'qwen4exp', 'qwen3tts', 'flint', 'clef', 'vllm-decision2']) {
    const path = file('other.gguf', tinyModel({}, { kv: { 'general.architecture': ['string', name] } }));
    assert.match(await failure(path), new RegExp(`architecture is "${name}"; this version runs qwen3, qwen3moe, qwen3vl, qwen3vlmoe, qwen2, llama, smollm3, qwen35\\.\n`));
  }
});

test("what Llama's files leave to the split: texts begin with the bos token, and replies end where the family's do", async () => {
  const pre = (name, more = {}) => ({ 'tokenizer.ggml.pre': ['string', name], 'tokenizer.ggml.add_bos_token': null, ...more });
  const tokens = tinySpec().kv.find(([key]) => key === 'tokenizer.ggml.tokens')[2];
  const named = tokens.map((text) => ({ '<|im_start|>': '<|eot_id|>', '<|object_ref_start|>': '<|eom_id|>', '<|object_ref_end|>': '<|end_of_text|>' })[text] ?? text);
  for (const [kv, added] of [
    [pre('llama-bpe'), [262]], [pre('llama-v3'), [262]], [pre('llama-bpe', { 'tokenizer.ggml.add_bos_token': ['bool', false] }), []], [pre('smaug-bpe'), []], [pre('smollm'), []], [pre('qwen2'), []],
  ]) {
    const path = file('llama.gguf', tinyModel({ arch: 'llama' }, { kv: { ...kv, 'tokenizer.ggml.tokens': ['string[]', named] } }));
    for (const { added: { before, after }, endTokens, marks, callForm, card, assumed } of [await native(path), await info(path)]) {
      assert.deepEqual([before, after, [...endTokens].sort()], [added, [], [263, 264, 265, 266]]);
      assert.deepEqual([marks, callForm, card.plain.topK, assumed], ['llama', 'parameters', 0, {}]);
    }
  }
});

test('a list of end tokens, as files have it that Ollama serves', async () => {
  const { endTokens } = await native(file('one.gguf', tinyModel()));
  for (const type of ['i32[]', 'u32[]']) {
    const path = file('ends.gguf', tinyModel({}, { kv: { 'tokenizer.ggml.eos_token_ids': [type, [5, endTokens[0], 7]] } }));
    for (const facts of [await info(path), await native(path)]) assert.deepEqual(facts.endTokens, [endTokens[0], 5, 7, ...endTokens.slice(1)]);
  }
});

test('a split model is described by the headers of all its files', async () => {
  const bytes = readFileSync(golden('moe-nano.Q4_K_M'));
  const parts = splitGguf(bytes, evenly(readGguf(bytes).tensors.size, 3));
  const paths = parts.map((part, i) => file(`m-0000${i + 1}-of-00003.gguf`, part.subarray(0, readGguf(part).dataStart)));
  const one = await info(golden('moe-nano.Q4_K_M'));
  const expected = { ...lasting(one), files: 3, fileBytes: sum(parts.map(({ length }) => length)) };
  for (const facts of [await info(paths[0]), await native(paths[0])]) {
    assert.deepEqual(lasting(facts), expected);
    assert.ok(Math.abs(facts.plan.weights / one.plan.weights - 1) < 0.001);
  }
  assert.match(await failure(paths[1]), /^quern: use\/param: .*part 2 of 3/);
});

test('folders of safetensors files, and checkpoints', async () => {
  const hf = join(PROJECT, 'tests/fixtures/hf');
  const tensors = [...readSafetensors(readFileSync(join(hf, 'bf16/model.safetensors'))).values()];
  const facts = await info(join(hf, 'bf16'));
  assert.equal(facts.parameters, sum(tensors.map(({ shape }) => product(shape))));
  assert.deepEqual([facts.format, facts.types.BF16.bytes, facts.license], ['safetensors', 2 * facts.types.BF16.parameters, '']);
  assert.deepEqual(lasting(await native(join(hf, 'f8'))), lasting(await info(join(hf, 'f8'))));
  for (const name of ['bf16', 'f8']) {
    const { files } = await info(join(hf, name));
    const model = await load(join(hf, name), { threads: 1 });
    assert.deepEqual([files, model.info.files], [readdirSync(join(hf, name)).length, files], name);
    await model.dispose();
  }
  const { checkpoint, tokenizer, gguf } = ajc1Model({ group: 64 });
  file('x.bin.tokenizer', tokenizer);
  const scored = await info(file('x.bin', checkpoint));
  const twin = await info(file('twin.gguf', gguf));
  assert.deepEqual([scored.format, scored.tokenizer, scored.parameters, scored.fileBytes, scored.files], ['ajc1', 'scores', twin.parameters, checkpoint.length, 2]);
  assert.deepEqual(scored.types.Q8F, { ...twin.types.Q8_0, bytes: twin.types.Q8_0.parameters * (1 + 4 / 64) });
});

// --- servers ---

const { header, layout } = writeHeader(modelSpec({ preset: 'qwen3-0.6b', type: 'q8_0' }));
const SIZE = header.length + layout.at(-1).at + layout.at(-1).size;

/** A model of 640 MB of which only the header was ever written; counts what it is asked for. */
function answerWith(counts, { ranges }) {
  return (request, response) => {
    counts.requests++;
    const [, from = '0', to = ''] = (ranges && /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? '')) || [];
    const begin = Number(from);
    const end = to === '' ? SIZE : Math.min(Number(to) + 1, SIZE);
    const part = ranges && request.headers.range;
    response.writeHead(part ? 206 : 200, {
      'content-length': end - begin, etag: '"1"', ...(ranges && { 'accept-ranges': 'bytes' }), ...(part && { 'content-range': `bytes ${begin}-${end - 1}/${SIZE}` }),
    });
    const send = (at) => {
      if (at >= end || response.destroyed) return response.end();
      const piece = at < header.length ? header.subarray(at, Math.min(at + 65536, end, header.length)) : Buffer.alloc(Math.min(65536, end - at));
      counts.bytes += piece.length;
      return response.write(piece, () => send(at + piece.length));
    };
    send(begin);
  };
}

test('of a file on a server only the header is fetched', async () => {
  const local = await info(file('06b.gguf', header));
  assert.deepEqual([local.parameters, local.fileBytes], [596_049_920, SIZE]);
  const MiB = 2 ** 20;
  for (const [ranges, most] of [[true, Math.ceil(header.length / MiB) * MiB], [false, header.length + 32 * MiB]]) {
    const counts = { requests: 0, bytes: 0 };
    await withServer(answerWith(counts, { ranges }), async (base) => {
      assert.deepEqual(await info(`${base}/model.gguf`), local);
    });
    assert.ok(counts.bytes >= header.length && counts.bytes <= most, `${counts.bytes} bytes for a header of ${header.length}, with ranges: ${ranges}`);
  }
});

test('a stored model is described without the network, and describing stores nothing', async () => {
  const bytes = readFileSync(NANO);
  const answers = [];
  const url = await withServer((request, response) => {
    answers.push(request.url);
    response.writeHead(200, { 'content-length': bytes.length, etag: '"1"' }).end(bytes);
  }, async (base) => {
    const path = `${base}/nano.gguf`;
    await info(path);
    await info(path);
    assert.equal(answers.length, 2);
    await (await load(path, { threads: 1 })).dispose();
    return path;
  });
  assert.deepEqual(await info(url), await info(NANO));
});

// --- text ---

test('the report as text', async () => {
  assert.equal(await text(golden('moe-nano.Q4_K_M')), `\
name           synthetic qwen3moe moe-nano seed 13
file           GGUF, 1.06 MiB
architecture   qwen3moe
parameters     1.94 M, of which 757 K are used per token
weights        Q4_K  9 tensors  1.93 M  1.04 MiB
               F32   6 tensors  2.94 K  11.5 KiB
layers         1, 256 wide
               8 experts of 256, 2 used per token
attention      4 heads of 64, 2 for keys and values
vocabulary     320 rows, the output head is a matrix of its own
context        512 tokens (RoPE base 1,000,000)
tokenizer      byte-level BPE, 320 tokens
chat template  yes
license        not stated
memory         with a context of 512 tokens, cached as f16:
               weights  1.08 MiB
               context   290 KiB
               scratch  1.49 MiB
               total    2.85 MiB

               cache    a token  largest context in 4 GiB
               f16    516 bytes                 512 (all)
               q8     288 bytes                 512 (all)
`);
  const large = await text(file('30b.gguf', writeHeader(modelSpec({ preset: 'qwen3-30b-a3b', type: 'q4_k_m' })).header));
  assert.match(large, /^parameters +30\.5 B, of which 3\.35 B are used per token$/m);
  assert.match(large, /^weights +Q4_K +289 tensors +25\.4 B +13\.3 GiB\n +Q6_K +49 tensors +5\.17 B +3\.95 GiB\n +F32 +241 tensors +12\.8 M +48\.8 MiB$/m);
  assert.match(large, /^memory +with a context of 4,096 tokens, cached as f16, more than the limit of 4 GiB:$/m);
  assert.match(large, /^ +f16 +96\.4 KiB +none$/m);
});

test('30B in IQ2_XXS: 3.3125 bits a weight in memory fit into 16 GiB, and 8 GiB are refused by the header', async () => {
  const path = file('30b-iq2.gguf', writeHeader(modelSpec({ preset: 'qwen3-30b-a3b', type: 'iq2_xxs' })).header);
  const { types, plan, fileBytes } = await native(path, '--memory', '16GiB');
  const weights = types.IQ2_XXS.parameters * 3.3125 / 8 + types.Q5_K.parameters * 5.625 / 8 + types.F32.bytes;
  assert.ok(plan.weights >= weights && plan.weights < weights * 1.0001, `${plan.weights} bytes for ${weights}`);
  assert.ok(plan.total < plan.limit && plan.f16.largestContext === 40_960);
  truncateSync(path, fileBytes);      // a hole in place of the weights, which nothing reads
  const load = run(join(PROJECT, 'build/release/quern'), ['logits', path, '--tokens', '1', '--memory', '8GiB', '--out', join(folder, 'none')]);
  await assert.rejects(load, ({ stderr }) => /^quern: mem\/plan: /.test(stderr));
});

test('texts of a file do not steer the terminal', async () => {
  const out = await text(file('evil.gguf', tinyModel({}, { kv: { 'general.name': ['string', 'a\x1b[31mred\u202e\nname'], 'general.license': ['string', 'MIT\r'] } })));
  assert.match(out, /^name +a\uFFFD\[31mred\uFFFD name$/m);
  assert.match(out, /^license +MIT$/m);
  assert.doesNotMatch(out, /[\x00-\x09\x0b-\x1f\u202e]/);
});

test('what is no model of ours is refused with what it is', async () => {
  const named = (arch) => file('other.gguf', tinyModel({}, { kv: { 'general.architecture': ['string', arch] } }));
  assert.match(await failure(named('qwen2vl')), /^quern: model\/unsupported: .*qwen2vl/);
  assert.match(await failure(file('a.zip', Buffer.from(`PK\x03\x04${'x'.repeat(100)}`))), /^quern: model\/format: .*archive/);
  assert.match(await failure(file('short.gguf', header.subarray(0, 100_000))), /^quern: model\/format: The file ends at byte 100000, inside its header\.\n$/);
});
