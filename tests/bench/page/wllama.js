// SPDX-License-Identifier: MIT
// wllama in a page, through its public interface: everything on the CPU, as many threads as are asked for, its multi-threaded build.
import { LoggerWithoutDebug, Wllama } from '../../../node_modules/@wllama/wllama/esm/index.js';

const WASM = new URL('../../../node_modules/@wllama/wllama/esm/wasm/wllama.wasm', import.meta.url).href;
const quiet = { ...LoggerWithoutDebug, log() {}, warn() {} };

let wllama;

/** The model from its own store, where it puts it first if it is not there. */
export async function loadKept({ url, threads, contextSize }) {
  const start = performance.now();
  wllama = new Wllama({ default: WASM }, { logger: quiet, suppressNativeLog: true });
  await wllama.loadModelFromUrl(url, { n_ctx: contextSize, n_threads: threads, n_gpu_layers: 0, useCache: true });
  return { ms: performance.now() - start };
}

/** A second load replaces the first. wllama takes a Blob: the file is fetched as a whole first, which is what its own download does too. */
export async function load({ url, threads, contextSize, ...more }) {
  const start = performance.now();
  await wllama?.exit();
  const blob = await (await fetch(url)).blob();
  wllama = new Wllama({ default: WASM }, { logger: quiet, suppressNativeLog: true });
  await wllama.loadModel([blob], { n_ctx: contextSize, n_threads: threads, n_gpu_layers: 0, ...more });
  const end = performance.now();
  return { ms: end - start, readyAt: performance.timeOrigin + end, version: Wllama.getLibllamaVersion(), threads: wllama.getNumThreads() };
}

/** Its own timings: the last chunk of a stream has them. */
export async function complete({ prompt, generate, token, ...more }) {
  const stream = await wllama.createCompletion({
    prompt, max_tokens: generate, stream: true, temperature: 0, top_k: 1, logit_bias: [[token, 100]], cache_prompt: false, ...more,
  });
  let timings;
  let text = '';
  for await (const chunk of stream) {
    text += chunk.choices?.[0]?.text ?? '';
    timings = chunk.timings ?? timings;
  }
  return {
    promptTokens: timings.prompt_n, prefillMs: timings.prompt_ms,
    tokens: timings.predicted_n, tokensPerSecond: timings.predicted_per_second, text,
  };
}
