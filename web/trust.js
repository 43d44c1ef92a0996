// SPDX-License-Identifier: MIT
// Trusted Types: the page's one policy. Its content security policy turns every string that would become code
// into an error; only two calls need such strings, `new Worker` (inside the library) and the registration of the
// service worker. Both are let through for this page's own files and for nothing else. No HTML, no script text.

const base = new URL('./', import.meta.url);

/** @returns {string | null} the URL when it is a script file lying directly beside the page, else null (refused) */
export function ownScript(text) {
  const url = URL.canParse(text, base) ? new URL(text, base) : null;
  if (!url || url.origin !== base.origin || !url.pathname.startsWith(base.pathname)) return null;
  const name = url.pathname.slice(base.pathname.length);
  return /^[\w.-]+\.m?js$/.test(name) ? url.href : null;
}

/** Must run before the library is used. */
export function installPolicy() {
  globalThis.trustedTypes?.createPolicy('default', { createScriptURL: ownScript });
}
