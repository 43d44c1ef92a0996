// SPDX-License-Identifier: MIT
// What batch.mjs asks of quern in Node: see page/batch-driver.js.
import { createReadStream, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { allowRelaxed } from '../../../js/shared/node-flags.js';
import { Batches } from '../page/batch-driver.js';

let batches;

export async function load({ path, variant, ...options }) {
  allowRelaxed();
  const dist = new URL('../../../dist/', import.meta.url);
  const { default: glue } = await import(new URL('node/quern-simd.mjs', dist));
  const module = await WebAssembly.compile(await readFile(new URL(`quern-${variant}.wasm`, dist)));
  batches = await Batches.open({ glue, module, size: statSync(path).size, chunks: createReadStream(path, { highWaterMark: 1 << 20 }), ...options });
  return batches.facts;
}

export const run = async (options) => batches.run(options);
