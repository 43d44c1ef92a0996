// SPDX-License-Identifier: MIT
// The wasm memory's wrapper: addresses are plain numbers, also those that are negative in 32 bits, and views follow growth.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heap } from '../../../js/engine/heap.js';

const PAGE = 65536;

/** An allocator that gives out one address. */
function heapAt(address, memory) {
  const log = [];
  const wasm = { _wasm_alloc: (size) => log.push(`alloc ${size}`) && address, _wasm_release: (at) => log.push(`release ${at}`) };
  return { heap: new Heap(wasm, memory), log };
}

test('no address is an error with the size in it; what was lent is given back, whatever happens', () => {
  const { heap } = heapAt(0, new WebAssembly.Memory({ initial: 1 }));
  assert.throws(() => heap.lend(2 ** 33, () => assert.fail('was lent')), { code: 'mem/load', message: /8589934592/ });
  const { heap: other, log } = heapAt(64, new WebAssembly.Memory({ initial: 1 }));
  assert.throws(() => other.lend(100, () => { throw new Error('mine'); }), /mine/);
  assert.deepEqual(log, ['alloc 100', 'release 64']);
});

test('Q07 above 2^31, and after growth: the right bytes', () => {
  const high = 2 ** 31 + 4096;
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 40000 });
  const { heap } = heapAt(high, memory);
  const before = heap.bytes(0);
  memory.grow(high / PAGE + 1);
  assert.equal(before.length, 0, 'the old view is dead');
  heap.lend(16, (address) => {
    heap.bytes(address, 4).set([104, 105, 0, 7]);
    assert.equal(heap.cString(address), 'hi');
    assert.equal(heap.text(address, 2), 'hi');
    assert.deepEqual([...heap.int32(address, 1)], [0x07006968]);
    assert.deepEqual([...new Uint8Array(memory.buffer, high, 4)], [104, 105, 0, 7]);
  });
});
