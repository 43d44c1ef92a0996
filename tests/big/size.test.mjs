// SPDX-License-Identifier: MIT
// Models beyond 2 and 4 GiB: one of 3 GB streams into the engine with 32-bit addresses, one of 5 GB into that with 64-bit ones,
// in Node and in Chromium, and their logits are the native build's, bit by bit. Every weight takes part in them: the embedding
// is the output head too. Where memories of 64 bits are missing (Node before 24), the large one is refused with numbers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT } from '../bench/fixtures.mjs';
import { Tab } from '../bench/tab.mjs';
import { makeModel } from '../fixtures/make-model.mjs';
import { record } from './results.mjs';

const TOKENS = [9707, 11, 1879, 0];
const FOLDER = 'build/fixtures';
const MODELS = {
  '3 GB': { address: 32, preset: 'qwen3-4b', type: 'q6_k', layers: 32, contextSize: 2048 },
  '5 GB': { address: 64, preset: 'qwen3-4b', type: 'q8_0', layers: 46, contextSize: 4096 },
};

/** The plan may differ from what is taken by so much. */
const PLAN_PERCENT = 3;

describe('large files', () => {
  const entries = [];
  let server;
  let browser;

  before(async () => {
    mkdirSync(join(PROJECT, FOLDER), { recursive: true });
    server = await serve({ root: PROJECT, csp: false });
  });

  after(async () => {
    await server.close();
    record('size', entries, browser);
  });

  for (const [name, { address, contextSize, ...options }] of Object.entries(MODELS)) {
    describe(name, () => {
      const path = `${FOLDER}/size-${address}.gguf`;
      const expected = `${FOLDER}/size-${address}.f32`;
      let fileBytes;

      before(() => {
        fileBytes = makeModel({ ...options, out: join(PROJECT, path) });
        execFileSync('build/release/quern', ['logits', path, '--tokens', TOKENS.join(' '), '--out', expected, '--threads', '2'], { cwd: PROJECT });
      });

      after(() => { for (const file of [path, expected]) rmSync(join(PROJECT, file), { force: true }); });

      const check = (where, { info, loadMs }, same) => {
        const { planned, peak, wasm } = info.memory;
        assert.ok(same, 'the native bits');
        assert.equal(info.address, address);
        assert.ok(Math.abs(planned / peak - 1) * 100 < PLAN_PERCENT, `planned ${planned}, peak ${peak}`);
        entries.push({ where, name, fileBytes, variant: info.variant, address, contextSize: info.contextSize, loadMs, planned, peak, wasm });
      };

      test('in Node', async (t) => {
        const { load, support } = await import(pathToFileURL(join(PROJECT, 'dist/node.js')));
        const start = performance.now();
        const loading = load(join(PROJECT, path), { contextSize });
        if (address === 64 && support().maxMemory < fileBytes) {
          const { detail } = await loading.then(() => assert.fail('was loaded'), (error) => error);
          assert.ok(detail.needed > fileBytes && detail.allowed < 2 ** 32);
          t.diagnostic(`Node ${process.version} has no memories over 4 GiB: refused`);
          return;
        }
        const model = await loading;
        const loadMs = performance.now() - start;
        const logits = await model.logits(TOKENS);
        const same = readFileSync(join(PROJECT, expected)).equals(Buffer.from(logits.buffer));
        check(`Node ${process.version}`, { info: model.info, loadMs }, same);
        await model.dispose();
      });

      test('in Chromium', async () => {
        const tab = await Tab.open(server.url, 'tests/big/page.js');
        try {
          const loaded = await tab.call('load', { url: server.url + path, contextSize });
          browser = tab.version;
          check(tab.version, loaded, await tab.call('compare', { tokens: TOKENS, expected: server.url + expected }));
        } finally {
          await tab.close();
        }
      });
    });
  }
});
