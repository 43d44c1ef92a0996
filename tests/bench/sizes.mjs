// SPDX-License-Identifier: MIT
// What a page has to fetch before the model: bytes of each engine's code, plain and compressed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { PROJECT } from './fixtures.mjs';

const QUERN_JS = ['index.js', 'worker.js', 'template.js', 'quern-simd.mjs'].map((name) => `dist/${name}`);
const WLLAMA = 'node_modules/@wllama/wllama/esm';

const SHIPPED = {
  'quern, relaxed': { wasm: ['dist/quern-relaxed.wasm'], js: QUERN_JS },
  'quern, simd': { wasm: ['dist/quern-simd.wasm'], js: QUERN_JS },
  wllama: { wasm: [`${WLLAMA}/wasm/wllama.wasm`], js: [`${WLLAMA}/index.min.js`] },
};

function sizes(files) {
  const total = { raw: 0, gzip: 0, brotli: 0 };
  for (const file of files) {
    const bytes = readFileSync(join(PROJECT, file));
    total.raw += bytes.length;
    total.gzip += gzipSync(bytes, { level: 9 }).length;
    total.brotli += brotliCompressSync(bytes).length;
  }
  return total;
}

/** @returns {Record<string, {wasm: object, js: object}>} bytes raw, gzip, brotli */
export function shippedSizes() {
  return Object.fromEntries(Object.entries(SHIPPED).map(([name, { wasm, js }]) => [name, { wasm: sizes(wasm), js: sizes(js) }]));
}
