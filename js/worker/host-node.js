// SPDX-License-Identifier: MIT
// What Node supplies to a host of the engine (worker-node.js, inspect.js): files instead of fetched scripts, and paths
// as sources, which are read in place.

import { access, constants, open, readFile, stat } from 'node:fs/promises';
import glue32 from './node/quern-simd.mjs';
import glue64 from './node/quern-simd64.mjs';
import { QuernError } from '../shared/errors.js';
import { wasmFailure } from '../engine/instance.js';
import { openParts } from '../store/loader.js';
import { joined, localParts } from '../store/local.js';
import { unreadable } from '../shared/path-node.js';
import { FolderStore } from '../store/store-node.js';
import { PortStore } from '../store/store-port.js';
import { WASM } from './wasm-files.js';

export const glue = {
  32: async () => glue32,
  64: async () => glue64,
  gpu: async () => (await import('./node/quern-gpu.mjs')).default,
};

export async function compile(build, wasmUrl) {
  const url = new URL(wasmUrl ?? WASM[build]());
  const bytes = await readFile(url).catch((error) => {
    throw new QuernError('env/worker', `${url.href} cannot be read (${error.code}).`, { phase: 'start', cause: error });
  });
  return WebAssembly.compile(bytes).catch((error) => { throw wasmFailure(error); });
}

/** Checks a path before it is opened, since opening a pipe without a writer never ends. */
export async function find(path, param) {
  const found = await stat(path).catch((error) => { throw unreadable(path, error, param); });
  if (!found.isFile()) throw unreadable(path, 'it is not a file', param);
  await access(path, constants.R_OK).catch((error) => { throw unreadable(path, error, param); });
  return found;
}

/** Throws if a file was changed while it was read, because then its parts may belong to two files. */
function checkSame(path, found, now) {
  if (now.size === found.size && now.mtimeMs === found.mtimeMs) return;
  throw new QuernError('model/integrity', `'${path.slice(-64)}' was changed while it was read.`,
    { phase: 'load', detail: { expected: found.size, actual: now.size } });
}

/** The chunks of a file, read straight into the engine's memory. */
async function* fileBytes(path, found, memory) {
  const failed = (error) => { throw unreadable(path, error); };
  const handle = await open(path).catch(failed);
  const read = async (left) => (await handle.read(memory().room().subarray(0, left)).catch(failed)).bytesRead;
  try {
    for (let left = found.size, n; left && (n = await read(left)); left -= n) yield memory().room(n);
    checkSame(path, found, await handle.stat().catch(failed));
  } finally {
    await handle.close();
  }
}

/** @param {boolean | string | MessagePort} store */
export function storeOf(store) {
  if (store instanceof MessagePort) return new PortStore(store);
  return store ? new FolderStore(store === true ? undefined : store) : undefined;
}

/** @type {import('./start.js').EngineHost['openParts']} */
export async function openAny(source, options) {
  const { beside, ...model } = source;
  if (beside) return joined(model, beside, options, openAny);
  if (source.kind !== 'paths') return openParts(source, options);
  const found = await Promise.all(source.paths.map((path) => find(path)));
  const nameOf = (path) => path.replaceAll('\\', '/');
  const part = (path, i) => ({
    size: found[i].size,
    name: nameOf(path),
    chunks: fileBytes(path, found[i], options.memory),
  });
  return localParts(source.paths.map(part), options);
}
