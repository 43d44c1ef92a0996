// SPDX-License-Identifier: MIT
// Starts the package's module workers, whatever stands in the way. Another origin: browsers refuse `new Worker` across
// origins (a package imported from a CDN), so there, and only there, a one-line blob imports the script: pages with a
// strict policy never meet a blob URL. In a sandboxed frame, whose origin is none, Chromium starts no module from a
// blob; the line is a data: address there. Trusted Types: addresses pass through a policy of our own, named `quern`. It
// vouches for nothing but what is started here. Bundlers: they follow `new Worker(new URL('./FILE', import.meta.url),
// …)` where they find it literally, so it stands where a worker is wanted, and finds a `Worker` in its place that does
// the above.

import { QuernError } from './errors.js';

const isForeign = ({ protocol, origin }) => /^https?:$/.test(protocol) && origin !== globalThis.origin;

function importing(url) {
  const script = `import ${JSON.stringify(url)};`;
  if (globalThis.origin === 'null') return `data:text/javascript,${encodeURIComponent(script)}`;
  const blob = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  // The fetch of the script is under way by then.
  setTimeout(() => URL.revokeObjectURL(blob), 10_000);
  return blob;
}

const rules = {
  createScriptURL(address) {
    const url = new URL(address, globalThis.location.href);
    return isForeign(url) ? importing(url.href) : url.href;
  },
};

let policy;

/**
 * Where the page allows no policy of this name, or another copy of the package was first, a default policy may decide.
 */
function makePolicy() {
  try {
    return globalThis.trustedTypes?.createPolicy('quern', rules) ?? rules;
  } catch {
    return rules;
  }
}

/** Of what a worker is made from, only an address that Trusted Types refuse is of a wrong type. */
function failure(error) {
  const phase = { phase: 'start', cause: error };
  if (error instanceof TypeError) {
    return new QuernError(
      'env/csp',
      "The page's policy (trusted-types without 'quern') forbids the package's workers.",
      phase,
    );
  }
  return new QuernError('env/worker', `A worker cannot be started (${error.message}).`, phase);
}

/** @param {() => Worker} start makes a worker */
export function startWorker(start) {
  const { Worker } = globalThis;
  policy ??= makePolicy();
  Reflect.set(globalThis, 'Worker', function OwnWorker(address, options) {
    return new Worker(policy.createScriptURL(address), options);
  });
  try {
    return start();
  } catch (error) {
    throw failure(error);
  } finally {
    Reflect.set(globalThis, 'Worker', Worker);
  }
}
