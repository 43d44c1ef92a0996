// SPDX-License-Identifier: MIT
// The engine's worker in a browser. All that it fetches or starts is named here in the form that bundlers recognise; of
// the engine's builds it fetches what the model needs (start.js). The glue is a separate file, which the engine's threads
// load too.

import { QuernError } from '../shared/errors.js';
import { wasmFailure } from '../engine/instance.js';
import { LENT } from './lent.js';
import { lending, notFetched } from '../shared/lent.js';
import { holdLifeline } from '../shared/lifeline.js';
import { LIFELINE } from '../shared/protocol.js';
import { openParts } from '../store/loader.js';
import { fetchAllowed } from '../net/policy.js';
import { Service } from './service.js';
import { sharedWord } from '../shared/shared-word.js';
import { startWorker } from '../shared/start-worker.js';
import { OpfsStore } from '../store/store-opfs.js';
import { PortStore } from '../store/store-port.js';
import { threadObstacle } from '../shared/variant.js';
import { WASM } from './wasm-files.js';

async function fetchWasm(url) {
  const failed = (why) => new QuernError('env/worker', `${url} could not be fetched (${why}).`, { phase: 'start' });
  const response = await fetchAllowed(url).catch((error) => {
    throw error instanceof QuernError ? error : failed(error.message);
  });
  if (!response.ok) throw failed(`status ${response.status}`);
  return response;
}

/**
 * Compiles a build. Streaming lets the browser cache the compiled code, but needs the right MIME type, which some
 * servers do not send.
 */
async function compile(build, wasmUrl) {
  const response = await fetchWasm(String(wasmUrl ?? WASM[build]()));
  const spare = response.clone();
  try {
    return await WebAssembly.compileStreaming(response).catch(async () =>
      WebAssembly.compile(await spare.arrayBuffer()),
    );
  } catch (error) {
    throw wasmFailure(error);
  }
}

/** Lets waiting messages in, by a task of its own, without the 4 ms that nested timers wait. */
const { port1, port2 } = new MessageChannel();
const waiting = [];
port2.onmessage = () => waiting.shift()();
function rest() {
  return new Promise((resolve) => {
    waiting.push(resolve);
    port1.postMessage(0);
  });
}

/** Fetches the glue, which starts its threads by `startThread`. A bundler's version of an import may throw at once. */
async function openGlue(fetchGlue, startThread) {
  const { default: glue } = await (async () => fetchGlue())().catch((error) => {
    throw new QuernError('env/worker', `The engine's glue could not be fetched (${error.message}).`, {
      phase: 'start',
      cause: error,
    });
  });
  return (options) => glue({ ...options, startThread });
}

/** Starts a thread. Its errors are thrown again here; the glue would throw the event, which has no message. */
function startThread(start) {
  const worker = startWorker(start);
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
    throw new Error(`in a thread: ${event.message}`);
  });
  return worker;
}

const thread = () => startThread(() => new Worker(new URL('./thread.js', import.meta.url), { type: 'module' }));
const thread64 = () => startThread(() => new Worker(new URL('./thread64.js', import.meta.url), { type: 'module' }));

/** Starts a side worker (side-lane.js). It must be able to receive the compiled grammar.wasm. */
function aside() {
  const worker = startWorker(() => new Worker(new URL('./aside.js', import.meta.url), { type: 'module' }));
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    listen(receive, fail) {
      worker.onmessage = ({ data }) => receive(data);
      worker.onmessageerror = () => fail(new Error('a message could not be read'));
      worker.onerror = (event) => {
        event.preventDefault();
        fail(new Error(event.message ?? 'it could not be started'));
      };
    },
    end: () => worker.terminate(),
  };
}

const GLUE = {
  32: () => openGlue(() => import('./quern-simd.mjs'), thread),
  64: () => openGlue(() => import('./quern-simd64.mjs'), thread64),
  gpu: () => openGlue(() => import('./quern-gpu.mjs'), thread),
};

/** @param {boolean | MessagePort} store */
function storeOf(store) {
  if (store instanceof MessagePort) return new PortStore(store);
  return store ? new OpfsStore() : undefined;
}

/** Bytes of the device's memory, if below 8 GiB. Browsers round the number and report at most 8 GiB. */
function deviceMemory() {
  const { deviceMemory: gigabytes = 8 } = /** @type {any} */ (navigator);    // Chromium only
  return gigabytes < 8 ? gigabytes * 2 ** 30 : undefined;
}

/**
 * Unhandled errors end the engine, so that the page does not wait for it. An error in a worker becomes an event in the
 * page; a rejection would not.
 */
globalThis.onunhandledrejection = ({ reason }) => { throw reason; };
globalThis.onmessageerror = () => { throw new Error('A message of the page could not be read.'); };

const take = lending(LENT);

/** A worker without an origin cannot share modules (start-worker.js). */
const LENDS = globalThis.origin !== 'null';

/** @type {import('./service.js').Host} */
const host = {
  compile, rest, storeOf, fetch: fetchAllowed,
  vision: () => import('./vision.js').then(take, notFetched('start')),
  extras: () => import('./extras.js').then(take, notFetched('start')),
  pooling: () => import('./pooling.js').then(take, notFetched('start')),
  template: () => import('./template.js').then(take, notFetched('start')),
  drafter: () => import('./drafter.js').then(take, notFetched('start')),
  gpu: () => import('./gpu.js').then(take, notFetched('start')),
  openParts: (source, options) => openParts(source, { ...options, fetch: fetchAllowed }),
  glue: GLUE,
  lends: LENDS,
  aside: LENDS ? aside : null,
  busy: sharedWord(),
  obstacle: threadObstacle(globalThis.crossOriginIsolated === true),
  deviceMemory: deviceMemory(),
  hardwareThreads: navigator.hardwareConcurrency,
  post: (message, transfer = []) => globalThis.postMessage(message, transfer),
  listen: (receive) => { globalThis.onmessage = ({ data }) => receive(data); },
};

holdLifeline((name) => globalThis.postMessage({ type: LIFELINE, name }));
new Service(host);
