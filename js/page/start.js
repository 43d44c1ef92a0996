// SPDX-License-Identifier: MIT
// Starts a worker on a source: sends it the options that it needs, and ends it if anything fails.

import { reasonOf } from '../shared/clock.js';
import { QuernError, asQuernError } from '../shared/errors.js';
import { named } from '../shared/named.js';
import { ENGINE } from '../shared/protocol.js';
import { Rpc } from './rpc.js';
import { asOption, namesOf, withProjector } from './source.js';
import { serveStore } from '../store/store-port.js';

function startRpc(platform, workerUrl) {
  try {
    return new Rpc(platform.startWorker(workerUrl), platform.watch);
  } catch (error) {
    if (error instanceof QuernError) throw error;
    throw new QuernError('env/worker', `The engine's worker cannot be started (${error.message}).`, {
      phase: 'start',
      cause: error,
    });
  }
}

/**
 * The browser is asked once, when the first model is about to be stored. If it agrees, it deletes the model only when
 * its user says so.
 */
let asked = false;
function askToPersist(platform, { phase, waiting }) {
  if (asked || waiting || phase !== 'download') return;
  asked = true;
  platform.persist();
}

/**
 * The WebAssembly modules that workers of one script have compiled, by build. A model that is loaded later need not
 * compile anything, and runs the browser's best code from the start. The latest module of each build stays as long as
 * the page, some MB.
 * @type {{script?: string, engines: Record<string, {url?: string, module: WebAssembly.Module}>}}
 */
let compiled = { engines: {} };

function enginesOf(script) {
  if (compiled.script !== script) compiled = { script, engines: {} };
  return compiled.engines;
}

/** The options as sent to the worker, and the server of the caller's own store, if any. */
function wireOptions(platform, { store = true, sha256 = [], ...options }) {
  const served = typeof store === 'object' ? serveStore(store) : null;
  const wire = { ...options, store: served?.port ?? store, sha256: [sha256].flat().map((hash) => hash.toLowerCase()) };
  if (options.wasmUrl) wire.wasmUrl = platform.resolveUrl(options.wasmUrl);
  return { wire, served };
}

/** Resolves a source and its projector, if one is named; `noVision` leaves the vision part out. */
export function resolveBoth(platform, source, vision) {
  const model = platform.resolveSource(source);
  if (vision === undefined || typeof vision === 'boolean')
    return { ...model, source: { ...model.source, ...(vision === false && { noVision: true }) } };
  const projector = asOption(() => platform.resolveSource(vision));
  return {
    source: withProjector(model.source, projector.source),
    transfer: [...(model.transfer ?? []), ...(projector.transfer ?? [])],
  };
}

/**
 * Runs the work; an error also tells what the files are, if their names show it.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function explained(source, work) {
  try {
    return await work();
  } catch (error) {
    throw await named(error, namesOf(source), source);
  }
}

/**
 * Starts a worker of its own on a source. If anything fails, the worker is gone before this rejects.
 * @returns {Promise<{rpc: Rpc, answer: any}>}
 */
export const startWith = (platform, type, source, options) =>
  explained(source, () => start(platform, type, source, options));

async function start(platform, type, source, { signal, onProgress, workerUrl, vision, ...options }) {
  const { source: opened, transfer = [] } = resolveBoth(platform, source, vision);
  const { wire, served } = wireOptions(platform, options);
  signal?.throwIfAborted();
  const script = workerUrl && platform.resolveUrl(workerUrl);
  const engines = enginesOf(script);
  const rpc = startRpc(platform, script);
  if (served) rpc.ended.then(served.end);
  const onAbort = () => rpc.close(reasonOf(signal));
  signal?.addEventListener('abort', onAbort, { once: true });
  const onEvent = ({ type: kind, ...event }) => {
    if (kind === ENGINE) return void (engines[event.build] = event);
    if (wire.store === true) askToPersist(platform, event);
    return onProgress?.(event);
  };
  try {
    await rpc.ready();
    const how = { onEvent, transfer: served ? [...transfer, served.port] : transfer };
    return { rpc, answer: await rpc.call(type, { source: opened, options: { ...wire, engines } }, how).promise };
  } catch (error) {
    await rpc.close(error instanceof QuernError ? error : asQuernError(error, 'load'));
    throw error;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
