// SPDX-License-Identifier: MIT
// The engine's worker in Node: the same service with files instead of fetched scripts, and paths as sources.

import { open, readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Worker, parentPort } from 'node:worker_threads';
import glue from './node/quern-simd.mjs';
import { QuernError } from './errors.js';
import { wasmFailure } from './instance.js';
import { allowRelaxed } from './node-flags.js';
import { Service } from './service.js';
import { openSource } from './source.js';

const FILE_CHUNK = 4 << 20;

/** A template that fills the memory ends its own worker and nothing else. */
const TEMPLATE_LIMITS = { maxOldGenerationSizeMb: 256 };

const WASM = {
  simd: () => new URL('./quern-simd.wasm', import.meta.url),
  relaxed: () => new URL('./quern-relaxed.wasm', import.meta.url),
};

async function compile(build, wasmUrl) {
  const url = new URL(wasmUrl ?? WASM[build]());
  const bytes = await readFile(url).catch((error) => {
    throw new QuernError('env/worker', `${url.href} cannot be read (${error.code}).`, { phase: 'start', cause: error });
  });
  return WebAssembly.compile(bytes).catch((error) => { throw wasmFailure(error); });
}

const unreadable = (path, why, cause) => new QuernError('use/param', `'${path.slice(-64)}' cannot be read: ${why}.`, {
  phase: 'load', detail: { param: 'source' }, cause,
});

async function* fileChunks(handle, path) {
  try {
    for (;;) {
      const { bytesRead, buffer } = await handle.read(new Uint8Array(FILE_CHUNK), 0, FILE_CHUNK).catch((error) => { throw unreadable(path, error.code, error); });
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

async function openPath(path) {
  const handle = await open(path).catch((error) => { throw unreadable(path, error.code === 'ENOENT' ? 'there is no such file' : error.code, error); });
  const stat = await handle.stat();
  if (!stat.isFile()) {
    await handle.close();
    throw unreadable(path, 'it is not a file');
  }
  return { phase: 'load', total: stat.size, chunks: fileChunks(handle, path) };
}

/** The bytes of a Blob, which the other thread reads. */
async function* streamChunks(stream) {
  try {
    yield* stream;
  } catch (error) {
    throw unreadable('The Blob', error.message, error);
  }
}

function openAny(source, headers) {
  if (source.kind === 'path') return openPath(source.path);
  if (source.kind === 'stream') return { phase: 'load', total: source.size, chunks: streamChunks(source.stream) };
  return openSource(source, headers);
}

function startTemplateWorker() {
  const worker = new Worker(new URL('./template.node.js', import.meta.url), { resourceLimits: TEMPLATE_LIMITS });
  const listen = (event, handler) => worker.removeAllListeners(event).on(event, handler);
  return {
    post: (message) => worker.postMessage(message),
    onMessage: (receive) => listen('message', receive),
    onError: (fail) => listen('error', fail),
    terminate: () => worker.terminate(),
  };
}

parentPort.on('messageerror', (error) => { throw error; });
allowRelaxed();
new Service({
  glue, compile, startTemplateWorker, openSource: openAny,
  rest: () => new Promise((resolve) => { setImmediate(resolve); }),
  obstacle: '',
  hardwareThreads: availableParallelism(),
  post: (message, transfer = []) => parentPort.postMessage(message, transfer),
  listen: (receive) => parentPort.on('message', receive),
});
