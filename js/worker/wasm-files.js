// SPDX-License-Identifier: MIT
// Addresses of the engine's builds: beside the file that this code is bundled into, each in the form that bundlers
// recognise.

/** Addresses by build. They are functions, since a bundler may have copied only some of the files. */
export const WASM = {
  simd: () => new URL('./quern-simd.wasm', import.meta.url),
  relaxed: () => new URL('./quern-relaxed.wasm', import.meta.url),
  simd64: () => new URL('./quern-simd64.wasm', import.meta.url),
  relaxed64: () => new URL('./quern-relaxed64.wasm', import.meta.url),
  gpu: () => new URL('./quern-gpu.wasm', import.meta.url),
  grammar: () => new URL('./grammar.wasm', import.meta.url),
  'simd-text': () => new URL('./quern-simd-text.wasm', import.meta.url),
  'relaxed-text': () => new URL('./quern-relaxed-text.wasm', import.meta.url),
  'simd64-text': () => new URL('./quern-simd64-text.wasm', import.meta.url),
  'relaxed64-text': () => new URL('./quern-relaxed64-text.wasm', import.meta.url),
};
