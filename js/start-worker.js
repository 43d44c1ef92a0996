// SPDX-License-Identifier: MIT
// Starts a module worker from any origin. Browsers refuse `new Worker` across origins (a package imported from a
// CDN), so there, and only there, a one-line blob imports it: pages with a strict policy never meet a blob URL.

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
