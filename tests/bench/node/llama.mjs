// SPDX-License-Identifier: MIT
// llama.cpp as node-llama-cpp ships it, on the CPU alone. The timings are llama.cpp's own: they leave sampling out.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { describeBuild } from '../native.mjs';

let log = [];
let llama;
let model;
let context;

async function start(peer, threads) {
  const { getLlama } = await import(pathToFileURL(join(peer, 'node_modules/node-llama-cpp/dist/index.js')));
  return getLlama({
    gpu: false, build: 'never', progressLogs: false, maxThreads: threads,
    logLevel: 'debug', logger: (level, message) => log.push(message),
  });
}

/** The weights are read at the first call only: later ones change the other options. */
export async function load({ peer, path, threads, contextSize, flash }) {
  llama ??= await start(peer, threads);
  const began = performance.now();
  model ??= await llama.loadModel({ modelPath: path, gpuLayers: 0, useMmap: true });
  await context?.dispose();
  context = await model.createContext({ contextSize, batchSize: 512, threads, flashAttention: flash, performanceTracking: true });
  const ms = performance.now() - began;
  return { ms, version: `${llama.llamaCppRelease.release.replace(/^v/, '')} of npm, ${describeBuild(log.join('\n'))}`, threads: context.currentThreads };
}

/** What llama.cpp counted since the last call: "prompt eval time" of steps of several tokens, "eval time" of single ones. */
async function timings() {
  log = [];
  await context.printTimings();
  while (!log.some((line) => line.includes('total time'))) await sleep(1);    // log lines come a little later
  const text = log.join('\n');
  const read = (name) => new RegExp(`: +${name} time = +([\\d.]+) ms / +(\\d+)`).exec(text).slice(1).map(Number);
  return { prompt: read('prompt eval'), single: read('eval') };
}

export async function complete({ prompt, generate }) {
  const sequence = context.getSequence();
  let tokens = 0;
  try {
    await timings();
    for await (const _ of sequence.evaluate(model.tokenize(prompt), { temperature: 0, yieldEogToken: true })) if (++tokens === generate) break;
  } finally {
    sequence.dispose();
  }
  const { prompt: [prefillMs, promptTokens], single: [decodeMs, steps] } = await timings();
  return { promptTokens, prefillMs, tokens, tokensPerSecond: (1000 * steps) / decodeMs };
}
