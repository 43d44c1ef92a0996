// SPDX-License-Identifier: MIT
// Measures times on a machine that may be stopped for seconds at any moment. One slow attempt proves nothing; if all
// attempts are slow, the work is slow (soon); so is what depends on such times (atLast). Work that is too long for several attempts is timed by a stopwatch that
// leaves such stops out.

import assert from 'node:assert/strict';

/** Milliseconds that some work takes. */
export async function timed(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/**
 * Fails unless one of several attempts takes less than a limit.
 * @param attempt makes one and returns its milliseconds
 */
export async function soon(limit, attempt) {
  const took = [];
  while (took.length < 4 && !(took.at(-1) < limit)) took.push(await attempt());
  assert.ok(took.at(-1) < limit, `${took.map(Math.round).join(', ')} ms, limit ${limit}`);
}

/**
 * Fails unless one of several attempts succeeds: measured times decide whether tokens are drafted.
 * @param {() => Promise<boolean>} attempt @param {string} what must succeed
 */
export async function atLast(attempt, what) {
  for (let i = 0; i < 5; i++) if (await attempt()) return;
  assert.fail(`never: ${what}`);
}

/**
 * Begins to count the seconds during which this process ran, without the time when it was stopped.
 * @returns {() => number} ends the count
 */
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
