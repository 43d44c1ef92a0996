// SPDX-License-Identifier: MIT
// Models of several files in the wasm engine: every broken folder and checkpoint (groups S and J) gets its error and every odd one loads, as natively;
// folders by the format's own package and checkpoints give the bits of the GGUF files with the same values, in every build.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { support } from '../../../dist/node.js';
import { allowRelaxed } from '../../../js/shared/node-flags.js';
import { ajc1Model } from '../../fixtures/ajc1.mjs';
import { abuse } from '../../fixtures/bad-attacks.mjs';
import { badSets, goodSets } from '../../fixtures/bad-sets.mjs';
import { tinyFolder } from '../../fixtures/folder.mjs';
import { SOURCES } from '../../fixtures/hf/sources.mjs';
import { PROJECT } from '../../fixtures/golden.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { logitsOf, opened, partOf, startOver, testHost } from '../support/engine-host.mjs';
import { soon, timed } from '../support/soon.mjs';

allowRelaxed();

const start = (files, options = {}) => startOver(testHost(), { ...opened(...files.map((bytes) => partOf(bytes))), located: { folder: 'https://here/' } }, { threads: 1, contextSize: 64, ...options });
const IDS = Array.from({ length: 24 }, (_, i) => (i * 37 + 5) % 280);

test('every broken set gets its error', { timeout: 300_000 }, async () => {
  const problems = [];
  for (const { id, what, codes, rules, files } of some(badSets(), 2)) {
    const error = await start(files).then((engine) => { engine.close(); return new Error('was loaded'); }, (refusal) => refusal);
    const right = codes.includes(error.code) && rules.includes(error.detail.rule) && error.message.length <= 200 && !/[\x00-\x1f\x7f]/.test(error.message);
    if (!right) problems.push(`${id} ${what}: ${error.code} ${error.detail?.rule}: ${error.message}`);
  }
  assert.deepEqual(problems, []);
});

test('S13: 100,000 tensors in one place', { timeout: 60_000 }, async () => {
  const bytes = abuse(100_000);
  await soon(2000, () => timed(async () => {
    const error = await start([bytes]).catch((refusal) => refusal);
    assert.deepEqual([error.code, error.detail?.rule], ['model/format', 'offsets']);
  }));
});

/** A side file that is made while it is read, and how much of it was. */
function endless(beginning) {
  const chunk = new Uint8Array(1 << 20);
  const part = { size: 5e8, read: 0 };
  part.chunks = (async function* chunks() {
    yield Buffer.from(beginning);
    for (; part.read < part.size; part.read += chunk.length) yield chunk.fill(0x20);
  })();
  return part;
}

test('S11: JSON files of 500 MB are read and kept no further than 64 MiB', { timeout: 60_000 }, async () => {
  const [config, generation, tokenizer, weights] = tinyFolder();
  for (const at of [0, 1, 2]) {
    const all = [config, generation, tokenizer, weights].map((bytes) => partOf(bytes));
    all[at] = endless('{');
    const before = process.memoryUsage();
    const error = await startOver(testHost(), opened(...all), { threads: 1 }).catch((refusal) => refusal);
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    assert.deepEqual([error.code, error.detail?.rule], ['model/format', 'header-size']);
    assert.ok(all[at].read <= 65 << 20, `${all[at].read} bytes`);
    assert.ok(arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed < 256 << 20);
  }
});

test('every odd set loads and computes', { timeout: 120_000 }, async () => {
  for (const { id, what, files } of goodSets()) {
    const engine = await start(files).catch((error) => assert.fail(`${id} ${what}: ${error.message}`));
    const { headless, dim, vocabSize } = engine.facts;
    assert.equal(logitsOf(engine, [1, 2]).length, 8 * (headless ? dim : vocabSize), id);
    engine.close();
  }
});

function folder(name) {
  const path = join(PROJECT, 'tests/fixtures/hf', name);
  const names = readdirSync(path).sort((a, b) => b.endsWith('.json') - a.endsWith('.json') || (a < b ? -1 : 1));
  return names.map((file) => readFileSync(join(path, file)));
}

const BUILDS = [{ variant: 'scalar' }, { variant: 'simd' }, { variant: 'relaxed', chunk: 7 }];
if (support().maxMemory > 2 ** 32) BUILDS.push({ variant: 'simd', address: 64 }, { variant: 'relaxed', address: 64 });

const TWINS = {
  ...Object.fromEntries(Object.entries(SOURCES).map(([name, make]) => [name, () => ({ files: folder(name), gguf: make() })])),
  ...Object.fromEntries([32, 64, 128].map((group) => [`ajc1 in groups of ${group}`, () => {
    const { checkpoint, tokenizer, gguf } = ajc1Model({ group, seed: group, tied: group !== 64 });
    return { files: [tokenizer, checkpoint], gguf };
  }])),
};

for (const [name, make] of Object.entries(TWINS)) {
  test(`${name} gives the bits of its GGUF twin`, { timeout: 60_000 }, async () => {
    const { files, gguf } = make();
    const reference = await start([gguf], { variant: 'scalar' });
    const expected = logitsOf(reference, IDS);
    reference.close();
    for (const options of BUILDS) {
      const engine = await start(files, options);
      assert.ok(logitsOf(engine, IDS).equals(expected), JSON.stringify(options));
      engine.close();
    }
  });
}
