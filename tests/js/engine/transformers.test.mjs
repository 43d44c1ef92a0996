// SPDX-License-Identifier: MIT
// The models themselves, against Hugging Face's transformers in float32: Qwen3 dense and with experts, tied and not, heads wider than the
// model, shares renormalised or not, layers of both kinds mixed, and YaRN far beyond the original context; Qwen2 with its biases, Llama with and
// without scaled frequencies, SmolLM3. A folder of the same weights gives the same bits as the GGUF file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { CONFIGS, VOCAB, expected, modelFile, modelFolder } from '../../fixtures/transformers.mjs';

/** Of the largest logit of a row. Angles are float32 there, double here. */
const MOST = 1e-5;

async function logitsOf(files, tokens) {
  const model = await load(files, { kv: 'f32', variant: 'scalar', threads: 1, contextSize: 128 });
  try {
    return Buffer.from((await model.logits(tokens)).buffer);
  } finally {
    await model.dispose();
  }
}

for (const name of Object.keys(CONFIGS)) {
  test(`${name}: the logits of transformers`, async (t) => {
    const { tokens, rows, logits } = expected(name);
    assert.equal(logits.length, rows.length * VOCAB);
    const model = await load(new Blob([modelFile(name)]), { kv: 'f32', threads: 2, contextSize: 128 });
    try {
      const ours = await model.logits(tokens);
      assert.equal(ours.length, tokens.length * VOCAB);
      let worst = 0;
      for (const [i, row] of rows.entries()) {
        const theirs = logits.subarray(i * VOCAB, (i + 1) * VOCAB);
        const largest = theirs.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
        const error = theirs.reduce((most, x, j) => Math.max(most, Math.abs(x - ours[row * VOCAB + j])), 0) / largest;
        assert.ok(error < MOST, `position ${row}: ${error}`);
        worst = Math.max(worst, error);
      }
      t.diagnostic(`largest difference ${worst.toExponential(1)}`);
    } finally {
      await model.dispose();
    }
  });
}

/** GGUF files have YaRN's growth in float32. */
const ROUNDED = ['yarn-louder'];

for (const name of Object.keys(CONFIGS).filter((one) => !ROUNDED.includes(one))) {
  test(`${name}: a folder has the bits of the GGUF file`, async () => {
    const { tokens } = expected(name);
    const [file, folder] = [await logitsOf([new Blob([modelFile(name)])], tokens), await logitsOf(modelFolder(name).map((part) => new Blob([part])), tokens)];
    assert.ok(file.equals(folder));
  });
}
