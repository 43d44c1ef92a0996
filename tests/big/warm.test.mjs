// SPDX-License-Identifier: MIT
// A warm start reads a stored model into wasm memory, every byte checked, nearly as fast as a loop that only reads it:
// one thread reads while another hashes. Medians and bests of rounds in turn, since a machine is never quite quiet.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { FirefoxTab } from '../bench/firefox.mjs';
import { PROJECT, bigModel } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';

const ROUNDS = 40;

/** Checked over plain reading, with threads. */
const MAX_RATIO = 1.3;

const numbersOf = (times) => ({ median: median(times), best: Math.min(...times) });

describe('a stored model is read and checked', () => {
  const found = [];
  let server;
  let profile;
  let version;

  before(async () => {
    server = await serve({ root: PROJECT, csp: false });
    profile = mkdtempSync(join(tmpdir(), 'quern-warm-'));
  });

  after(async () => {
    await server.close();
    rmSync(profile, { recursive: true });
    record('warm', found, version);
  });

  for (const [name, open] of [['Chromium', () => Tab.open(server.url, 'tests/big/warm.js', profile)], ['Firefox', () => FirefoxTab.open(server.url, 'tests/big/warm.js')]]) {
    test(`in ${name} within ${MAX_RATIO} of a plain read`, async () => {
      const path = bigModel('q4_0');
      const tab = await open();
      try {
        version ??= tab.version;
        const times = await tab.call('measure', { url: server.url + path, rounds: ROUNDS });
        const [plain, threads, alone] = [times.plain, times.threads, times.alone].map(numbersOf);
        found.push({ browser: tab.version, fileBytes: statSync(join(PROJECT, path)).size, plain, threads, alone });
        console.log(JSON.stringify(found.at(-1)));
        assert.ok(threads.best / plain.best < MAX_RATIO, `${threads.best} ms, a plain read ${plain.best} ms`);
      } finally {
        await tab.close();
      }
    });
  }
});
