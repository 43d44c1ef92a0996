// SPDX-License-Identifier: MIT
// Folders that other programs have quantised, through the package and the native program: the second decoder's values are the
// library's own, since a model of floats made of them gives transformers' logits; and what both programs say and compute is the same.
// Each value: tests/c/test_quantised.c.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { floatsOf } from '../../fixtures/divergence.mjs';
import { QUANTISED, QUANTISED_TOKENS, QUANTISED_VOCAB, SPLITS, exactFolder, splitFolder } from '../../fixtures/quantised.mjs';

const FOLDERS = join(PROJECT, 'tests/fixtures/quantised');
const place = mkdtempSync(join(tmpdir(), 'quern-'));
after(() => rmSync(place, { recursive: true }));

const native = (...args) => execFileSync(join(PROJECT, 'build/release/quern'), args, { encoding: 'utf8' });

/** The native program's logits of the tokens. */
function logitsOf(folder, ...options) {
  const out = join(place, 'logits.f32');
  native('logits', folder, '--tokens', QUANTISED_TOKENS.join(), '--out', out, ...options);
  return floatsOf(out);
}

function write(files) {
  const folder = mkdtempSync(join(place, 'folder-'));
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  return folder;
}

/** The largest difference in a row, of the row's largest number. */
function distance(a, b) {
  const n = a.length / QUANTISED_VOCAB;   // of one folder the file has seven rows
  assert.ok(n === QUANTISED_TOKENS.length || n === 7);
  const rows = Array.from({ length: n }, (_, i) => [a, b].map((all) => all.subarray(i * QUANTISED_VOCAB, (i + 1) * QUANTISED_VOCAB)));
  return Math.max(...rows.map(([x, y]) => Math.max(...x.map((v, i) => Math.abs(v - y[i]))) / Math.max(...x.map(Math.abs))));
}

for (const name of QUANTISED) {
  test(`${name}: the decoder of the tests has the library's values`, () => {
    const twin = logitsOf(write(exactFolder(name)), '--kv', 'f32');
    assert.ok(distance(floatsOf(join(FOLDERS, `${name}.f32`)), twin) < 1e-5);
  });
}

test('the same bits and the same facts in Node, from a folder and from its files in another cut', async () => {
  for (const name of QUANTISED) {
    const expected = logitsOf(join(FOLDERS, name));
    for (const folder of [join(FOLDERS, name), write(splitFolder(name, SPLITS.mixed))]) {
      const model = await load(folder, { threads: 2, store: false });
      assert.deepEqual(await model.logits(QUANTISED_TOKENS), expected, folder);
      const facts = JSON.parse(native('info', folder));
      for (const key of ['quantizedBy', 'types', 'parameters', 'fileBytes']) assert.deepEqual(model.info[key], facts[key], key);
      assert.ok(facts.quantizedBy && Object.keys(facts.types).some((type) => type !== 'BF16'));
      await model.dispose();
    }
  }
});

test('a quantised folder is not quantised again', () => {
  const out = join(place, 'x.gguf');
  for (const name of QUANTISED)
    assert.throws(() => native('quantize', join(FOLDERS, name), out, '--type', 'q4_0'), ({ stderr }) => /model\/unsupported: .*quantised already/.test(stderr));
  assert.throws(() => readFileSync(out));
});
