// SPDX-License-Identifier: MIT
// Registers the service worker (sw.js) and uses it for both of its jobs. On a host that cannot send the isolation
// headers, the page loads itself once more as soon as the worker can add them: without them there are no threads.
// On an isolated page it only fills the offline cache in the background.

import { forget, read, write } from './storage.js';

/** Set before the reload, so that a browser where it does not help is not reloaded again and again. */
const TRIED = 'quern:isolation-tried';

/** How long the first visit waits for the worker, which fetches the whole shell; then the page starts on one thread. */
const PATIENCE_MS = 20_000;

/**
 * Makes the address of the service worker in the form that Trusted Types require. It is the only string of the page
 * that becomes code. (The library has a policy of its own.)
 */
function scriptFor(variant) {
  const rules = { createScriptURL: () => `./sw.js?variant=${variant}` };
  return (globalThis.trustedTypes?.createPolicy('quern-page', rules) ?? rules).createScriptURL('');
}

const later = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Whether the page may reload now. Remembers it; without storage there is no reload. */
const mayReload = () => !read(TRIED, 'sessionStorage') && write(TRIED, true, 'sessionStorage');

/** Requests again what was fetched late before the worker was there, so that it is kept. */
function keepLate() {
  for (const { name } of performance.getEntriesByType('resource'))
    if (/\/late\//.test(name)) fetch(name).catch(() => {});
}

/** Calls `onUpdate` when a newer build is ready. */
function watchUpdates(registration, onUpdate) {
  const offer = (worker) => {
    if (!worker || !navigator.serviceWorker.controller) return;
    const ready = () => worker.state === 'installed' && onUpdate(() => {
      if (worker.state !== 'installed') return location.reload();     // another tab has activated it already
      navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
      return worker.postMessage('activate');
    });
    ready();
    worker.addEventListener('statechange', ready);
  };
  offer(registration.waiting);
  registration.addEventListener('updatefound', () => offer(registration.installing));
}

/**
 * @param {string | null} variant of the engine that runs here
 * @param {object} events
 * @param {() => void} events.onWait the page is being prepared and will load itself again
 * @param {() => boolean} events.isBusy whether a reload would lose something; then this visit uses one thread
 * @param {(reload: () => void) => void} events.onUpdate
 * @returns {Promise<boolean>} true: the page is about to be loaded again, and nothing should be started
 */
export async function startOffline(variant, { onWait, isBusy, onUpdate }) {
  if (crossOriginIsolated) forget(TRIED, 'sessionStorage');
  if (!navigator.serviceWorker) return false;
  // Refused in private windows and by some blockers, which may also just answer nothing.
  const registration = await navigator.serviceWorker.register(scriptFor(variant)).catch(() => null);
  if (!registration) return false;
  watchUpdates(registration, onUpdate);
  navigator.serviceWorker.addEventListener('controllerchange', keepLate);
  const ready = navigator.serviceWorker.ready.then(() => { document.documentElement.dataset.offline = 'ready'; });
  if (crossOriginIsolated || !mayReload()) return false;
  onWait();
  await Promise.race([ready, later(PATIENCE_MS)]);
  if (!registration.active || isBusy()) return false;
  location.reload();
  return true;
}
