// SPDX-License-Identifier: MIT
// Qwen3.5's files say the same in several ways: by lists or intervals, with blocks that guess or without, in joined or separate tensors. All of them give
// the same bits, in each build.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { goodQwen35Cases } from '../../fixtures/bad-qwen35.mjs';
import { divergence, floatsOf } from '../../fixtures/divergence.mjs';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';
import { tiny35 } from '../../fixtures/qwen35-layout.mjs';
import { tinyModel, tinySpec } from '../../fixtures/tiny.mjs';

const IDS = Array.from({ length: 40 }, (_, i) => (i * 37) % 256);

async function bitsOf(bytes, options) {
  const model = await load(new Blob([bytes]), { contextSize: 64, ...options });
  try {
    const { buffer, byteOffset, byteLength } = await model.logits(IDS);
    return Buffer.from(buffer, byteOffset, byteLength);
  } finally {
    await model.dispose();
  }
}

/** Cases that say the same as another file. */
const ALIKE = [
  'without sections', 'sections of three numbers', 'a list of truth values', 'a list of numbers', 'a list with the drafts', 'key-value heads by layer', 'key-value heads by layer, with drafts',
  'drafts', 'drafts whose tensors are not there', 'vision and drafts beside the text', 'a bias without its ending', 'joined queries, keys and values', 'heads in the order of training',
];

test('files that say the same give the same bits', async () => {
  const expected = await bitsOf(tiny35());
  const cases = goodQwen35Cases().filter(([, what]) => ALIKE.includes(what));
  assert.equal(cases.length, ALIKE.length);
  for (const [, what, make] of cases) {
    // Blocks that guess are written behind the layers, so the weights of the layers are the same.
    assert.ok(expected.equals(await bitsOf(make())), what);
  }
});

test('files that say something else give other bits', async () => {
  const expected = await bitsOf(tiny35());
  for (const [, what, make] of goodQwen35Cases().filter(([, name]) => name === 'a scale of attention' || name.startsWith('no interval'))) {
    assert.ok(!expected.equals(await bitsOf(make())), what);
  }
});

test('every type of weights gives the same bits in each build', async () => {
  for (const type of ['F32', 'F16', 'BF16', 'Q8_0', 'Q4_0']) {
    const file = tiny35({ type });
    const expected = await bitsOf(file, { variant: 'scalar', threads: 1 });
    for (const [variant, threads, chunk] of [['simd', 3, 7], ['relaxed', 2, 64], ['relaxed', 1, 1]]) assert.ok(expected.equals(await bitsOf(file, { variant, threads, chunk })), `${type} ${variant}`);
  }
});

test('value heads in groups are not those in turn, with several key heads', async () => {
  const wide = { keyHeads: 2, valueHeads: 4 };
  const grouped = { kv: { 'qwen35.ssm.v_head_reordered': ['bool', false] } };
  assert.ok(!(await bitsOf(tiny35(wide))).equals(await bitsOf(tiny35(wide, grouped))));
});

test('Qwen3 with joined queries, keys and values gives the same bits', async () => {
  const spec = tinySpec();
  const parts = ['q', 'k', 'v'].map((role) => spec.tensors.find(({ name }) => name === `blk.0.attn_${role}.weight`));
  const joined = { dims: [parts[0].dims[0], parts.reduce((sum, { dims }) => sum + dims[1], 0)], type: parts[0].type, data: Buffer.concat(parts.map(({ data }) => data)) };
  const removed = Object.fromEntries(parts.map(({ name }) => [name, null]));
  const file = tinyModel({}, { tensors: { ...removed, 'blk.0.attn_qkv.weight': joined } });
  assert.ok((await bitsOf(tinyModel())).equals(await bitsOf(file)));
});

test('quantised while it loads: small matrices stay as they are', async () => {
  const model = await load(new Blob([tiny35({ type: 'F32' })]), { contextSize: 64, quantize: 'q8' });
  try {
    const { types } = model.info;
    assert.ok(types.F32.tensors > 0);
    await model.logits(IDS);
  } finally {
    await model.dispose();
  }
});

test('1,300 tokens: the last logits are as near to the exact ones as at the beginning', async (t) => {
  const fixture = (name) => join(PROJECT, 'tests/fixtures/qwen35', name);
  const ids = JSON.parse(readFileSync(fixture('long.json')));
  const exact = floatsOf(fixture('long.exact.f32'));
  const model = await load(join(PROJECT, GOLDEN, 'hyb.F32.gguf'), { contextSize: 1344, kv: 'f32', store: false });
  try {
    const logits = (await model.logits(ids)).slice(-exact.length);
    const apart = divergence(exact, logits);
    t.diagnostic(`KL ${apart.toExponential(2)}`);
    assert.ok(apart <= 1e-9 && logits.every((x, i) => Math.abs(x - exact[i]) <= 1e-3), `${apart}`);
  } finally {
    await model.dispose();
  }
});
