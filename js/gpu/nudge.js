// SPDX-License-Identifier: MIT
// Firefox looks only every 100 ms whether a device has ended its work, or when something is submitted. Where a device
// answers so late, it is nudged: while an answer is awaited, nothing is submitted again and again. Elsewhere it is not:
// in Chromium such submits hold up the answer.

import { READ, USAGE } from './flags.js';

const { MAP_READ, COPY_DST } = USAGE;

/** Milliseconds in which a device answers that has nothing to do. */
const PROMPT_MS = 20;
const TRIES = 2;

/** Nudges come every millisecond, and when an answer takes long, every few milliseconds. */
const EAGER_MS = 20;
const PAUSE_MS = 1;
const LONG_PAUSE_MS = 5;

/** Waits for other tasks only: timers that follow each other take 4 ms or more. */
function turn() {
  const { port1, port2 } = new MessageChannel();
  return new Promise((done) => {
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(0);
  });
}

/** Whether a device answers late although it has nothing to do. @param {GPUDevice} device */
export async function answersLate(device) {
  const buffer = device.createBuffer({ size: 16, usage: MAP_READ | COPY_DST });
  let least = Infinity;
  for (let i = 0; i < TRIES && least > PROMPT_MS; i++) {
    const began = performance.now();
    device.queue.submit([device.createCommandEncoder().finish()]);
    await buffer.mapAsync(READ);
    least = Math.min(least, performance.now() - began);
    buffer.unmap();
  }
  buffer.destroy();
  return least > PROMPT_MS;
}

/**
 * Nudges a device until the work has ended. A device that is busy, for instance with compiling, takes nudges late: the
 * next one waits until the last has been taken, which the answer to an empty error scope tells.
 * @param {GPUDevice} device @param {Promise<any>} work
 */
export async function nudge(device, work) {
  let isOver = false;
  const end = () => { isOver = true; };
  work.then(end, end);
  const began = performance.now();
  for (let last = began; !isOver;) {
    const now = performance.now();
    if (now - last >= PAUSE_MS) {
      last = now;
      device.pushErrorScope('internal');
      device.queue.submit([]);
      await device.popErrorScope().catch(() => {});
    }
    await (now - began < EAGER_MS ? turn() : new Promise((done) => { setTimeout(done, LONG_PAUSE_MS); }));
  }
}
