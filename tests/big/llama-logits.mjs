// SPDX-License-Identifier: MIT
// What native llama.cpp thinks comes after each of some tokens; runs in a process of its own (tests/bench/child.mjs).
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** @returns {Promise<number[]>} logarithms of probabilities [ids.length, vocabulary] */
export async function logProbabilities({ peer, path, ids }) {
  const { getLlama } = await import(pathToFileURL(join(peer, 'node_modules/node-llama-cpp/dist/index.js')));
  const llama = await getLlama({ gpu: false, build: 'never', progressLogs: false, maxThreads: 2, logLevel: 'error' });
  const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 });
  const context = await model.createContext({ contextSize: 64, threads: 2, flashAttention: false });
  const rows = await context.getSequence().controlledEvaluate(ids.map((id) => [id, { generateNext: { probabilities: true, options: { temperature: 1, topK: 0, topP: 1, minP: 0 } } }]));
  return rows.flatMap(({ next }) => {
    const row = [];
    for (const [id, probability] of next.probabilities) row[id] = Math.log(probability);
    return row;
  });
}
