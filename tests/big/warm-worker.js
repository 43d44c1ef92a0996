// SPDX-License-Identifier: MIT
// Reads a stored model into wasm memory, in turn by a plain loop over its file and as the loader does, which checks every byte;
// there by an engine with threads and by one without. Everything is the package's own, but no engine is fed.
import glue from '../../dist/quern-simd.mjs';
import { Engine } from '../../js/engine/engine.js';
import { instantiate } from '../../js/engine/instance.js';
import { openParts } from '../../js/store/loader.js';
import { OpfsStore } from '../../js/store/store-opfs.js';
import { keyOf } from '../../js/store/store.js';

const store = new OpfsStore();

/** @returns {Promise<number>} milliseconds from the opening of the file to its last byte */
async function plain(url, { staging }) {
  const start = performance.now();
  const file = await store.open(`${await keyOf(url)}.0`, { write: false });
  const room = staging.room();
  for (let at = 0, n; (n = file.read(at, room)) > 0; at += n);
  const ms = performance.now() - start;
  file.close();
  return ms;
}

/** The same, to the last byte checked. */
async function checked(url, engine) {
  const { cached, total, parts: [{ chunks }] } = await openParts({ kind: 'urls', urls: [url] }, { store, memory: () => engine.staging });
  if (!cached) throw new Error('it is not stored');
  const start = performance.now();
  let ms;
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    ms = performance.now() - start;
  }
  if (bytes !== total) throw new Error(`${bytes} of ${total} bytes`);
  return ms;
}

async function start(threads) {
  const instance = await instantiate(glue, await WebAssembly.compileStreaming(fetch('../../dist/quern-relaxed.wasm')), threads, 32);
  return new Engine(instance, { threads, memoryLimit: instance.maximum });
}

const threaded = start(2);
const starting = { plain: threaded, threads: threaded, alone: start(1) };

/** @param {{url: string, how: 'plain' | 'threads' | 'alone'}} read @returns {Promise<number>} milliseconds */
async function measure({ url, how }) {
  const engine = await starting[how];
  return how === 'plain' ? plain(url, engine) : checked(url, engine);
}

globalThis.onmessage = ({ data }) => measure(data).then((ms) => globalThis.postMessage({ ms }), (error) => globalThis.postMessage({ error: String(error.stack ?? error) }));
