#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Sizes of what is shipped: each file of dist/ but the source maps, plain and compressed, and what a page downloads of
// them, with its limit. Printed by `make size`; what pages download, and what vision add to it, is kept by
// tests/js/project/package.test.mjs.

import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const DIST = fileURLToPath(new URL('../dist', import.meta.url));

/** Bytes of a page's download, compressed as servers do. */
export const PAGE_LIMITS = { gzip: 276_000, brotli: 224_000 };

/**
 * What a page downloads for a GGUF model: the entry, the workers, and the engine's text build and glue that fit its
 * browser. Further files come when needed: the engine with 64-bit addresses and its glue with a model over 4 GiB; the
 * full build with a folder, another format, a split model, IQ1 to IQ3, vision or a profile; sha256.js with a file whose
 * hash is known; picked.js when picked files are stored; foreign.js when a load fails; images.js and vision.js with the first model with vision; videos.js with
 * the first video; extras.js and aside.js with the first reply that is constrained, uses tools or returns
 * probabilities; template-rare.js with the first template that uses rare features.
 */
export const PAGES = Object.fromEntries(
  ['relaxed', 'simd', 'relaxed64', 'simd64'].map((variant) => [
    variant,
    [
      'index.js',
      'worker.js',
      'template.js',
      ...(variant.endsWith('64') ? ['thread64.js', 'quern-simd64.mjs'] : ['thread.js', 'quern-simd.mjs']),
      `quern-${variant}-text.wasm`,
    ],
  ]),
);

/**
 * What a model with vision adds: the full build instead of the text build, and the files for images and videos. So this
 * also counts what else the text build lacks: the readers of all formats but GGUF, the grids and kernels of IQ1 to IQ3,
 * NVFP4, quantised folders, and profiles.
 */
export const SEEING = Object.fromEntries(
  Object.keys(PAGES).map((variant) => [
    variant,
    { more: ['vision.js', 'images.js', 'videos.js', `quern-${variant}.wasm`], less: [`quern-${variant}-text.wasm`] },
  ]),
);

/**
 * Before compression. Brotli makes 65 KB of that, but a difference of two compressed files varies by 2 KB with what Brotli
 * happens to find in either file.
 */
export const SEEING_LIMIT = 236_000;

const KEYS = ['raw', 'gzip', 'brotli'];

async function compress(path) {
  const bytes = await readFile(path);
  return { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes).length };
}

const measured = new Map();

/** Bytes of a file, plain and compressed. This takes seconds, so the result is remembered. */
export function measure(path) {
  if (!measured.has(path)) measured.set(path, compress(path));
  return measured.get(path);
}

/** The sum of rows. */
export function total(rows) {
  return Object.fromEntries(KEYS.map((key) => [key, rows.reduce((sum, row) => sum + row[key], 0)]));
}

const shipped = async (dist) =>
  (await readdir(dist, { recursive: true })).filter((name) => /\.\w+$/.test(name) && !name.endsWith('.map')).sort();

/**
 * @param {string[]} [names] of files; compressing all files takes seconds
 * @returns {Promise<{files: object[], pages: object[]}>} rows of name, raw, gzip and brotli
 */
export async function sizes(dist = DIST, names = [...new Set(Object.values(PAGES).flat())]) {
  const files = await Promise.all(names.map(async (name) => ({ name, ...await measure(join(dist, name)) })));
  const pages = Object.entries(PAGES).map(([variant, wanted]) => (
    { name: `a page, ${variant}`, ...total(files.filter(({ name }) => wanted.includes(name))) }
  ));
  return { files, pages };
}

/** What vision adds, plain and compressed; `files` must include all its files. */
export function seeing(files) {
  const sum = (names) => total(files.filter(({ name }) => names.includes(name)));
  return Object.entries(SEEING).map(([variant, { more, less }]) => {
    const [with_, without] = [sum(more), sum(less)];
    return { name: `vision, ${variant}`, ...Object.fromEntries(KEYS.map((key) => [key, with_[key] - without[key]])) };
  });
}

export async function printSizes() {
  const { files, pages } = await sizes(DIST, await shipped(DIST));
  const line = (name, cells) => `${name.padEnd(22)}${cells.map((cell) => String(cell).padStart(10)).join('')}\n`;
  const rows = [...files, ...pages, ...seeing(files)].map((row) =>
    line(
      row.name,
      KEYS.map((key) => row[key]),
    ),
  );
  process.stdout.write(
    `${line('dist/', KEYS)}${rows.join('')}${line('limit of a page', ['', PAGE_LIMITS.gzip, PAGE_LIMITS.brotli])}`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await printSizes();
