// SPDX-License-Identifier: MIT
// The page's side of the warm start's measurement: stores a model, and lets a worker read it.
import { models } from '../../dist/index.js';

let worker;

export async function store({ url }) {
  await models.download(url);
  worker = new Worker(new URL('./warm-worker.js', import.meta.url), { type: 'module' });
}

/** @returns {Promise<number>} milliseconds of one read, as warm-worker.js does it */
export async function read(how) {
  const answer = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => resolve({ error: message });
    worker.postMessage(how);
  });
  if (answer.error) throw new Error(answer.error);
  return answer.ms;
}
