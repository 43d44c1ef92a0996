// SPDX-License-Identifier: MIT
// The engine's builds, compiled once for a test file. V8 gives what a process has compiled already to whoever compiles the same bytes, as long as
// somebody holds it: loads that come one after the other then take half the processor's time. Nothing waits for it.

import { readFile } from 'node:fs/promises';
import { allowRelaxed } from '../../js/shared/node-flags.js';

allowRelaxed();
const compile = async (build) => WebAssembly.compile(await readFile(new URL(`../../dist/quern-${build}.wasm`, import.meta.url)));

export const compiled = Promise.all(['relaxed-text', 'simd-text', 'relaxed', 'simd'].map((build) => compile(build).catch(() => null)));
