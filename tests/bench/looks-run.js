// SPDX-License-Identifier: MIT
// What looks.mjs asks of the package in a page and in Node, in the same words: looks at images of noise, each of which nobody has seen.

/** Noise in RGB (Lehmer's generator). */
export function noise(side, seed) {
  const data = new Uint8Array(3 * side * side);
  for (let i = 0, state = 48271 * (seed + 1); i < data.length; i++) {
    state = (state * 48271) % 0x7fffffff;
    data[i] = state >>> 8;
  }
  return { data, width: side, height: side };
}

let model;

/** @param {typeof import('../../dist/index.js').load} open */
export async function load(open, source, options) {
  model = await open(source, options);
  const { threads, variant } = model.info;
  return { threads, variant };
}

/** @returns {Promise<{ms: number, tokens: number}>} */
export async function look({ side, seed }) {
  const image = noise(side, seed);
  const start = performance.now();
  const { tokens } = await model.look(image);
  return { ms: performance.now() - start, tokens };
}
