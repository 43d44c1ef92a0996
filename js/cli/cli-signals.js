// SPDX-License-Identifier: MIT
// Ctrl-C and its relatives: the first one asks the command to end, another one ends the process at once. The exit code
// is the one that shells know.

import { QuernError } from '../shared/errors.js';

const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Two within this time are one: npx passes on what the terminal has sent already. */
const SAME_MS = 250;

const controller = new AbortController();
let last = -Infinity;
let instead = () => false;

/** Aborted when the command is to end. */
export const interrupted = controller.signal;

/** Ends what would leave something behind, and says what became of that. @returns {AbortSignal} */
export function stopWith(words) {
  const own = new AbortController();
  const end = () => own.abort(new QuernError('use/aborted', words));
  if (interrupted.aborted) end();
  else interrupted.addEventListener('abort', end, { once: true });
  return own.signal;
}

/** What Ctrl-C does first from now on. @param {() => boolean} act whether that is all this time */
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
