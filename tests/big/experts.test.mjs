// SPDX-License-Identifier: MIT
// Experts at real size: four layers with the dimensions of Qwen3-30B-A3B run in Chromium, write what they write in Node, and a layer
// takes not much more time than native llama.cpp's. What a layer takes is the difference between four layers and one: the
// output head alone is more work than two layers.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { Child } from '../bench/child.mjs';
import { PROJECT, expertModel, randomPrompt } from '../bench/fixtures.mjs';
import { peerBest } from '../bench/peer.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';

const THREADS = 2;
const ROUNDS = 16;
const LAYERS = 4;
const PROMPT = 128;
const REPLY = 24;
const CONTEXT = 1024;

/** Speed of a layer over llama.cpp's. */
const LEAST = 0.8;

/** <|endoftext|> and <|im_end|>: random weights would end the reply anywhere. */
const NO_END = { 151643: -Infinity, 151645: -Infinity };

const quern = {
  async open(base, layers) {
    const tab = await Tab.open(base, 'tests/big/page.js');
    await tab.call('load', { url: base + expertModel(layers), threads: THREADS, contextSize: CONTEXT });
    return tab;
  },
  async answer(tab, seed) {
    const { timings, tokens } = await tab.call('greedy', { prompt: randomPrompt(PROMPT, seed), maxTokens: REPLY, logitBias: NO_END });
    assert.equal(tokens, REPLY);
    return { prefill: (1000 * PROMPT) / timings.prefillMs, decode: timings.tokensPerSecond };
  },
};

const native = {
  open: () => Child.open('tests/bench/node/llama.mjs'),
  /** With flash attention and without by turns. */
  async answer(child, seed, layers) {
    const path = join(PROJECT, expertModel(layers));
    await child.call('load', { peer: peerBest(), path, threads: THREADS, contextSize: CONTEXT, flash: seed % 2 === 0 });
    const { prefillMs, tokensPerSecond } = await child.call('complete', { prompt: randomPrompt(PROMPT, seed), generate: REPLY });
    return { prefill: (1000 * PROMPT) / prefillMs, decode: tokensPerSecond };
  },
};

const ENGINES = { 'quern, Chromium': quern, 'llama.cpp native': native };

/** Every engine with one layer and with four, loaded side by side: they answer in turn, so that whatever else runs disturbs all alike. */
async function openAll(base) {
  const open = async (engine, layers) => ({ engine, layers, session: await ENGINES[engine].open(base, layers), prefill: 0, decode: 0 });
  const all = [];
  for (const engine of Object.keys(ENGINES)) for (const layers of [1, LAYERS]) all.push(await open(engine, layers));
  return all;
}

/** The best answer counts: other programs only slow an answer down. */
async function answerInTurn(all) {
  for (let round = 0; round < ROUNDS; round++) {
    for (const one of all) {
      const { prefill, decode } = await ENGINES[one.engine].answer(one.session, round, one.layers);
      one.prefill = Math.max(one.prefill, prefill);
      one.decode = Math.max(one.decode, decode);
    }
  }
}

function summary(engine, all) {
  const [one, four] = [1, LAYERS].map((layers) => all.find((entry) => entry.engine === engine && entry.layers === layers));
  const layerMs = (1000 / four.decode - 1000 / one.decode) / (LAYERS - 1);
  return { engine, threads: THREADS, prefill: four.prefill, decode: four.decode, decodeOne: one.decode, layerMs };
}

async function inNode(request) {
  const { load } = await import(pathToFileURL(`${PROJECT}dist/node.js`));
  const model = await load(PROJECT + expertModel(LAYERS), { threads: THREADS, contextSize: CONTEXT });
  try {
    const { experts, expertsUsed, expertDim, dim, layers } = model.info;
    assert.deepEqual({ experts, expertsUsed, expertDim, dim, layers }, { experts: 128, expertsUsed: 8, expertDim: 768, dim: 2048, layers: LAYERS });
    return (await model.complete(request.prompt, { maxTokens: request.maxTokens, temperature: 0, logitBias: NO_END }).result).text;
  } finally {
    await model.dispose();
  }
}

describe('layers of Qwen3-30B-A3B', () => {
  let server;

  before(async () => { server = await serve({ root: PROJECT, csp: false }); });

  after(() => server.close());

  test('they write the same in Node and Chromium', async () => {
    const request = { prompt: randomPrompt(40, 7), maxTokens: 24, logitBias: NO_END };
    const tab = await Tab.open(server.url, 'tests/big/page.js');
    try {
      await tab.call('load', { url: server.url + expertModel(LAYERS), threads: 1, contextSize: CONTEXT });
      assert.equal((await tab.call('greedy', request)).text, await inNode(request));
    } finally {
      await tab.close();
    }
  });

  test(`a layer is at least ${LEAST} times as fast as llama.cpp's`, async (t) => {
    const all = await openAll(server.url);
    try {
      await answerInTurn(all);
    } finally {
      await Promise.all(all.map(({ session }) => session.close()));
    }
    const entries = Object.keys(ENGINES).map((engine) => summary(engine, all));
    for (const { engine, layerMs, decode } of entries) t.diagnostic(`${engine}: ${layerMs.toFixed(2)} ms a layer, ${decode.toFixed(1)} tokens/s`);
    record('experts', entries, all[0].session.version);
    const [ours, theirs] = entries;
    assert.ok(theirs.layerMs >= LEAST * ours.layerMs, `${ours.layerMs} ms a layer, llama.cpp takes ${theirs.layerMs}`);
  });
});
