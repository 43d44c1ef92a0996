// SPDX-License-Identifier: MIT
// When sessions of the Prompt API tell something. What is asked for is never there in the same task: whoever calls can
// still abort it, as in a browser.

import { reasonOf } from '../shared/clock.js';

/** One that aborts with any of those that are there. */
export const anyOf = (...signals) => AbortSignal.any(signals.filter(Boolean));

/** The next task, unless it is aborted until then. */
export async function task(signal) {
  await new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve(null);
    };
    port2.postMessage(null);
  });
  if (signal.aborted) throw reasonOf(signal);
}

/** Calls listeners, and the function that stands in a property. */
export function tell(target, name, fields = {}) {
  const event = Object.assign(new Event(name), fields);
  target.dispatchEvent(event);
  target[`on${name}`]?.(event);
}

/** As of a browser's own that is there at once. */
export async function download(monitor, signal) {
  if (typeof monitor !== 'function') throw new TypeError('The monitor must be a function.');
  const target = Object.assign(new EventTarget(), { ondownloadprogress: null });
  monitor(target);
  for (const loaded of [0, 1]) {
    await task(signal);
    tell(target, 'downloadprogress', { loaded, total: 1, lengthComputable: true });
  }
}
