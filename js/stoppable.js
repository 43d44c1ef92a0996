// SPDX-License-Identifier: MIT
// What ends a program from outside: Ctrl-C, another program, a terminal that closes. Work that would leave something behind hears of it,
// and the program's status says by what it was ended, as shells have it.

import { QuernError } from './errors.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Runs with an AbortSignal whose reason has these words. */
export async function stoppable(words, use) {
  const controller = new AbortController();
  let status = 0;
  const onSignal = (name, number) => {
    status ||= 128 + number;
    controller.abort(new QuernError('use/aborted', words));
  };
  for (const name of SIGNALS) process.on(name, onSignal); // to the end: npx passes on what the terminal has sent already
  try {
    return await use(controller.signal);
  } catch (error) {
    if (status) process.once('exit', () => { process.exitCode = status; });
    throw error;
  }
}
