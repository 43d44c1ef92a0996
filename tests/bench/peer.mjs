// SPDX-License-Identifier: MIT
// llama.cpp's native builds, as npm's node-llama-cpp ships them: fetched for the benchmark alone, into build/bench/.
// The package holds one library per kind of x86-64 CPU and takes the best that the machine can run; a copy that has only the
// one for AVX2 shows what a CPU without AVX-512 and VNNI would get.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';

const PEER_VERSION = '3.22.1';

const PLATFORM = `@node-llama-cpp/${process.platform}-${process.arch}`;
const FOLDER = join(PROJECT, 'build/bench/peer');

/** Makes a folder under another name until it is complete. */
function folder(path, make) {
  if (existsSync(path)) return path;
  rmSync(`${path}.part`, { recursive: true, force: true });
  make(`${path}.part`);
  renameSync(`${path}.part`, path);
  return path;
}

function install(into) {
  console.error(`bench: installing node-llama-cpp ${PEER_VERSION} and its CPU build into build/bench/peer (85 MB)`);
  const packages = [`node-llama-cpp@${PEER_VERSION}`, `${PLATFORM}@${PEER_VERSION}`];
  const quiet = ['--ignore-scripts', '--omit=optional', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', '--prefix', into, ...quiet, ...packages], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** All its builds, of which it takes the best one. @returns {string} the folder over its node_modules */
export const peerBest = () => folder(`${FOLDER}-${PEER_VERSION}`, install);

/** Its build for AVX2 (named after Haswell) alone. */
export function peerAvx2() {
  const whole = peerBest();
  const others = /libggml-cpu-(?!haswell)\w+\.so$/;
  return folder(`${FOLDER}-${PEER_VERSION}-avx2`, (into) => cpSync(whole, into, { recursive: true, filter: (file) => !others.test(file) }));
}
