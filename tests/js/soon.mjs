// SPDX-License-Identifier: MIT
// Times on a machine that may be stopped for seconds at any moment: slow once proves nothing, slow each time does
// (soon). What takes too long to be tried again is timed by a stopwatch that leaves such stops out.

import assert from 'node:assert/strict';

/** Milliseconds that some work takes. */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Fails unless one of some attempts takes less than a limit. @param attempt makes one and returns its milliseconds */
export async function soon(limit, attempt) {
  const took = [];
  while (took.length < 4 && !(took.at(-1) < limit)) took.push(await attempt());
  assert.ok(took.at(-1) < limit, `${took.map(Math.round).join(', ')} ms, limit ${limit}`);
}

/** Begins to count the seconds in which this process ran: one that was stopped for a while is not late. @returns {() => number} ends it */
export function stopwatch() {
  let ran = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    ran += Math.min(performance.now() - last, 100);
    last = performance.now();
  }, 20);
  return () => {
    clearInterval(timer);
    return ran / 1000;
  };
}
