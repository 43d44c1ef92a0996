// SPDX-License-Identifier: MIT
// quern (in Node, on grammar.wasm) beside llguidance over MaskBench's schemas and instances, which are nobody's to commit: the folder of its data is
// told. Rounds of the two follow each other; of each step and each compilation the best one counts, over the schemas that both compile.
//
//   QUERN_MASKBENCH=.../maskbench/data PYTHON=python3 node tests/bench/maskbench.mjs [--count 1500] [--rounds 3]
//   (PYTHON has llguidance, tiktoken and numpy: pip install llguidance tiktoken numpy)
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT } from './fixtures.mjs';
import { describeMachine, loadAverage, machineLine } from './machine.mjs';
import { table } from './report.mjs';

const { values } = parseArgs({ options: { count: { type: 'string', default: '1500' }, rounds: { type: 'string', default: '3' } } });
const data = process.env.QUERN_MASKBENCH;
if (!data) throw new Error('QUERN_MASKBENCH is the folder of MaskBench\'s data');

const at = (path) => join(PROJECT, path);
const RANKS = at('tests/fixtures/vocab/qwen.tiktoken');
const run = (command, args) => execFileSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'inherit'] });
const python = (...args) => run(process.env.PYTHON ?? 'python3', [at('tests/bench/maskbench.py'), ...args]);
const parsed = (text) => text.trim().split('\n').map((line) => JSON.parse(line));

/** Of each step the best round. */
function best(rounds) {
  const known = new Map();
  for (const { id, compile, tests } of rounds.flat()) {
    const one = known.get(id);
    if (!one) known.set(id, { compile, tests });
    else known.set(id, { compile: Math.min(one.compile, compile), tests: one.tests.map((steps, t) => steps.map((us, i) => Math.min(us, tests[t][i]))) });
  }
  return known;
}

const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];

function row(name, known, ids) {
  const masks = ids.flatMap((id) => known.get(id).tests.flat()).toSorted((a, b) => a - b);
  const compile = ids.map((id) => known.get(id).compile).toSorted((a, b) => a - b);
  const mean = masks.reduce((sum, us) => sum + us, 0) / masks.length;
  const ms = (us) => (us / 1000).toFixed(2);
  const cuts = [0.5, 0.9, 0.99].map((part) => quantile(masks, part).toFixed(0));
  return [name, String(known.size), String(masks.length), mean.toFixed(0), ...cuts, masks.at(-1).toFixed(0), ms(quantile(compile, 0.5)), ms(quantile(compile, 0.99)), ms(compile.at(-1))];
}

const folder = mkdtempSync(join(tmpdir(), 'maskbench-'));
try {
  const cases = join(folder, 'cases');
  writeFileSync(cases, python('prepare', data, RANKS, values.count));
  const [ours, theirs, loads] = [[], [], []];
  let version = '';
  for (let round = 0; round < Number(values.rounds); round++) {
    loads.push(loadAverage());
    ours.push(parsed(run(process.execPath, [at('tests/bench/maskbench-run.mjs'), RANKS, cases, at('dist/grammar.wasm')])));
    const [told, ...found] = parsed(python('measure', RANKS, cases));
    version = told.version;
    theirs.push(found);
  }
  const [quern, llguidance] = [best(ours), best(theirs)];
  const both = [...quern.keys()].filter((id) => llguidance.has(id));
  console.log(`${machineLine(describeMachine(''))}; load ${Math.min(...loads)} to ${Math.max(...loads)}. ${values.count} of MaskBench's schemas, drawn with seed 1, without their annotations; ${both.length} compile with both, and these are compared. Best of ${values.rounds} rounds in turn.\n`);
  const heads = ['', 'compiled', 'masks', 'mean, us', 'median', '90 %', '99 %', 'slowest', 'compile, ms: median', '99 %', 'slowest'];
  console.log(table(heads, [row('quern, Node', quern, both), row(`llguidance ${version}, native`, llguidance, both)]));
} finally {
  rmSync(folder, { recursive: true });
}
