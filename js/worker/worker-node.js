// SPDX-License-Identifier: MIT
// The engine's worker in Node: the same service as in a page.

import { availableParallelism, totalmem } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { compile, glue, openAny, storeOf } from './host-node.js';
import { allowRelaxed } from '../shared/node-flags.js';
import { END } from '../shared/protocol.js';
import { Service } from './service.js';

/** @type {import('./service.js').Host} */
const host = {
  compile, glue, storeOf, openParts: openAny, fetch,
  vision: () => import('./vision-node.js'), extras: () => import('./extras.js'),
  pooling: () => import('./pooling.js'), template: () => import('./template.js'),
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
