#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// What a reply costs the chat page's main thread: milliseconds of script, layout and style, from Chromium's own trace, and
// the longest task, while a played model says a long reply with code, tables, lists and formulas. With `--against` also the
// page of an earlier commit, in the same run, turn by turn.
//
//   node tests/bench/replies.mjs [--against HEAD~3] [--tokens 4000] [--rate 30] [--repeat 1]
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { PROJECT, Visit, launchChromium } from '../web/browser.mjs';
import { ChatPage } from '../web/chat-page.mjs';
import { playedSite } from '../web/played.mjs';
import { CATEGORIES, describe, longest, tasksOf } from '../web/tasks.mjs';
import { loadAverage } from './machine.mjs';
import { median, table } from './report.mjs';

const FORMULAS = [
  ['E_{0}', 'E_n = \\frac{n^2 h^2}{8 m L^2}'], ['a_1*b*c_1', '\\sum_{i=1}^{n} x_i^2 = \\left( \\frac{a+b}{2} \\right)^{2}'],
  ['\\alpha \\ne \\beta', '\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix} \\cdot \\vec{v} = \\lambda \\vec{v}'],
];

/** One section of a reply, about 210 tokens. */
function section(i) {
  const [short, long] = FORMULAS[i % FORMULAS.length];
  const rows = Array.from({ length: 6 }, (_, k) => `| row ${i}.${k} | ${k * i} tokens/s | \`code${k}\` |`).join('\n');
  return `## Section ${i}: how it is computed

The value of $${short}$ depends on **several things**, which the following list names; with \\(x = ${i}\\) it is \`f(${i})\`, and nobody knows why.
The second line says the same in other words, because a model likes to repeat itself.

$$
${long}
$$

1. The **first** step reads the file and finds $x_{${i}}$ in it.
2. The second step computes what is needed, *slowly*.
   - a detail of the second step
   - another detail, with \`code\`
3. The third step prints the result.

| name | speed | code |
| --- | ---: | --- |
${rows}

\`\`\`python
def section_${i}(values: list[int]) -> int:
    # Adds up what is there.
    total = 0
    for value in values:
        total += value * ${i}
    return total if total > 0 else "none"
\`\`\`

`;
}

/** Pieces of about four characters, as tokens are. */
function piecesOf(count) {
  const pieces = [];
  for (let i = 1; pieces.length < count; i++) pieces.push(...section(i).match(/\s*\S{1,5}|\s+/g));
  return pieces.slice(0, count);
}

/** Builds the page of a commit. */
async function builderOf(revision) {
  const folder = mkdtempSync(join(tmpdir(), 'quern-replies-'));
  const archive = execFileSync('git', ['archive', revision, 'web', 'tools', 'package.json'], { cwd: PROJECT, maxBuffer: 2 ** 28 });
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['x', '-C', folder], { input: archive });
  symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
  const { buildSite } = await import(join(folder, 'tools/site.mjs'));
  return { build: (options) => buildSite({ web: join(folder, 'web'), ...options }), remove: () => rmSync(folder, { recursive: true }) };
}

/** Events of a trace, by what they are. What happens inside of layout and style belongs to them, wherever they were forced. */
const KINDS = {
  Layout: 'layout', UpdateLayoutTree: 'style',
  TimerFire: 'script', FireAnimationFrame: 'script', FunctionCall: 'script', EventDispatch: 'script', RunMicrotasks: 'script', EvaluateScript: 'script',
  'v8.evaluateModule': 'script', HandlePostMessage: 'script', MajorGC: 'script', MinorGC: 'script',
};

/**
 * Processor time of the marked thread, in ms. Chromium's counter ScriptDuration is not used: it leaves out what promises
 * run at the end of a task. A timer in which no function is called is the browser's own.
 */
function spentOf(events, mark) {
  const { pid, tid } = events.find(({ name }) => name === mark);
  const mine = events.filter((event) => event.pid === pid && event.tid === tid && event.ph === 'X').sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const spent = { script: 0, layout: 0, style: 0, tasks: 0 };
  const open = [];      // events around the present one: {end, kind, own, calls}
  const close = ({ kind, own, calls, name }) => { if (kind && (name !== 'TimerFire' || calls)) spent[kind] += own / 1000; };
  for (const { name, ts, dur, tdur = 0 } of mine) {
    while (open.length && open.at(-1).end <= ts) close(open.pop());
    if (name.endsWith('RunTask')) spent.tasks += tdur / 1000;
    const kind = KINDS[name];
    if (!kind) continue;
    const outer = open.at(-1);
    if (outer) {
      outer.own -= tdur;
      outer.calls ||= name === 'FunctionCall';
    }
    open.push({ end: ts + dur, kind, own: tdur, calls: false, name });
  }
  for (const one of open) close(one);
  return spent;
}

async function measure(browser, root, told) {
  const server = await serve({ root });
  const blank = await browser.newPage();
  const visit = await Visit.open(browser, server.url, { init: (value) => { globalThis.told = value; }, initArgument: told, viewport: { width: 1280, height: 800 } });
  try {
    const chat = new ChatPage(visit.page);
    await chat.ready();
    await browser.startTracing(blank, { categories: CATEGORIES });
    await visit.page.evaluate(() => { performance.mark('bench: begin'); });
    await chat.send('Talk.');
    await new Promise((done) => { setTimeout(done, told.pieces.length * told.ms); });
    await visit.page.locator('[data-testid=message-assistant][aria-busy=false]').waitFor({ timeout: 120_000 });
    const { traceEvents } = JSON.parse(await browser.stopTracing());
    return { ...spentOf(traceEvents, 'bench: begin'), longest: longest(tasksOf(traceEvents, 'bench: begin')), load: loadAverage() };
  } finally {
    await visit.close();
    await blank.close();
    await server.close();
  }
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { against: text, tokens: text, rate: text, repeat: text } });
  const { against, tokens = 4000, rate = 30, repeat = 1 } = values;
  const told = { pieces: piecesOf(Number(tokens)), ms: 1000 / Number(rate) };
  const earlier = against && await builderOf(against);
  const model = 'tests/bench/page/told-model.js';
  const sites = { ...(earlier && { [against]: await playedSite({ model, build: earlier.build }) }), now: await playedSite({ model }) };
  const browser = await launchChromium();
  const runs = Object.fromEntries(Object.keys(sites).map((name) => [name, []]));
  try {
    for (let i = 0; i < Number(repeat); i++) for (const [name, { root }] of Object.entries(sites)) {
      const run = await measure(browser, root, told);
      console.error(`${name} ${i}: longest task ${describe(run.longest)}, load ${run.load}`);
      runs[name].push(run);
    }
  } finally {
    await browser.close();
    for (const site of Object.values(sites)) await site.remove();
    earlier?.remove();
  }
  const rows = Object.entries(runs).map(([name, all]) => {
    const of = (counter) => median(all.map((run) => run[counter]));
    const parts = ['script', 'layout', 'style'].map(of);
    const sum = parts.reduce((a, b) => a + b);
    return [name, ...[...parts, sum, of('tasks')].map((ms) => ms.toFixed(0)), Math.max(...all.map((run) => run.longest.cpu)).toFixed(1)];
  });
  console.log(`${tokens} tokens at ${rate} tokens/s, milliseconds of the main thread\n\n${table(['page', 'script', 'layout', 'style', 'sum', 'all tasks', 'longest task'], rows, 1)}`);
}

await main();
