// SPDX-License-Identifier: MIT
// The wasm memory's wrapper: what 32 bits cannot say is refused before it reaches the engine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heap } from '../../js/heap.js';

test('a size of 2^32 or more is refused, not wrapped', () => {
  const asked = [];
  const wasm = { _wasm_alloc: (size) => asked.push(size) && 64, _wasm_release() {} };
  const heap = new Heap(wasm, new WebAssembly.Memory({ initial: 1 }));
  for (const size of [2 ** 32, 4.5e9, Infinity, NaN]) assert.throws(() => heap.lend(size, () => {}), { code: 'mem/load' });
  assert.deepEqual(asked, []);
  assert.equal(heap.alloc(2 ** 32 - 1), 64);
});
