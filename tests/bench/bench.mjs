#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// `npm run bench`: quern in Chromium (with relaxed SIMD and without), WebKit, Firefox and Node beside llama.cpp as wasm (wllama, same Chromium)
// and as a native program, on models with Qwen3-0.6B's dimensions. Every repetition starts each engine afresh, one after the other, so that
// what else the machine does hits all, and memory is one engine's own. Medians of all repetitions are compared.
// Each measurement is written to build/bench/bench.json at once; `--resume` goes on there. The finished report goes to docs/benchmarks/.
//
//   node tests/bench/bench.mjs --only serve ...   servers instead: see serve.mjs
//   node tests/bench/bench.mjs --only drafts ...  what drafts gain: see drafts.mjs
//   node tests/bench/bench.mjs --only embed ...   vectors of texts: see embed.mjs
//   node tests/bench/bench.mjs --only masks ...   limits of replies: see masks.mjs
//   node tests/bench/bench.mjs --only vision ...  looking at an image: see looks.mjs
//   node tests/bench/bench.mjs [--types q8_0,q4_k_m] [--threads 1,2] [--engines quern,native] [--repeat 3] [--quick] [--all] [--resume] [--out DIR]
//   node tests/bench/bench.mjs --only batch [--types ...] [--engines quern,native,node,simd,firefox] [--repeat 5] [--resume] [--out DIR]    see batch.mjs
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { readBandwidth } from './bandwidth.mjs';
import { BARRIER_THREADS, readBarriers } from './barriers.mjs';
import { batchSection, withSection } from './batch-report.mjs';
import { measureBatches } from './batch.mjs';
import { chart } from './chart.mjs';
import { measureDrafts } from './drafts.mjs';
import { measureVectors } from './embed.mjs';
import { CELLS, CONTEXT, ENGINES, measure, measureFirst, measureStore } from './engines.mjs';
import { PROJECT } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { measureLooks } from './looks.mjs';
import { measureMaskCosts } from './masks.mjs';
import { markdown, summarise } from './report.mjs';
import { measureServers } from './serve.mjs';
import { shippedSizes } from './sizes.mjs';

const PROGRESS = 'build/bench/bench.json';

/**
 * In how many repetitions a cell is measured: the slow ones in fewer, so that a run takes somewhat over an hour and not five. wllama needs
 * minutes to read 2,048 tokens. `--all` measures every cell in every repetition.
 */
const OFTEN = {
  quern: { most: { short: Infinity, middle: Infinity, long: 2, longest: 2 }, fewer: { short: 2, middle: 2 } },
  native: { most: { short: Infinity, middle: Infinity, long: 2, longest: 2 }, fewer: { short: 2, middle: 2 } },
  simd: { most: { short: Infinity, middle: Infinity, long: 1 }, fewer: {} },
  webkit: { most: { short: Infinity, middle: Infinity, long: 1 }, fewer: {} },
  firefox: { most: { short: Infinity, middle: Infinity, long: 1 }, fewer: { short: 1, middle: 1 } },
  avx2: { most: { short: Infinity, middle: Infinity }, fewer: {} },
  node: { most: { short: Infinity, middle: Infinity }, fewer: { short: 1, middle: 1 } },
  wllama: { most: { short: 1, middle: 1 }, fewer: { short: 1 } },
};

/** Load above which native llama.cpp, whose threads spin while they wait, gets slow out of all proportion. */
const BUSY = 1;

/** Engines that keep a model in the browser. */
const STORING = ['quern', 'wllama'];

/** The cells of one engine in one repetition, counted from 1. */
function plan(engine, isMost, repetition, { quick, all }) {
  const often = OFTEN[engine][isMost ? 'most' : 'fewer'];
  if (quick) return ['short', 'middle'].filter((cell) => engine !== 'wllama' || cell === 'short');
  return Object.keys(CELLS).filter((cell) => all || repetition <= (often[cell] ?? 0));
}

function options() {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const { values } = parseArgs({ options: { only: text, types: text, threads: text, engines: text, repeat: text, out: text, quick: flag, all: flag, resume: flag } });
  const { only, quick, all, resume } = values;
  const list = (value) => value.split(',').filter(Boolean);
  if (only === 'batch') {
    const { types = 'q8_0,q4_0,q4_k_m', engines = 'quern,native,node', repeat = 5, out = 'docs/benchmarks' } = values;
    return { only, resume, types: list(types), engines: list(engines), repeat: Number(repeat), out };
  }
  if (only) throw new Error(`--only: there is no '${only}', but batch, drafts, embed, masks, serve and vision`);
  const engines = list(values.engines ?? Object.keys(ENGINES).join());
  const unknown = engines.filter((name) => !ENGINES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${Object.keys(ENGINES)}`);
  return {
    quick, all, resume, engines,
    types: list(values.types ?? (quick ? 'q4_0' : 'q8_0,q4_0,q4_k_m,q6_k')),
    threads: list(values.threads ?? (quick ? '2' : '1,2')).map(Number),
    repeat: Number(values.repeat ?? (quick ? 1 : 3)),
    out: values.out ?? (quick ? 'build/bench' : 'docs/benchmarks'),
  };
}

/** Everything that is to be measured, in order. */
function jobs({ types, threads, engines, repeat, ...how }) {
  const most = Math.max(...threads);
  const list = [];
  for (let repetition = 1; repetition <= repeat; repetition++) {
    for (const n of threads) list.push({ repetition, kind: 'bandwidth', threads: n });
    if (engines.includes('node')) for (const n of BARRIER_THREADS) list.push({ repetition, kind: 'barriers', type: types[0], threads: n });
    for (const type of types) {
      for (const n of threads) {
        for (const engine of engines) {
          const cells = plan(engine, n === most, repetition, how);
          if (cells.length) list.push({ repetition, kind: 'speed', type, threads: n, engine, cells });
        }
      }
      if (engines.includes('quern')) list.push({ repetition, kind: 'first', type, threads: most });
      for (const engine of STORING) if (type === 'q8_0' && engines.includes(engine)) list.push({ repetition, kind: 'store', type, threads: most, engine });
    }
  }
  return list;
}

const isSame = (job) => (run) => ['repetition', 'kind', 'type', 'threads', 'engine'].every((key) => job[key] === run[key]);

/** With which setting an engine with several got each figure in the repetitions before. */
function bestSettings(runs, { type, threads, engine }) {
  return Object.assign({}, ...runs.filter((run) => run.engine === engine && run.type === type && run.threads === threads).map(({ best }) => best));
}

const WORK = {
  bandwidth: (server, { threads }) => ({ bytesPerSecond: readBandwidth(threads) }),
  barriers: (server, { type, threads }) => readBarriers(type, threads),
  store: (server, job) => measureStore(server.url, job.engine, job),
  first: (server, { type, threads, repetition }) => measureFirst(server.url, { type, threads, seed: repetition }),
  speed: (server, job, runs) => measure(server.url, job.engine, { ...job, seed: job.repetition, best: bestSettings(runs, job) }),
};

/** What a line of progress says about a measurement. */
function describe({ kind, bytesPerSecond, prefillFirst, gaps, loadMs, ...run }) {
  if (kind === 'store') return `loaded in ${(run.cold.ms / 1000).toFixed(1)} s, again in ${(run.warm.ms / 1000).toFixed(1)} s`;
  if (kind === 'bandwidth') return `${(bytesPerSecond / 1e9).toFixed(1)} GB/s`;
  if (kind === 'barriers') return `${run.perToken.toFixed(0)} a token, ${run.us.toFixed(2)} us each`;
  if (kind === 'first') return `first prompt ${prefillFirst.toFixed(1)} tokens/s, first step ${gaps[0].toFixed(1)} ms, hundredth ${gaps[99].toFixed(1)} ms`;
  const speeds = Object.values(CELLS).flatMap(({ figures }) => Object.keys(figures)).filter((name) => run[name]);
  return `${speeds.map((name) => `${name} ${run[name].toFixed(1)}`).join(', ')} tokens/s, loaded in ${(loadMs / 1000).toFixed(1)} s`;
}

/** JSON with a line per run, fractions to six digits. */
function json({ runs, ...rest }) {
  const round = (key, value) => (typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value);
  const head = JSON.stringify(rest, round, 2).slice(0, -2);
  return `${head},\n  "runs": [\n${runs.map((run) => `    ${JSON.stringify(run, round)}`).join(',\n')}\n  ]\n}\n`;
}

/** A measurement; one more try when it fails, as browsers do now and then. */
async function attempt(server, job, runs) {
  try {
    return await WORK[job.kind](server, job, runs);
  } catch (error) {
    console.error(`again: ${error.message}`);
    return WORK[job.kind](server, job, runs);
  }
}

/**
 * @param {object} report in which `runs` grows; `save` is called after each measurement
 * @returns {Promise<number>} how many measurements failed; `--resume` tries only those again
 */
async function measureAll(server, chosen, { runs }, save) {
  const list = jobs(chosen);
  const began = Date.now();
  let failed = 0;
  for (const [i, job] of list.entries()) {
    if (runs.some(isSame(job))) continue;
    const { cells, ...key } = job;
    const machineLoad = loadAverage();
    const lead = `${job.repetition}/${chosen.repeat} ${[job.type, `${job.threads} threads`, job.engine ?? job.kind].filter(Boolean).join(' ')}`;
    const figures = await attempt(server, job, runs).catch((error) => { console.error(`${lead} failed: ${error.stack}`); });
    if (!figures) {
      failed++;
      continue;
    }
    runs.push({ ...key, machineLoad, ...figures });
    save();
    console.error(`[${((Date.now() - began) / 60_000).toFixed(1)} min, ${i + 1}/${list.length}, load ${machineLoad}] ${lead}: ${describe({ ...job, ...figures })}`);
  }
  return failed;
}

/** An interrupted run goes on only with the same code on the same machine. */
function begin({ resume }) {
  const machine = describeMachine();
  const path = join(PROJECT, PROGRESS);
  if (!resume) return { machine, runs: [] };
  const earlier = JSON.parse(readFileSync(path, 'utf8'));
  for (const key of ['cpu', 'node', 'commit']) {
    if (earlier.machine[key] !== machine[key]) throw new Error(`--resume: ${PROGRESS} is of another ${key}: ${earlier.machine[key]}`);
  }
  return earlier;
}

async function main() {
  const chosen = options();
  if (chosen.only) return measureBatches(chosen);
  if (loadAverage() > BUSY) console.error(`bench: the machine is busy (load ${loadAverage()}): native llama.cpp suffers most, so claim nothing from this run`);
  const report = { ...begin(chosen), settings: { cells: CELLS, contextSize: CONTEXT, repeat: chosen.repeat }, sizes: await shippedSizes() };
  const write = (folder, name, text) => {
    mkdirSync(join(PROJECT, folder), { recursive: true });
    writeFileSync(join(PROJECT, folder, name), text);
  };
  const save = () => write('build/bench', 'bench.json', json(report));
  const server = await serve({ root: PROJECT, csp: false });    // wllama starts its workers from blobs
  try {
    const failed = await measureAll(server, chosen, report, save);
    if (failed) {
      console.error(`bench: ${failed} measurements failed; --resume tries them again`);
      process.exitCode = 1;
    }
  } finally {
    await server.close();
  }
  const hosts = report.runs.map(({ host }) => host).filter(Boolean);
  report.machine.browser = [...new Set(hosts)].filter((host) => !host.startsWith('Node')).join(', ');
  const { runs, ...rest } = report;
  const finished = { ...rest, summary: summarise(runs), runs };
  const batches = join(PROJECT, chosen.out, 'batch.json');
  const text = existsSync(batches) ? withSection(markdown(finished), batchSection(JSON.parse(readFileSync(batches, 'utf8')))) : markdown(finished);
  write(chosen.out, 'bench.json', json(finished));
  write(chosen.out, 'bench.md', text);
  write(chosen.out, 'bench.svg', chart(finished));
  console.log(text);
  return undefined;
}

const [, only] = /(?:^| )--only[= ](drafts|embed|masks|serve|vision)\b/.exec(process.argv.slice(2).join(' ')) ?? [];
const OTHERS = { drafts: measureDrafts, embed: measureVectors, masks: measureMaskCosts, serve: measureServers, vision: measureLooks };
await (OTHERS[only] ?? main)();
