// SPDX-License-Identifier: MIT
// The first prompt and the first token of a fresh page are as fast as later ones: the kernels were warmed up while the model loaded
// (src/compute/cpu/warm.c). Medians over fresh pages are compared, each page with itself, so that a busy machine slows both sides.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, TOKEN, bigModel, randomPrompt } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';

const PAGES = 3;
const THREADS = 2;

/** So short that a slow beginning would show. */
const PROMPT = 16;

/** Prompts after the first, and steps of each reply. */
const LATER = 4;
const STEPS = 100;

const MAX_RATIO = 1.5;

async function freshPage(url, type, page) {
  const tab = await Tab.open(url, 'tests/bench/page/quern.js');
  try {
    await tab.call('load', { url: url + bigModel(type), threads: THREADS, contextSize: 1024 });
    const ask = (i, generate) => tab.call('stream', { prompt: randomPrompt(PROMPT, 100 * page + i), generate, token: TOKEN });
    const { prefillMs: first, gaps } = await ask(1, STEPS + 1);
    const later = [];
    for (let i = 0; i < LATER; i++) later.push((await ask(2 + i, 1)).prefillMs);
    return {
      browser: tab.version, prefillMs: { first, later: median(later) }, stepMs: { first: gaps[0], median: median(gaps), last: gaps.at(-1) },
      prefillRatio: first / median(later), stepRatio: gaps[0] / median(gaps),
    };
  } finally {
    await tab.close();
  }
}

describe('a fresh page', () => {
  const entries = [];
  let server;
  let browser;

  before(async () => { server = await serve({ root: PROJECT, csp: false }); });

  after(async () => {
    await server.close();
    record('first', entries, browser);
  });

  for (const type of ['q8_0', 'q4_k_m']) {
    test(`${type}: the first prompt and the first token are as fast as later ones`, async () => {
      const pages = [];
      for (let page = 0; page < PAGES; page++) pages.push(await freshPage(server.url, type, page));
      ({ browser } = pages[0]);
      const ratio = (name) => median(pages.map((page) => page[name]));
      entries.push({ type, threads: THREADS, prompt: PROMPT, prefillRatio: ratio('prefillRatio'), stepRatio: ratio('stepRatio'), pages });
      assert.ok(ratio('prefillRatio') < MAX_RATIO, `the first prompt took ${ratio('prefillRatio')} times as long as later ones`);
      assert.ok(ratio('stepRatio') < MAX_RATIO, `the first token took ${ratio('stepRatio')} times as long as the median one`);
    });
  }
});
