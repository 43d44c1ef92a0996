// SPDX-License-Identifier: MIT
// From single runs to medians, ratios and a table.
import { machineLine } from './machine.mjs';

const FIGURES = ['prefill', 'decode', 'loadMs', 'readyMs', 'peakBytes', 'engineBytes'];

/** Where more is better; of the others less is. */
const SPEEDS = new Set(['prefill', 'decode']);

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, least and most of each figure that the runs have. */
function spread(runs) {
  const entries = FIGURES.filter((name) => runs.every((run) => Number.isFinite(run[name]))).map((name) => {
    const values = runs.map((run) => run[name]);
    return [name, { median: median(values), min: Math.min(...values), max: Math.max(...values) }];
  });
  return Object.fromEntries(entries);
}

/** How many times better quern is than wllama. */
function ratios(quern, wllama) {
  const shared = FIGURES.filter((name) => quern[name] && wllama[name]);
  return Object.fromEntries(shared.map((name) => {
    const ratio = quern[name].median / wllama[name].median;
    return [name, SPEEDS.has(name) ? ratio : 1 / ratio];
  }));
}

/** @param {object[]} runs @returns {object[]} one entry per file type and number of threads */
export function summarise(runs) {
  const cases = new Map();
  for (const run of runs) {
    const key = `${run.type} ${run.threads}`;
    if (!cases.has(key)) cases.set(key, { type: run.type, threads: run.threads, runs: [] });
    cases.get(key).runs.push(run);
  }
  return [...cases.values()].map(({ type, threads, runs: own }) => {
    const engines = Object.fromEntries([...new Set(own.map(({ engine }) => engine))].map((engine) => {
      const mine = own.filter((run) => run.engine === engine);
      return [engine, { version: mine[0].version, ...spread(mine) }];
    }));
    return { type, threads, engines, ratio: ratios(engines.quern, engines.wllama) };
  });
}

const SHOWN = {
  prefill: (n) => n.toFixed(1), decode: (n) => n.toFixed(1),
  loadMs: (n) => (n / 1000).toFixed(2), readyMs: (n) => (n / 1000).toFixed(3), peakBytes: (n) => (n / 1e6).toFixed(0),
};

const NAMES = { quern: 'quern, Chromium', wllama: 'wllama, Chromium', 'quern-node': 'quern, Node' };

const row = (cells) => `| ${cells.join(' | ')} |\n`;

function table(summary) {
  let text = row(['file', 'threads', 'engine', 'prefill, tokens/s', 'decode, tokens/s', 'load, s', 'ready after the last byte, s', 'peak memory, MB'])
    + row(['---', '--:', '---', '--:', '--:', '--:', '--:', '--:']);
  for (const { type, threads, engines, ratio } of summary) {
    const lead = [type.toUpperCase(), threads];
    for (const [name, figures] of Object.entries(engines)) {
      const cells = Object.entries(SHOWN).map(([key, show]) => (figures[key] ? show(figures[key].median) : ''));
      if (figures.engineBytes) cells[cells.length - 1] = `${SHOWN.peakBytes(figures.engineBytes.median)} (engine)`;
      text += row([...lead, `${NAMES[name]} (${figures.version})`, ...cells]);
    }
    text += row([...lead, '**quern : wllama, times better**', ...Object.keys(SHOWN).map((key) => `**${ratio[key].toFixed(1)}**`)]);
  }
  return text;
}

/** @param {{machine: object, settings: object, summary: object[], runs: object[]}} report */
export function markdown({ machine, settings, summary, runs }) {
  const { prompt, generate, contextSize, repeat } = settings;
  const load = runs.map(({ machineLoad }) => machineLoad);
  return `# quern beside wllama 3.8.1

Made by \`npm run bench\`; every run is in bench.json. ${machineLine(machine)}.
The machine's load was ${Math.min(...load)} to ${Math.max(...load)} before the runs: what exceeds 1 or so makes all figures worse, and touches ratios least.

Model: Qwen3-0.6B's dimensions and vocabulary, random weights. Medians of ${repeat} interleaved repetitions, each in a fresh browser
or process, after a short warm-up in the browser. Speeds are the engines' own timings of a prompt of ${prompt} tokens and a reply of ${generate}
tokens, the likeliest each time, context ${contextSize}; wllama with \`n_gpu_layers: 0\` and its multi-threaded build. Load: from the call to the
finished model, over HTTP from the same machine. Memory: growth of Chromium's renderer and browser processes over an empty tab at their peaks; in Node
what the engine itself has taken.

${table(summary)}`;
}
