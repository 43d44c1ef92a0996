// SPDX-License-Identifier: MIT
// Starts module workers from any origin. Browsers refuse `new Worker` across origins (a package imported from a
// CDN), so there, and only there, a one-line blob imports it: pages with a strict policy never meet a blob URL.

/** @param {string | URL} url of a worker that somebody else names */
export function startModuleWorker(url) {
  const sameOrigin = new URL(url, globalThis.location.href).origin === globalThis.origin;
  if (sameOrigin) return new Worker(url, { type: 'module' });
  const shim = URL.createObjectURL(new Blob([`import ${JSON.stringify(String(url))};`], { type: 'text/javascript' }));
  try {
    return new Worker(shim, { type: 'module' });
  } finally {
    // The fetch of the script is under way; the URL itself is not needed any more after this task.
    setTimeout(() => URL.revokeObjectURL(shim), 10_000);
  }
}

/**
 * Starts a worker of the package.
 * @param {() => Worker} start does it in the literal form that bundlers follow
 * @param {string} file its script, beside this one
 */
export function startOwnWorker(start, file) {
  try {
    return start();
  } catch (error) {
    if (error.name !== 'SecurityError') throw error;
    const here = import.meta.url;
    return startModuleWorker(new URL(file, here).href);
  }
}
