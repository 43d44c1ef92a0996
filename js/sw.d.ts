// SPDX-License-Identifier: MIT

/**
 * A service worker that adds the headers for threads to what the pages of its scope ask of their own origin; with `?coep=credentialless` in its address
 * the other embedder policy. It is a script to be registered, of which a bundler gives the address or a copy stands on the site, and exports nothing.
 *
 * ```js
 * await navigator.serviceWorker.register('./sw.js');   // a copy of node_modules/quern/dist/sw.js
 * ```
 */
export {};
