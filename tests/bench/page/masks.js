// SPDX-License-Identifier: MIT
// What masks.mjs asks of a page.
import { measureMasks } from '../masks-run.js';

export async function run({ wasm, tiktoken, cases, rounds }) {
  const fetched = (path) => fetch(new URL(`/${path}`, location.href));
  return measureMasks({ wasm: await (await fetched(wasm)).arrayBuffer(), tiktoken: await (await fetched(tiktoken)).text(), cases, rounds });
}
