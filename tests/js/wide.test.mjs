// SPDX-License-Identifier: MIT
// Models whose sizes wrap in 32 bits, in the wasm engine itself: its addresses have 32 bits, a native build's have 64.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { wideHeaders } from '../fixtures/wide.mjs';

/** Sends a header and then nothing for ever, without a length: what is refused is refused by the header alone. */
async function serveHeader(t, header) {
  const server = createServer((request, response) => response.writeHead(200).write(header));
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}/model.gguf`;
}

const EXPECTED = { 'wide-scratch': 'mem/load', 'wide-logits': 'model/inconsistent', 'wide-pages': 'mem/kv', 'wide-experts': 'mem/load' };

for (const [name, header] of wideHeaders()) {
  test(`${name} is refused before any of its weights is asked for`, async (t) => {
    await assert.rejects(load(await serveHeader(t, header), { threads: 1 }), { code: EXPECTED[name] });
  });
}
