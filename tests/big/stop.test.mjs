// SPDX-License-Identifier: MIT
// A stop takes effect within 200 ms in the middle of a prompt that fills the context, on one thread, because the engine comes up for
// air by itself; cross-origin isolated or not.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, bigModel, randomPrompt } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';

const CONTEXT = 4096;
const MAX_STOP_MS = 200;

/** Stops are asked for every so many tokens, for so long or up to the middle of the prompt. */
const STRIDE = 64;
const TIME_MS = 40_000;

/** Milliseconds into a chunk, in turn: early, late. */
const DELAYS = [5, 17, 31, 47];

async function stopAgainAndAgain(tab, prompt) {
  const stops = [];
  const end = Date.now() + TIME_MS;
  do {
    stops.push(await tab.call('stopAfter', { prompt, more: STRIDE, delay: DELAYS[stops.length % DELAYS.length] }));
  } while (Date.now() < end && stops.at(-1).at < CONTEXT / 2);
  return stops;
}

describe('stop in the middle of a prompt of 4,096 tokens', () => {
  const entries = [];
  let browser;

  after(() => record('stop', entries, browser));

  for (const type of ['q8_0', 'q4_k_m']) {
    for (const isolate of [true, false]) {
      test(`${type}, one thread, ${isolate ? 'cross-origin isolated' : 'without SharedArrayBuffer'}`, async () => {
        const server = await serve({ root: PROJECT, csp: false, isolate });
        const tab = await Tab.open(server.url, 'tests/big/page.js');
        try {
          browser = tab.version;
          const { isolated, info } = await tab.call('load', { url: server.url + bigModel(type), threads: 1, contextSize: CONTEXT });
          assert.equal(isolated, isolate);
          assert.equal(info.threads, 1);
          // One position of the context is for the reply.
          const stops = await stopAgainAndAgain(tab, randomPrompt(CONTEXT - 1, 1));
          const times = stops.map(({ ms }) => ms);
          entries.push({ type, isolated, variant: info.variant, promptTokens: stops[0].promptTokens, medianMs: median(times), longestMs: Math.max(...times), stops });
          for (const { finishReason, promptTokens, at, ms } of stops) {
            assert.equal(finishReason, 'aborted');
            assert.equal(promptTokens, CONTEXT - 1);
            assert.ok(ms <= MAX_STOP_MS, `the stop at token ${at} took ${ms} ms`);
          }
        } finally {
          await tab.close();
          await server.close();
        }
      });
    }
  }
});
