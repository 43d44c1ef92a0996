// SPDX-License-Identifier: MIT
// `quern quantize`: files as good as llama.cpp's own, the same bytes natively, in Node and with any number of threads, what other
// programs need to know about them, and what is refused. What disks, signals and other writers do is in quantize-faults.test.mjs,
// what becomes of weights while they are loaded in quantize-load.test.mjs.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { GOLDEN, PROJECT, tokens } from '../../fixtures/golden.mjs';
import { SOURCES } from '../../fixtures/hf/sources.mjs';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { ByteSink, writeGguf } from '../../fixtures/gguf-writer.mjs';
import { divergence, floatsOf } from '../../fixtures/divergence.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { splitGguf } from '../../fixtures/split.mjs';

const CLI = join(PROJECT, 'dist/cli.js');
const TYPES = ['q8_0', 'q4_0', 'q4_k', 'q5_k', 'q6_k', 'iq4_xs'];
const golden = (name) => join(PROJECT, GOLDEN, name);

/** llama.cpp's files, all matrices of which have one type. */
const THEIRS = { nano: { q8_0: 'Q8_0', q4_0: 'Q4_0', q4_k: 'Q4_K_M', q5_k: 'Q5_K_M', q6_k: 'Q6_K', iq4_xs: 'IQ4_XS' }, 'moe-nano': { q8_0: 'Q8_0', q4_k: 'Q4_K_M' } };

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'quantize-'));
});
after(() => rmSync(folder, { recursive: true }));

const cli = (...args) => spawnSync(process.execPath, [CLI, 'quantize', ...args], { encoding: 'utf8' });

/** The new file's path. */
function quantize(input, type, { threads = 2, name = 'out.gguf', imatrix } = {}) {
  const out = join(folder, name);
  const { status, stderr } = cli(input, out, '--type', type, '--threads', threads, ...(imatrix ? ['--imatrix', imatrix] : []));
  assert.equal(status, 0, stderr);
  return out;
}

async function logitsOf(source, ids = tokens) {
  const model = await load(source, { threads: 1, kv: 'f32', store: false });
  try {
    return await model.logits(ids);
  } finally {
    await model.dispose();
  }
}

for (const [model, types] of Object.entries(THEIRS)) {
  for (const [type, name] of Object.entries(types)) {
    test(`${model} as ${type}: as near to the floats as llama.cpp's ${name}`, async (t) => {
      const exact = floatsOf(golden(`${model}.F32.exact.f32`));
      const out = quantize(golden(`${model}.F32.gguf`), type);
      const ours = divergence(exact, await logitsOf(out));
      const theirs = divergence(exact, await logitsOf(golden(`${model}.${name}.gguf`)));
      t.diagnostic(`KL ${ours.toExponential(2)}, llama.cpp's ${theirs.toExponential(2)}`);
      assert.ok(ours <= 1.1 * theirs, `${ours} against ${theirs}`);
    });
  }
}

test('the same bytes natively and in Node, with any number of threads', () => {
  for (const [i, type] of TYPES.entries()) {
    const files = some([1, 2, 5], 3, i).map((threads) => readFileSync(quantize(golden('nano.BF16.gguf'), type, { threads })));
    execFileSync(join(PROJECT, 'build/release/quern'), ['quantize', golden('nano.BF16.gguf'), join(folder, 'native.gguf'), '--type', type, '--threads', '3']);
    for (const file of files) assert.ok(file.equals(readFileSync(join(folder, 'native.gguf'))), type);
  }
});

/** Importance of columns for some tensors of a file: every eighth column counts a hundred times as much. @returns {[string, Float32Array][]} */
function importance(file, pattern, scale = 1) {
  const tensors = [...readGguf(readFileSync(file)).tensors].filter(([name]) => pattern.test(name));
  return tensors.map(([name, { dims: [cols, , stack = 1] }]) => [name, Float32Array.from({ length: Number(cols) * Number(stack) }, (_, i) => scale * (i % 8 ? 1 : 100))]);
}

/** The older form of llama-imatrix's files. */
function older(entries) {
  const sink = new ByteSink();
  sink.u32(entries.length);
  for (const [name, sums] of entries) {
    sink.u32(name.length);
    sink.bytes(Buffer.from(name));
    sink.u32(7);        // calls
    sink.u32(sums.length);
    sink.bytes(new Uint8Array(sums.buffer));
  }
  return sink.take();
}

/** The form of today. `stack`: number of matrices of each tensor. */
const asGguf = (entries, stack = 1) => writeGguf({
  kv: [['general.type', 'string', 'imatrix'], ['imatrix.chunk_count', 'u32', 7]],
  tensors: entries.flatMap(([name, sums]) => [
    { name: `${name}.in_sum2`, dims: [sums.length / stack, stack], type: 'F32', data: new Uint8Array(sums.buffer) },
    { name: `${name}.counts`, dims: [1, stack], type: 'F32', data: new Uint8Array(new Float32Array(stack).fill(7).buffer) },
  ]),
});

test('importance: both forms of the file give the same bytes, whatever its unit; only the named tensors change', () => {
  for (const [model, stack] of [['nano', 1], ['moe-nano', 4]]) {
    const input = golden(`${model}.F32.gguf`);
    const entries = importance(input, stack > 1 ? /exps/ : /attn_[qk]\.|ffn_down/);
    const files = { dat: older(entries), gguf: asGguf(entries, stack > 1 ? Number([...readGguf(readFileSync(input)).tensors].find(([name]) => /exps/.test(name))[1].dims[2]) : 1), scaled: older(importance(input, stack > 1 ? /exps/ : /attn_[qk]\.|ffn_down/, 4)) };
    for (const type of ['q4_k', 'q4_0', 'iq4_xs']) {
      const plain = readGguf(readFileSync(quantize(input, type)));
      const made = Object.entries(files).map(([name, bytes]) => {
        const imatrix = join(folder, `imatrix.${name}`);
        writeFileSync(imatrix, bytes);
        return readFileSync(quantize(input, type, { imatrix, threads: name === 'dat' ? 3 : 1 }));
      });
      for (const file of made) assert.ok(file.equals(made[0]), `${model} ${type}`);
      for (const [name, { type: kind, data }] of readGguf(made[0]).tensors) {
        const named = entries.some(([entry]) => entry === name) && !['F32', 'F16', 'Q8_0'].includes(kind);
        assert.equal(!Buffer.from(data).equals(plain.tensors.get(name).data), named, `${model} ${type} ${name}`);
      }
    }
  }
});

test('importance of another model, damaged, or no importance at all is refused', () => {
  const input = golden('nano.F32.gguf');
  const entries = importance(input, /attn_[qkv]\./);
  const cases = [
    [/has 7 numbers for blk\.0\.attn_q\.weight, .*another model/, older([['blk.0.attn_q.weight', new Float32Array(7)]])],
    [/names no tensor of this model/, older([['blk.99.attn_q.weight', new Float32Array(7)]])],
    [/negative or not finite/, older(entries.map(([name, sums]) => [name, sums.map((v, i) => (i === 9 ? -1 : v))]))],
    [/negative or not finite/, asGguf(entries.map(([name, sums]) => [name, sums.map((v, i) => (i === 9 ? NaN : v))]))],
    [/cut off or damaged/, older(entries).subarray(0, -1)],
    [/needs 2048: it is of another model/, older([['blk.0.ffn_down_exps.weight', new Float32Array(256)]]), golden('moe-nano.F32.gguf')],
    [/cut off or damaged/, asGguf(entries).subarray(0, -999)],
    [/cut off or damaged/, asGguf([])],
    [/is a model/, readFileSync(input)],
    [/not an importance matrix/, Buffer.from('{"not": "one"}')],
    [/not an importance matrix/, Buffer.alloc(0)],
  ];
  for (const [wanted, bytes, model = input] of cases) {
    writeFileSync(join(folder, 'imatrix.bad'), bytes);
    const { status, stderr } = cli(model, join(folder, 'x.gguf'), '--type', 'q4_k', '--imatrix', join(folder, 'imatrix.bad'));
    assert.equal(status, 1);
    assert.match(stderr, /^quern: use\/param: The /);
    assert.match(stderr, wanted);
  }
  const kept = join(folder, 'imatrix.kept');
  writeFileSync(kept, older(entries));
  assert.match(cli(input, kept, '--type', 'q4_k', '--imatrix', kept).stderr, /^quern: use\/param: The new file would replace the file of --imatrix/);
  assert.ok(readFileSync(kept).equals(Buffer.from(older(entries))));
  assert.match(cli(input, join(folder, 'x.gguf'), '--type', 'q4_k', '--imatrix', join(folder, 'none')).stderr, /use\/param: The file of --imatrix cannot be read/);
  assert.ok(!readdirSync(folder).includes('x.gguf'));
});

test('keys are copied, the file type and the version set; routers, vectors and odd rows keep more bits', () => {
  const before = readGguf(readFileSync(golden('duo.F32.gguf'))).kv;
  const { kv, tensors } = readGguf(readFileSync(quantize(golden('duo.F32.gguf'), 'q4_k')));
  assert.deepEqual(Object.fromEntries(kv), { ...Object.fromEntries(before), 'general.file_type': 15, 'general.quantization_version': 2 });
  const types = Object.fromEntries([...tensors].map(([name, { type }]) => [name, type]));
  const some = { 'output.weight': 'Q6_K', 'token_embd.weight': 'Q4_K', 'blk.0.attn_v.weight': 'Q4_K', 'blk.1.attn_v.weight': 'Q6_K', 'blk.1.ffn_down.weight': 'Q6_K', 'blk.0.attn_output.weight': 'Q8_0', 'blk.1.attn_q_norm.weight': 'F32' };
  for (const [name, type] of Object.entries(some)) assert.equal(types[name], type, name);
  const moe = readGguf(readFileSync(quantize(golden('moe-nano.F32.gguf'), 'q4_0'))).tensors;
  assert.equal(moe.get('blk.0.ffn_gate_inp.weight').type, 'F32');
  assert.deepEqual(moe.get('blk.0.ffn_down_exps.weight').dims, [256, 256, 8]);
});

test('a folder becomes what the GGUF file of the same weights becomes', async () => {
  const gguf = join(folder, 'twin.gguf');
  writeFileSync(gguf, SOURCES.f32());
  const [a, b] = [quantize(gguf, 'q8_0', { name: 'a.gguf' }), quantize(join(PROJECT, 'tests/fixtures/hf/f32'), 'q8_0', { name: 'b.gguf' })];
  const [one, two] = [a, b].map((path) => readGguf(readFileSync(path)));
  assert.equal(two.tensors.size, one.tensors.size);
  for (const [name, { type, dims, data }] of one.tensors) assert.deepEqual({ type, dims, data }, (({ type, dims, data }) => ({ type, dims, data }))(two.tensors.get(name)), name);
  const spell = (kv) => Object.fromEntries([...kv].filter(([key]) => !/general\.name/.test(key)).sort());
  assert.deepEqual(spell(two.kv), { ...spell(one.kv), 'general.sampling.temp': Math.fround(0.6) }, "and what the folder's generation_config.json says");
  assert.deepEqual(await logitsOf(a, [1, 2, 280]), await logitsOf(b, [1, 2, 280]));
});

test('a block that drafts tokens is kept; several are left out, with their part of the lists that have a value for each block', () => {
  const recurrent = [true, false, true, false, false, false];
  for (const drafts of [1, 2]) {
    const path = join(folder, `blocks-${drafts}.gguf`);
    const lists = { 'attention.recurrent_layers': ['bool[]', recurrent.slice(0, 4 + drafts)], 'rope.sections_of_six': ['i32[]', [1, 2, 3, 4, 5, 6]] };
    writeFileSync(path, tiny35({ drafts, type: 'F32' }, { kv: Object.fromEntries(Object.entries(lists).map(([name, value]) => [`qwen35.${name}`, value])) }));
    const made = readGguf(readFileSync(quantize(path, 'q8_0')));
    const of = (name) => made.kv.get(`qwen35.${name}`);
    const kept = drafts === 1 ? 1 : 0;
    assert.deepEqual([of('block_count'), of('nextn_predict_layers'), of('attention.recurrent_layers')], [4 + kept, kept || undefined, recurrent.slice(0, 4 + kept)]);
    assert.deepEqual(of('rope.sections_of_six'), [1, 2, 3, 4, 5, 6]);
    assert.equal([...made.tensors.keys()].filter((name) => name.startsWith('blk.4.')).length, kept ? 14 : 0);
  }
});

test('refused: other types, itself, what is quantised, bad names; nothing is left', () => {
  const own = join(folder, 'own.gguf');
  copyFileSync(golden('nano.F32.gguf'), own);
  mkdirSync(join(folder, 'sub'));
  const bad = Buffer.from(readFileSync(own));
  bad.writeFloatLE(NaN, bad.length - 200);
  writeFileSync(join(folder, 'bad.gguf'), bad);
  const part = join(folder, 'part-00001-of-00002.gguf');
  writeFileSync(part, splitGguf(readFileSync(own), [3])[0]);
  const cases = [
    [/^quern: use\/param: The file '.*part-00002-of-00002.gguf' is missing or cannot be read/, part, join(folder, 'x.gguf'), '--type', 'q8_0'],
    [/^quern: use\/param: The type must be/, own, join(folder, 'x.gguf'), '--type', 'q2_k'],
    [/^quern: use\/param: --type is missing/, own, join(folder, 'x.gguf')],
    [/^quern: use\/param: The new file would replace/, own, own, '--type', 'q8_0'],
    [/^quern: use\/param: The new file would replace/, own, join(folder, 'sub/../own.gguf'), '--type', 'q8_0'],
    [/^quern: use\/param: The new file's name/, own, join(folder, 'sub'), '--type', 'q8_0'],
    [/^quern: use\/param: The new file cannot/, own, join(folder, 'none/x.gguf'), '--type', 'q8_0'],
    [/^quern: use\/param: The model is neither/, join(folder, 'none.gguf'), join(folder, 'x.gguf'), '--type', 'q8_0'],
    [/^quern: use\/param: The folder holds no model/, join(folder, 'sub'), join(folder, 'x.gguf'), '--type', 'q8_0'],
    [/^quern: model\/unsupported: .*quantised already \(Q8_0\)/, golden('nano.Q8_0.gguf'), join(folder, 'x.gguf'), '--type', 'q4_0'],
    [/^quern: model\/unsupported: .*quantised already \(F8_E4M3\)/, join(PROJECT, 'tests/fixtures/hf/f8'), join(folder, 'x.gguf'), '--type', 'q4_0'],
    [/^quern: model\/nonfinite: .*not finite/, join(folder, 'bad.gguf'), join(folder, 'x.gguf'), '--type', 'q6_k'],
    [/^quern: model\/format: /, CLI, join(folder, 'x.gguf'), '--type', 'q6_k'],
  ];
  const files = readdirSync(folder).sort();
  for (const [wanted, ...args] of cases) {
    const { status, stderr } = cli(...args);
    assert.equal(status, 1, String(args));
    assert.match(stderr, wanted);
    assert.deepEqual(readdirSync(folder).sort(), files, String(args));
  }
  assert.ok(readFileSync(own).equals(readFileSync(golden('nano.F32.gguf'))));
  assert.match(spawnSync(join(PROJECT, 'build/release/quern'), ['info', part], { encoding: 'utf8' }).stderr, /^quern: use\/param: The file '.*part-00002-of-00002.gguf' is missing/);
});
