// SPDX-License-Identifier: MIT
// Timing of the Prompt API's events. A result is never available in the same task: the caller can still abort, as in a
// browser.

import { reasonOf } from '../shared/clock.js';

/** A signal that aborts with any of those given. */
export const anyOf = (...signals) => AbortSignal.any(signals.filter(Boolean));

/** Waits for the next task; throws if the signal aborts before. */
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

/** Calls listeners, and the function in the property `on…`. */
export function tell(target, name, fields = {}) {
  const event = Object.assign(new Event(name), fields);
  target.dispatchEvent(event);
  target[`on${name}`]?.(event);
}

/** Reports the download as a browser does for a model that is available at once. */
export async function download(monitor, signal) {
  if (typeof monitor !== 'function') throw new TypeError('The monitor must be a function.');
  const target = Object.assign(new EventTarget(), { ondownloadprogress: null });
  monitor(target);
  for (const loaded of [0, 1]) {
    await task(signal);
    tell(target, 'downloadprogress', { loaded, total: 1, lengthComputable: true });
  }
}
