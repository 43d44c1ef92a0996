#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// `npm run bench`: quern beside wllama in the same Chromium, and quern in Node, on a model with Qwen3-0.6B's dimensions.
// Every repetition starts each engine afresh, one after the other, so that what else the machine does hits all alike, and
// memory is one engine's own. Medians of all repetitions are compared; docs/benchmarks/ gets them as JSON and Markdown.
//
//   node tests/bench/bench.mjs [--types q8_0,q4_k_m] [--threads 2] [--repeat 3] [--quick] [--out DIR]
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, bigModel, randomPrompt } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { markdown, summarise } from './report.mjs';
import { Tab } from './tab.mjs';

const PROMPT = 128;
const GENERATE = 32;
const CONTEXT = 1024;    // wllama's default

/** Before anything is measured: browsers compile often used functions anew, better, while they run. */
const WARM_UP = { prompt: 32, generate: 4 };

/**
 * " the": the token that a bias makes the only likely one. Random weights write noise, whose pieces of characters wllama
 * fails on; and an end token would end the reply. Which token is taken costs neither engine anything.
 */
const TOKEN = 279;

/** What each engine is asked for: all that its interface offers for speed on a CPU. */
const SETTINGS = { quern: { variant: 'relaxed' }, wllama: {} };

const perSecond = (n, ms) => (1000 * n) / ms;

/** One load, one prompt, one reply in a fresh browser. */
async function measureTab(server, engine, { type, threads, seed }) {
  const tab = await Tab.open(server.url, `tests/bench/page/${engine}.js`);
  try {
    const url = server.url + bigModel(type);
    const loaded = await tab.call('load', { url, threads, contextSize: CONTEXT, ...SETTINGS[engine] });
    await tab.call('complete', { prompt: randomPrompt(WARM_UP.prompt, seed + 100), generate: WARM_UP.generate, token: TOKEN });
    const done = await tab.call('complete', { prompt: randomPrompt(PROMPT, seed), generate: GENERATE, token: TOKEN });
    if (loaded.threads !== threads) throw new Error(`${engine} uses ${loaded.threads} threads instead of ${threads}`);
    if (done.promptTokens !== PROMPT || done.tokens !== GENERATE) throw new Error(`${engine} read ${done.promptTokens} and wrote ${done.tokens} tokens`);
    return {
      browser: tab.version, version: loaded.version,
      prefill: perSecond(PROMPT, done.prefillMs), decode: done.tokensPerSecond,
      loadMs: loaded.ms, readyMs: loaded.readyAt - await tab.lastByteAt(url), peakBytes: (await tab.growth()).peak,
    };
  } finally {
    await tab.close();
  }
}

/** The command line in a process of its own. */
async function measureNode({ type, threads }) {
  const args = ['dist/cli.js', 'bench', bigModel(type), '--json', '--threads', threads, '--prompt', PROMPT, '--generate', GENERATE, '--context', CONTEXT];
  const { stdout } = await promisify(execFile)(process.execPath, args.map(String), { cwd: PROJECT });
  const figures = JSON.parse(stdout);
  return { version: figures.variant, prefill: figures.prefill_tps, decode: figures.decode_tps, loadMs: figures.load_ms, engineBytes: figures.peak_bytes };
}

/** In the order of a repetition. */
const ENGINES = {
  quern: (server, run) => measureTab(server, 'quern', run),
  wllama: (server, run) => measureTab(server, 'wllama', run),
  'quern-node': (server, run) => measureNode(run),
};

function options() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { types: text, threads: text, repeat: text, out: text, quick: { type: 'boolean' } } });
  const list = (value) => value.split(',').filter(Boolean);
  return {
    types: list(values.types ?? (values.quick ? 'q8_0' : 'q8_0,q4_k_m')),
    threads: list(values.threads ?? String(Math.min(4, availableParallelism()))).map(Number),
    repeat: Number(values.repeat ?? (values.quick ? 1 : 3)),
    out: values.out ?? (values.quick ? 'build/bench' : 'docs/benchmarks'),
  };
}

async function measureAll(server, { types, threads, repeat }) {
  const runs = [];
  for (let seed = 1; seed <= repeat; seed++) {
    for (const type of types) {
      for (const n of threads) {
        for (const [engine, measure] of Object.entries(ENGINES)) {
          const load = loadAverage();
          const figures = await measure(server, { type, threads: n, seed });
          runs.push({ engine, type, threads: n, repetition: seed, machineLoad: load, ...figures });
          console.error(`${seed}/${repeat} ${type} ${n} threads ${engine}: prefill ${figures.prefill.toFixed(1)}, decode ${figures.decode.toFixed(1)} tokens/s, `
            + `ready in ${(figures.loadMs / 1000).toFixed(1)} s (machine load ${load})`);
        }
      }
    }
  }
  return runs;
}

async function main() {
  const chosen = options();
  const server = await serve({ root: PROJECT, csp: false });    // wllama starts its workers from blobs
  try {
    const runs = await measureAll(server, chosen);
    const machine = describeMachine(runs.find(({ browser }) => browser).browser);
    const settings = { prompt: PROMPT, generate: GENERATE, contextSize: CONTEXT, repeat: chosen.repeat, ...SETTINGS };
    const report = { machine, settings, summary: summarise(runs), runs };
    const text = markdown(report);
    const out = join(PROJECT, chosen.out);
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, 'bench.json'), `${JSON.stringify(report, null, 2)}\n`);
    writeFileSync(join(out, 'bench.md'), text);
    console.log(text);
  } finally {
    await server.close();
  }
}

await main();
