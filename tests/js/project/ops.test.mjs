// SPDX-License-Identifier: MIT
// What `npm run bench:ops` says of two runs, and its report: one file that asks no network for anything.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compare, comparisonText } from '../../bench/ops-compare.mjs';
import { html } from '../../bench/ops-report.mjs';
import { SERIES, mostOf } from '../../bench/ops-series.mjs';

const cell = (series, length, min) => ({ series, length, rows: 1, min, median: min, samples: 3, macs: 1e6, bytes: 1e6 });
const run = (...cells) => ({
  machine: { cpu: 'a </script> cpu', cores: 2, flags: [], memoryGiB: 1, commit: 'abc', date: '2026-01-01' }, machineLoad: 0,
  targets: [{ key: 'simd', name: 'simd, 1 thread', cells }],
});

test('the series are those of ops.c, in its order, and get as long', () => {
  const source = readFileSync(new URL('../../bench/ops.c', import.meta.url), 'utf8');
  const rows = [...source.matchAll(/^ {4}\{"([^"]+)", (?:NULL|"\w+"), call_\w+, work_\w+, \w+, \w+, (\w+)\},$/gm)].map(([, name, most]) => [name, { LENGTH_MAX: 4096, BATCH_MAX: 16 }[most]]);
  assert.deepEqual(SERIES.map((name) => [name, mostOf(name)]), rows);
  for (const name of ['feed-forward', 'experts', 'layer', 'layer with experts']) assert.ok(SERIES.includes(`${name} Q8_0, batch`), name);
});

test('ratios are of the same cells, slowest first', () => {
  const { cells, worst, best } = compare(
    run(cell('rope', 1, 2), cell('rope', 2, 3), cell('swiglu', 1, 4)),
    run(cell('swiglu', 1, 8), cell('rope', 1, 1), cell('rope', 4, 1)),
  );
  assert.deepEqual(cells.map(({ series, length, ratio }) => [series, length, ratio]), [['swiglu', 1, 0.5], ['rope', 1, 2]]);
  assert.deepEqual([worst[0].series, best[0].series], ['swiglu', 'rope']);
  assert.match(comparisonText(compare(run(cell('rope', 1, 2)), run(cell('rope', 1, 1)))), /1 cells, median 2\.00x as fast\n.*\n {2}2\.00x {2}simd, 1 thread: rope, 1 \(2\.00 -> 1\.00 ms\)/);
  assert.match(comparisonText(compare(run(), run())), /nothing to compare/);
});

test('the report stands alone and holds the figures', () => {
  const now = run(cell('rope', 1, 1), cell('matmul Q8_0', 64, 2));
  const text = html(now, compare(now, now));
  assert.doesNotMatch(text, /(?:src|href)="(?!data:)/);
  assert.doesNotMatch(text, /@import|url\(/);
  assert.equal(text.match(/<script/g).length, text.match(/<\/script>/g).length);
  const [, json] = text.match(/<script type="application\/json" id="run">(.*)<\/script>/);
  assert.deepEqual(JSON.parse(json), now);
  assert.match(text, /uPlot/);
});
