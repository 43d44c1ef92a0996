// SPDX-License-Identifier: MIT
// `npm run bench -- --only masks`: what limits of replies cost. Answers to the schemas of the tests, and to a dozen as programs ask for, are followed
// token by token, and each mask of all tokens of Qwen3's vocabulary is timed, with a module that has not seen the schema: the best of some rounds for
// each step. Beside the dozen, in turn, what a grammar adds to llama.cpp's sampling of a token (llama-completion --json-schema, random weights,
// temperature 1.5). Then what a schema adds to a token of 0.6B (limited.mjs). The report is masks.md and masks.json.
//
//   node tests/bench/bench.mjs --only masks [--engines node,quern,native] [--rounds 5] [--out DIR]
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { makeModel } from '../fixtures/make-model.mjs';
import { Child } from './child.mjs';
import { PROJECT } from './fixtures.mjs';
import { limitedReport, measureLimited } from './limited.mjs';
import { describeMachine, loadAverage, machineLine } from './machine.mjs';
import { CASES } from './mask-cases.mjs';
import { hasNative, nativeCommand, packagedVersion } from './native.mjs';
import { table } from './report.mjs';
import { schemaCases } from './schema-cases.mjs';
import { Tab } from './tab.mjs';

const NAMES = { node: 'quern, Node', quern: 'quern, Chromium', native: 'llama.cpp native' };
const TESTS = 'the tests\'';
const ASKED = { wasm: 'dist/grammar.wasm', tiktoken: 'tests/fixtures/vocab/qwen.tiktoken' };

/** A model that says anything, with the whole vocabulary and next to no layers. */
const MODEL = 'build/bench/words.gguf';
const TOKENS = 64;
const SEEDS = [1, 2, 3];

const OPEN = { quern: (base) => Tab.open(base, 'tests/bench/page/masks.js'), node: () => Child.open('tests/bench/node/masks.mjs') };

async function measureQuern(base, engine, rounds) {
  const session = await OPEN[engine](base);
  try {
    const found = await session.call('run', { ...ASKED, cases: askedCases(), rounds });
    return { ...found, version: session.version };
  } finally {
    await session.close();
  }
}

/** Milliseconds of sampling a token, with a schema or without. */
async function sampled(schema, seed) {
  const args = ['-m', join(PROJECT, MODEL), '-t', '1', '-c', '1024', '-n', String(TOKENS), '-p', 'a', '--temp', '1.5', '--seed', String(seed), '-no-cnv', '--no-warmup', '--perf'];
  const { command, args: all, cwd } = nativeCommand('llama-completion', [...args, ...(schema ? ['-j', JSON.stringify(schema)] : [])]);
  for (let tries = 1; ; tries++) {
    const { stderr } = await promisify(execFile)(command, all, { cwd, maxBuffer: 2 ** 28 });
    const [, ms] = /sampling time =\s*([\d.]+) ms/.exec(stderr) ?? [];
    const [, tokens] = /samplers time =.*\/\s*(\d+) tokens/.exec(stderr) ?? [];
    if (ms && tokens) return Number(ms) / Number(tokens);
    if (tries === 5) throw new Error(`llama-completion said nothing of its sampling: ${stderr.slice(-2000)}`);     // now and then it does not
  }
}

async function measureNative() {
  if (!existsSync(join(PROJECT, MODEL))) {
    makeModel({ preset: 'qwen3-0.6b', type: 'q8_0', seed: 1, layers: 1, hidden: 256, ffn: 256, heads: 2, kvHeads: 1, context: 2048, out: join(PROJECT, MODEL) });
  }
  const cases = {};
  for (const [name, { schema }] of Object.entries(CASES)) {
    const [limited, free] = [[], []];
    for (const seed of SEEDS) {
      limited.push(await sampled(schema, seed));
      free.push(await sampled(null, seed));
    }
    cases[name] = Math.min(...limited) - Math.min(...free);
  }
  return { cases, version: packagedVersion() };
}

// --- the report ---

const quantile = (values, part) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const us = (ms) => (ms * 1000).toFixed(0);

/** What is followed: the dozen by their names, the tests' schemas by their numbers. */
function askedCases() {
  const named = Object.entries(CASES).map(([name, { schema, value }]) => [name, { schema: JSON.stringify(schema), texts: [JSON.stringify(value)] }]);
  return Object.fromEntries([...named, ...schemaCases().map((one, i) => [`${TESTS} ${i}`, one])]);
}

/** Of each step the best round. */
const bestOf = (rounds) => rounds[0].map((_, i) => Math.min(...rounds.map((masks) => masks[i])));

/** @param {Record<string, any>} found by engine */
function summarise(found) {
  return Object.fromEntries(Object.entries(found).filter(([engine]) => engine !== 'native').map(([engine, { trie, cases }]) => {
    const steps = Object.fromEntries(Object.entries(cases).map(([name, { masks }]) => [name, bestOf(masks)]));
    const compile = Object.fromEntries(Object.entries(cases).map(([name, one]) => [name, Math.min(...one.compile)]));
    return [engine, { steps, compile, trie: Math.min(...trie), all: Object.values(steps).flat() }];
  }));
}

function rowsOf(summary, native) {
  const engines = Object.keys(summary);
  const row = (name, pick, added) => [name, ...engines.flatMap((engine) => {
    const { steps, compile } = pick(summary[engine]);
    return [compile.toFixed(2), us(quantile(steps, 0.5)), us(mean(steps)), us(Math.max(...steps))];
  }), ...(native ? [added === undefined ? '' : us(added)] : [])];
  const together = (isIn) => ({ steps, compile }) => {
    const names = Object.keys(steps).filter(isIn);
    return { steps: names.flatMap((name) => steps[name]), compile: Math.max(...names.map((name) => compile[name])) };
  };
  const isNamed = (name) => name in CASES;
  return [
    ...Object.keys(CASES).map((name) => row(name, together((one) => one === name), native?.cases[name])),
    row('these', together(isNamed), native && mean(Object.values(native.cases))), row(TESTS, together((name) => !isNamed(name))),
    row('all', together(() => true)),
  ];
}

export function masksReport({ machine, loads, rounds, found, limited }) {
  const summary = summarise(found);
  const engines = Object.keys(summary);
  const heads = engines.flatMap((engine) => [`${NAMES[engine]}: compile, ms`, 'median, us', 'mean', 'slowest']);
  const lines = engines.map((engine) => {
    const { all, trie, compile } = summary[engine];
    return `${NAMES[engine]}: of ${all.length} masks over ${Object.keys(compile).length} schemas the median takes ${us(quantile(all, 0.5))} us, and 99 of 100 take at most ${us(quantile(all, 0.99))} us; the tree of ${found[engine].tokens} tokens ${trie.toFixed(0)} ms, once.`;
  });
  const native = found.native ? `llama.cpp ${found.native.version}: the time that a grammar adds to the sampling of a token, us, best of ${SEEDS.length} runs.` : '';
  return `# Masks of limited replies

Made by \`npm run bench -- --only masks\`; masks.json has every figure. ${machineLine(machine)}. The machine's load was ${Math.min(...loads)} to ${Math.max(...loads)}. One thread; for each step the best of ${rounds} rounds, each with a module that
has not compiled the schema before. Rows with several schemas have the slowest compilation; "${TESTS}" are those of tests/fixtures/schemas/cases.txt. ${native}

${lines.join('\n')}

${table(['schema', ...heads, ...(found.native ? ['llama.cpp adds'] : [])], rowsOf(summary, found.native))}
${limitedReport(limited, NAMES)}`;
}

export async function measureMaskCosts() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { only: text, engines: text, rounds: text, out: text } });
  const { engines = 'node,quern,native', rounds = 5, out = 'docs/benchmarks' } = values;
  const names = engines.split(',').filter((name) => name !== 'native' || hasNative());
  const unknown = names.filter((name) => !NAMES[name]);
  if (unknown.length) throw new Error(`--engines: ${unknown} is none of ${Object.keys(NAMES)}`);
  const server = await serve({ root: PROJECT, csp: false });
  const [found, limited, loads] = [{}, {}, []];
  try {
    for (const engine of names) {
      loads.push(loadAverage());
      found[engine] = engine === 'native' ? await measureNative() : await measureQuern(server.url, engine, Number(rounds));
      if (engine !== 'native') limited[engine] = await measureLimited(server.url, engine);
      console.error(`${engine}: done, load ${loads.at(-1)}`);
    }
  } finally {
    await server.close();
  }
  const report = { machine: describeMachine(found.quern?.version ?? ''), loads, rounds: Number(rounds), found, limited };
  const folder = join(PROJECT, out);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'masks.json'), `${JSON.stringify(report)}\n`);
  writeFileSync(join(folder, 'masks.md'), `${masksReport(report)}\n`);
  console.log(masksReport(report));
}
