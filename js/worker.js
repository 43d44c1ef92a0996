// SPDX-License-Identifier: MIT
// The engine's worker in a browser. The wasm files, of which one is fetched, are named here in the form that bundlers
// follow; the glue keeps its name after the build, because the engine's threads load it by that name.

import glue32 from './quern-simd.mjs';
import { QuernError } from './errors.js';
import { wasmFailure } from './instance.js';
import { holdLifeline } from './lifeline.js';
import { LIFELINE } from './protocol.js';
import { openParts } from './loader.js';
import { fetchAllowed } from './policy.js';
import { Service } from './service.js';
import { startModuleWorker } from './start-worker.js';
import { OpfsStore } from './store-opfs.js';
import { PortStore } from './store-port.js';
import { threadObstacle } from './variant.js';

const WASM = {
  simd: () => new URL('./quern-simd.wasm', import.meta.url),
  relaxed: () => new URL('./quern-relaxed.wasm', import.meta.url),
  simd64: () => new URL('./quern-simd64.wasm', import.meta.url),
  relaxed64: () => new URL('./quern-relaxed64.wasm', import.meta.url),
};

async function fetchWasm(url) {
  const failed = (why) => new QuernError('env/worker', `${url} could not be fetched (${why}).`, { phase: 'start' });
  const response = await fetchAllowed(url).catch((error) => { throw error instanceof QuernError ? error : failed(error.message); });
  if (!response.ok) throw failed(`status ${response.status}`);
  return response;
}

/** Streaming compilation lets the browser keep the compiled code; it insists on the right MIME type, which not every server sends. */
async function compile(build, wasmUrl) {
  const response = await fetchWasm(String(wasmUrl ?? WASM[build]()));
  const spare = response.clone();
  try {
    return await WebAssembly.compileStreaming(response).catch(async () => WebAssembly.compile(await spare.arrayBuffer()));
  } catch (error) {
    throw wasmFailure(error);
  }
}

/** Lets waiting messages in: a task of its own, without the 4 ms that nested timers wait. */
const { port1, port2 } = new MessageChannel();
const waiting = [];
port2.onmessage = () => waiting.shift()();
function rest() {
  return new Promise((resolve) => {
    waiting.push(resolve);
    port1.postMessage(0);
  });
}

function startTemplateWorker() {
  let worker;
  try {
    worker = new Worker(new URL('./template.js', import.meta.url), { type: 'module' });
  } catch (error) {
    if (error.name !== 'SecurityError') throw error;
    const here = import.meta.url;
    worker = startModuleWorker(new URL('./template.js', here).href);
  }
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (receive) => { worker.onmessage = ({ data }) => receive(data); },
    onError: (fail) => { worker.onerror = (event) => { event.preventDefault(); fail(event); }; },
    terminate: () => worker.terminate(),
  };
}

/**
 * Why this page gets one thread only; '' when more. A blob URL is start-worker.js's way to another origin, from which the
 * glue cannot start threads. (Not told by import.meta.url: webpack puts a file: URL there.)
 */
function obstacle() {
  const foreign = globalThis.location.protocol === 'blob:';
  if (foreign) return 'The package is served from another origin than the page, so one thread is used: serve it from the page\'s own.';
  return threadObstacle(globalThis.crossOriginIsolated === true);
}

/** @param {boolean | MessagePort} cache */
function storeOf(cache) {
  if (cache instanceof MessagePort) return new PortStore(cache);
  return cache ? new OpfsStore() : undefined;
}

/** Bytes. Browsers round it and tell no more than 8 GiB, which may then be any number above. */
function deviceMemory() {
  const { deviceMemory: gigabytes = 8 } = navigator;
  return gigabytes < 8 ? gigabytes * 2 ** 30 : undefined;
}

/** What nobody handles ends the engine, instead of leaving the page to wait for it: an error in a worker is an event in the page, a rejection is not. */
globalThis.onunhandledrejection = ({ reason }) => { throw reason; };
globalThis.onmessageerror = () => { throw new Error('A message of the page could not be read.'); };

holdLifeline((name) => globalThis.postMessage({ type: LIFELINE, name }));
new Service({
  compile, rest, startTemplateWorker,
  openParts: (source, { cache, ...options }) => openParts(source, { ...options, fetch: fetchAllowed, store: storeOf(cache) }),
  glue: { 32: async () => glue32, 64: async () => (await import('./quern-simd64.mjs')).default },
  obstacle: obstacle(),
  deviceMemory: deviceMemory(),
  hardwareThreads: navigator.hardwareConcurrency,
  post: (message, transfer = []) => globalThis.postMessage(message, transfer),
  listen: (receive) => { globalThis.onmessage = ({ data }) => receive(data); },
});
