// SPDX-License-Identifier: MIT
// The page's side of the warm start's measurement: stores a model, and lets a worker read it.
import { models } from '../../dist/index.js';

export async function measure({ url, rounds }) {
  await models.download(url);
  const worker = new Worker(new URL('./warm-worker.js', import.meta.url), { type: 'module' });
  const found = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => resolve({ error: message });
    worker.postMessage({ url, rounds });
  });
  worker.terminate();
  if (found.error) throw new Error(found.error);
  return found;
}
