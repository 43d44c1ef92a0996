// SPDX-License-Identifier: MIT
// What the option `quantize` makes of weights while they are loaded: the bits of the file of that type, of what is quantised already the bits
// of its decoded values quantised, never anything larger; and what 'auto' chooses.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from 'node:path';
import { load } from '../../../dist/node.js';
import { GOLDEN, PROJECT, tokens } from '../../fixtures/golden.mjs';
import { dequantise, readGguf } from '../../fixtures/gguf-reader.mjs';
import { writeGguf } from '../../fixtures/gguf-writer.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { splitGguf } from '../../fixtures/split.mjs';
import { TINY_MOE, tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { rejectsWith } from '../support/helper.mjs';

const golden = (name) => join(PROJECT, GOLDEN, `${name}.gguf`);

/** Logits, what was planned for the weights, and what they have become. */
async function loaded(source, options, ids = tokens) {
  const model = await load(source, { threads: 2, kv: 'f32', store: false, ...options });
  try {
    const { plan, quantize, memory } = model.info;
    assert.ok(Math.abs(memory.planned - memory.peak) < 0.05 * memory.peak + 300_000, `${memory.planned} planned, ${memory.peak} taken`);
    return { logits: await model.logits(ids), weights: plan.weights, quantize };
  } finally {
    await model.dispose();
  }
}

const bits = ({ logits, weights }) => ({ logits, weights });

const WIDE = { hidden: 256, ffn: 512, heads: 4, kvHeads: 2, headDim: 64 };
const IDS = [1, 2, 280, 7, 65, 66];

const decoded = ({ type, data, ...rest }) => ({ ...rest, type: 'F32', data: Buffer.from(dequantise(type, data).buffer) });

/** A model of random weights, and the same decoded to floats. */
function twins(options) {
  const spec = tinySpec({ ...WIDE, ...options });
  return [new Blob([writeGguf(spec)]), new Blob([writeGguf({ ...spec, tensors: spec.tensors.map(decoded) })])];
}

test('a file of floats: the bits of the file of that type', async () => {
  for (const [floats, file, quantize] of [['nano.F32', 'nano.Q8_0', 'q8'], ['nano.F32', 'nano.Q4_0', 'q4'], ['moe-nano.F32', 'moe-nano.Q8_0', 'q8']]) {
    const made = await loaded(golden(floats), { quantize });
    assert.deepEqual(bits(made), bits(await loaded(golden(file))), file);
    assert.deepEqual(made.quantize, { weights: quantize, embeddings: quantize });
  }
  const halves = await loaded(golden('nano.F16'), { quantize: 'q8', variant: 'scalar', threads: 1 });
  assert.deepEqual(await loaded(golden('nano.F16'), { quantize: 'q8', threads: 4 }), halves);
  await assert.rejects(load(golden('nano.F32'), { quantize: 'q6' }), { code: 'use/param' });
});

test('what is quantised already: the bits of its decoded values, quantised', async () => {
  for (const type of some(['Q8_0', 'Q6_K', 'F16'], 2)) {
    for (const options of [{ tied: false }, { ...TINY_MOE, hidden: 256, expertFfn: 256 }]) {
      const [file, floats] = twins({ type, ...options });
      const quantize = options.tied === false ? 'q4' : { weights: 'q4', embeddings: 'q4' };       // the same, said in two ways
      const made = await loaded(file, { quantize }, IDS);
      assert.deepEqual(made, await loaded(floats, { quantize }, IDS), `${type}, ${JSON.stringify(options)}`);
      assert.notDeepEqual(made.logits, (await loaded(file, {}, IDS)).logits, type);
    }
  }
});

test('in parts, with any chunks and threads: the same', async () => {
  const bytes = tinyModel({ ...WIDE, type: 'Q8_0', layers: 2 });
  const wanted = await loaded(new Blob([bytes]), { quantize: 'q4' }, IDS);
  const parts = splitGguf(bytes, [5, 9, readGguf(bytes).tensors.size - 14]);
  const files = parts.map((part, i) => new File([part], `m-0000${i + 1}-of-0000${parts.length}.gguf`));
  assert.deepEqual((await loaded(files, { quantize: 'q4', threads: 1, chunk: 1 }, IDS)).logits, wanted.logits);
});

test('nothing becomes larger, and what has as few bits stays', async () => {
  for (const [name, quantize] of [['nano.Q8_0', 'q8'], ['nano.Q4_0', 'q8'], ['nano.Q4_K_M', 'q8'], ['nano.Q4_0', 'q4'], ['nano.Q8_0', 'none'], ['nano.F32', 'none']]) {
    assert.deepEqual(bits(await loaded(golden(name), { quantize })), bits(await loaded(golden(name))), `${name}, ${quantize}`);
  }
});

test('of a mixture what is larger becomes smaller, and nothing else changes', async () => {
  const spec = tinySpec({ ...WIDE, type: 'Q4_K' });
  const larger = new Map(tinySpec({ ...WIDE, type: 'Q6_K' }).tensors.map((tensor) => [tensor.name, tensor]));
  const withDown = (change) => new Blob([writeGguf({ ...spec, tensors: spec.tensors.map((t) => (t.name.includes('ffn_down') ? change(larger.get(t.name)) : t)) })]);
  const [stored, made, wanted] = [
    await loaded(withDown((t) => t), {}, IDS), await loaded(withDown((t) => t), { quantize: 'q4' }, IDS), await loaded(withDown(decoded), { quantize: 'q4' }, IDS)];
  assert.deepEqual(made, wanted);
  assert.ok(made.weights < stored.weights);
  assert.notDeepEqual(made.logits, stored.logits);
});

test('the embeddings apart from the rest', async () => {
  for (const tied of [true, false]) {
    const file = new Blob([tinyModel({ ...WIDE, type: 'F16', tied })]);
    const [none, all, weights, embeddings, mixed] = await Promise.all([
      'none', 'q4', { weights: 'q4' }, { embeddings: 'q4' }, { weights: 'q4', embeddings: 'q8' },
    ].map((quantize) => loaded(file, { quantize, threads: 1 }, IDS)));
    assert.equal(none.weights - all.weights, 2 * none.weights - weights.weights - embeddings.weights);
    assert.ok(all.weights < mixed.weights && mixed.weights < weights.weights && weights.weights < none.weights);
    assert.deepEqual(mixed.quantize, { weights: 'q4', embeddings: 'q8' });
    assert.deepEqual(weights.quantize, { weights: 'q4', embeddings: 'none' });
    assert.equal(new Set([none, all, weights, embeddings, mixed].map(({ logits }) => logits.join())).size, 5);
  }
});

test("'auto': as stored, or the first that fits", async () => {
  const file = new Blob([tinyModel({ ...WIDE, ffn: 1024, layers: 4, type: 'F32' })]);
  const totals = {};
  for (const quantize of ['none', 'q8', 'q4']) {
    const model = await load(file, { quantize, threads: 1, contextSize: 64 });
    totals[quantize] = model.info.plan.total + 2 ** 32 - model.info.plan.limit;   // the engine's own memory included
    await model.dispose();
  }
  const auto = (memoryLimit) => loaded(file, { quantize: 'auto', threads: 1, contextSize: 64, memoryLimit }, IDS);
  const room = 500_000;
  assert.deepEqual((await auto(undefined)).quantize, { weights: 'none', embeddings: 'none' });
  assert.deepEqual((await auto(totals.none + room)).quantize, { weights: 'none', embeddings: 'none' });
  for (const [quantize, before] of [['q8', 'none'], ['q4', 'q8']]) {
    assert.ok(totals[before] - totals[quantize] > 2 * room, 'there is a difference to see');
    const made = await auto(totals[quantize] + room);
    assert.deepEqual(made.quantize, { weights: quantize, embeddings: quantize });
    assert.deepEqual(made.logits, (await loaded(file, { quantize }, IDS)).logits);
  }
  const error = await rejectsWith(load(file, { quantize: 'auto', threads: 1, contextSize: 64, memoryLimit: totals.q4 - room }), 'mem/plan');
  assert.match(error.message, /needs/);
});
