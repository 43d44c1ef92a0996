// SPDX-License-Identifier: MIT
// The benchmark's own arithmetic: medians, ratios, tables and the chart.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BATCHES, batchSection, judge, summariseBatches, withSection } from '../../bench/batch-report.mjs';
import { chart, escapeText } from '../../bench/chart.mjs';
import { processFamily } from '../../bench/machine.mjs';
import { describeBuild } from '../../bench/native.mjs';
import { quantile, serveReport, summary } from '../../bench/serve-report.mjs';
import { markdown, median, ratio, spread, summarise, table } from '../../bench/report.mjs';

const speed = (engine, repetition, figures, threads = 2) => ({
  kind: 'speed', engine, type: 'q8_0', threads, repetition, machineLoad: 0.5, version: `v ${engine}`, host: 'Browser 1', best: {},
  weightBytes: 600e6, kvBytes: 100_000, loadMs: 1000, readyMs: 20, peakBytes: 7e8, ...figures,
});

const RUNS = [
  { kind: 'bandwidth', threads: 2, repetition: 1, bytesPerSecond: 20e9, machineLoad: 0.5 },
  speed('quern', 1, { prefill128: 10, prefill512: 20, decode128: 30, decode2048: 20, decode4064: 10 }),
  speed('quern', 2, { prefill128: 30, prefill512: 40, decode128: 10 }),
  speed('quern', 3, { prefill128: 20, prefill512: 30, decode128: 20 }),
  speed('simd', 1, { prefill128: 15, prefill512: 24, decode128: 16 }),
  speed('native', 1, { prefill128: 10, prefill512: 15, decode128: 25, decode2048: 10, loadMs: 500 }),
  speed('quern', 1, { prefill128: 10, prefill512: 15, decode128: 16 }, 1),
  { kind: 'first', type: 'q8_0', threads: 2, repetition: 1, machineLoad: 1.5, prefillFirst: 100, prefillThird: 120, gaps: Array.from({ length: 100 }, (_, i) => 1 + i) },
];

const machine = { cpu: 'A <CPU> & more', cores: 2, flags: ['avx2'], memoryGiB: 8, browser: 'Browser 1', node: 'v1', commit: 'abc', date: '2026-01-01' };
const size = { raw: 3000, gzip: 2000, brotli: 1000 };
const report = { machine, settings: { contextSize: 4096, repeat: 3 }, sizes: { quern: { wasm: size, js: size } }, summary: summarise(RUNS), runs: RUNS };

test('medians of odd and even numbers of values, in any order', () => {
  assert.equal(median([10, 9, 100]), 10);
  assert.equal(median([4, 1, 3, 2]), 2.5);
  assert.deepEqual(spread([3, undefined, 1]), { median: 2, min: 1, max: 3, n: 2 });
  assert.equal(spread([undefined]), undefined);
});

test('runs become medians by file, threads and engine', () => {
  const [one, two] = report.summary.cases;
  assert.deepEqual([one.threads, two.threads], [1, 2]);
  assert.deepEqual(two.engines.quern.prefill128, { median: 20, min: 10, max: 30, n: 3 });
  assert.deepEqual(two.engines.quern.decode2048, { median: 20, min: 20, max: 20, n: 1 });
  assert.equal(one.engines.quern.decode2048, undefined);
  assert.deepEqual(report.summary.first.q8_0.stepMs, { first: 1, second: 2, hundredth: 100, lastTen: 95.5 });
});

test('a ratio above one means better, for speeds and for times', () => {
  const [one, { engines: { quern, native } }] = report.summary.cases;
  assert.equal(ratio('prefill512', quern, native), 2);
  assert.equal(ratio('loadMs', quern, native), 0.5);
  assert.equal(ratio('decode2048', one.engines.quern, native), undefined);
});

test('the report holds the figures, the ratios and the share of the bandwidth', () => {
  const text = markdown(report);
  assert.match(text, /\| quern, Chromium \(v quern\) \| 2 \| 20\.0 \| 30\.0 \| 20\.0 \| 20\.0 \| 10\.0 \| 1\.00 \| 0\.020 \| 700 \|/);
  assert.match(text, /\| quern, Chromium : llama\.cpp native, best build \| Q8_0 \| 2 \| 2\.00 \| 2\.00 \| 0\.80 \| 2\.00 \|/);
  assert.match(text, /\| quern, Chromium without relaxed SIMD : quern, Chromium \| Q8_0 \| 2 \| 0\.75 \| 0\.80 \| 0\.80 \|/);
  assert.match(text, /\| quern, Chromium \| Q8_0 \| 2 : 1 \| 2\.00 \| 2\.00 \| 1\.25 \|  \|/);
  assert.match(text, /\| quern, Chromium \| Q8_0 \| 2 \| 12\.3 \| 61 % \| 1\.00 \| 1\.31 \| 2\.00 \| 1\.64 \|/);     // 20 x (600e6 + 144e5) bytes of 20e9
  assert.doesNotMatch(text, /undefined|NaN/);
});

test('a table keeps its columns whatever is in them', () => {
  assert.equal(table(['a', 'b'], [['x|y', 1]]), '| a | b |\n| --- | --: |\n| x\\|y | 1 |\n');
});

test('the chart is text that no name breaks, with a bar per figure', () => {
  assert.equal(escapeText('<a & "b">'), '&#60;a &#38; &#34;b&#34;&#62;');
  const svg = chart(report);
  assert.match(svg, /A &#60;CPU&#62; &#38; more, 2 threads/);
  const bars = [...svg.matchAll(/<rect class="(\w+)" x="[\d.]+" y="[\d.]+" width="26" height="([\d.]+)"/g)].map(([, name, height]) => [name, Number(height)]);
  assert.deepEqual(bars, [['simd', 131.2], ['quern', 164], ['native', 82], ['simd', 105], ['quern', 131.2], ['native', 164]]);
});

/** Speeds at the numbers of sequences that are measured. */
const speeds = (...values) => Object.fromEntries([...BATCHES, 'shared'].map((key, i) => [key, values[i]]));
const batchRun = (engine, repetition, ...values) => ({ repetition, type: 'q8_0', engine, machineLoad: 0.5, version: `v ${engine}`, speeds: speeds(...values) });
const BATCH_RUNS = [
  batchRun('quern', 1, 40, 50, 60, 64, 64, 63.6, 64, 68, 40),
  batchRun('quern', 2, 42, 54, 62, 66, 66, 65.6, 66, 70, 36),
  batchRun('native', 1, 41, 40, 50, 50, 60, 60, 70, 75, 50),
];

test('medians of batches, and the goals judged by them', () => {
  const { quern, native } = summariseBatches(BATCH_RUNS).q8_0;
  assert.deepEqual(quern[2], { median: 52, min: 50, max: 54, n: 2 });
  assert.deepEqual(judge(quern, native), { G1: [], G2: ['8 (1.08, goal 1.15)'], G3: ['16 (1.68, goal 1.7)'], G5: ['8, shared (1.70 times as long, goal 1.5)'] });
  const worse = summariseBatches([batchRun('quern', 1, 40, 39, 60, 64, 64, 64, 64, 68)]).q8_0.quern;
  assert.deepEqual(judge(worse), { G1: ['1 to 2 (0.97)'], G2: undefined, G3: ['2 (0.97, goal 1.25)'], G5: undefined });
});

test('the section of batches is the last of the page, and takes its own place', () => {
  const section = batchSection({ machine, settings: { prompt: 24, generate: 24, threads: 2 }, summary: summariseBatches(BATCH_RUNS), runs: BATCH_RUNS });
  assert.match(section, /\| quern, Chromium \| 41\.0 \| 52\.0 \| 61\.0 \| 65\.0 \| 65\.0 \| 64.6 \| 65\.0 \| 69\.0 \| 38\.0 \|/);
  assert.match(section, /\| quern, Chromium : native \| 1\.00 \| 1\.30 \| 1\.22 \| 1\.30 \| 1\.08 \| 1\.08 \| 0\.93 \| 0\.92 \| 0\.76 \|/);
  assert.match(section, /never falls \(G1\): reached; over native \(G2\): missed at 8 \(1\.08, goal 1\.15\); over one alone \(G3\): missed at 16 \(1\.68, goal 1\.7\); over a shared prefix \(G5\): missed at 8, shared/);
  const page = withSection(markdown(report), section);
  assert.equal(withSection(page, section), page);
  assert.ok(page.startsWith('# Benchmark') && page.endsWith(section));
});

test('llama.cpp\'s build is told by its log, with the instructions that decide its speed', () => {
  const told = (name) => describeBuild(`failed to enumerate /a\nload_backend: loaded CPU backend from /a b/libggml-cpu-${name}.so\nllama-bench: starting`);
  assert.deepEqual(['zen4', 'haswell', 'sse42'].map(told), ['AVX-512: zen4', 'AVX2: haswell', 'sse42']);
  assert.equal(describeBuild(''), 'unknown');
});

test('a process family begins with the process and holds its children only', () => {
  const family = processFamily(process.pid);
  assert.equal(family[0], process.pid);
  assert.ok(!family.includes(process.ppid));
});

test('servers: medians of the repetitions, quantiles of all requests', () => {
  assert.deepEqual([quantile([5], 0.95), quantile([3, 1, 2], 0.5), quantile(Array.from({ length: 100 }, (_, i) => i), 0.95), quantile([1, 2], 1)], [5, 2, 95, 2]);
  const run = (server, repetition, tokens, first) => ({ server, repetition, scene: 'chat', clients: 4, seconds: 2, requests: 4, tokens, first, gaps: [10, 30], machineLoad: 0.5 });
  const { loops, load } = summary([run('quern', 1, 100, [50]), run('llama', 1, 60, [80]), run('quern', 2, 300, [70]), run('quern', 3, 200, [60])]);
  const [quern, llama] = loops;
  assert.deepEqual([quern.tokensPerSecond, quern.requestsPerSecond, quern.first, llama.first.max], [100, 2, { p50: 60, p95: 70, max: 70 }, 80]);
  const settings = { type: 'q8_0', threads: 2, requests: 3, repeat: 3 };
  const text = serveReport({ machine, llama: '1.0', settings, load, loops, newcomers: [] }, { chat: { words: 'a, b' } });
  assert.match(text, /^\| chat \| 4 \| llama-server \| 2\.00 \| 30\.0 \| 80 \/ 80 \/ 80 \| 30 \/ 30 \/ 30 \|\n\| chat \| 4 \| \*\*quern serve\*\* \| 2\.00 \| 100\.0 \|/m);
});

test('newcomers: each by the bounds of its own repetition', () => {
  const run = (repetition, factor) => ({ server: 'quern', repetition, scene: 'newcomer', clients: 1, machineLoad: 2, alone: [100, 120, 110].map((ms) => factor * ms), first: [factor * 240], step: factor * 20, gaps: [factor * 84] });
  const { newcomers, loops, load } = summary([run(1, 1), run(2, 10)]);
  assert.deepEqual([loops, load], [[], { least: 2, most: 2 }]);
  const [{ server, alone, firstOfBound, gapOfBound }] = newcomers;
  assert.deepEqual([server, alone.max, firstOfBound, gapOfBound], ['quern', 1200, { p50: 1, p95: 1, max: 1 }, { p50: 1.75, p95: 1.75, max: 1.75 }]);
  const settings = { type: 'q8_0', threads: 2, requests: 3, repeat: 3 };
  assert.match(serveReport({ machine, llama: null, settings, load, loops, newcomers }, {}), /^\| \*\*quern serve\*\* \| 1000 \/ 1200 \/ 1200 \| 200 \|/m);
});
