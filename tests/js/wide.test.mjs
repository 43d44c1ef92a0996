// SPDX-License-Identifier: MIT
// Models whose sizes wrap in 32 bits, in the wasm engine itself: its addresses have 32 bits, a native build's have 64.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { wideHeaders } from '../fixtures/wide.mjs';

for (const [name, header] of wideHeaders()) {
  test(`${name} is refused before any of its weights is asked for`, async () => {
    const zeros = new Blob([header, new Uint8Array(1 << 20)]);
    await assert.rejects(load(zeros, { threads: 1 }), ({ code }) => ['mem/load', 'mem/kv', 'model/inconsistent'].includes(code));
  });
}
