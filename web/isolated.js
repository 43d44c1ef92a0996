// SPDX-License-Identifier: MIT
// Adds the headers that the page needs for threads, in a service worker, if the server cannot send them.

/**
 * Returns the same response with the isolation headers. Opaque and error responses (status 0) cannot be rebuilt.
 * @param {Response} response
 * @param {string} [embedder] the embedder policy: `credentialless` allows images of other sites, in browsers that
 *   support it
 */
export function isolated(response, embedder = 'require-corp') {
  if (response.status === 0 || response.type === 'opaqueredirect') return response;
  const headers = new Headers(response.headers);
  headers.set('Cross-Origin-Opener-Policy', 'same-origin');
  headers.set('Cross-Origin-Embedder-Policy', embedder);
  headers.set('Cross-Origin-Resource-Policy', 'same-origin');
  const { status, statusText } = response;
  return new Response([101, 204, 205, 304].includes(status) ? null : response.body, { status, statusText, headers });
}
