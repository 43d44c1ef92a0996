// SPDX-License-Identifier: MIT
// The engine's worker in Node: the same service as in a page. A side worker runs this file again, so no other file has
// to be found.

import { availableParallelism, totalmem } from 'node:os';
import { Worker, parentPort, workerData } from 'node:worker_threads';
import { compile, glue, openAny, storeOf } from './host-node.js';
import { allowRelaxed } from '../shared/node-flags.js';
import { END } from '../shared/protocol.js';
import { Service } from './service.js';
import { sharedWord } from '../shared/shared-word.js';
import { DECODE } from './side-decode-node.js';
import { COMPILE } from './side-kinds.js';
import { beSideWorker } from './side-worker.js';

const ASIDE = 'quern-aside';

/** Milliseconds for side workers to end by themselves. */
const END_GRACE_MS = 300;

/** Side workers that are running. */
const sides = new Set();

/** Ends a side worker. Ending it from outside is safe only while it imports nothing (platform-node.js). */
async function end(worker) {
  const gone = new Promise((resolve) => { worker.once('exit', resolve); });
  const timer = setTimeout(() => worker.terminate(), END_GRACE_MS);
  worker.postMessage({ type: END });
  await gone;
  clearTimeout(timer);
}

/** Starts a side worker (side-lane.js). */
function aside() {
  const worker = new Worker(new URL(import.meta.url), { workerData: ASIDE, execArgv: [] });
  sides.add(worker);
  worker.once('exit', () => sides.delete(worker));
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    listen(receive, fail) {
      worker.on('message', receive);
      worker.on('error', fail);
      worker.on('messageerror', fail);
      worker.on('exit', (code) => fail(new Error(`it has ended, exit code ${code}`)));
      worker.unref();
    },
    end: () => end(worker),
  };
}

/** Closes the graphics devices, once the code for them is loaded. */
let closeDevices = async () => {};

async function endAll() {
  await Promise.all([closeDevices(), ...[...sides].map(end)]);
  process.exit();
}

const post = (message, transfer = []) => parentPort.postMessage(message, transfer);
const listen = (receive, leave) =>
  parentPort.on('message', (message) => (message?.type === END ? leave() : receive(message)));

/** @type {import('./service.js').Host} */
const host = {
  compile, glue, storeOf, openParts: openAny, fetch, post, aside,
  vision: () => import('./vision-node.js'), extras: () => import('./extras.js'),
  pooling: () => import('./pooling.js'), template: () => import('./template.js'), drafter: () => import('./drafter.js'),
  gpu: () => import('./gpu-node.js').then((gpu) => { closeDevices = gpu.closeAll; return gpu; }),
  deviceMemory: Math.min(totalmem(), process.constrainedMemory() || Infinity),
  rest: () => new Promise((resolve) => { setImmediate(resolve); }),
  obstacle: '',
  lends: true,
  busy: sharedWord(),
  hardwareThreads: availableParallelism(),
  listen: (receive) => listen(receive, endAll),
};

parentPort.on('messageerror', (error) => { throw error; });
if (workerData === ASIDE) {
  beSideWorker({ post, listen: (receive) => listen(receive, () => process.exit()) }, [COMPILE, DECODE]);
} else {
  allowRelaxed();
  new Service(host);
}
