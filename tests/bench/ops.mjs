#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// `npm run bench:ops`: every operation of the backend alone, over lengths of 1 to 4,096, and parts of a layer and whole ones over batches of
// 1 to 16, at Qwen3-0.6B's dimensions. Writes ops.json and ops.html (plots, and the comparison with the run before) into build/bench/. What a cell is: ops.c.
//
//   node tests/bench/ops.mjs [--quick] [--targets chromium,relaxed,relaxed2,simd,native] [--only TEXT] [--against FILE] [--baseline]
//
// --quick      fewer lengths, less time a cell          --only      series with this text in their name
// --against    another run to compare with              --baseline  keep this run as docs/benchmarks/ops.json
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { PROJECT } from './fixtures.mjs';
import { describeMachine, loadAverage } from './machine.mjs';
import { compare, comparisonText } from './ops-compare.mjs';
import { html } from './ops-report.mjs';
import { SERIES, mostOf } from './ops-series.mjs';
import { TARGETS } from './ops-targets.mjs';

const BUILT = join(PROJECT, 'build/bench/ops.json');
const BASELINE = join(PROJECT, 'docs/benchmarks/ops.json');

/** Milliseconds: what a cell may take about, and the longest call that is worth the wait. A length is left out when the one before says so. */
const FULL = { step: 2, budgetMs: 60, limitMs: 1200 };
const QUICK = { step: 8, budgetMs: 15, limitMs: 250 };

function options() {
  const text = { type: 'string' };
  const flag = { type: 'boolean' };
  const { values } = parseArgs({ options: { targets: text, only: text, against: text, quick: flag, baseline: flag } });
  const targets = (values.targets ?? 'chromium,relaxed,relaxed2,simd,native').split(',');
  const unknown = targets.find((name) => !Object.hasOwn(TARGETS, name));
  if (unknown) throw new Error(`no target '${unknown}' (${Object.keys(TARGETS).join(', ')})`);
  return { ...values, targets, settings: values.quick ? QUICK : FULL };
}

/** One series: lengths double until a call would take too long. */
async function measureSeries(target, index, { step, budgetMs, limitMs }) {
  const cells = [];
  for (let length = 1, next = 0; length <= mostOf(SERIES[index]) && next <= limitMs; length *= step) {
    const cell = await target.cell(index, length, budgetMs);
    if (cell.series !== SERIES[index]) throw new Error(`series ${index} is '${cell.series}', not '${SERIES[index]}'`);
    cells.push(cell);
    next = cell.min * (cell.rows === length ? step : 1);    // by rows time grows with the length; else it hardly does
  }
  return cells;
}

async function measureTarget(key, { settings, only = '' }) {
  const { name, open, limit = 1 } = TARGETS[key];
  const target = await open();
  const start = performance.now();
  const cells = [];
  try {
    for (const [index, series] of SERIES.entries()) {
      if (series.includes(only)) cells.push(...await measureSeries(target, index, { ...settings, limitMs: limit * settings.limitMs }));
    }
  } finally {
    await target.close();
  }
  console.error(`${name}: ${cells.length} cells in ${((performance.now() - start) / 1000).toFixed(0)} s (machine load ${loadAverage()})`);
  return { key, name, ...target.facts, cells };
}

function previousRun(against) {
  const file = [against, BUILT, BASELINE].find((path) => path && existsSync(path));
  if (against && file !== against) throw new Error(`there is no ${against}`);
  return file && JSON.parse(readFileSync(file, 'utf8'));
}

/** One line a cell, so that versions of the file can be compared. */
const toJson = (run) => JSON.stringify(run, null, 1).replace(/\{\s+"series"[^}]*\}/g, (cell) => cell.replace(/\s+/g, ' '));

async function main() {
  const chosen = options();
  const previous = previousRun(chosen.against);
  const load = loadAverage();
  const targets = [];
  for (const key of chosen.targets) targets.push(await measureTarget(key, chosen));
  const run = { machine: describeMachine(targets.find(({ browser }) => browser)?.browser ?? 'no browser'), machineLoad: load, settings: chosen.settings, targets };
  const comparison = previous && compare(previous, run);
  mkdirSync(join(PROJECT, 'build/bench'), { recursive: true });
  writeFileSync(BUILT, toJson(run));
  writeFileSync(BUILT.replace('.json', '.html'), html(run, comparison));
  if (chosen.baseline) writeFileSync(BASELINE, toJson(run));
  if (comparison) console.log(comparisonText(comparison));
  console.log('build/bench/ops.html has the plots');
}

await main();
