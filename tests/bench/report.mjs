// SPDX-License-Identifier: MIT
// From single runs to medians, ratios and tables.
import { CELLS, ENGINES } from './engines.mjs';
import { machineLine } from './machine.mjs';

const FIGURES = ['prefill128', 'prefill512', 'decode128', 'decode2048', 'decode4064', 'loadMs', 'readyMs', 'peakBytes'];

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, least, most and number of what there is of a figure; undefined when there is nothing. */
export function spread(values) {
  const known = values.filter((value) => Number.isFinite(value) && value > 0);   // 0: a process that could not be watched
  return known.length ? { median: median(known), min: Math.min(...known), max: Math.max(...known), n: known.length } : undefined;
}

/** Runs by the value of a key, in the order in which values first occur. @returns {[string | number, object[]][]} */
function groups(runs, key) {
  const values = [...new Set(runs.map((run) => run[key]))];
  return values.map((value) => [value, runs.filter((run) => run[key] === value)]);
}

const byThreads = (one, other) => one.threads - other.threads;

function engineFigures(runs) {
  const { version, host, weightBytes, kvBytes } = runs[0];
  return { version, host, weightBytes, kvBytes, ...Object.fromEntries(FIGURES.map((name) => [name, spread(runs.map((run) => run[name]))])) };
}

/** How a page's first steps compare with later ones. */
function firstFigures(runs) {
  const step = (from, to) => spread(runs.map(({ gaps }) => median(gaps.slice(from, to)))).median;
  return {
    prefillFirst: spread(runs.map((run) => run.prefillFirst)), prefillThird: spread(runs.map((run) => run.prefillThird)),
    stepMs: { first: step(0, 1), second: step(1, 2), hundredth: step(99, 100), lastTen: step(90, 100) },
  };
}

function storeFigures(runs) {
  const of = (when) => ({ ms: spread(runs.map((run) => run[when].ms)), peakBytes: spread(runs.map((run) => run[when].peakBytes)) });
  return { cold: of('cold'), warm: of('warm') };
}

const barrierFigures = (runs) => Object.fromEntries(['perToken', 'us', 'stepMs'].map((name) => [name, spread(runs.map((run) => run[name]))]));

/** @param {object[]} runs @returns {{bandwidth: object, cases: object[], first: object, barriers: object, store: object}} */
export function summarise(runs) {
  const of = (kind) => runs.filter((run) => run.kind === kind).sort(byThreads);
  const cases = groups(of('speed'), 'type').flatMap(([type, ofType]) => groups(ofType, 'threads').map(([threads, mine]) => (
    { type, threads, engines: Object.fromEntries(groups(mine, 'engine').map(([engine, own]) => [engine, engineFigures(own)])) })));
  return {
    bandwidth: Object.fromEntries(groups(of('bandwidth'), 'threads').map(([n, own]) => [n, spread(own.map((run) => run.bytesPerSecond))])),
    cases,
    first: Object.fromEntries(groups(of('first'), 'type').map(([type, own]) => [type, firstFigures(own)])),
    barriers: Object.fromEntries(groups(of('barriers'), 'threads').map(([n, own]) => [n, barrierFigures(own)])),
    store: Object.fromEntries(groups(of('store'), 'engine').map(([engine, own]) => [engine, storeFigures(own)])),
  };
}

/** How many times faster one is than another in a figure; for times and bytes it is the other way round. */
export function ratio(name, one, other) {
  if (!one?.[name] || !other?.[name]) return undefined;
  const quotient = one[name].median / other[name].median;
  return /^(?:prefill|decode)/.test(name) ? quotient : 1 / quotient;
}

// --- Markdown ---

const cell = (text) => String(text).replace(/[\\|]/g, '\\$&').replace(/\n/g, ' ');

/** @param {string[]} head names; those after the first `left` columns are numbers @param {string[][]} rows */
export function table(head, rows, left = 1) {
  const line = (cells) => `| ${cells.map(cell).join(' | ')} |\n`;
  return line(head) + line(head.map((_, i) => (i < left ? '---' : '--:'))) + rows.map(line).join('');
}

const HEADS = {
  prefill128: 'prefill 128', prefill512: 'prefill 512', decode128: 'decode @128', decode2048: 'decode @2,048', decode4064: 'decode @4,064',
  loadMs: 'load, s', readyMs: 'ready after the last byte, s', peakBytes: 'peak memory, MB',
};
const SPEEDS = FIGURES.slice(0, 5);

function show(name, figure) {
  if (!figure) return '';
  if (name === 'loadMs') return (figure.median / 1e3).toFixed(2);
  if (name === 'readyMs') return (figure.median / 1e3).toFixed(3);
  return name === 'peakBytes' ? (figure.median / 1e6).toFixed(0) : figure.median.toFixed(1);
}

const times = (value, digits = 2) => (value === undefined ? '' : value.toFixed(digits));

function speedTables({ cases }) {
  return groups(cases, 'type').map(([type, own]) => {
    const rows = own.flatMap(({ threads, engines }) => Object.entries(engines).map(([engine, figures]) => (
      [`${ENGINES[engine].name} (${figures.version})`, threads, ...FIGURES.map((name) => show(name, figures[name]))])));
    return `### ${type.toUpperCase()}\n\n${table(['engine', 'threads', ...FIGURES.map((name) => HEADS[name])], rows)}`;
  }).join('\n');
}

/** What is compared with what, and in which figures. */
const PAIRS = [
  ['quern', 'native', SPEEDS], ['quern', 'avx2', SPEEDS], ['quern', 'wllama', FIGURES], ['simd', 'quern', SPEEDS], ['webkit', 'simd', SPEEDS],
  ['webkit', 'native', SPEEDS], ['firefox', 'quern', FIGURES], ['node', 'quern', SPEEDS],
];

function ratioTable({ cases }) {
  const rows = PAIRS.flatMap(([one, other, figures]) => cases.filter(({ engines }) => engines[one] && engines[other]).map(({ type, threads, engines }) => (
    [`${ENGINES[one].name} : ${ENGINES[other].name}`, type.toUpperCase(), threads,
      ...FIGURES.map((name) => (figures.includes(name) ? times(ratio(name, engines[one], engines[other])) : ''))])));
  return table(['', 'file', 'threads', ...FIGURES.map((name) => HEADS[name].replace(/, (?:s|MB)$/, ''))], rows, 2);
}

/** Most threads over one, for each engine. */
function threadTable({ cases }) {
  const rows = groups(cases, 'type').flatMap(([type, own]) => {
    const [one, most] = [own.find(({ threads }) => threads === 1), own.at(-1)];
    if (!one || one === most) return [];
    return Object.keys(most.engines).filter((name) => one.engines[name]).map((name) => (
      [ENGINES[name].name, type.toUpperCase(), `${most.threads} : 1`, ...SPEEDS.map((figure) => times(ratio(figure, most.engines[name], one.engines[name])))]));
  });
  return rows.length ? table(['engine', 'file', 'threads', ...SPEEDS.map((name) => HEADS[name])], rows, 3) : '';
}

/** Bytes that one token reads in the middle of a reply: all weights (the embedding serves as output head) and what is in the context. */
const bytesPerToken = ({ weightBytes, kvBytes }, { prompt, generate }) => weightBytes + kvBytes * (prompt + generate / 2);

function memoryTable({ cases, bandwidth }) {
  const rows = cases.filter(({ engines }) => engines.quern).flatMap(({ type, threads, engines }) => Object.entries(engines).map(([name, figures]) => {
    const [short, long, longest] = [CELLS.short, CELLS.long, CELLS.longest].map((where) => bytesPerToken(engines.quern, where));
    const rate = figures.decode128 && figures.decode128.median * short;
    const slower = (figure) => times(figure && figures.decode128 && figures.decode128.median / figure.median);
    return [ENGINES[name].name, type.toUpperCase(), threads, rate ? (rate / 1e9).toFixed(1) : '',
      rate && bandwidth[threads] ? `${((100 * rate) / bandwidth[threads].median).toFixed(0)} %` : '',
      slower(figures.decode2048), (long / short).toFixed(2), slower(figures.decode4064), (longest / short).toFixed(2)];
  }));
  return table(['engine', 'file', 'threads', 'decode @128, GB/s', 'of the read bandwidth', 'time @2,048 : @128', 'bytes read', 'time @4,064 : @128', 'bytes read'], rows, 2);
}

function barrierTable({ barriers }) {
  const rows = Object.entries(barriers).map(([threads, { perToken, us, stepMs }]) => (
    [threads, perToken.median.toFixed(0), times(us.median), times((perToken.median * us.median) / 1e3, 3), times(stepMs.median, 1)]));
  if (rows.length === 0) return '';
  const text = 'Threads wait for each other several times per token. The table has an empty barrier, measured alone in Node. With more threads than processors, a barrier waits for a thread that is not running.';
  return `## Barriers\n\n${text}\n\n${table(['threads', 'barriers a token', 'us each', 'ms a token', 'ms of a token in all'], rows)}`;
}

function firstTable({ cases, first }) {
  const rows = Object.entries(first).map(([type, { prefillFirst, prefillThird, stepMs }]) => [
    type.toUpperCase(), times(prefillFirst.median, 1), times(prefillThird.median, 1),
    ...['first', 'second', 'hundredth', 'lastTen'].map((which) => times(stepMs[which], 1)),
  ]);
  if (rows.length === 0) return '';
  const threads = Math.max(...cases.map((one) => one.threads));
  const text = `A fresh tab with only the engine's own warm-up, ${threads} threads, prompts of 128 tokens, steps as the page sees them.`;
  return `## First token\n\n${text}\n\n${table(['file', 'first prompt, tokens/s', 'third prompt, tokens/s', 'first step, ms', 'second, ms', 'hundredth, ms', 'median of the last ten, ms'], rows)}`;
}

function storeTable({ store }) {
  const rows = Object.entries(store).map(([engine, { cold, warm }]) => (
    [ENGINES[engine].name, ...[cold, warm].flatMap(({ ms, peakBytes }) => [(ms.median / 1e3).toFixed(2), (peakBytes.median / 1e6).toFixed(0)])]));
  if (rows.length === 0) return '';
  const text = 'The Q8_0 file, 640 MB, from a server on the same machine; then from the store of the restarted browser.';
  return `## Loading with the store\n\n${text}\n\n${table(['engine', 'first load, s', 'peak memory, MB', 'second load, s', 'peak memory, MB'], rows)}`;
}

function sizeTable(sizes) {
  const kb = (bytes) => (bytes / 1000).toFixed(0);
  const rows = Object.entries(sizes).map(([name, { wasm, js }]) => [name, ...['raw', 'gzip', 'brotli'].flatMap((how) => [kb(wasm[how]), kb(js[how])]), kb(wasm.brotli + js.brotli)]);
  return table(['', 'wasm', 'JS', 'wasm, gzip', 'JS, gzip', 'wasm, brotli', 'JS, brotli', 'all, brotli'], rows);
}

const bandwidthLine = (bandwidth) => Object.entries(bandwidth).map(([n, { median: rate }]) => `${(rate / 1e9).toFixed(1)} GB/s with ${n} thread${n === '1' ? '' : 's'}`).join(', ');

/** @param {{machine: object, settings: object, sizes: object, summary: object, runs: object[]}} report */
export function markdown({ machine, settings, sizes, summary, runs }) {
  const load = runs.map(({ machineLoad }) => machineLoad);
  return `# Benchmark

Made by \`npm run bench\`; bench.json has every run. ${machineLine(machine)}.
The machine's load was ${Math.min(...load)} to ${Math.max(...load)} before the measurements. A load above about 1 makes all figures worse, and most of all those of native llama.cpp,
whose threads spin while they wait for each other.

![Bars: the speeds of the engines by file type](bench.svg)

Models: Qwen3-0.6B's dimensions and vocabulary, random weights. Medians of up to ${settings.repeat} interleaved repetition${settings.repeat > 1 ? 's' : ''} (slow cells have fewer, see bench.json), each in a fresh browser or process, after a warm-up of 64 tokens. Speeds are the engines' own timings, in tokens per second: for prompts of 128
and of 512 tokens, and for a reply of 32 tokens after a prompt of 128, of 2,048 and of 4,064. Context ${settings.contextSize}, keys and values in f16, greedy sampling.

- quern without relaxed SIMD is the build for Safari and every WebKit, here in Chromium. WebKit is WebKitGTK, the engine alone.
- llama.cpp native, CPU only: the newest version in Debian, each figure from a separate run of llama-bench (\`-p N\`, \`-n 32 -d N\`); if that is not available, node-llama-cpp's prebuilt
  library. Rows name version, origin and build: *best build* is llama.cpp's choice for this CPU, *AVX2 build* its choice for a CPU without AVX-512 and VNNI. Batches of 512; each cell has the
  faster of flash attention on and off. Its timings do not include sampling; quern's and wllama's do.
- wllama: \`n_gpu_layers: 0\`, its multi-threaded build, the same Chromium; flash attention by default (on), off at 2,048.
- Load: from the call to the loaded model, in browsers over HTTP from the same machine, elsewhere from the file. Memory: the peak minus the memory of the empty tab or
  process; in Chromium of the renderer and browser processes; in Firefox and WebKit of the content processes (without Firefox's main process, which buffers much of such a fast
  download). llama.cpp maps the file, and the mapped pages count; llama-bench's context is as long as a test needs.

## Speeds

${speedTables(summary)}
## Ratios

How many times better the first engine is than the second. More is always better, also for times and memory.

${ratioTable(summary)}
${threadTable(summary)}
## Memory bandwidth and long contexts

A plain C loop reads ${bandwidthLine(summary.bandwidth)} in the same run. Decoding reads all weights and the context for each token.

${memoryTable(summary)}
${firstTable(summary)}
${barrierTable(summary)}
${storeTable(summary)}
## Sizes, kB

${sizeTable(sizes)}`;
}
