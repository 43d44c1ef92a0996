// SPDX-License-Identifier: MIT
// The page's side of what keeping a conversation costs (keep-steps.js, keep-parts.js).
import * as quern from '../../dist/index.js';
import * as steps from './saved-steps.js';

export const turn = (what) => steps.turn(quern, what);

export const stops = (what) => steps.stops(quern, what);

/** By a worker, to which alone the browser gives its quick files. @param {{what: 'plain' | 'parts' | 'gaps'}} request and what that takes */
export async function measure(request) {
  const worker = new Worker(new URL('./saved-worker.js', import.meta.url), { type: 'module' });
  const answer = await new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => resolve({ error: message });
    worker.postMessage(request);
  });
  worker.terminate();
  if (answer.error) throw new Error(answer.error);
  return answer;
}
