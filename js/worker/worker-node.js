// SPDX-License-Identifier: MIT
// The engine's worker in Node: the same service as in a page.

import { availableParallelism, totalmem } from 'node:os';
import { Worker, parentPort } from 'node:worker_threads';
import { compile, glue, openAny, storeOf } from './host-node.js';
import { allowRelaxed } from '../shared/node-flags.js';
import { END } from '../shared/protocol.js';
import { Service } from './service.js';

/** A template that fills the memory ends its own worker and nothing else. */
const TEMPLATE_LIMITS = { maxOldGenerationSizeMb: 256 };

function startTemplateWorker() {
  const worker = new Worker(new URL('./template.node.js', import.meta.url), { resourceLimits: TEMPLATE_LIMITS });
  const listen = (event, handler) => worker.removeAllListeners(event).on(event, handler);
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (receive) => listen('message', receive),
    onError: (fail) => listen('error', fail),
    terminate: () => worker.terminate(),
  };
}

/** @type {import('./service.js').Host} */
const host = {
  compile, glue, startTemplateWorker, storeOf, openParts: openAny, fetch,
  eyes: () => import('./eyes-node.js'), extras: () => import('./extras.js'),
  pooling: () => import('./pooling.js'),
  deviceMemory: Math.min(totalmem(), process.constrainedMemory() || Infinity),
  rest: () => new Promise((resolve) => { setImmediate(resolve); }),
  obstacle: '',
  lends: true,
  hardwareThreads: availableParallelism(),
  post: (message, transfer = []) => parentPort.postMessage(message, transfer),
  listen: (receive) => parentPort.on('message', (message) => (message?.type === END ? process.exit() : receive(message))),
};

parentPort.on('messageerror', (error) => { throw error; });
allowRelaxed();
new Service(host);
