// SPDX-License-Identifier: MIT
// fetch() for a browser's worker. It distinguishes a request that the page's policy (connect-src) forbids from a
// network error: the error does not tell, but an event in the worker does.

import { hostOf } from './answer.js';
import { QuernError } from '../shared/errors.js';

let refused = '';       // the last address that the policy forbade (not only reported)

globalThis.addEventListener('securitypolicyviolation', ({ disposition, effectiveDirective, blockedURI }) => {
  if (disposition === 'enforce' && effectiveDirective === 'connect-src') refused = blockedURI;
});

export async function fetchAllowed(url, options) {
  refused = '';
  try {
    return await fetch(url, options);
  } catch (error) {
    await new Promise((done) => { setTimeout(done); });    // the event may come after the error
    if (refused) {
      throw new QuernError('env/csp', `The page's policy (connect-src) forbids requests to ${hostOf(refused)}.`, {
        phase: 'load',
        cause: error,
      });
    }
    throw error;
  }
}
