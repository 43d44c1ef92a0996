// SPDX-License-Identifier: MIT
// fetch() in a browser's worker that tells the policy's doing (connect-src) from the network's: the failure itself does
// not, an event of the worker does.

import { hostOf } from './answer.js';
import { QuernError } from '../shared/errors.js';

let refused = '';       // what the policy forbade last, and did not only report

globalThis.addEventListener('securitypolicyviolation', ({ disposition, effectiveDirective, blockedURI }) => {
  if (disposition === 'enforce' && effectiveDirective === 'connect-src') refused = blockedURI;
});

export async function fetchAllowed(url, options) {
  refused = '';
  try {
    return await fetch(url, options);
  } catch (error) {
    await new Promise((done) => { setTimeout(done); });    // the event may come after the failure
    if (refused) {
      throw new QuernError('env/csp', `The page's policy (connect-src) forbids requests to ${hostOf(refused)}.`, {
        phase: 'load',
        cause: error,
      });
    }
    throw error;
  }
}
