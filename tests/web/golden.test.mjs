// SPDX-License-Identifier: MIT
// The same arithmetic in a real browser: for golden files of common types, and some others, the logits equal those of
// the native build's scalar kernels to the bit, with every build of the engine, with 1, 2 and 4 threads, with the
// prompt read whole and in chunks, and without shared memory.
import assert from 'node:assert/strict';
import { arch } from 'node:os';
import { test } from 'node:test';
import { COMMON, CONFIGURATIONS_64, GOLDEN, PROJECT, configurationsOf, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { length, some } from '../fixtures/lengths.mjs';
import { station } from './browser.mjs';

const LIBRARY = 'tests/web/library.html';

/** Types whose layouts the common types do not have. */
const OTHERS = ['nano.Q2_K', 'nano.Q3_K_M', 'nano.Q5_1', 'nano.IQ4_XS', 'nano.IQ3_XXS', 'nano.IQ2_S', 'nano.NVFP4', 'nano.Q1_0', 'nano.Q2_0', 'moe-nano.Q4_K_M'];

const isolated = station({ root: PROJECT });
/** Plays a processor whose dot product of bytes is exact for 7 bits only. */
const older = station({ root: PROJECT, flags: ['--no-enable-avx-vnni'] });
const plain = station({ root: PROJECT, isolate: false });

/** One page for all comparisons of `use(check)`. */
async function visiting(station, use) {
  const visit = await station.open(LIBRARY);
  await visit.page.waitForFunction(() => globalThis.quern);
  await use(async (name, kv, configurations, ran = configurations) => {
    const request = { source: `/${GOLDEN}/${name}.gguf`, expected: `/${nativeLogits(name, kv)}`, tokens, configurations };
    const results = await visit.page.evaluate((argument) => globalThis.quern.compare(argument), request);
    assert.deepEqual(results, ran.map((configuration) => ({ ran: configuration, length: true, first: -1 })), name);
  }, visit.page);
  await visit.close();
}

test('the native bits', (t) => visiting(isolated, async (compare) => {
  for (const name of new Set([...COMMON, ...some(names, 3)])) {
    const configurations = configurationsOf(name, 'browser');
    await t.test(`${name} in ${configurations.length} configurations`, () => compare(name, 'f16', configurations));
  }
  await t.test('64-bit addresses', async () => {
    for (const [i, name] of COMMON.entries()) await compare(name, 'f16', some(CONFIGURATIONS_64, 2, i));
  });
  await t.test('float keys and values', () => {
    const configurations = [{ variant: 'scalar', threads: 1, chunk: 64, kv: 'f32', address: 64 }, { variant: 'relaxed', threads: 4, chunk: 7, kv: 'f32', address: 32 }];
    return compare('nano.Q4_K_M', 'f32', configurations);
  });
}));

test('without the dot of whole bytes: another kind of kernel, and the native bits', () => visiting(older, async (compare, page) => {
  const kinds = await page.evaluate((source) => globalThis.quern.dots(source), `/${GOLDEN}/nano.Q8_0.gguf`);
  assert.deepEqual(kinds, { scalar: 'none', simd: 'i16', relaxed: arch() === 'x64' ? 'u7' : kinds.relaxed });
  const small = { variant: 'relaxed', threads: 2, chunk: 7, kv: 'f16', address: 32 };
  const large = { variant: 'relaxed', threads: 1, chunk: 64, kv: 'f16', address: 64 };
  for (const name of OTHERS) await compare(name, 'f16', [small]);
  for (const name of COMMON) await compare(name, 'f16', length([small], [small, large]));
}));

test('without shared memory: one thread whatever is asked for, and the native bits', () => {
  const asked = ['scalar', 'simd', 'relaxed'].flatMap((variant) => [32, 64].map((address) => ({ variant, threads: 4, chunk: 64, kv: 'f16', address })));
  const ran = asked.map((configuration) => ({ ...configuration, threads: 1 }));
  return visiting(plain, (compare) => compare('nano.Q8_0', 'f16', asked, ran));
});
