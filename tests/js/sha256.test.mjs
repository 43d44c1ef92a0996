// SPDX-License-Identifier: MIT
// The engine's SHA-256 against Node's, in pieces of all lengths around a block, some of them where the engine keeps a chunk.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Hasher } from '../../js/hasher.js';
import { instantiate } from '../../js/instance.js';
import { Sha256 } from '../../js/sha256.js';
import { compile, glue } from './engine-host.mjs';
import { random } from './helper.mjs';

const hasher = new Hasher(await instantiate(glue[32], await compile('simd'), 1, 32));

function bytesOf(n, seed) {
  const next = random(seed);
  return Uint8Array.from({ length: n }, () => 256 * next());
}

const expected = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

function digest(...parts) {
  const sha = new Sha256(hasher);
  for (const part of parts) sha.update(part);
  return sha.digest();
}

test('every length up to three blocks, whole and in two pieces', () => {
  for (let n = 0; n <= 192; n++) {
    const bytes = bytesOf(n, n + 1);
    const cut = (7 * n) % (n + 1);
    assert.equal(digest(bytes), expected(bytes), `${n}`);
    assert.equal(digest(bytes.subarray(0, cut), bytes.subarray(cut)), expected(bytes), `${cut} of ${n}`);
  }
});

test('long pieces, and single bytes', () => {
  const bytes = bytesOf(300_001, 1);
  assert.equal(digest(bytes), expected(bytes));
  assert.equal(digest(...Array.from(bytes.subarray(0, 500), (byte) => Uint8Array.of(byte))), expected(bytes.subarray(0, 500)));
});

test('bytes in the engine\'s memory stay as they are', () => {
  const before = bytesOf(100, 2);
  const bytes = bytesOf(200_000, 3);
  const room = hasher.take(bytes);
  assert.equal(digest(before, room), expected(before, bytes));
  assert.deepEqual(Uint8Array.from(room), bytes);
});
