// SPDX-License-Identifier: MIT
// The doubles of the shaders, and the codes of quantised values, are those of the processor, to the bit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDevice } from './place.mjs';

test('doubles in shaders', async () => {
  const found = await withDevice('doubles.mjs');
  const doubles = ['add', 'mul', 'quotient', 'share', 'wide', 'narrow', 'exp64', 'log64', 'gelu_erf'];
  const names = [...doubles, 'code', 'code of a bad quotient'];
  assert.deepEqual(found.map(({ name }) => name), names);
  for (const { name, n, differ } of found) {
    assert.ok(n >= 16384, name);
    assert.equal(differ, 0, name);
  }
});
