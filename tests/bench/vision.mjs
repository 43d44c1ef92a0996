// SPDX-License-Identifier: MIT
// The encoder of pictures by operation, natively and as wasm in this Node: vision.c over a projector's file.
//
//   node tests/bench/vision.mjs PROJECTOR [PIXELS [THREADS [LOOKS [VARIANTS]]]]      make-projector.mjs writes one; VARIANTS: native,simd,relaxed

import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [file, pixels = '512', threads = '2', looks = '3', variants = 'native,simd,relaxed'] = process.argv.slice(2);

/** Must equal the link's -sINITIAL_MEMORY and -sMAXIMUM_MEMORY, in pages of 64 KiB. */
const PAGES = { initial: 512, maximum: 65536, shared: true };
const ROOM = 1 << 20;

function feed(wasm, memory) {
  const [at, chunk, f] = [wasm._vision_room(), Buffer.alloc(ROOM), openSync(file)];
  for (let n; (n = readSync(f, chunk, 0, ROOM, null)) > 0;) {
    new Uint8Array(memory.buffer).set(chunk.subarray(0, n), at);
    if (wasm._vision_bench_feed(at, n)) process.exit(1);
  }
  closeSync(f);
}

async function runWasm(variant) {
  const { default: glue } = await import(pathToFileURL(join(root, `build/wasm/bench/vision-${variant}.mjs`)));
  const memory = new WebAssembly.Memory(PAGES);
  const wasm = await glue({ nThreads: Number(threads) - 1, wasmMemory: memory });
  wasm._vision_bench_open(Number(threads), 0);
  feed(wasm, memory);
  if (wasm._vision_bench_reserve(Number(pixels))) process.exit(1);
  for (let i = 0; i < Number(looks); i++) console.log(`look ${i}: longest part ${wasm._vision_bench_look().toFixed(1)} ms`);
  wasm._vision_bench_report();
}

if (!file) throw new Error('which projector?');
for (const variant of variants.split(',')) {
  console.log(`== ${variant}`);
  if (variant === 'native') spawnSync(join(root, 'build/release/bench/vision'), [file, pixels, threads, looks], { stdio: 'inherit' });
  else await runWasm(variant);
}
process.exit(0);
