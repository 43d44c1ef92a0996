// SPDX-License-Identifier: MIT
// Which builds of the engine a load starts: the text build for GGUF files, the full build for everything else. Where no
// name tells what a file is, the text build begins, and the full build replaces it and gets the same bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, support } from '../../../dist/node.js';
import { openParts } from '../../../js/store/loader.js';
import { storeModel, startEngine } from '../../../js/worker/start.js';
import { ajc1Model } from '../../fixtures/ajc1.mjs';
import { tinyFolder } from '../../fixtures/folder.mjs';
import { MemoryStore } from '../../fixtures/memory-store.mjs';
import { ADDRESS, Site } from '../../fixtures/sessions.mjs';
import { splitGguf } from '../../fixtures/split.mjs';
import { writeGguf } from '../../fixtures/gguf-writer.mjs';
import { TINY_MOE, tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { logitsOf, opened, partOf, startOver, testHost } from '../support/engine-host.mjs';
import { NANO, rejectsWith } from '../support/helper.mjs';

const NAMES = ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors'];
const IDS = [1, 2, 3, 4];
const SIMD = { variant: 'simd' };

const folder = tinyFolder();
const gguf = tinyModel({ type: 'F32' });
const { checkpoint, tokenizer } = ajc1Model();


/** Loads files, described by `located`. @returns the builds that were started, and the engine or the error */
async function started(files, { located = {}, options = {}, sizes = [] } = {}) {
  const host = testHost();
  const parts = files.map((bytes, i) => partOf(bytes, { size: sizes[i] ?? bytes.length, chunk: 1000 }));
  const work = startOver(host, { ...opened(...parts), located }, { ...SIMD, ...options });
  const end = await work.then((engine) => ({ engine }), (error) => ({ error }));
  return { builds: host.started, ...end };
}

const urls = (...names) => ({ kind: 'urls', urls: names.map((name) => `https://host/m/${name}`) });
const blobs = (...names) => ({ kind: 'blobs', blobs: names.map((name) => ({ name })) });

test('names tell: the full build alone for a folder, other files, vision and a profile; else the text build alone', async () => {
  const a = ['simd-text'];
  const all = ['simd'];
  for (const [files, located, options, expected] of [
    [[gguf], urls('a.gguf'), {}, a], [[gguf], urls('a.GGUF?download=true'), {}, a], [[gguf], urls('a'), {}, a], [[gguf], blobs('a.gguf'), {}, a], [[gguf], blobs(undefined), {}, a],
    [[gguf], { ...urls(), folder: 'https://host/m/', type: 'F32' }, {}, a], [[gguf], urls('a.gguf'), { profile: false }, a],
    [[gguf], urls('a.gguf'), { profile: true }, all], [folder, { ...urls(), folder: 'https://host/m/' }, {}, all], [folder, blobs(...NAMES), {}, all],
    [[checkpoint], urls('model.safetensors?x'), {}, all], [[folder[0]], blobs('config.json'), {}, all],
    [[tokenizer, checkpoint], blobs('m.bin.tokenizer', 'm.bin'), {}, all], [[folder[2], gguf], blobs('tokenizer.json', 'a.gguf'), {}, all],
    [[gguf], { ...urls('a.gguf'), beside: urls('mmproj.gguf') }, {}, all], [[gguf], { ...urls('a.gguf', 'mmproj.gguf'), projectors: 1 }, {}, all],
    [[gguf], urls('a-UD-IQ2_M.gguf'), {}, all], [[gguf], urls('a-NVFP4.gguf'), {}, all], [[gguf], urls('a-IQ4_XS.gguf'), {}, a],
  ]) assert.deepEqual((await started(files, { located, options })).builds, expected, JSON.stringify([located, options]));
});

test('names do not tell: the full build replaces the text build, and says and computes what it does from the start', async () => {
  const named = { located: blobs(...NAMES) };
  for (const [files, rule] of [
    [folder], [[tokenizer, checkpoint]], [[checkpoint], 'missing'], [[folder[3]], 'missing'], [[folder[0]], 'missing'], [[Buffer.from('{"detail":"Not found"}')], 'magic'],
    [[Buffer.from('{}')], 'magic'], [[Buffer.from('{"error": "No such file, and a long sentence about it"}')], 'magic'],
  ]) {
    const [one, other] = [await started(files), await started(files, named)];
    assert.deepEqual([one.builds, other.builds], [['simd-text', 'simd'], ['simd']]);
    assert.deepEqual([one.error?.code, one.error?.message, one.error?.detail], [other.error?.code, other.error?.message, other.error?.detail]);
    assert.equal(one.error?.detail.rule, rule, one.error?.message);
    if (!rule) assert.deepEqual(logitsOf(one.engine, IDS), logitsOf(other.engine, IDS));
  }
});

test('what is no model is refused by the text build, with the same sentence', async () => {
  for (const bytes of [Buffer.from('<!doctype html><title>Sign in</title>'), Buffer.from('PK\x03\x04'.padEnd(100)), Buffer.from('x'.repeat(50)), folder[3].subarray(0, 20), Buffer.alloc(0)]) {
    const [text, full] = [await started([bytes]), await started([bytes], { options: { profile: true } })];
    assert.deepEqual([text.builds, full.builds], [['simd-text'], ['simd']]);
    assert.deepEqual([text.error.code, text.error.message], [full.error.code, full.error.message]);
  }
});

test('a later file of another format is not one of the model\'s', async () => {
  const [first] = splitGguf(gguf, [2, 30]);
  for (const [second, rule] of [[folder[3], 'mixed'], [checkpoint, 'mixed'], [folder[3].subarray(0, 30), 'mixed']]) {
    const { error, builds } = await started([first, second], { located: urls('a-00001-of-00002.gguf', 'a-00002-of-00002.gguf') });
    assert.deepEqual([error?.code, error?.detail.rule, builds], ['model/inconsistent', rule, ['simd']]);
  }
});

const FULL = ['IQ3_S', 'IQ3_XXS', 'IQ2_S', 'IQ2_XS', 'IQ2_XXS', 'IQ1_M', 'IQ1_S', 'NVFP4'];
const wide = (type) => tinyModel({ type, hidden: 256, ffn: 256, heads: 4, kvHeads: 2, headDim: 64 });

test('types of the full build: it takes over at the end of the header, before any weight is read', async () => {
  for (const type of FULL) {
    const bytes = wide(type);
    const [one, other] = [await started([bytes]), await started([bytes], { located: urls(`a-${type}.gguf`) })];
    assert.deepEqual([one.error, one.builds, other.builds], [undefined, ['simd-text', 'simd'], ['simd']], type);
    assert.deepEqual(logitsOf(one.engine, IDS), logitsOf(other.engine, IDS));
  }
  const host = testHost();
  const part = partOf(wide('IQ3_S'), { chunk: 1000 });
  const compile = host.compile;
  const read = [];
  host.compile = (build) => { read.push(part.read); return compile(build); };
  await startOver(host, opened(part), SIMD);
  const { length } = wide('IQ3_S');
  assert.ok(read.length === 2 && read[1] < length / 10, `${read} of ${length} bytes were read`);
});

/** NVFP4 in which a matrix has these scales, of a power of 2 each, beside it or multiplied into those of its blocks. */
function scaledModel(scales, within) {
  const spec = tinySpec({ ...TINY_MOE, type: 'NVFP4', hidden: 64, ffn: 64, heads: 4 });
  const tensors = spec.tensors.flatMap((tensor) => {
    const own = scales[tensor.name];
    if (!own) return [tensor];
    if (!within) return [tensor, { name: tensor.name.replace('.weight', '.scale'), dims: [own.length], type: 'F32', data: new Uint8Array(Float32Array.from(own).buffer) }];
    const data = Uint8Array.from(tensor.data);
    const each = data.length / own.length;
    for (let at = 0; at < data.length; at += 36) {
      for (let i = at; i < at + 4; i++) for (let n = own[Math.floor(at / each)]; n > 1; n /= 2) data[i] += Math.min(data[i], 8);
    }
    return [{ ...tensor, data }];
  });
  return writeGguf({ ...spec, tensors });
}

test('the scales of NVFP4 beside its matrices, one for each expert, and none', async () => {
  const scales = { 'blk.0.attn_q.weight': [4], 'blk.0.ffn_down_exps.weight': [1, 2, 4, 1, 2, 8], 'blk.1.ffn_up.weight': [2], 'blk.2.ffn_gate_exps.weight': [2] };
  const logits = async (bytes) => logitsOf((await started([bytes])).engine, IDS);
  const beside = await logits(scaledModel(scales, false));
  assert.deepEqual(beside, await logits(scaledModel(scales, true)));
  assert.notDeepEqual(beside, await logits(scaledModel({}, false)));
  for (const own of [[1, 2], [], [1, 2, 4, 1, 2, 8, 1]]) {
    const { error } = await started([scaledModel({ ...scales, 'blk.0.ffn_down_exps.weight': own }, false)]);
    assert.deepEqual([error?.code, error?.detail.rule], own.length ? ['model/inconsistent', 'shape'] : ['model/format', 'tensor-zero'], `${own}: ${error?.message}`);
  }
});

test('a split model: the full build from the first header on, because a later file may have types of the full build', async () => {
  const parts = splitGguf(wide('IQ3_S'), [2, 30]);
  for (const [located, builds] of [[{}, ['simd-text', 'simd']], [urls('a-00001-of-00002.gguf', 'a-00002-of-00002.gguf'), ['simd']]]) {
    const { engine, error, builds: ran } = await started(parts, { located });
    assert.deepEqual([error, ran], [undefined, builds]);
    assert.deepEqual(logitsOf(engine, IDS), logitsOf((await started([wide('IQ3_S')])).engine, IDS));
  }
});

test('both replacements of one load', { skip: support().maxMemory < 2 ** 33 && `Node ${process.version} has no memories over 4 GiB` }, async () => {
  const contextSize = 523_000;     // nearly 4 GiB in this model
  const files = tinyFolder({ spec: { layers: 4, heads: 16, kvHeads: 16, context: contextSize }, file: { tail: new Uint8Array(1) } });
  const needs = await started(files, { sizes: [0, 0, 0, 0], options: { contextSize, kv: 'f32' } });
  assert.deepEqual([needs.builds, needs.error?.code], [['simd-text', 'simd', 'simd64'], 'model/format'], needs.error?.message);
  const said = await started(files, { sizes: [0, 0, 0, 5e9] });
  assert.deepEqual([said.builds, said.error?.code], [['simd-text', 'simd64-text', 'simd64'], 'model/format'], said.error?.message);
});

test('a download begins with the same build, and stores what the full build has read', async () => {
  for (const [bytes, expected, rule] of [[gguf, ['text']], [Buffer.from('{"message": "not here, but elsewhere"}'), ['text', 'full'], 'magic']]) {
    const host = testHost();
    const site = new Site(bytes);
    const store = new MemoryStore();
    host.openParts = (source, options) => openParts(source, { ...options, store, fetch: site.fetch, clock: site.clock, parallel: 1 });
    const work = storeModel(host, { kind: 'urls', urls: [ADDRESS], id: ADDRESS }, {}, () => {});
    const error = await site.clock.run(work.then(() => undefined, (reason) => reason), () => true);
    assert.deepEqual(host.started.map((build) => (/-text$/.test(build) ? 'text' : 'full')), expected);
    assert.equal(error?.detail.rule, rule);
  }
});

test('a text build at wasmUrl is not replaced, and says what it lacks', async () => {
  const wasmUrl = new URL('../../../dist/quern-simd-text.wasm', import.meta.url);
  const options = { ...SIMD, threads: 1, wasmUrl };
  await (await load(NANO, options)).dispose();
  const words = /wasmUrl is a text build of the engine, which reads single GGUF files only, without IQ1 to IQ3, vision and profiles; name the file without -text\.$/;
  const files = folder.map((bytes, i) => new File([bytes], NAMES[i]));
  for (const [source, more] of [[files], [new Blob([checkpoint])], [NANO, { profile: true }], [NANO, { vision: NANO }]])
    await rejectsWith(load(source, { ...options, ...more }), 'use/param', words);
});
