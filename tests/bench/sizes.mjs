// SPDX-License-Identifier: MIT
// What a page has to fetch before the model: bytes of each engine's code, plain and compressed.
import { join } from 'node:path';
import { PAGES, measure, total } from '../../tools/sizes.mjs';
import { PROJECT } from './fixtures.mjs';

const WLLAMA = 'node_modules/@wllama/wllama/esm';

const SHIPPED = {
  ...Object.fromEntries(Object.entries(PAGES).map(([variant, names]) => [`quern, ${variant}`, names.map((name) => `dist/${name}`)])),
  wllama: [`${WLLAMA}/wasm/wllama.wasm`, `${WLLAMA}/index.min.js`],
};

const sizes = async (files) => total(await Promise.all(files.map((file) => measure(join(PROJECT, file)))));

/** @returns {Promise<Record<string, {wasm: object, js: object}>>} bytes raw, gzip, brotli */
export async function shippedSizes() {
  const parts = async (files) => ({ wasm: await sizes(files.filter((file) => file.endsWith('.wasm'))), js: await sizes(files.filter((file) => !file.endsWith('.wasm'))) });
  return Object.fromEntries(await Promise.all(Object.entries(SHIPPED).map(async ([name, files]) => [name, await parts(files)])));
}
