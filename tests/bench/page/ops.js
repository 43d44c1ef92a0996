// SPDX-License-Identifier: MIT
// What ops-targets.mjs asks of a page.
const worker = new Worker(new URL('./ops-worker.js', import.meta.url), { type: 'module' });

function ask(message) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message || 'the worker failed'));
    worker.postMessage(message);
  });
}

export const open = (options) => ask({ open: options });
export const cell = (values) => ask({ cell: values });
