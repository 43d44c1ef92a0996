// SPDX-License-Identifier: MIT
// One arithmetic, in Node: for every golden file the logits are the very bits of the native build's scalar kernels, with
// every build of the engine, with 1, 2 and 4 threads, read whole and in chunks; of rare types each commit plays the builds
// with vectors. tests/web has the same for Chromium.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load, support } from '../../../dist/node.js';
import { COMMON, CONFIGURATIONS_64, GOLDEN, PROJECT, configurationsOf, names, nativeLogits, tokens } from '../../fixtures/golden.mjs';
import { some } from '../../fixtures/lengths.mjs';

async function logitsOf(name, configuration) {
  const model = await load(join(PROJECT, GOLDEN, `${name}.gguf`), configuration);
  try {
    const { variant, threads, chunk, kv, address } = model.info;
    assert.deepEqual({ variant, threads, chunk, kv, address }, configuration);
    const logits = await model.logits(tokens);
    return Buffer.from(logits.buffer, logits.byteOffset, logits.byteLength);
  } finally {
    await model.dispose();
  }
}

async function check(name, kv, configurations) {
  const expected = readFileSync(join(PROJECT, nativeLogits(name, kv)));
  for (const configuration of configurations) {
    assert.ok(expected.equals(await logitsOf(name, { address: 32, ...configuration, kv })), JSON.stringify(configuration));
  }
}

const noMemory64 = support().maxMemory < 2 ** 32 && `Node ${process.version} has no memories of 64 bits; tests/web has the same for Chromium`;

for (const name of names) {
  const configurations = configurationsOf(name, 'node');
  test(`${name}: the native bits in ${configurations.length} configurations`, () => check(name, 'f16', configurations));
}

test('64-bit addresses: the native bits', { skip: noMemory64 }, async () => {
  for (const [i, name] of COMMON.entries()) await check(name, 'f16', some(CONFIGURATIONS_64, 2, i));
});

for (const kv of ['f32', 'q8']) {
  test(`keys and values in ${kv}: the native bits`, async () => {
    const configurations = [['scalar', 1, 64], ['simd', 3, 20], ['relaxed', 1, 1], ['relaxed', 4, 7]];
    for (const name of some(['nano.Q4_K_M', 'nano.Q2_K', 'duo.F32'], 2)) await check(name, kv, configurations.map(([variant, threads, chunk]) => ({ variant, threads, chunk })));
  });
}
