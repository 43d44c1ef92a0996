// SPDX-License-Identifier: MIT
// A model of Qwen3-0.6B's size loads and writes the same text in Node and Chromium, with one thread and two; while it
// loads, next to nothing is held beside its weights, and the page stays alive.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, bigModel } from '../bench/fixtures.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';
import { traced } from './trace.mjs';

const TYPES = ['q8_0', 'q4_0', 'q4_k_m', 'q6_k'];
const THREADS = [1, 2];

/** <|endoftext|> and <|im_end|>: random weights would end the reply anywhere. */
const NO_END = { 151643: -Infinity, 151645: -Infinity };
const REQUEST = { prompt: 'A quern is a hand mill: two stones, one of which turns upon the other.', maxTokens: 24, logitBias: NO_END };

/** What may be held beside the loaded model at any moment of the load. */
const MAX_EXTRA_BYTES = 16 << 20;

/** What the wasm memory may hold beside weights and KV cache, ever: it never shrinks. */
const MAX_BESIDE_BYTES = 64e6;

/** Of the plan, which is made before the weights come. */
const MAX_PLAN_ERROR = 0.03;

/** From the last byte of the download to the finished model. */
const MAX_READY_MS = 300;

/** Panels over file, bytes (MODEL.md). */
const GROWTH = { Q4_K: 148 / 144 };

/** Positions of a page of the KV cache; it has two pages more than the context needs. */
const PAGE = 32;

/** A frame of 60 per second; no task of the page's main thread may take longer. */
const MAX_TASK_MS = 16;

async function inNode(type, threads) {
  const { load } = await import(pathToFileURL(`${PROJECT}dist/node.js`));
  const model = await load(PROJECT + bigModel(type), { threads });
  try {
    const { prompt, ...options } = REQUEST;
    const { text, usage } = await model.complete(prompt, { ...options, temperature: 0 }).result;
    return { text, tokens: usage.completionTokens, info: model.info };
  } finally {
    await model.dispose();
  }
}

async function inChromium(server, type, threads) {
  const tab = await Tab.open(server.url, 'tests/big/page.js');
  try {
    const url = server.url + bigModel(type);
    const { value, wallMs, busyMs } = await traced(tab.browser, tab.page, () => tab.call('load', { url, threads }));
    const growth = await tab.growth();
    const readyMs = value.readyAt - await tab.lastByteAt(url);
    return { ...value, readyMs, wallMs, busyMs, growth, browser: tab.version, ...await tab.call('greedy', REQUEST) };
  } finally {
    await tab.close();
  }
}

/** Bytes of packed weights and of the KV cache (f16). */
function modelBytes({ types, contextSize, layers, kvHeads, headDim }) {
  const weights = Object.entries(types).reduce((sum, [name, { bytes }]) => sum + bytes * (GROWTH[name] ?? 1), 0);
  return weights + (Math.ceil(contextSize / PAGE) + 2) * PAGE * layers * kvHeads * headDim * 2 * 2;
}

function checkMemory({ memory: { planned, peak, used } }) {
  assert.ok(peak - used <= MAX_EXTRA_BYTES, `${peak - used} bytes beside the loaded model`);
  assert.ok(Math.abs(planned / peak - 1) < MAX_PLAN_ERROR, `planned ${planned}, peak ${peak}`);
}

describe('a model of 0.6 B parameters', () => {
  let server;
  const texts = [];
  const loads = [];
  let browser;

  before(async () => { server = await serve({ root: PROJECT, csp: false }); });

  after(async () => {
    await server.close();
    record('text', texts, browser);
    record('load', loads, browser);
  });

  for (const type of TYPES) {
    test(`${type} loads and writes the same in Node and Chromium, with 1 and 2 threads`, async () => {
      let first;
      const entry = { type, runs: [] };
      const check = (where, threads, { text, tokens, info }) => {
        const name = `${where} ${info.variant} ${threads} thread${threads > 1 ? 's' : ''}`;
        first ??= text;
        assert.equal(info.threads, threads);
        assert.equal(tokens, REQUEST.maxTokens);
        assert.equal(text, first, name);
        checkMemory(info);
        entry.runs.push(name);
      };
      for (const threads of THREADS) {
        check('Node', threads, await inNode(type, threads));
        const done = await inChromium(server, type, threads);
        check('Chromium', threads, done);
        browser = done.browser;
        loads.push({
          type, threads, loadMs: done.loadMs, readyMs: done.readyMs, modelBytes: modelBytes(done.info), extraBytes: done.info.memory.peak - done.info.memory.used, memory: done.info.memory,
          tabBytes: done.growth.now, tabExtraBytes: done.growth.peak - done.growth.now,
          longestTaskMs: done.wallMs, longestBusyMs: done.busyMs, longestGapMs: done.longestGapMs,
        });
        const beside = done.info.memory.wasm - modelBytes(done.info);
        assert.ok(beside < MAX_BESIDE_BYTES, `the wasm memory holds ${beside} bytes beside weights and KV cache`);
        assert.ok(done.readyMs < MAX_READY_MS, `ready ${done.readyMs} ms after the last byte`);
        assert.ok(done.busyMs < MAX_TASK_MS, `the page's main thread was busy for ${done.busyMs} ms at a stretch`);
      }
      texts.push(entry);
    });
  }
});
