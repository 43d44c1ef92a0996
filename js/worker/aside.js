// SPDX-License-Identifier: MIT
// A side worker in a browser: what the engine's worker hands to it so that nobody's text holds it (side-worker.js).

import { COMPILE } from './side-kinds.js';
import { beSideWorker } from './side-worker.js';

/** An error here is an event in the engine's worker, a rejection is not. */
globalThis.onunhandledrejection = ({ reason }) => { throw reason; };

beSideWorker({
  listen: (receive) => { globalThis.onmessage = ({ data }) => receive(data); },
  post: (message, transfer = []) => globalThis.postMessage(message, transfer),
}, [COMPILE]);
