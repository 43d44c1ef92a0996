// SPDX-License-Identifier: MIT
// The page's one service worker. It does two things and nothing else: it keeps the shell (page, engine, demo model) so
// that the page works without a network, and it adds the cross-origin isolation headers that threads need, for static
// hosts which cannot send them. One worker does both because a scope has only one. A build is one version with one
// cache; it is replaced as a whole, never file by file. Of the engine's builds the page names the variant this browser
// runs, in this script's address: that for texts is kept at once, another one when it is asked for. Other origins
// (models from a URL) are not touched: the library stores those itself.
/* global SHELL_VERSION, SHELL_FILES -- set by tools/site.mjs */
import { isolated } from './isolated.js';

// The scope is part of the name: two pages under one origin must not delete each other's files.
const PREFIX = `quern ${self.registration.scope} `;
const CACHE = PREFIX + SHELL_VERSION;
const SCOPE = self.registration.scope;
const SHELL = new Set(SHELL_FILES.map((file) => new URL(file, SCOPE).href));
const ENGINE = new URL(`./quern-${new URL(self.location).searchParams.get('variant')}-text.wasm`, SCOPE).href;

self.addEventListener('install', (event) => event.waitUntil(fillCache()));
self.addEventListener('activate', (event) => event.waitUntil(takeOver()));
self.addEventListener('message', (event) => {
  if (event.data === 'activate') self.skipWaiting();
});
self.addEventListener('fetch', (event) => {
  const { method, url } = event.request;
  if (method === 'GET' && url.startsWith(SCOPE)) event.respondWith(respond(event.request));
});

/** 'no-cache' asks the server again, so that no stale file joins a new version. */
const fresh = (url) => new Request(url, { cache: 'no-cache' });

/** All files or no installation. */
async function fillCache() {
  const cache = await caches.open(CACHE);
  const needed = [...SHELL].filter((url) => !url.endsWith('.wasm') || url === ENGINE);
  await cache.addAll(needed.map(fresh));
}

/** A file of the shell, which is kept from now on. */
async function shellFile(url) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(url);
  if (kept) return kept;
  await cache.add(fresh(url)).catch(() => {});    // no room, or no such file: it is only fetched
  return cache.match(url);
}

async function takeOver() {
  const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function respond(request) {
  const url = new URL(request.url);
  url.search = url.hash = '';
  if (url.href === `${SCOPE}index.html`) url.href = SCOPE;
  const kept = SHELL.has(url.href) && await shellFile(url.href);
  return kept ? answerRange(kept, request.headers.get('Range')) : isolated(await fetch(request));
}

/** A kept file, or the asked part of it: the cache itself stores whole files only. */
async function answerRange(response, range) {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
  if (first === undefined) return isolated(response);
  const body = await response.blob();
  const start = Number(first);
  const end = Math.min(last ? Number(last) + 1 : body.size, body.size);
  const headers = new Headers(response.headers);
  if (start >= end) {
    headers.set('Content-Range', `bytes */${body.size}`);
    return isolated(new Response(null, { status: 416, headers }));
  }
  headers.set('Content-Range', `bytes ${start}-${end - 1}/${body.size}`);
  headers.set('Content-Length', String(end - start));
  return isolated(new Response(body.slice(start, end), { status: 206, statusText: 'Partial Content', headers }));
}
