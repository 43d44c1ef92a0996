// SPDX-License-Identifier: MIT
// Queries, keys and values, and their biases, that a file joins in one tensor: the same logits as apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { writeGguf } from '../../fixtures/gguf-writer.mjs';
import { tinySpec } from '../../fixtures/tiny.mjs';
import { rejectsWith } from '../support/helper.mjs';

const IDS = [1, 2, 3, 250, 40, 41];

/** A file of a spec in which, in each layer, the tensors of q, k and v with one of these endings are one tensor. */
function joined({ kv, tensors }, ...endings) {
  const isPart = (name, l, ending) => ['q', 'k', 'v'].some((part) => name === `blk.${l}.attn_${part}.${ending}`);
  const all = [...tensors];
  for (const ending of endings) {
    for (let l = 0; l < 2; l++) {
      const parts = all.filter(({ name }) => isPart(name, l, ending));
      const [{ dims, type }] = parts;
      const rows = parts.reduce((sum, part) => sum + part.dims.at(-1), 0);
      const data = new Uint8Array(parts.flatMap((part) => [...part.data]));
      all.splice(all.indexOf(parts[0]), 1, { name: `blk.${l}.attn_qkv.${ending}`, dims: [...dims.slice(0, -1), rows], type, data });
    }
  }
  return new Blob([writeGguf({ kv, tensors: all.filter(({ name }) => !endings.some((ending) => [0, 1].some((l) => isPart(name, l, ending)))) })]);
}

const logitsOf = async (file) => {
  const model = await load(file, { threads: 1 });
  const logits = await model.logits(IDS);
  await model.dispose();
  return logits;
};

test('Qwen2 and Qwen3: weights, biases, or both', async () => {
  for (const [arch, ways] of [['qwen2', [['weight'], ['bias'], ['weight', 'bias']]], ['qwen3', [['weight']]]]) {
    const spec = tinySpec({ arch, layers: 2, heads: 4, kvHeads: 2, headDim: 8 });
    const apart = await logitsOf(new Blob([writeGguf(spec)]));
    for (const endings of ways) assert.deepEqual(await logitsOf(joined(spec, ...endings)), apart, `${arch}: ${endings}`);
  }
});

test('joined biases of another length, or of a family without any, are refused', async () => {
  const bias = (n) => ({ name: 'blk.0.attn_qkv.bias', dims: [n], type: 'F32', data: new Uint8Array(4 * n) });
  const file = (arch, n) => {
    const { kv, tensors } = tinySpec({ arch, layers: 2, heads: 4, kvHeads: 2, headDim: 8 });
    return new Blob([writeGguf({ kv, tensors: [...tensors.filter(({ name }) => !/^blk\.0\.attn_[qkv]\.bias/.test(name)), bias(n)] })]);
  };
  await rejectsWith(load(file('qwen2', 63)), 'model/inconsistent');
  await rejectsWith(load(file('qwen3', 64)), 'model/unsupported');
});
