// SPDX-License-Identifier: MIT
// What embed.mjs asks of quern in Node.
import { load as open } from '../../../dist/node.js';

let model;

export async function load({ url: _, path, ...options }) {
  model = await open(path, options);
}

export async function run({ texts }) {
  const began = performance.now();
  const { vectors, tokens } = await model.embed(texts);
  return { seconds: (performance.now() - began) / 1000, tokens, vectors: vectors.map((vector) => Array.from(vector)) };
}
