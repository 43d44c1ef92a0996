// SPDX-License-Identifier: MIT
// Preloaded (node --import) into a process and each worker that it starts. When an event loop was held for long, it
// writes a line to the file that QUERN_PROBE names: {thread, ms, at}. Thread 0 is the process's own, 1 the first worker
// that it starts. Time in which a thread waited for a core is not counted, so a busy machine is no failure.

import { appendFileSync, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import threads, { threadId } from 'node:worker_threads';

const EVERY_MS = 5;
const LONG_MS = 40;

const { Worker } = threads;
threads.Worker = class Watched extends Worker {
  constructor(file, options) { super(file, { ...options, execArgv: ['--import', import.meta.url] }); }
};
syncBuiltinESMExports();

/** Milliseconds that this thread has waited for a core. */
const waited = () => Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1]) / 1e6;

const look = () => ({ now: performance.now(), waited: waited() });

let last = look();
setInterval(() => {
  const next = look();
  const ms = Math.round(next.now - last.now - (next.waited - last.waited));
  if (ms > LONG_MS) appendFileSync(process.env.QUERN_PROBE, `${JSON.stringify({ thread: threadId, ms, at: Date.now() })}\n`);
  last = look();
}, EVERY_MS).unref();
