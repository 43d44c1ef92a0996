// SPDX-License-Identifier: MIT
// The engines, what each is asked for, and one measurement of one of them: it is started afresh, reads a file, and answers
// prompts of several lengths, none of which begins like another.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Child } from './child.mjs';
import { FirefoxTab } from './firefox.mjs';
import { PROJECT, TOKEN, bigModel, randomPrompt } from './fixtures.mjs';
import { LlamaBench, hasNative } from './native.mjs';
import { peerAvx2, peerBest } from './peer.mjs';
import { Tab } from './tab.mjs';
import { WebKitTab } from './webkit.mjs';

/** The same for all. */
export const CONTEXT = 4096;

/**
 * A prompt and a reply, and which figures they give. A prompt that serves only to fill the context is not one: it would be a
 * figure for which engines have other best settings.
 */
export const CELLS = {
  short: { prompt: 128, generate: 32, figures: { prefill128: 'prefill', decode128: 'decode' } },
  middle: { prompt: 512, generate: 1, figures: { prefill512: 'prefill' } },
  long: { prompt: 2048, generate: 32, figures: { decode2048: 'decode' } },
  longest: { prompt: CONTEXT - 32, generate: 32, figures: { decode4064: 'decode' } },
};

/** Before anything is measured: browsers compile often used functions anew, better, while they run. */
const WARM_UP = { prompt: 64, generate: 8, figures: {} };

const QUERN = 'tests/bench/page/quern.js';
const quern = (variant) => ({ settings: () => [{ variant, store: false }] });

/** Debian's newest llama.cpp with some of its builds for different CPUs, or npm's where there is none. */
const native = (backends, peer) => ({
  open: () => (hasNative() ? new LlamaBench(backends) : Child.open('tests/bench/node/llama.mjs')),
  // Flash attention makes some cells faster and others slower: each is measured both ways, and the better one kept.
  settings: () => [true, false].map((flash) => ({ flash, ...(hasNative() ? {} : { peer: peer() }) })),
});

/** Its default is flash attention on. It would take too long both ways: off serves the long context, as in the native program. */
const wllama = {
  settings: () => [{}, { flash_attn: false }],
  known: { prefill128: 0, decode128: 0, prefill512: 0, decode2048: 1, decode4064: 1 },
};

/** In the order of a repetition. `known`: with which setting an engine is best, figure by figure; else that is found out. */
export const ENGINES = {
  quern: { ...quern('relaxed'), name: 'quern, Chromium', open: (base, profile) => Tab.open(base, QUERN, profile) },
  native: { ...native('all', peerBest), name: 'llama.cpp native, best build' },
  simd: { ...quern('simd'), name: 'quern, Chromium without relaxed SIMD', open: (base) => Tab.open(base, QUERN) },
  webkit: { ...quern('simd'), name: 'quern, WebKit', open: (base) => WebKitTab.open(base, QUERN) },
  firefox: { ...quern('relaxed'), name: 'quern, Firefox', open: (base) => FirefoxTab.open(base, QUERN) },
  avx2: { ...native('avx2', peerAvx2), name: 'llama.cpp native, AVX2 build' },
  node: { ...quern('relaxed'), name: 'quern, Node', open: () => Child.open('tests/bench/node/quern.mjs') },
  wllama: { ...wllama, name: 'wllama, Chromium', open: (base, profile) => Tab.open(base, 'tests/bench/page/wllama.js', profile) },
};

/** One prompt and its reply. @returns {Promise<{prefill: number, decode: number}>} tokens per second */
async function answer(session, cell, seed) {
  if (session instanceof LlamaBench) return session.call('answer', cell);
  const { prompt, generate } = cell;
  const done = await session.call('complete', { prompt: randomPrompt(prompt, seed), generate, token: TOKEN });
  if (done.promptTokens !== prompt || done.tokens !== generate) {
    throw new Error(`read ${done.promptTokens} instead of ${prompt} tokens, wrote ${done.tokens} instead of ${generate}`);
  }
  return { prefill: (1000 * prompt) / done.prefillMs, decode: done.tokensPerSecond };
}

/** The cells that give a figure whose best setting is this one, or not known yet. */
const cellsFor = (cells, best, setting) => cells.filter((cell) => Object.keys(CELLS[cell].figures).some((name) => (best[name] ?? setting) === setting));

/** Takes over the figures that are better, and notes with which setting they came. */
function keepBetter(run, figures, setting) {
  for (const [name, value] of Object.entries(figures)) {
    if (run[name] >= value) continue;
    run[name] = value;
    run.best[name] = setting;
  }
}

async function measureCells(session, cells, seed) {
  const figures = {};
  await answer(session, WARM_UP, 100 * seed);
  for (const [i, cell] of cells.entries()) {
    const speeds = await answer(session, CELLS[cell], 100 * seed + i + 1);
    for (const [name, speed] of Object.entries(CELLS[cell].figures)) figures[name] = speeds[speed];
  }
  return figures;
}

/** Load, readiness and memory, as the first of the settings shows them. */
async function loadFigures(session, url, loaded) {
  const readyMs = session.lastByteAt ? loaded.readyAt - await session.lastByteAt(url) : undefined;
  return { version: loaded.version, host: session.version, loadMs: loaded.ms, readyMs, weightBytes: loaded.weightBytes, kvBytes: loaded.kvBytes };
}

/**
 * @param {string} base of a server over the project
 * @param {{type: string, threads: number, seed: number, cells: string[], best: Record<string, number>}} wanted
 *   `best`: of an engine with several settings, which one served a figure best in an earlier repetition
 * @returns {Promise<object>} the figures, speeds in tokens per second
 */
export async function measure(base, engine, { type, threads, seed, cells, best }) {
  const { open, settings, known = {} } = ENGINES[engine];
  const file = bigModel(type);
  const session = await open(base);
  const run = { best: {} };
  try {
    for (const [setting, options] of settings().entries()) {
      const mine = cellsFor(cells, { ...best, ...known }, setting);
      if (!mine.length) continue;
      const loaded = await session.call('load', { url: session instanceof Child ? undefined : base + file, path: join(PROJECT, file), threads, contextSize: CONTEXT, ...options });
      if (loaded.threads !== threads) throw new Error(`uses ${loaded.threads} threads instead of ${threads}`);
      const first = run.loadMs === undefined;
      if (first) Object.assign(run, await loadFigures(session, base + file, loaded));
      keepBetter(run, await measureCells(session, mine, seed), setting);
      if (first) run.peakBytes = await session.peak();
    }
    return run;
  } catch (error) {
    throw new Error(`${engine}, ${type}, ${threads} threads: ${error.message}`, { cause: error });
  } finally {
    await session.close();
  }
}

/** A page that nobody warmed up: the steps of its first reply, and the reading of its first and third prompt. */
export async function measureFirst(base, { type, threads, seed }) {
  const { settings: [options], open } = { ...ENGINES.quern, settings: ENGINES.quern.settings() };
  const session = await open(base);
  try {
    await session.call('load', { url: base + bigModel(type), threads, contextSize: CONTEXT, ...options });
    const ask = (prompt, generate) => session.call('stream', { prompt: randomPrompt(128, 100 * seed + prompt), generate, token: TOKEN });
    const { prefillMs: first, gaps } = await ask(11, 101);
    await ask(12, 1);
    const { prefillMs: third } = await ask(13, 1);
    if (gaps.length !== 100) throw new Error(`${gaps.length} steps arrived apart instead of 100`);
    return { prefillFirst: 128_000 / first, prefillThird: 128_000 / third, gaps };
  } finally {
    await session.close();
  }
}

/** Loading by way of the engine's own store: the first time, and the second in a browser started anew. */
export async function measureStore(base, engine, { type, threads }) {
  const profile = mkdtempSync(join(tmpdir(), 'profile-'));
  const load = async () => {
    const session = await ENGINES[engine].open(base, profile);
    try {
      const { ms } = await session.call('loadKept', { url: base + bigModel(type), threads, contextSize: CONTEXT });
      return { ms, peakBytes: await session.peak() };
    } finally {
      await session.close();
    }
  };
  try {
    return { cold: await load(), warm: await load() };
  } finally {
    rmSync(profile, { recursive: true, force: true });
  }
}
