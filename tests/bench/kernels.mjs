#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// `make bench-kernels`: the product kernels natively, in Node and in Chromium, beside the plain read bandwidth of the same
// run: GMAC/s and GB/s of one thread, the best of half a second each; in wasm at the worst of four places of the stack. kernels.c says
// what is measured.
//
//   node tests/bench/kernels.mjs [--only native,node,chromium] [--node PROGRAM] [--variant relaxed,simd] [--flags V8-FLAG,...] [--kernels PATTERN] [--json]
import { execFile } from 'node:child_process';
import { parseArgs, promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { serve } from '../../tools/serve.mjs';
import { launchChromium } from '../web/browser.mjs';
import { PROJECT } from './fixtures.mjs';

/** Runs in Node and in the page. @returns {Promise<{variant: string, cases: object[]}>} */
async function measure(glue, pattern) {
  const { default: createModule } = await import(glue);
  const module = await createModule({ nThreads: 1 });
  const text = (address) => module.UTF8ToString(address);
  const n = module._kernels_open(2);
  const cases = [];
  for (let i = 0; i < n; i++) {
    if (!new RegExp(pattern).test(text(module._kernels_name(i))) || !module._kernels_begin(i)) continue;
    const depths = [[], [0], [0, 0], [0, 0, 0]];          // so many words on the stack before the kernel's own
    const from = (...words) => module._kernels_run(i) ?? words.length;
    const best = depths.map(() => Infinity);
    const end = performance.now() + 600;
    while (performance.now() < end) {
      for (const [d, words] of depths.entries()) {
        const start = performance.now();
        from(...words);
        best[d] = Math.min(best[d], performance.now() - start);
      }
      await new Promise((done) => { setTimeout(done); });   // lets better code take over
    }
    const ms = Math.max(...best);                         // of a kernel that depends on where its stack lies the slowest counts
    cases.push({ name: text(module._kernels_name(i)), gmacs: module._kernels_macs(i) / ms / 1e6, gbs: module._kernels_bytes(i) / ms / 1e6 });
  }
  return { variant: text(module._kernels_variant()), cases };
}

const run = promisify(execFile);

async function native() {
  const { stdout } = await run('build/release/kernels', [], { cwd: PROJECT });
  const lines = stdout.trim().split('\n').map((line) => JSON.parse(line));
  return { variant: lines.pop().variant, cases: lines };
}

async function inNode(variant, { node, flags, kernels }) {
  const modules = [`${PROJECT}js/shared/node-flags.js`, import.meta.url, `${PROJECT}build/bench/kernels-${variant}.mjs`].map((path) => JSON.stringify(path));
  const script = `Promise.all([import(${modules[0]}), import(${modules[1]})])
    .then(([{ allowRelaxed }, { measure }]) => { allowRelaxed(); return measure(${modules[2]}, ${JSON.stringify(kernels)}); })
    .then((result) => { console.log(JSON.stringify(result)); process.exit(); });`;
  const { stdout } = await run(node, [...flags, '-e', script], { cwd: PROJECT });
  return JSON.parse(stdout);
}

async function inChromium(variant, { flags, kernels }) {
  const server = await serve({ root: PROJECT, csp: false });
  const browser = await launchChromium(flags, true);
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(600_000);
    await page.goto(`${server.url}tests/bench/page/page.html`);
    // In a worker, where waiting is allowed.
    return await page.evaluate(async ([source, glue, pattern]) => {
      const code = `${source}; measure(${JSON.stringify(glue)}, ${JSON.stringify(pattern)}).then((result) => postMessage(result), (error) => postMessage({ error: String(error) }));`;
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), { type: 'module' });
      return new Promise((done, fail) => { worker.onmessage = ({ data }) => (data.error ? fail(new Error(data.error)) : done(data)); });
    }, [measure.toString(), `${server.url}build/bench/kernels-${variant}.mjs`, kernels]);
  } finally {
    await browser.close();
    await server.close();
  }
}

function table(results) {
  const names = [...new Set(results.flatMap(({ cases }) => cases.map(({ name }) => name)))];
  const cell = (found) => (found ? `${found.gmacs ? found.gmacs.toFixed(1) : ''} | ${found.gbs.toFixed(1)}` : ' | ');
  const head = `| kernel | ${results.map(({ place, variant }) => `${place} (${variant}), GMAC/s | GB/s`).join(' | ')} |\n| --- |${' --: | --: |'.repeat(results.length)}\n`;
  return head + names.map((name) => `| ${name} | ${results.map(({ cases }) => cell(cases.find((one) => one.name === name))).join(' | ')} |\n`).join('');
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({ options: { only: text, node: text, variant: text, flags: text, kernels: text, json: { type: 'boolean' } } });
  const list = (value) => (value ?? '').split(',').filter(Boolean);
  const options = { node: values.node ?? process.execPath, flags: list(values.flags), kernels: values.kernels ?? '' };
  const places = { native: () => native(), node: (variant) => inNode(variant, options), chromium: (variant) => inChromium(variant, options) };
  const results = [];
  for (const place of list(values.only ?? 'native,node,chromium')) {
    for (const variant of place === 'native' ? [''] : list(values.variant ?? 'relaxed,simd')) {
      results.push({ place, ...await places[place](variant) });
    }
  }
  console.log(values.json ? JSON.stringify(results, null, 2) : table(results));
}

export { measure };
if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
