// SPDX-License-Identifier: MIT
// What the heavy proofs measured, kept as docs/benchmarks/big.json and big.md. Each test file adds its part, so that one
// of them can be run alone.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { describeMachine, loadAverage, machineLine } from '../bench/machine.mjs';

const FOLDER = join(PROJECT, 'docs/benchmarks');
const FILE = join(FOLDER, 'big.json');

const row = (cells) => `| ${cells.join(' | ')} |\n`;

function table(columns, entries) {
  const alignment = columns.map(([, , words]) => (words ? '---' : '--:'));
  return row(columns.map(([title]) => title)) + row(alignment) + entries.map((entry) => row(columns.map(([, cell]) => cell(entry)))).join('');
}

const mb = (bytes) => (bytes / 1e6).toFixed(1);
const medianOf = (pages, pick) => median(pages.map(pick)).toFixed(1);
const type = ['file', (entry) => entry.type.toUpperCase(), true];

/** Title, cell and whether it is words, per column. */
const LOAD = [
  type,
  ['threads', ({ threads }) => threads],
  ['load, s', ({ loadMs }) => (loadMs / 1000).toFixed(2)],
  ['ready after the last byte, ms', ({ readyMs }) => readyMs.toFixed(0)],
  ['weights and KV cache, MB', ({ modelBytes }) => mb(modelBytes)],
  ['wasm memory beyond them, MB', ({ memory, modelBytes }) => mb(memory.wasm - modelBytes)],
  ['most beside it while loading, MB', ({ extraBytes }) => mb(extraBytes)],
  ['tab once loaded, MB', ({ tabBytes }) => mb(tabBytes)],
  ['tab\'s peak beyond that, MB', ({ tabExtraBytes }) => mb(tabExtraBytes)],
  ['main thread\'s longest task, ms', ({ longestTaskMs }) => longestTaskMs.toFixed(1)],
  ['of which it ran, ms', ({ longestBusyMs }) => longestBusyMs.toFixed(1)],
  ['longest gap of a 4-ms timer, ms', ({ longestGapMs }) => longestGapMs.toFixed(1)],
];

const STOP = [
  type,
  ['page', ({ isolated }) => (isolated ? 'cross-origin isolated' : 'without SharedArrayBuffer'), true],
  ['stops', ({ stops }) => stops.length],
  ['after tokens', ({ stops }) => `${stops[0].at} to ${stops.at(-1).at}`],
  ['median, ms', ({ medianMs }) => medianMs.toFixed(0)],
  ['longest, ms', ({ longestMs }) => longestMs.toFixed(0)],
];

const FIRST = [
  type,
  ['threads', ({ threads }) => threads],
  ['first prompt, ms', ({ pages }) => medianOf(pages, ({ prefillMs }) => prefillMs.first)],
  ['later ones, ms', ({ pages }) => medianOf(pages, ({ prefillMs }) => prefillMs.later)],
  ['ratio', ({ prefillRatio }) => prefillRatio.toFixed(2)],
  ['first step, ms', ({ pages }) => medianOf(pages, ({ stepMs }) => stepMs.first)],
  ['median step, ms', ({ pages }) => medianOf(pages, ({ stepMs }) => stepMs.median)],
  ['hundredth, ms', ({ pages }) => medianOf(pages, ({ stepMs }) => stepMs.last)],
  ['ratio', ({ stepRatio }) => stepRatio.toFixed(2)],
];

const SIZE = [
  ['file', ({ name }) => name, true],
  ['where', ({ where }) => where, true],
  ['addresses, bits', ({ address }) => address],
  ['file, MB', ({ fileBytes }) => mb(fileBytes)],
  ['context', ({ contextSize }) => contextSize],
  ['load, s', ({ loadMs }) => (loadMs / 1000).toFixed(1)],
  ['planned, MB', ({ planned }) => mb(planned)],
  ['peak, MB', ({ peak }) => mb(peak)],
  ['wasm memory, MB', ({ wasm }) => mb(wasm)],
];

const both = ({ median: middle, best }) => `${middle.toFixed(0)} (${best.toFixed(0)})`;
const ratios = (one, other) => `${(one.median / other.median).toFixed(2)} (${(one.best / other.best).toFixed(2)})`;

const WARM = [
  ['browser', ({ browser }) => browser, true],
  ['file, MB', ({ fileBytes }) => mb(fileBytes)],
  ['from the disk: plain loop, ms', ({ disk }) => both(disk.plain)],
  ['checked, 2 threads, ms', ({ disk }) => both(disk.threads)],
  ['ratio', ({ disk }) => ratios(disk.threads, disk.plain)],
  ['from the system\'s store: plain loop, ms', ({ plain }) => both(plain)],
  ['checked, 2 threads, ms', ({ threads }) => both(threads)],
  ['ratio', ({ threads, plain }) => ratios(threads, plain)],
  ['checked, 1 thread, ms', ({ alone }) => both(alone)],
  ['ratio', ({ alone, plain }) => ratios(alone, plain)],
];

const EXPERTS = [
  ['engine', ({ engine }) => engine, true],
  ['prompt of 128, tokens/s', ({ prefill }) => prefill.toFixed(0)],
  ['decode, tokens/s', ({ decode }) => decode.toFixed(1)],
  ['with one layer', ({ decodeOne }) => decodeOne.toFixed(1)],
  ['a layer, ms', ({ layerMs }) => layerMs.toFixed(2)],
  ['layers of a token per second', ({ layerMs }) => (1000 / layerMs).toFixed(0)],
];

const QUANTIZE = [
  type,
  ['from, MB', ({ from }) => mb(from)],
  ['to, MB', ({ to }) => mb(to)],
  ['s', ({ ms }) => (ms / 1000).toFixed(1)],
  ['million weights/s', ({ ms, from }) => (from / 2 / 1000 / ms).toFixed(0)],
  ['most memory, MB', ({ peak }) => mb(peak)],
];

const seconds = (ms) => (ms === undefined ? '' : (ms / 1000).toFixed(2));

const KEEP = [
  ['where', ({ where }) => where, true],
  ['tokens', ({ tokens }) => tokens],
  ['file, MB', ({ bytes }) => mb(bytes)],
  ['first token, read anew, s', ({ anewMs }) => seconds(anewMs)],
  ['restored, s', ({ restoredMs }) => seconds(restoredMs)],
  ['ratio', ({ anewMs, restoredMs }) => `1/${(anewMs / restoredMs).toFixed(0)}`],
  ['of which before the first step, s', ({ restoreMs }) => seconds(restoreMs)],
  ['the store\'s plain read, s', ({ readMs }) => seconds(readMs)],
  ['the same into new memory, s', ({ freshMs }) => seconds(freshMs)],
  ['from opening it to the last page, s', ({ parts }) => seconds(parts?.openToLastGiveMs)],
  ['of that reading, giving, s', ({ parts }) => `${seconds(parts?.readMs)}, ${seconds(parts?.giveMs)}`],
  ['the model\'s fingerprint, s', ({ parts }) => seconds(parts?.fingerprintMs)],
  ['writing it, s', ({ keepMs }) => seconds(keepMs)],
  ['the store\'s plain write, s', ({ writeMs }) => seconds(writeMs)],
];

const LIMITS = [
  type,
  ['schemas', ({ schemas }) => schemas],
  ['ended by itself, all valid', ({ stop }) => stop],
  ['of which ajv cannot judge', ({ unjudged }) => unjudged],
  ['cut off', ({ length, maxTokens }) => `${length} at ${maxTokens} tokens`],
  ['refused by name', ({ refused }) => refused],
  ['tokens', ({ tokens }) => tokens],
  ['minutes', ({ ms }) => (ms / 60_000).toFixed(1)],
];

const VISION = [
  type,
  ['threads', ({ threads }) => threads],
  ['planned, MB', ({ memory }) => mb(memory.planned)],
  ['peak, MB', ({ memory }) => mb(memory.peak)],
  ['stops and aborts', ({ stops }) => stops.length],
  ['median, ms', ({ medianMs }) => medianMs.toFixed(0)],
  ['longest, ms', ({ longestMs }) => longestMs.toFixed(0)],
  ['main thread\'s longest task, ms', ({ longestBusyMs }) => longestBusyMs?.toFixed(1) ?? ''],
  ['rows of images, tokens/s, best', ({ rates }) => (rates ? Math.max(...rates.image).toFixed(1) : '')],
  ['of text', ({ rates }) => (rates ? Math.max(...rates.text).toFixed(1) : '')],
];

const PARTS = {
  text: ['The same greedy text', (entries) => entries.map((entry) => `- ${entry.type.toUpperCase()}: ${entry.runs.join(', ')}\n`).join('')],
  load: ['Loading over HTTP in Chromium', (entries) => table(LOAD, entries)],
  warm: ['A stored model into wasm memory, medians and (in brackets) bests of 9 reads from the disk and 40 from the cache in turn', (entries) => table(WARM, entries)],
  first: ['The first prompt of 16 tokens and the first token of a fresh page, medians', (entries) => table(FIRST, entries)],
  size: ['Files beyond 2 and 4 GiB: the native build\'s logits, bit by bit', (entries) => table(SIZE, entries)],
  experts: ['Four layers of Qwen3-30B-A3B in Q4_K_M (2,048 wide, 128 experts of 768, 8 used), 2 threads, the best of 16 answers in turn', (entries) => table(EXPERTS, entries)],
  quantize: ['`quern quantize` in Node from F16, 2 threads', (entries) => table(QUANTIZE, entries)],
  save: ['A saved conversation with 0.6B\'s dimensions, Q8_0, 2 threads: medians of 3; reading again and writing once', (entries) => table(KEEP, entries)],
  limits: ['Random schemas, sampling at temperature 1.5, 16 replies at once, in Node', (entries) => table(LIMITS, entries)],
  vision: ['An image of 1,024 x 1,024 stopped while it is encoded, one of 512 x 512 read, with Qwen3-VL-2B\'s dimensions', (entries) => table(VISION, entries)],
  stop: ['Stopping in the middle of a prompt of 4,095 tokens, one thread', (entries) => table(STOP, entries)],
};

function markdown({ machine, ...parts }) {
  const sections = Object.entries(PARTS).filter(([name]) => parts[name]?.length).map(([name, [title, show]]) => `## ${title}\n\n${show(parts[name])}`);
  return `# Tests at real size

Made by \`npm run test:big\`; big.json has every figure. The part that was measured last: ${machineLine(machine)}; the machine's load was ${machine.load}.

Model: Qwen3-0.6B's dimensions and vocabulary, random weights, unless another model is named.

${sections.join('\n')}`;
}

function previous() {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8'));
  } catch {
    return {};
  }
}

/** Adds one part's figures. @param {keyof typeof PARTS} name @param {string} browser name and version */
export function record(name, figures, browser) {
  const { machine: _, ...parts } = previous();
  const report = { machine: { ...describeMachine(browser), load: loadAverage() }, ...parts, [name]: figures };
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(FOLDER, 'big.md'), markdown(report));
}
