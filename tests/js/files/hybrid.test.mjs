// SPDX-License-Identifier: MIT
// A folder of Qwen3.5 whose layers have two value heads for each key head: as near to the exact logits as floats are, with the same bits in each build,
// and quantised as its GGUF file is.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { divergence, floatsOf } from '../../fixtures/divergence.mjs';
import { GOLDEN, PROJECT, tokens } from '../../fixtures/golden.mjs';

/** Its vision part is a toy that nothing reads. */
const FOLDER = join(PROJECT, 'tests/fixtures/qwen35/hyb.hf');
const golden = (name) => join(PROJECT, GOLDEN, name);
const made = mkdtempSync(join(tmpdir(), 'quern-hybrid-'));
after(() => rmSync(made, { recursive: true }));

async function logitsOf(source, options) {
  const model = await load(source, { kv: 'f32', threads: 1, store: false, ...options });
  try {
    return await model.logits(tokens);
  } finally {
    await model.dispose();
  }
}

test('a folder is as near to the exact logits as floats are, in each build', async (t) => {
  const exact = floatsOf(golden('hyb.F32.exact.f32'));
  const logits = await logitsOf(FOLDER, { variant: 'scalar', vision: false });
  const apart = divergence(exact, logits);
  const most = logits.reduce((all, x, i) => Math.max(all, Math.abs(x - exact[i])), 0);
  t.diagnostic(`KL ${apart.toExponential(2)}, at most ${most.toExponential(2)}`);
  assert.ok(apart <= 1e-9 && most <= 1e-3, `${apart}, ${most}`);
  for (const options of [{ variant: 'simd', threads: 3 }, { variant: 'relaxed', chunk: 7 }]) assert.deepEqual(await logitsOf(FOLDER, { vision: false, ...options }), logits, JSON.stringify(options));
});

test('a quantised copy has the bits of the GGUF file that is quantised while it loads', async () => {
  const out = join(made, 'hyb.gguf');
  execFileSync(process.execPath, [join(PROJECT, 'dist/cli.js'), 'quantize', FOLDER, out, '--type', 'q8_0']);
  assert.deepEqual(await logitsOf(out), await logitsOf(golden('hyb.F32.gguf'), { quantize: 'q8' }));
});
