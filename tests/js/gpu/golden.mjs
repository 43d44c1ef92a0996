// SPDX-License-Identifier: MIT
// Run by golden.test.mjs: the logits of golden models on a device and by the processor's scalar kernels.
// Arguments: MODEL or MODEL:KV.

import { tokens } from '../../fixtures/golden.mjs';
import { differing, goldenBytes, logitsOf, open, tell } from './engines.mjs';

for (const given of process.argv.slice(2)) {
  const [name, kv = 'f16'] = given.split(':');
  const bytes = await goldenBytes(name);
  const expected = await logitsOf((await open(bytes, { kv })).engine, tokens);
  for (const chunk of [48, 3]) {
    const some = chunk < 8 ? 24 : tokens.length;
    const { engine, device } = await open(bytes, { kv, chunk, onDevice: true });
    const found = await logitsOf(engine, tokens.slice(0, some));
    const row = expected.length / tokens.length;
    tell({ name, kv, chunk, rows: found.length / row, differ: differing(found, expected.subarray(0, some * row)), variant: engine.facts.variant });
    device.close();
  }
}
process.exit();
