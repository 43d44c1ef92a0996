// SPDX-License-Identifier: MIT
// The machine's plain read bandwidth, which bounds decoding: a C program over a buffer of a model's size.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';

/** The Q8_0 file's size: server CPUs have caches of hundreds of MB. */
const MIB = 640;

const PROGRAM = join(PROJECT, 'build/bench/read');

let built = false;

function build() {
  mkdirSync(join(PROJECT, 'build/bench'), { recursive: true });
  execFileSync('cc', ['-O3', '-march=native', '-pthread', join(PROJECT, 'tests/bench/read.c'), '-o', PROGRAM]);
  built = true;
}

/** @returns {number} bytes per second that so many threads read together */
export function readBandwidth(threads) {
  if (!built) build();
  return 1e9 * parseFloat(execFileSync(PROGRAM, [String(threads), String(MIB)], { encoding: 'utf8' }));
}
