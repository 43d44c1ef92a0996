// SPDX-License-Identifier: MIT
// `quern/sw`, for other people's sites on hosts that send no headers of one's own: a service worker that adds the
// headers for threads to what its pages ask of their own origin. It keeps nothing and touches no other origin. The
// address may choose the embedder policy: sw.js?coep=credentialless. docs/recipes/service-worker.md says how a page
// uses it.
import { isolated } from './isolated.js';

const { origin, searchParams } = new URL(self.location);
const embedder = searchParams.get('coep') === 'credentialless' ? 'credentialless' : 'require-corp';

self.addEventListener('install', () => self.skipWaiting());
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
  const { request } = event;
  if (new URL(request.url).origin !== origin) return;
  // developer tools ask so, and no worker may
  if (request.cache === 'only-if-cached' && request.mode !== 'same-origin') return;
  event.respondWith(fetch(request).then((response) => isolated(response, embedder)));
});
