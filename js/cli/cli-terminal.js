// SPDX-License-Identifier: MIT
// Input and output of the command line. Text from models, files and servers passes one filter on its way to stderr, and
// to stdout if that is a terminal. A pipe or a file gets the text unchanged.

import { once } from 'node:events';
import { fstatSync } from 'node:fs';
import { addAbortSignal } from 'node:stream';
import { interrupted } from './cli-signals.js';
import { badParam, harmless } from '../shared/errors.js';

const { stdout, stderr } = process;

/** Detects a folder, which Node would read as an empty file. */
function isFolder(descriptor) {
  try {
    return fstatSync(descriptor).isDirectory();
  } catch {
    return false;       // closed; reading it gives the error
  }
}

/** The pieces of the standard input, until an interrupt. */
export async function* input() {
  if (isFolder(0)) throw badParam('the input', 'is a folder');
  try {
    yield* addAbortSignal(interrupted, process.stdin);
  } catch (error) {
    throw interrupted.aborted ? error : badParam('the input', `cannot be read (${error.code})`);
  }
}

/** Puts text into one line. */
export const oneLine = (text) => harmless(text).replace(/[\n\t]+/g, ' ');

/** Writes output; resolves when there is room for more. */
export async function out(text) {
  if (!stdout.write(stdout.isTTY ? harmless(text) : text)) await once(stdout, 'drain', { signal: interrupted });
}

let dimmed = false;

/** Switches dimmed text on or off, on a terminal only. */
export function dim(on) {
  if (on !== dimmed && stdout.isTTY) stdout.write(`\x1b[${on ? 2 : 22}m`);
  dimmed = on;
}

let status = false;     // whether a status line is shown

/** Shows a status line on a terminal, in place of the last one. '' removes it. */
export function showStatus(text) {
  if (!stderr.isTTY || (!text && !status)) return;
  stderr.write(`\r${oneLine(text).slice(0, (stderr.columns || 80) - 1)}\x1b[K`);
  status = text !== '';
}

/** Prints a line on stderr. */
export function say(text) {
  showStatus('');
  stderr.write(`quern: ${oneLine(text)}\n`);
}

/** Handles errors of output: `quern … | head` closes the pipe, which is no failure; a full disk is one. */
export function guardOutput() {
  stderr.on('error', () => {});
  stdout.on('error', (error) => {
    if (error.code === 'EPIPE') process.exit();
    const { code, message } = badParam('the output', `cannot be written (${error.code})`);
    say(`${code}: ${message}`);
    process.exit(process.exitCode || 1);
  });
}
