// SPDX-License-Identifier: MIT
// The page's side of vision.test.mjs: images of noise, made before anything is measured, and conversations about them.
import { load as loadModel } from '../../dist/index.js';
import { noise } from '../bench/looks-run.js';

let model;
const images = [];

export async function load({ url, ...options }) {
  model = await loadModel(url, { store: false, ...options });
  return model.info;
}

/** @returns {number} the place of the first of them */
export function prepare({ side, seeds }) {
  return images.push(...seeds.map((seed) => noise(side, seed))) - seeds.length;
}

const ask = (at, options) => model.chat([{ role: 'user', content: [{ type: 'image', image: images[at] }, { type: 'text', text: 'Well?' }] }], { maxTokens: 1, temperature: 0, ...options });

/** Ends a reply so long after it has begun to look. @returns {Promise<{ms: number, done: number, total: number, outcome: string}>} */
export async function stopLooking({ at, delay, isAborted }) {
  const controller = new AbortController();
  let seen;
  let askedAt;
  const onPrefill = ({ phase, done, total }) => {
    if (phase === 'vision') seen = { done, total };
    if (phase !== 'vision' || askedAt !== undefined) return;
    askedAt = NaN;
    setTimeout(() => {
      askedAt = performance.now();
      if (isAborted) controller.abort();
      else reply.stop();
    }, delay);
  };
  const reply = ask(at, { signal: controller.signal, onPrefill });
  const outcome = await reply.result.then(({ finishReason }) => finishReason, ({ name }) => name);
  return { ms: performance.now() - askedAt, ...seen, outcome };
}

/** Tokens a second between the first and the last report of reading. */
async function rate(begin) {
  const reports = [];
  const { usage } = await begin(({ phase, done }) => { if (phase === 'text') reports.push({ done, at: performance.now() }); }).result;
  const [first, last] = [reports[0], reports.at(-1)];
  return { rate: 1000 * (last.done - first.done) / (last.at - first.at), usage };
}

export const readImage = ({ at }) => rate((onPrefill) => ask(at, { onPrefill }));
export const readText = ({ prompt }) => rate((onPrefill) => model.complete(prompt, { maxTokens: 1, temperature: 0, onPrefill }));
export const memory = () => model.info.memory;
