// SPDX-License-Identifier: MIT
// `npm run bench -- --only embed`: texts a second that become vectors, beside llama-embedding of the newest native llama.cpp: the same file, texts
// of 32 to 256 tokens, in turn and never side by side, each engine afresh. quern's time is that of one call of embed(), its texts' tokens included;
// llama.cpp's begins with its first batch, its tokenizer left out. The vectors of both are compared. The report is embed.md and embed.json.
//
//   node tests/bench/bench.mjs --only embed [--type q8_0] [--threads 2] [--engines quern,native,node] [--texts 256] [--repeat 3] [--quick] [--out DIR]
//
// `--quick`: 64 texts, twice.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { Child } from './child.mjs';
import { PROJECT, randomPrompt, vectorModel } from './fixtures.mjs';
import { describeMachine, loadAverage, machineLine } from './machine.mjs';
import { hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { spread, table } from './report.mjs';
import { Tab } from './tab.mjs';

/** Tokens of the shortest and the longest text, the end that is appended not counted. */
const [SHORTEST, LONGEST] = [31, 255];
const CONTEXT = 4096;
const BATCH = 512; // tokens of one of llama.cpp's
const WARM = 8;    // texts before the clock starts
const NAMES = { quern: 'quern, Chromium', node: 'quern, Node', native: 'llama.cpp native' };

/** Lengths are spread evenly and mixed. */
const textsOf = (n) => Array.from({ length: n }, (_, i) => randomPrompt(SHORTEST + ((i * 89) % n) * (LONGEST - SHORTEST) / Math.max(1, n - 1) | 0, i));

const OPEN = {
  quern: (base) => Tab.open(base, 'tests/bench/page/embed.js'),
  node: () => Child.open('tests/bench/node/embed.mjs'),
};

/** @returns {Promise<{seconds: number, tokens: number, vectors: number[][], version: string}>} */
async function measureQuern(base, engine, { type, threads, texts }) {
  const path = vectorModel(type);
  const session = await OPEN[engine](base);
  try {
    await session.call('load', { url: `/${path}`, path: join(PROJECT, path), threads, contextSize: CONTEXT, parallel: 16 });
    await session.call('run', { texts: texts.slice(0, WARM).map((text) => `again ${text}`) });
    return { ...await session.call('run', { texts }), version: session.version };
  } finally {
    await session.close();
  }
}

/** From its first batch to its end, and its vectors. A batch of 512 tokens is faster than one of 4,096, whose texts all look at the room of all. */
async function measureNative(texts, { type, threads }) {
  const folder = mkdtempSync(join(tmpdir(), 'quern-embed-'));
  const file = join(folder, 'texts');
  writeFileSync(file, texts.join('\n'));
  const args = ['-m', join(PROJECT, vectorModel(type)), '-t', threads, '-tb', threads, '-c', BATCH, '-b', BATCH, '-ub', BATCH, '-np', 16, '-fa', 'on', '-f', file, '--embd-output-format', 'json'];
  const { command, args: all, cwd } = nativeCommand('llama-embedding', args.map(String));
  try {
    const began = performance.now();
    const { stdout, stderr } = await promisify(execFile)(command, all, { cwd, maxBuffer: 2 ** 30 });
    const [, minutes, ...parts] = /^(\d+)\.(\d+)\.(\d+)\.\d+ I batch_decode/m.exec(stderr) ?? [];
    if (!minutes) throw new Error(`llama-embedding said nothing of its batches: ${stderr.slice(-2000)}`);
    const [seconds, ms] = parts.map(Number);
    const tokens = [...stderr.matchAll(/batch_decode: n_tokens = (\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
    const vectors = JSON.parse(stdout).data.map(({ embedding }) => embedding);
    return { seconds: (performance.now() - began) / 1000 - (60 * Number(minutes) + seconds + ms / 1000), tokens, vectors, version: packagedVersion() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function cosine(a, b) {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) [ab, aa, bb] = [ab + a[i] * b[i], aa + a[i] * a[i], bb + b[i] * b[i]];
  return ab / Math.sqrt(aa * bb);
}

export function embedReport({ machine, settings, runs }) {
  const engines = [...new Set(runs.map(({ engine }) => engine))];
  const of = (engine, key) => spread(runs.filter((run) => run.engine === engine).map((run) => run[key]));
  const native = engines.includes('native') && of('native', 'perSecond').median;
  const rows = engines.map((engine) => {
    const speed = of(engine, 'perSecond');
    return [NAMES[engine], speed.median.toFixed(2), `${speed.min.toFixed(2)} to ${speed.max.toFixed(2)}`, of(engine, 'tokensPerSecond').median.toFixed(0),
      native ? (speed.median / native).toFixed(2) : '', engine === 'native' ? '' : of(engine, 'least')?.median.toFixed(6) ?? ''];
  });
  const load = runs.map(({ machineLoad }) => machineLoad);
  const version = runs.find(({ engine }) => engine === 'native')?.version;
  return `# Vectors of texts

Made by \`npm run bench -- --only embed\`; embed.json has every run. ${machineLine(machine)}. The machine's load was ${Math.min(...load)} to ${Math.max(...load)}.
${settings.texts} texts of ${SHORTEST + 1} to ${LONGEST + 1} tokens, Qwen3-0.6B's dimensions with random weights in ${settings.type.toUpperCase()}, ${settings.threads} threads. Medians of ${settings.repeat} interleaved repetitions, each in a fresh tab or process${version ? `; native is
llama-embedding ${version}, timed from its first batch` : ''}. "Least cosine": the smallest cosine between a vector and llama.cpp's vector of the same text.

${table(['', 'texts/s', 'from, to', 'tokens/s', 'to native', 'least cosine'], rows)}`;
}

function chosen() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { only: text, type: text, threads: text, engines: text, texts: text, repeat: text, quick: { type: 'boolean' }, out: text } });
  const [most, times] = values.quick ? [64, 2] : [256, 3];
  const { type = 'q8_0', threads = 2, engines = 'quern,native,node', texts = most, repeat = times, out = 'docs/benchmarks' } = values;
  const names = engines.split(',').filter((name) => name !== 'native' || hasNative());
  const unknown = names.filter((name) => !NAMES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${Object.keys(NAMES)}`);
  return { settings: { type, threads: Number(threads), texts: Number(texts), repeat: Number(repeat) }, engines: names, out };
}

export async function measureVectors() {
  const { settings, engines, out } = chosen();
  const texts = textsOf(settings.texts);
  const runs = [];
  const server = await serve({ root: PROJECT, csp: false });
  try {
    for (let repetition = 1; repetition <= settings.repeat; repetition++) {
      const made = {};
      for (const engine of engines) {
        const machineLoad = loadAverage();
        const { seconds, tokens, vectors, version } = engine === 'native' ? await measureNative(texts, settings) : await measureQuern(server.url, engine, { ...settings, texts });
        made[engine] = vectors;
        runs.push({ repetition, engine, version, machineLoad, seconds, tokens, perSecond: texts.length / seconds, tokensPerSecond: tokens / seconds });
        console.error(`${repetition}/${settings.repeat} ${engine}, load ${machineLoad}: ${(texts.length / seconds).toFixed(2)} texts/s, ${(tokens / seconds).toFixed(0)} tokens/s`);
      }
      for (const run of runs.slice(-engines.length)) {
        if (made.native && run.engine !== 'native') run.least = Math.min(...made[run.engine].map((vector, i) => cosine(vector, made.native[i])));
      }
    }
  } finally {
    await server.close();
  }
  const browser = [...new Set(runs.filter(({ engine }) => engine === 'quern').map(({ version }) => version))].join(', ');
  const report = { machine: describeMachine(browser), settings, runs };
  const folder = join(PROJECT, out);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'embed.json'), `${JSON.stringify(report, null, 1)}\n`);
  writeFileSync(join(folder, 'embed.md'), embedReport(report));
  console.log(embedReport(report));
}
