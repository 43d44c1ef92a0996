// SPDX-License-Identifier: MIT
// A page, a frame or a worker of somebody's with the package in it. The address after the # says where the package is
// (`quern`) if not beside this, and the rest of what load() is given.
import { answer } from './answer.js';

const { quern = './quern/index.js', model, ...options } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

/** To whoever looks or listens: a frame's page, a worker's, an extension. */
function tell(outcome) {
  globalThis.outcome = outcome;
  new BroadcastChannel('quern').postMessage(outcome);
  if (!globalThis.document) postMessage(outcome);
  else if (parent !== globalThis) parent.postMessage(outcome, '*');
}

import(quern)
  .then(({ load }) => answer(load, model, options), (error) => ({ error: `import: ${error.message}` }))
  .then((outcome) => tell({ ...outcome, isolated: crossOriginIsolated }));
