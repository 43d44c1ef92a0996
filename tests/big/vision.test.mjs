// SPDX-License-Identifier: MIT
// Qwen3-VL-2B's real dimensions with random weights (encoder 24 blocks of 1,024, text 28 layers of 2,048, Q8_0) in Chromium: memory as planned, a page
// that stays alive, stops within 200 ms while an image of 1,024 x 1,024 is looked at, and rows of images read as fast as those of text.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, bigProjector, randomPrompt, seeingModel } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { soon } from '../js/support/soon.mjs';
import { record } from './results.mjs';
import { traced } from './trace.mjs';

const CONTEXT = 2048;
const MAX_STOP_MS = 200;
const MAX_TASK_MS = 16;

/** Rows of images may be so much slower, by the best of so many rounds. */
const MAX_SLOWER = 1.05;
const ROUNDS = 5;

/** Pixels a side: what is stopped, and what is read. */
const LARGE = 1024;
const USUAL = 512;

/** Milliseconds after the first report of looking. */
const DELAYS = [5, 70, 150];

describe('a model that sees, of 2 B parameters', () => {
  const entries = [];
  let server;
  let browser;

  before(async () => { server = await serve({ root: PROJECT, csp: false }); });

  after(async () => {
    await server.close();
    record('vision', entries, browser);
  });

  async function withModel(threads, work) {
    const tab = await Tab.open(server.url, 'tests/big/vision-page.js');
    browser = tab.version;
    try {
      const { variant } = await tab.call('load', {
        url: server.url + seeingModel(), vision: server.url + bigProjector('q8_0'), threads, contextSize: CONTEXT, visionOptions: { maxPixels: LARGE ** 2 },
      });
      return await work(tab, { threads, variant });
    } finally {
      await tab.close();
    }
  }

  /** Each kind of end after each delay, the best of four: what else the machine does makes it later. */
  async function stops(tab) {
    const all = [];
    for (const isAborted of [false, true]) {
      for (const delay of DELAYS) {
        await soon(MAX_STOP_MS, async () => {
          const at = await tab.call('prepare', { side: LARGE, seeds: [all.length] });
          const stop = await tab.call('stopLooking', { at, delay, isAborted });
          assert.ok(stop.done < stop.total && stop.total === LARGE ** 2 / 1024, `${stop.done} of ${stop.total}`);
          assert.equal(stop.outcome, isAborted ? 'AbortError' : 'aborted');
          all.push({ ...stop, isAborted, delay });
          return stop.ms;
        });
      }
    }
    return all;
  }

  /** Looking once while a trace runs, then images and texts of as many tokens in turn. */
  async function speeds(tab) {
    const at = await tab.call('prepare', { side: USUAL, seeds: Array.from({ length: 1 + ROUNDS }, (_, i) => 100 + i) });
    const { value, busyMs } = await traced(tab.browser, tab.page, () => tab.call('readImage', { at }));
    assert.equal(value.usage.imageTokens, USUAL ** 2 / 1024);
    const rates = { image: [], text: [] };
    for (let i = 1; i <= ROUNDS; i++) {
      rates.text.push((await tab.call('readText', { prompt: randomPrompt(value.usage.promptTokens, i) })).rate);
      rates.image.push((await tab.call('readImage', { at: at + i })).rate);
    }
    return { busyMs, rates };
  }

  for (const threads of [1, 2]) {
    test(`Q8_0, ${threads} thread${threads > 1 ? 's' : ''}`, () => withModel(threads, async (tab, about) => {
      const stopped = await stops(tab);
      const { busyMs, rates } = threads > 1 ? await speeds(tab) : {};
      const memory = await tab.call('memory');
      const times = stopped.map(({ ms }) => ms);
      entries.push({ type: 'q8_0', ...about, memory, stops: stopped, medianMs: median(times), longestMs: Math.max(...times), longestBusyMs: busyMs, rates });
      assert.ok(memory.peak <= memory.planned, `planned ${memory.planned}, peak ${memory.peak}`);
      if (!rates) return;
      assert.ok(busyMs < MAX_TASK_MS, `the page's main thread was busy for ${busyMs} ms at a stretch`);
      const [image, text] = [rates.image, rates.text].map((all) => Math.max(...all));
      assert.ok(text <= MAX_SLOWER * image, `${image} tokens a second of images, ${text} of text`);
    }));
  }
});
