// SPDX-License-Identifier: MIT
// The encoder of images by operation: natively, in this Node and in Chromium, one after the other: vision.c over a projector's file, which lies
// below the project's folder.
//
//   node tests/bench/vision.mjs PROJECTOR [PIXELS [THREADS [LOOKS [PLACES]]]]
//
// make-projector.mjs writes one; PLACES: native,simd,relaxed,chromium-simd,chromium-relaxed (all).

import { execFile, spawnSync } from 'node:child_process';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serve } from '../../tools/serve.mjs';
import { launchChromium } from '../web/browser.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [file, pixels = '512', threads = '2', looks = '3', places = 'native,simd,relaxed,chromium-simd,chromium-relaxed'] = process.argv.slice(2);

/**
 * Runs in Node and in a page's worker: a report's lines.
 * @param {{glue: string, url: string, threads: number, pixels: number, looks: number}} options
 */
async function measure({ glue, url, threads, pixels, looks }) {
  const { default: create } = await import(glue);
  const memory = new WebAssembly.Memory({ initial: 512, maximum: 65536, shared: true }); // the link's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY
  const lines = [];
  const wasm = await create({ nThreads: threads - 1, wasmMemory: memory, print: (line) => lines.push(line) });
  const check = (failed) => { if (failed) throw new Error(lines.at(-1)); };
  wasm._vision_bench_open(threads, 0);
  for await (const chunk of (await fetch(url)).body) {
    for (let at = 0; at < chunk.length; at += 1 << 20) { // the room's size
      const piece = chunk.subarray(at, at + (1 << 20));
      new Uint8Array(memory.buffer).set(piece, wasm._vision_room());
      check(wasm._vision_bench_feed(wasm._vision_room(), piece.length));
    }
  }
  check(wasm._vision_bench_reserve(pixels));
  for (let i = 0; i < looks; i++) {
    lines.push(`look ${i}: longest part ${wasm._vision_bench_look().toFixed(1)} ms`);
    await new Promise((done) => { setTimeout(done); }); // lets better code take over
  }
  wasm._vision_bench_report();
  return lines;
}

const native = () => spawnSync(`${root}build/release/bench/vision`, [file, pixels, threads, looks], { encoding: 'utf8' }).stdout.trim().split('\n');

/** Not spawnSync: the file comes from this process's server. */
async function inNode(options) {
  const script = `import(${JSON.stringify(`${root}js/shared/node-flags.js`)}).then(({ allowRelaxed }) => { allowRelaxed(); return (${measure})(${JSON.stringify(options)}); })
    .then((lines) => { console.log(lines.join('\\n')); process.exit(); });`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script]);
  return stdout.trim().split('\n');
}

/** In a worker, where waiting is allowed. */
async function inChromium(server, options) {
  const browser = await launchChromium([], true);
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(600_000);
    await page.goto(`${server.url}tests/bench/page/page.html`);
    return await page.evaluate(async ([source, given]) => {
      const code = `(${source})(${JSON.stringify(given)}).then(postMessage, (error) => postMessage([String(error)]));`;
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), { type: 'module' });
      return new Promise((done) => { worker.onmessage = ({ data }) => done(data); });
    }, [measure.toString(), options]);
  } finally {
    await browser.close();
  }
}

async function main() {
  if (!file) throw new Error('which projector?');
  const server = await serve({ root, csp: false });
  const options = (variant, base) => ({
    glue: `${base}build/wasm/bench/vision-${variant}.mjs`, url: server.url + relative(root, resolve(file)),
    threads: Number(threads), pixels: Number(pixels), looks: Number(looks),
  });
  for (const place of places.split(',')) {
    const variant = place.replace('chromium-', '');
    console.log(`== ${place}`);
    if (place === 'native') console.log(native().join('\n'));
    else console.log((await (place === variant ? inNode(options(variant, root)) : inChromium(server, options(variant, server.url)))).join('\n'));
  }
  await server.close();
}

await main();
