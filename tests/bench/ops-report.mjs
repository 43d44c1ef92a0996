// SPDX-License-Identifier: MIT
// A run of ops.mjs as one HTML file that needs nothing else: the plots' library, the style, the script and the figures stand in it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';
import { machineLine } from './machine.mjs';

const LIBRARY = 'node_modules/uplot';

const read = (path) => readFileSync(join(PROJECT, path), 'utf8');

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

/** Text that cannot end the script element around it. */
const inScript = (text) => text.replaceAll('</', '<\\/');

/** @param {object} run @param {object} [comparison] of ops-compare.mjs */
export function html(run, comparison) {
  const lead = `${machineLine(run.machine)}. Load of the machine before the run: ${run.machineLoad}.`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>quern: operations alone</title>
<link rel="icon" href="data:,">
<!-- Plots by uPlot:
${escaped(read(`${LIBRARY}/LICENSE`)).replaceAll('--', '- -')}-->
<style>
${read(`${LIBRARY}/dist/uPlot.min.css`)}
${read('tests/bench/report/ops.css')}</style>
<header>
<h1>Operations alone</h1>
<p>Qwen3-0.6B's dimensions; least of several samples. ${escaped(lead)}</p>
</header>
<main></main>
<script>${inScript(read(`${LIBRARY}/dist/uPlot.iife.min.js`))}</script>
<script type="application/json" id="run">${inScript(JSON.stringify(run))}</script>
<script type="application/json" id="comparison">${inScript(JSON.stringify(comparison ?? null))}</script>
<script>
${inScript(read('tests/bench/report/ops.js'))}</script>
`;
}
