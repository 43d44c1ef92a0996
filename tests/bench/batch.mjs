// SPDX-License-Identifier: MIT
// `npm run bench -- --only batch`: what several sequences together write per second, beside llama-batched-bench of the newest native llama.cpp. Each
// repetition starts each engine afresh, one after the other; medians are compared. Each measurement is written to build/bench/batch.json at once
// (`--resume` goes on there); the finished report is batch.json and a section of bench.md in docs/benchmarks/. Sampling is in quern's times only.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { BATCHES, SHARED, batchSection, summariseBatches, withSection } from './batch-report.mjs';
import { Child } from './child.mjs';
import { FirefoxTab } from './firefox.mjs';
import { PROJECT, bigModel } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { hasNative, runBatches } from './native.mjs';
import { Tab } from './tab.mjs';

const PAGE = 'tests/bench/page/batch.js';
const SETTINGS = { contextSize: 4096, threads: 2, prompt: 24, generate: 24 };
const ENGINES = {
  quern: { variant: 'relaxed', open: (base) => Tab.open(base, PAGE) },
  native: {},
  node: { variant: 'relaxed', open: () => Child.open('tests/bench/node/batch.mjs') },
  simd: { variant: 'simd', open: (base) => Tab.open(base, PAGE) },
  firefox: { variant: 'relaxed', open: (base) => FirefoxTab.open(base, PAGE) },
};

/** quern in a fresh tab or process: every number of sequences once to warm up, then once to count; a shared prefix is read for the first time only. */
async function measureQuern(base, { variant, open }, { type, repetition }) {
  const { prompt, generate, ...settings } = SETTINGS;
  const session = await open(base);
  try {
    const loaded = await session.call('load', { url: `/${bigModel(type)}`, path: join(PROJECT, bigModel(type)), variant, parallel: Math.max(...BATCHES), ...settings });
    if (loaded.threads !== settings.threads) throw new Error(`uses ${loaded.threads} threads instead of ${settings.threads}`);
    const speeds = {};
    for (const round of [0, 1]) {
      const run = (options) => session.call('run', { prompt, generate, seed: 10 * repetition + round, ...options });
      for (const batch of BATCHES) speeds[batch] = await run({ batch });
      speeds.shared = await run({ batch: SHARED.batch, shared: SHARED.tokens });
    }
    return { version: loaded.variant, host: session.version, speeds };
  } finally {
    await session.close();
  }
}

/** Flash attention on and off: the better one of each number. */
async function measureNative(type) {
  const [one, other] = [
    await runBatches({ ...SETTINGS, path: join(PROJECT, bigModel(type)), batches: BATCHES, shared: SHARED, flash: true }),
    await runBatches({ ...SETTINGS, path: join(PROJECT, bigModel(type)), batches: BATCHES, shared: SHARED, flash: false }),
  ];
  const best = (batch) => [batch, Math.max(one.speeds[batch], other.speeds[batch])];
  return { version: one.version, speeds: Object.fromEntries([...BATCHES, 'shared'].map(best)) };
}

function begin({ resume }, path) {
  const machine = describeMachine();
  if (!resume || !existsSync(path)) return { machine, runs: [] };
  const earlier = JSON.parse(readFileSync(path, 'utf8'));
  if (earlier.machine.cpu !== machine.cpu || earlier.machine.commit !== machine.commit) throw new Error(`--resume: ${path} is of another machine or commit`);
  return earlier;
}

/** A line per run. */
function json({ runs, ...rest }) {
  const round = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value);
  return `${JSON.stringify(rest, round, 1).slice(0, -2)},\n "runs": [\n${runs.map((run) => `  ${JSON.stringify(run, round)}`).join(',\n')}\n ]\n}\n`;
}

/** @param {{types: string[], engines: string[], repeat: number, resume: boolean, out: string}} chosen */
export async function measureBatches(chosen) {
  const kept = join(PROJECT, 'build/bench/batch.json');
  const engines = chosen.engines.filter((name) => name !== 'native' || hasNative());
  const unknown = engines.filter((name) => !ENGINES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${Object.keys(ENGINES)}`);
  const report = { ...begin(chosen, kept), settings: SETTINGS };
  const server = await serve({ root: PROJECT, csp: false });
  mkdirSync(join(PROJECT, 'build/bench'), { recursive: true });
  try {
    for (let repetition = 1; repetition <= chosen.repeat; repetition++) {
      for (const [type, engine] of chosen.types.flatMap((one) => engines.map((name) => [one, name]))) {
        if (report.runs.some((run) => run.repetition === repetition && run.type === type && run.engine === engine)) continue;
        const machineLoad = loadAverage();
        const figures = engine === 'native' ? await measureNative(type) : await measureQuern(server.url, ENGINES[engine], { type, repetition });
        report.runs.push({ repetition, type, engine, machineLoad, ...figures });
        writeFileSync(kept, json(report));
        console.error(`${repetition}/${chosen.repeat} ${type} ${engine}, load ${machineLoad}: ${[...BATCHES, 'shared'].map((key) => figures.speeds[key].toFixed(1)).join(' ')}`);
      }
    }
  } finally {
    await server.close();
  }
  report.machine.browser = [...new Set(report.runs.map(({ host }) => host).filter((host) => host && !host.startsWith('Node')))].join(', ');
  const { runs, ...rest } = report;
  const finished = { ...rest, summary: summariseBatches(runs), runs };
  const folder = join(PROJECT, chosen.out);
  const page = join(folder, 'bench.md');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'batch.json'), json(finished));
  writeFileSync(page, withSection(existsSync(page) ? readFileSync(page, 'utf8') : '', batchSection(finished)));
  console.log(batchSection(finished));
}
