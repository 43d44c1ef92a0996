// SPDX-License-Identifier: MIT
// What batch.mjs asks of a page.
const worker = new Worker(new URL('./batch-worker.js', import.meta.url), { type: 'module' });

function ask(name, options) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { value, error } }) => (error ? reject(new Error(error)) : resolve(value));
    worker.onerror = (event) => reject(new Error(event.message || 'the worker failed'));
    worker.postMessage({ name, options });
  });
}

export const load = (options) => ask('load', options);
export const run = (options) => ask('run', options);
