// SPDX-License-Identifier: MIT
// Our SHA-256 against Node's: every length around the ends of blocks, in pieces of every length.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Sha256 } from '../../js/sha256.js';
import { noise } from '../fixtures/noise.mjs';

const expected = (bytes) => createHash('sha256').update(bytes).digest('hex');

test('every length, in pieces of every length', () => {
  for (let size = 0; size < 260; size++) {
    const bytes = noise(size, size + 1);
    for (const piece of [1, 7, 63, 64, 65, 300]) {
      const hash = new Sha256();
      for (let at = 0; at < size; at += piece) hash.update(bytes.subarray(at, at + piece));
      assert.equal(hash.digest(), expected(bytes), `${size} bytes in pieces of ${piece}`);
    }
  }
});

test('many bytes', () => {
  const bytes = noise((1 << 20) + 3);
  const hash = new Sha256();
  for (let i = 0; i < 5; i++) hash.update(bytes);
  assert.equal(hash.digest(), expected(Buffer.concat(Array(5).fill(bytes))));
});
