// SPDX-License-Identifier: MIT
// `quern/sw`, for other sites on hosts that cannot send their own headers: a service worker that adds the headers for
// threads to the responses from its own origin. It stores nothing and touches no other origin. Its address may choose
// the embedder policy: sw.js?coep=credentialless. docs/recipes/service-worker.md tells how to use it.
import { isolated } from './isolated.js';

const { origin, searchParams } = new URL(self.location);
const embedder = searchParams.get('coep') === 'credentialless' ? 'credentialless' : 'require-corp';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (new URL(request.url).origin !== origin) return;
  // developer tools send such requests, which a worker cannot fetch
  if (request.cache === 'only-if-cached' && request.mode !== 'same-origin') return;
  event.respondWith(fetch(request).then((response) => isolated(response, embedder)));
});
