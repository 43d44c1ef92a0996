// SPDX-License-Identifier: MIT
// Starts the package's module workers despite several obstacles. Another origin: browsers refuse `new Worker` across
// origins (a package imported from a CDN), so only then a one-line blob imports the script; pages with a strict policy
// never meet a blob URL. Sandboxed frames, which have no origin: Chromium starts no module from a blob there, so the
// line is a data: address. Trusted Types: addresses pass through our own policy, named `quern`, which approves only
// workers that are started here. Bundlers: they follow `new Worker(new URL('./FILE', import.meta.url), …)` only if it
// is written literally, so callers write that, and `Worker` is replaced by a function that does all the above.

import { QuernError } from './errors.js';

const isForeign = ({ protocol, origin }) => /^https?:$/.test(protocol) && origin !== globalThis.origin;

function importing(url) {
  const script = `import ${JSON.stringify(url)};`;
  if (globalThis.origin === 'null') return `data:text/javascript,${encodeURIComponent(script)}`;
  const blob = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  // By then the script is being fetched.
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
 * A default policy may decide if the page does not allow a policy of this name, or another copy of the package was
 * first.
 */
function makePolicy() {
  try {
    return globalThis.trustedTypes?.createPolicy('quern', rules) ?? rules;
  } catch {
    return rules;
  }
}

/** Among the arguments of a worker, only an address that Trusted Types refuse causes a TypeError. */
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

/** @param {() => Worker} start creates a worker */
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
