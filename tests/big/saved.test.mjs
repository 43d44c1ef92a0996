// SPDX-License-Identifier: MIT
// A conversation of 2,000 tokens in 0.6B's dimensions is there again, by an engine that knows nothing of it, in an eighth at most of the time that
// reading it takes; how fast it is read and written beside the store itself.
import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import glue from '../../dist/node/quern-simd.mjs';
import * as quern from '../../dist/node.js';
import { FolderStore } from '../../js/store/store-node.js';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, TOKEN, bigModel, randomPrompt } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { gaps, parts } from './saved-parts.js';
import { plain, stops, turn } from './saved-steps.js';
import { record } from './results.mjs';

const TOKENS = 2000;

/** Restored and plain, in turn. */
const ROUNDS = 3;

const MOST = 1 / 8;

const MODEL = bigModel('q8_0');

/** Of the plain read's speed, from opening the file to the last page; and what others' gaps may grow by, ms. */
const [SHARE, GAP_MS] = [0.8, 20];

/** The median of each number. */
const medians = (rounds) => Object.fromEntries(Object.keys(rounds[0]).filter((name) => Number.isFinite(rounds[0][name])).map((name) => [name, median(rounds.map((round) => round[name]))]));

/** Longest time from stop() to a reply's end, ms. */
const STOP_MS = 200;

/** @param {{turn: Function, stops: Function, plain: Function, parts: Function, gaps: Function}} place */
async function measure(place) {
  const request = { text: randomPrompt(TOKENS, 7), token: TOKEN };
  const anew = await place.turn(request);
  assert.equal(anew.cachedTokens, 0);
  const piece = (anew.bytes - 4096 - 8) / (anew.tokens / 32);
  const rounds = [];
  for (let i = 0; i < ROUNDS; i++) rounds.push({ ...await place.turn(request), ...await place.plain({ piece }), parts: await place.parts({ token: TOKEN }) });
  for (const { cachedTokens } of rounds) assert.equal(cachedTokens, anew.tokens);
  const stopMs = await place.stops(request);
  const beside = [];
  for (let i = 0; i < ROUNDS; i++) beside.push(await place.gaps({ token: TOKEN }));
  const { firstMs, waitMs, readMs, freshMs, writeMs } = medians(rounds);
  return {
    bytes: anew.bytes, tokens: anew.promptTokens, anewMs: anew.firstMs, keepMs: anew.keepMs, restoredMs: firstMs, restoreMs: waitMs, readMs, freshMs, writeMs,
    parts: medians(rounds.map(({ parts }) => parts)), stopMs, beside,
  };
}

/** How much of a phase's gaps is more than alone, in the best round. */
function added(beside, phase, which) {
  return Math.min(...beside.map(({ alone, [phase]: measured }) => measured[which] - alone[which]));
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
    assert.ok(found.stopMs.n > 0, 'nothing was stopped while the conversation was written');
    for (const phase of ['restoring', 'appending']) assert.ok(found.stopMs[phase] < STOP_MS, `${phase}: stopped after ${found.stopMs[phase]} ms`);
    const [hot, fresh] = [found.readMs, found.freshMs].map((ms) => (ms / found.parts.openToLastGiveMs).toFixed(2));
    console.log(`${where}: ${hot} of the plain read's speed, ${fresh} of that into new memory, goal ${SHARE}`);
    for (const phase of ['fingerprint', 'restore', 'append']) {
      const [longest, p99] = ['longest', 'p99'].map((which) => added(found.beside, phase, which));
      console.log(`${where}: ${phase} adds ${longest.toFixed(1)} ms to the longest gap, ${p99.toFixed(1)} to p99, goal ${GAP_MS}`);
    }
  };

  test('in Chromium', async () => {
    const tab = await Tab.open(server.url, 'tests/big/saved.js', join(folder, 'profile'));
    try {
      browser = tab.version;
      const source = server.url + MODEL;
      const by = (what) => (more) => tab.call('measure', { ...more, what, source });
      check(tab.version, await measure({ turn: (what) => tab.call('turn', { ...what, source }), stops: (what) => tab.call('stops', { ...what, source }), plain: by('plain'), parts: by('parts'), gaps: by('gaps') }));
    } finally {
      await tab.close();
    }
  });

  test('in Node', async () => {
    const cache = join(folder, 'cache');
    const source = join(PROJECT, MODEL);
    const store = new FolderStore(cache);
    const module = await WebAssembly.compile(await readFile(join(PROJECT, 'dist/quern-simd.wasm')));
    const where = { glue, module, store, rest: setImmediate, chunks: () => createReadStream(source, { highWaterMark: 2 ** 20 }) };
    const found = await measure({
      turn: (what) => turn(quern, { ...what, source, options: { store: cache } }), stops: (what) => stops(quern, { ...what, source, options: { store: cache } }),
      plain: ({ piece }) => plain(store, piece),
      parts: (more) => parts({ ...where, ...more }), gaps: (more) => gaps({ ...where, ...more }),
    });
    check(`Node ${process.versions.node}`, found);
  });
});
