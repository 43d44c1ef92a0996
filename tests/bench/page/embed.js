// SPDX-License-Identifier: MIT
// What embed.mjs asks of a page: the package as everybody has it.
import { load as open } from '../../../dist/index.js';

let model;

export async function load({ url, path: _, ...options }) {
  model = await open(new URL(url, location.href), { store: false, ...options });
}

export async function run({ texts }) {
  const began = performance.now();
  const { vectors, tokens } = await model.embed(texts);
  return { seconds: (performance.now() - began) / 1000, tokens, vectors: vectors.map((vector) => Array.from(vector)) };
}
