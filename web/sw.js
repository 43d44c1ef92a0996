// SPDX-License-Identifier: MIT
// The page's only service worker, since a scope has only one. It has two tasks. It keeps the shell (page, engine, demo
// model), so that the page works without a network. And it adds the isolation headers that threads need, for static
// hosts that cannot send them. Each build has one version and one cache, and replaces the last one as a whole. This
// script's address names the variant of the engine that the browser runs: its text build is cached at once; other
// builds, the files in late/ and the reader of PDF files when they are requested. Later versions keep these too: what
// is stored may need them without a network.
// Requests to other origins (models) are not touched: the library stores models itself.
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

/** A request that asks the server again ('no-cache'), so that no stale file gets into a new version. */
const fresh = (url) => new Request(url, { cache: 'no-cache' });

/** Whether a file is only cached when it is requested. */
const isLate = (url) => /\.wasm$|gpu\.m?js$|\/late\/|\/pdf\.[^/]+$/.test(url);

/** Addresses of the files that older versions have cached. */
async function keptSoFar() {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX));
  const requests = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()));
  return requests.flat().map(({ url }) => url);
}

/** Caches all files, or fails. */
async function fillCache() {
  const wanted = [ENGINE, ...await keptSoFar()];
  const cache = await caches.open(CACHE);
  const needed = [...SHELL].filter((url) => !isLate(url) || wanted.includes(url));
  await cache.addAll(needed.map(fresh));
}

/** Returns a file of the shell, and caches it if it is not cached yet. */
async function shellFile(url) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(url);
  if (kept) return kept;
  await cache.add(fresh(url)).catch(() => {});    // no room or no such file: it is fetched only
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

/** Answers with a cached file, or with the requested part of it, since the cache stores whole files only. */
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
