// SPDX-License-Identifier: MIT
// A process that downloads a model and is stopped (SIGSTOP, a debugger): it holds the lock, and it is not gone. Whoever waits for it
// goes on after half a minute, which is the time that this file takes. Time is played in store.test.mjs.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock, test } from 'node:test';
import { load, models } from '../../../dist/node.js';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { DEMO, rejectsWith } from '../support/helper.mjs';

const BYTES = readFileSync(DEMO);

test('a load goes on without a process that is stopped, and a download says why it does not', { skip: process.platform === 'win32' }, async () => {
  const cache = mkdtempSync(join(tmpdir(), 'quern-stopped-'));
  const server = await new LyingServer({ bytes: BYTES }, (_, n) => (n === 0 ? { stallAt: 2_500_000 } : {})).start();
  const url = `${server.base}/m.gguf`;
  const script = join(cache, 'download.mjs');
  writeFileSync(script, `import { models } from ${JSON.stringify(new URL('../../../dist/node.js', import.meta.url).href)};
    await models.download(${JSON.stringify(url)}, { store: ${JSON.stringify(cache)} });`);
  const downloading = fork(script);
  mock.method(console, 'warn', () => {});
  try {
    for (const end = Date.now() + 60_000; (await models.list({ store: cache }))[0]?.loaded !== 2 << 20;) {
      assert.ok(Date.now() < end, 'two chunks are stored');
      await new Promise((done) => { setTimeout(done, 20); });
    }
    downloading.kill('SIGSTOP');
    const start = performance.now();
    const refused = rejectsWith(models.download(url, { store: cache }), 'storage/busy', /half a minute/);
    const model = await load(url, { threads: 1, store: cache });
    const waited = performance.now() - start;
    assert.match((await model.chat('What is the capital of Kenya?', { temperature: 0 }).result).text, /Nairobi/);
    assert.ok(waited > 29_000, `${waited} ms`);
    await model.dispose();
    await refused;
  } finally {
    downloading.kill('SIGKILL');
    await server.close();
    rmSync(cache, { recursive: true });
  }
});
