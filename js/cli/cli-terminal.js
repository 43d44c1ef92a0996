// SPDX-License-Identifier: MIT
// What the command line reads and writes. Text from models, files and servers passes one filter on its way to stderr,
// and to stdout where that is a terminal; a pipe or a file gets it as it is.

import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { interrupted } from './cli-signals.js';
import { badParam, harmless } from '../shared/errors.js';

const { stdout, stderr } = process;

/** Node takes a folder for an empty file. */
function isFolder(descriptor) {
  try {
    return fstatSync(descriptor).isDirectory();
  } catch {
    return false;       // it is closed, which reading it says
  }
}

/** The pieces of the standard input, until there is an interrupt. */
export async function* input() {
  if (isFolder(0)) throw badParam('the input', 'is a folder');
  try {
    yield* addAbortSignal(interrupted, process.stdin);
  } catch (error) {
    throw interrupted.aborted ? error : badParam('the input', `cannot be read (${error.code})`);
  }
}

/** Text in one line. */
export const oneLine = (text) => harmless(text).replace(/[\n\t]+/g, ' ');

/** Writes what was asked for; resolves when there is room for more. */
export async function out(text) {
  if (!stdout.write(stdout.isTTY ? harmless(text) : text)) await once(stdout, 'drain', { signal: interrupted });
}

let dimmed = false;

/** Dims what comes on a terminal, or shows it as before. */
export function dim(on) {
  if (on !== dimmed && stdout.isTTY) stdout.write(`\x1b[${on ? 2 : 22}m`);
  dimmed = on;
}

let status = false;     // whether a line about what goes on stands there

/** A line on a terminal, over the last one; nothing elsewhere. '' takes it away. */
export function showStatus(text) {
  if (!stderr.isTTY || (!text && !status)) return;
  stderr.write(`\r${oneLine(text).slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  status = text !== '';
}

/** A line on stderr. */
export function say(text) {
  showStatus('');
  stderr.write(`quern: ${oneLine(text)}\n`);
}

/** `quern … | head` ends the reader first, which is no failure; a full disk is one. */
export function guardOutput() {
  stderr.on('error', () => {});
  stdout.on('error', (error) => {
    if (error.code === 'EPIPE') process.exit();
    const { code, message } = badParam('the output', `cannot be written (${error.code})`);
    say(`${code}: ${message}`);
    process.exit(process.exitCode || 1);
  });
}
