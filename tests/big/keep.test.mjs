// SPDX-License-Identifier: MIT
// A conversation of 2,000 tokens in 0.6B's dimensions is there again, by an engine that knows nothing of it, in a fifth at most of the time that reading
// it takes; how fast it is read and written beside the store itself.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import * as quern from '../../dist/node.js';
import { FolderStore } from '../../js/store/store-node.js';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, TOKEN, bigModel, randomPrompt } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { plain, turn } from './keep-steps.js';
import { record } from './results.mjs';

const TOKENS = 2000;

/** Restored and plain, in turn. */
const ROUNDS = 3;

const MOST = 1 / 5;

const MODEL = bigModel('q8_0');

/** @param {{turn: Function, plain: Function}} place */
async function measure(place) {
  const request = { text: randomPrompt(TOKENS, 7), token: TOKEN };
  const anew = await place.turn(request);
  assert.equal(anew.cachedTokens, 0);
  const piece = (anew.bytes - 4096 - 8) / (anew.tokens / 32);
  const rounds = [];
  for (let i = 0; i < ROUNDS; i++) rounds.push({ ...await place.turn(request), ...await place.plain(piece) });
  for (const { cachedTokens } of rounds) assert.equal(cachedTokens, anew.tokens);
  const of = (name) => median(rounds.map((round) => round[name]));
  return {
    bytes: anew.bytes, tokens: anew.promptTokens, anewMs: anew.firstMs, keepMs: anew.keepMs,
    restoredMs: of('firstMs'), restoreMs: of('waitMs'), readMs: of('readMs'), writeMs: of('writeMs'),
  };
}

describe('a conversation of 2,000 tokens goes on', () => {
  const entries = [];
  const folder = mkdtempSync(join(tmpdir(), 'quern-keep-'));
  let server;
  let browser;

  before(async () => { server = await serve({ root: PROJECT, csp: false }); });

  after(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    record('keep', entries, browser);
  });

  const check = (where, found) => {
    entries.push({ where, ...found });
    console.log(JSON.stringify(entries.at(-1)));
    assert.ok(found.restoredMs < MOST * found.anewMs, `${found.restoredMs} ms instead of ${found.anewMs}`);
  };

  test('in Chromium', async () => {
    const tab = await Tab.open(server.url, 'tests/big/keep.js', join(folder, 'profile'));
    try {
      browser = tab.version;
      const source = server.url + MODEL;
      check(tab.version, await measure({ turn: (what) => tab.call('turn', { ...what, source }), plain: (piece) => tab.call('plain', piece) }));
    } finally {
      await tab.close();
    }
  });

  test('in Node', async () => {
    const cache = join(folder, 'cache');
    const source = join(PROJECT, MODEL);
    const found = await measure({ turn: (what) => turn(quern, { ...what, source, options: { cache } }), plain: (piece) => plain(new FolderStore(cache), piece) });
    check(`Node ${process.versions.node}`, found);
  });
});
