// SPDX-License-Identifier: MIT
// Runs the command line as a process of its own: with pipes, or on a terminal.

import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { CLI } from './helper.mjs';

/** Collects a process's output. @returns {{child: object, got: {out: string, err: string}, ended: Promise<object>}} */
function follow(child) {
  const got = { out: '', err: '' };
  child.stdin.on('error', () => {});
  child.stdout.setEncoding('utf8');
  child.stderr.setEncoding('utf8');
  child.stdout.on('data', (data) => { got.out += data; });
  child.stderr.on('data', (data) => { got.err += data; });
  return { child, got, ended: new Promise((resolve) => { child.on('close', (code) => resolve({ ...got, code })); }) };
}

/** Starts the program; its input stays open. @param {string[]} [flags] Node's */
export const start = (args, { env, flags = [] } = {}) => follow(spawn(process.execPath, [...flags, CLI, ...args], { env: { ...process.env, ...env } }));

/** @returns {Promise<{out: string, err: string, code: number}>} */
export function quern(args, { input = '', ...options } = {}) {
  const { child, ended } = start(args, options);
  child.stdin.end(input);
  return ended;
}

/**
 * Runs the program many times in one process, one call after another; without help and version.
 * @returns {{quern: typeof quern, end: () => void}}
 */
export function oneProcess() {
  const child = fork(fileURLToPath(new URL('program-many.mjs', import.meta.url)));
  const gone = once(child, 'exit').then(() => { throw new Error('the program has ended'); });
  gone.catch(() => {});
  let before = Promise.resolve();
  const ask = async (call) => {
    child.send(call);
    const [said] = await Promise.race([once(child, 'message'), gone]);
    return said;
  };
  const run = (args, { input = '', env = {} } = {}) => {
    const said = before.then(() => ask({ args, input, env }));
    before = said.catch(() => {});
    return said;
  };
  return { quern: run, end: () => child.kill('SIGKILL') };
}

/** Whether this machine has the program that provides terminals. */
export const canLend = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;

/**
 * Starts the program, in Node or natively, on a terminal. `out` is all that shows; what is written to `child.stdin` are
 * keys.
 */
export function startOnTerminal(args, { env, program = [process.execPath, CLI] } = {}) {
  const line = [...program, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return follow(spawn('script', ['-qec', line, '/dev/null'], { env: { ...process.env, ...env } }));
}
