// SPDX-License-Identifier: MIT
// Handles Ctrl-C and similar signals. The first one asks the command to end, the second one ends the process at once.
// The exit code follows the convention of shells.

import { QuernError } from '../shared/errors.js';

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Two signals within this time count as one, since npx repeats a signal that the terminal has sent already. */
const SAME_MS = 250;

const controller = new AbortController();
let last = -Infinity;
let instead = () => false;

/** Aborted when the command has to end. */
export const interrupted = controller.signal;

/** A signal for work that would leave something behind. Its reason tells what became of it. @returns {AbortSignal} */
export function stopWith(words) {
  const own = new AbortController();
  const end = () => own.abort(new QuernError('use/aborted', words));
  if (interrupted.aborted) end();
  else interrupted.addEventListener('abort', end, { once: true });
  return own.signal;
}

/** Sets an action that Ctrl-C tries first. @param {() => boolean} act returns true if it handled Ctrl-C */
export function onCtrlC(act) {
  instead = act;
}

function receive(name) {
  const now = performance.now();
  if (now - last < SAME_MS) return;
  last = now;
  if (interrupted.aborted) process.exit();
  if (name === 'SIGINT' && instead()) return;
  process.exitCode = CODES[name];
  controller.abort();
}

export function listen() {
  for (const name of Object.keys(CODES)) process.on(name, () => receive(name));
}
