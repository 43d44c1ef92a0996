// SPDX-License-Identifier: MIT
// A side worker in a browser. It does the engine worker's jobs on texts, so that no text holds up the engine
// (side-worker.js).

import { COMPILE } from './side-kinds.js';
import { beSideWorker } from './side-worker.js';

/** An error here becomes an event in the engine's worker; a rejection would not. */
globalThis.onunhandledrejection = ({ reason }) => { throw reason; };

beSideWorker({
  listen: (receive) => { globalThis.onmessage = ({ data }) => receive(data); },
  post: (message, transfer = []) => globalThis.postMessage(message, transfer),
}, [COMPILE]);
