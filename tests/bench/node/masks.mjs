// SPDX-License-Identifier: MIT
// What masks.mjs asks of quern in Node.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PROJECT } from '../fixtures.mjs';
import { measureMasks } from '../masks-run.js';

export async function run({ wasm, tiktoken, cases, rounds }) {
  const read = (path, encoding) => readFile(join(PROJECT, path), encoding);
  return measureMasks({ wasm: await read(wasm), tiktoken: await read(tiktoken, 'utf8'), cases, rounds });
}
