// SPDX-License-Identifier: MIT
// Models whose sizes wrap in 32 bits, in the wasm engine itself: its addresses have 32 bits, a native build's have 64.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { wideHeaders } from '../../fixtures/wide.mjs';

/** Sends a header and then zeros for ever, without a length: what is refused is refused by the header alone. */
async function serveHeader(t, header) {
  const site = { sent: 0 };
  const server = createServer((request, response) => {
    const send = (bytes) => {
      site.sent += bytes.length;
      return response.write(bytes);
    };
    const zeros = new Uint8Array(1 << 16);
    const more = () => { while (!response.destroyed && send(zeros)); };
    send(header);
    response.on('drain', more);
    more();
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  site.url = `http://127.0.0.1:${server.address().port}/model.gguf`;
  return site;
}

/** Bytes that the sockets and the loader (chunks of 4 MiB) hold. */
const ON_THE_WAY = 24e6;

const EXPECTED = { 'wide-scratch': 'mem/plan', 'wide-logits': 'model/inconsistent', 'wide-pages': 'mem/plan', 'wide-experts': 'mem/plan' };

for (const [name, header] of wideHeaders()) {
  test(`${name} is refused before any of its weights is asked for`, async (t) => {
    const site = await serveHeader(t, header);
    await assert.rejects(load(site.url, { threads: 1, store: false }), { code: EXPECTED[name] });
    assert.ok(site.sent < header.length + ON_THE_WAY, `${site.sent} bytes were sent`);
  });
}
