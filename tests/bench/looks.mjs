// SPDX-License-Identifier: MIT
// `npm run bench -- --only vision`: how long an image is looked at, beside native llama.cpp (llama-mtmd-cli): one encoder of the 2B's dimensions with
// random weights, the same number of threads, one look of each in turn, each at an image of noise that nobody has seen. The language model behind it
// has few layers: it only has to be there. The report is vision.md and vision.json. Which operation takes how long: vision.mjs.
//
//   node tests/bench/bench.mjs --only vision [--types q8_0,f16] [--engines quern,node,program,mtmd] [--pixels 512] [--threads 2] [--repeat 3] [--out DIR]
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { PROJECTORS } from '../fixtures/make-projector.mjs';
import { Child } from './child.mjs';
import { PROJECT, bigProjector, seeingModel } from './fixtures.mjs';
import { noise } from './looks-run.js';
import { describeMachine, loadAverage, machineLine } from './machine.mjs';
import { describeBuild, hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { median, table } from './report.mjs';
import { Tab } from './tab.mjs';

const NAMES = { quern: 'quern, Chromium', node: 'quern, Node', program: 'quern, native', mtmd: 'llama.cpp native' };
const LAYERS = 4;
const PATIENCE_MS = 600_000;

/** Multiplications of one look at a square image. */
function macsOf(side) {
  const { hidden: d, ffn, layers, added, outDim } = PROJECTORS['qwen3-vl-2b'];
  const patches = (side / 16) ** 2;
  const blocks = layers * (patches * (4 * d * d + 2 * d * ffn) + 2 * d * patches ** 2);
  return blocks + patches / 4 * (1 + added.length) * (16 * d * d + 4 * d * outDim) + patches * 1536 * d;
}

/** A session that stays open; each look is a call. */
const session = (open) => async (settings) => {
  const opened = await open(settings.base);
  const info = await opened.call('load', { model: settings.model, vision: settings.vision, threads: settings.threads, contextSize: 2048, visionOptions: { maxPixels: settings.side ** 2 } });
  return {
    about: `${opened.version}, ${info.variant}`,
    look: async (seed) => (await opened.call('look', { side: settings.side, seed })).ms,
    close: () => opened.close(),
  };
};

/** A program that reads the files for each look, and says itself how long it looked. */
const program = (commandOf, pattern, about) => async (settings) => {
  const folder = mkdtempSync(join(tmpdir(), 'quern-looks-'));
  const session = { about: '', close: () => rmSync(folder, { recursive: true }) };
  session.look = async (seed) => {
    const image = join(folder, 'noise.ppm');
    writeFileSync(image, Buffer.concat([Buffer.from(`P6\n${settings.side} ${settings.side}\n255\n`), noise(settings.side, seed).data]));
    const { command, args, cwd } = commandOf({ ...settings, image, out: join(folder, 'look.f32') });
    const { stdout, stderr } = await promisify(execFile)(command, args, { cwd, maxBuffer: 2 ** 28, timeout: PATIENCE_MS });
    session.about = about(stderr);
    const found = pattern.exec(stdout + stderr);
    if (!found) throw new Error(`${command} ${args.join(' ')} said nothing of its time: ${stderr.slice(-2000)}`);
    return Number(found[1]);
  };
  return session;
};

const inProject = (path) => join(PROJECT, path);

const OPEN = {
  quern: session((base) => Tab.open(base, 'tests/bench/page/looks.js')),
  node: session(() => Child.open('tests/bench/node/looks.mjs')),
  program: program(({ model, vision, image, out, threads, side }) => ({
    command: inProject('build/release/quern'), cwd: PROJECT,
    args: ['vision', model, '--vision', vision, '--image', image, '--out', out, '--threads', String(threads), '--max-pixels', String(side ** 2)],
  }), /([\d.]+) ms$/m, () => 'its plain build'),
  mtmd: program(({ model, vision, image, threads }) => nativeCommand('llama-mtmd-cli', [
    '-m', inProject(model), '--mmproj', inProject(vision), '--image', image, '-p', 'x', '-n', '1', '-t', String(threads), '-c', '2048', '-lv', '4',
  ]), /encod(?:ing|ed)? done in ([\d.]+) ms/, (log) => `${packagedVersion()} of Debian, ${describeBuild(log)}`),
};

async function measureType(type, { engines, repeat, ...settings }) {
  const files = { model: seeingModel(LAYERS), vision: bigProjector(type) };
  const sessions = {};
  const found = Object.fromEntries(engines.map((engine) => [engine, { type, engine, ms: [], loads: [] }]));
  try {
    for (const engine of engines) sessions[engine] = await OPEN[engine]({ ...settings, ...files });
    // The first look of each warms it up: a browser compiles, a disk is read.
    for (let i = 0; i <= repeat; i++) {
      for (const engine of engines) {
        const loads = loadAverage();
        const ms = await sessions[engine].look(i);
        console.error(`${type} ${engine} ${i}: ${ms.toFixed(0)} ms, load ${loads}`);
        if (i > 0) {
          found[engine].ms.push(ms);
          found[engine].loads.push(loads);
        }
        found[engine].about = sessions[engine].about;
      }
    }
  } finally {
    for (const opened of Object.values(sessions)) await opened.close();
  }
  return Object.values(found);
}

export function looksReport({ machine, side, threads, macs, runs }) {
  const loads = runs.flatMap((run) => run.loads);
  const rows = runs.map(({ type, engine, about, ms }) => {
    const theirs = runs.find((other) => other.type === type && other.engine === 'mtmd');
    const against = (pick) => (theirs && engine !== 'mtmd' ? (pick(theirs.ms) / pick(ms)).toFixed(2) : '');
    const best = Math.min(...ms);
    return [type.toUpperCase(), `${NAMES[engine]} (${about})`, median(ms).toFixed(0), best.toFixed(0), (macs / best / 1e6).toFixed(1), against(median), against((all) => Math.min(...all))];
  });
  return `# Encoding an image

Made by \`npm run bench -- --only vision\`; vision.json has every encoding. ${machineLine(machine)}. The machine's load was ${Math.min(...loads)} to ${Math.max(...loads)}.

${side} x ${side} pixels of noise, ${side ** 2 / 1024} tokens, ${(macs / 1e9).toFixed(0)} billion multiplications in an encoder of Qwen3-VL-2B's dimensions (24 blocks, 1,024 wide) with random weights; ${threads} threads; encodings by each engine in turn (${runs[0].ms.length}),
after one to warm up. quern's times in Chromium and Node are those of \`model.look()\`, which transfers the image and the result; llama.cpp's are reported by llama-mtmd-cli. The last two columns are llama.cpp's time divided by this engine's time: above 1 is faster.

${table(['encoder', 'engine', 'median, ms', 'best, ms', 'GMAC/s', 'x llama.cpp, medians', 'x llama.cpp, bests'], rows, 2)}`;
}

export async function measureLooks() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { only: text, types: text, engines: text, pixels: text, threads: text, repeat: text, out: text } });
  const { types = 'q8_0,f16', pixels = 512, threads = 2, repeat = 3, out = 'docs/benchmarks' } = values;
  const engines = (values.engines ?? 'quern,node,program,mtmd').split(',').filter((name) => name !== 'mtmd' || hasNative());
  const unknown = engines.filter((name) => !NAMES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${Object.keys(NAMES)}`);
  const server = await serve({ root: PROJECT, csp: false });
  const runs = [];
  try {
    for (const type of types.split(',')) {
      runs.push(...await measureType(type, { base: server.url, engines, repeat: Number(repeat), side: Number(pixels), threads: Number(threads) }));
    }
  } finally {
    await server.close();
  }
  const browser = /Chromium [\d.]+/.exec(runs.find(({ engine }) => engine === 'quern')?.about ?? '')?.[0] ?? '';
  const report = { machine: describeMachine(browser), side: Number(pixels), threads: Number(threads), macs: macsOf(Number(pixels)), runs };
  const folder = join(PROJECT, out);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'vision.json'), `${JSON.stringify(report, null, 1)}\n`);
  writeFileSync(join(folder, 'vision.md'), `${looksReport(report)}\n`);
  console.log(looksReport(report));
}
