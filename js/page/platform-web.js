// SPDX-License-Identifier: MIT
// The platform of a page: starts the engine's worker, and resolves a source so that a worker can open it.

import { QuernError, badParam } from '../shared/errors.js';
import { LENT } from './lent.js';
import { lending, notFetched } from '../shared/lent.js';
import { followLifeline } from '../shared/lifeline.js';
import { LIFELINE } from '../shared/protocol.js';
import { locate } from './source.js';
import { startWorker as start } from '../shared/start-worker.js';
import { OpfsStore } from '../store/store-opfs.js';
import { describeSupport, workerObstacle } from '../shared/variant.js';

/**
 * A worker's `error` event has no message if its script could not be fetched or was forbidden, and has one if the
 * script threw.
 */
function startFailure(event, forbidden) {
  const phase = { phase: 'start' };
  if (forbidden)
    return new QuernError('env/csp', `The page's policy (${forbidden}) forbids the engine's worker.`, phase);
  return new QuernError(
    'env/worker',
    `The engine's worker did not start: ${event.message || 'its script could not be fetched'}.`,
    phase,
  );
}

const crash = (what) => new QuernError('engine/trap', `The engine crashed (${what || 'no reason given'}).`);

const lost = () => new QuernError('engine/lost', 'The engine\'s worker has ended silently.');

/** Wraps a worker as the port that rpc.js needs. */
function port(worker) {
  let started = false;
  let forbidden;      // the directive that forbids the worker
  let fail = () => {};
  let forget = () => {};
  const onViolation = ({ disposition, effectiveDirective, blockedURI }) => {
    if (disposition !== 'enforce' || !/^(worker|script)-src/.test(effectiveDirective)) return;
    const [scheme] = /^(?:blob|data)/.exec(blockedURI) ?? [];    // see start-worker.js
    forbidden = effectiveDirective + (scheme ? ` without ${scheme}:` : '');
  };
  globalThis.addEventListener('securitypolicyviolation', onViolation);
  const settled = () => globalThis.removeEventListener('securitypolicyviolation', onViolation);
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    onMessage(receive) {
      worker.addEventListener('message', ({ data }) => {
        started = true;
        settled();
        if (data?.type === LIFELINE) forget = followLifeline(data.name, () => fail(lost()));
        receive(data);
      });
    },
    onError(listener) {
      fail = listener;
      worker.addEventListener('error', (event) => {
        event.preventDefault();
        if (started) fail(crash(event.message));
        // The report of a violation may come after the error.
        else setTimeout(() => fail(startFailure(event, forbidden)));
      });
      worker.addEventListener('messageerror', () => fail(crash('an unreadable message')));
    },
    keepAlive() {},
    terminate() {
      settled();
      forget();
      worker.terminate();
    },
  };
}

function startWorker(workerUrl) {
  const obstacle = workerObstacle();
  if (obstacle) throw new QuernError('env/worker', obstacle, { phase: 'start' });
  if (workerUrl) return port(start(() => new Worker(workerUrl, { type: 'module' })));
  return port(start(() => new Worker(new URL('./worker.js', import.meta.url), { type: 'module' })));
}

const baseUrl = () => globalThis.document?.baseURI ?? globalThis.location?.href;

/** URL.canParse is missing in browsers before 2023. */
function resolveUrl(url) {
  try {
    return new URL(url, baseUrl()).href;
  } catch {
    throw badParam('source', `is not a URL: '${String(url).slice(0, 64)}'`);
  }
}

const take = lending(LENT);

/** Files that are loaded later: images and videos for models with vision, vectors, and loads with a draft model or on a device. */
const images = () => import('./images.js').then(take, notFetched('start'));
const videos = () => import('./videos.js').then(take, notFetched('start'));
const vectors = () => import('./vectors.js').then(take, notFetched('start'));
const late = () => import('./start-late.js').then(take, notFetched('start'));

function resolveSource(source) {
  return { source: locate(source, (text) => ({ url: resolveUrl(text) })) };
}

/** @param {boolean | object} store */
function storeOf(store) {
  if (typeof store === 'object') return store;
  if (typeof store === 'string') throw badParam('options.store', 'must be true, false or a store');
  return store ? new OpfsStore() : null;
}

const persist = () => (async () => navigator.storage.persist())().catch(() => {});

export const platform = { startWorker, resolveUrl, resolveSource, images, videos, vectors, late, storeOf, persist };

export function support() {
  return describeSupport({
    isolated: globalThis.crossOriginIsolated === true,
    threads: globalThis.navigator?.hardwareConcurrency,
    noWorkers: workerObstacle(),
  });
}
