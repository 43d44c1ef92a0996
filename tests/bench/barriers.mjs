// SPDX-License-Identifier: MIT
// The pool's barriers: how many a token of a reply takes, and what an empty one costs; with more threads than processors too.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { PROJECT, bigModel } from './fixtures.mjs';

export const BARRIER_THREADS = [2, 4];

/** @returns {{perToken: number, us: number, stepMs: number}} of a reply of 32 tokens after a prompt of 128, in Node */
export function readBarriers(type, threads) {
  const args = ['bench', join(PROJECT, bigModel(type)), '--prompt', '128', '--generate', '32', '--profile', '--json', '--threads', String(threads)];
  const { profile: { decode, barrierUs } } = JSON.parse(execFileSync(process.execPath, [join(PROJECT, 'dist/cli.js'), ...args], { encoding: 'utf8' }));
  return { perToken: decode.barriers / decode.tokens, us: barrierUs, stepMs: decode.ms / decode.tokens };
}
