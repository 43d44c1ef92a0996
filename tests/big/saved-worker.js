// SPDX-License-Identifier: MIT
// A browser's store by itself, as keep-steps.js reads and writes it, and what keep-parts.js measures over it.
import glue from '../../dist/quern-simd.mjs';
import { OpfsStore } from '../../js/store/store-opfs.js';
import { gaps, parts } from './saved-parts.js';
import { plain } from './saved-steps.js';

async function* chunks(url) {
  for await (const chunk of (await fetch(url)).body) yield chunk;
}

const { port1, port2 } = new MessageChannel();
const waiting = [];
port2.onmessage = () => waiting.shift()();

/** As the engine's worker does. */
const rest = () => new Promise((resolve) => {
  waiting.push(resolve);
  port1.postMessage(0);
});

/** @param {object} options */
const threaded = (options) => glue({ ...options, startThread: () => new Worker(new URL('../../dist/thread.js', import.meta.url), { type: 'module' }) });

const place = async ({ source, token }) => ({
  glue: threaded, token, rest, store: new OpfsStore(), chunks: () => chunks(source),
  module: await WebAssembly.compileStreaming(fetch('../../dist/quern-relaxed.wasm')),
});

const WORK = {
  plain: ({ piece }) => plain(new OpfsStore(), piece),
  parts: async (what) => parts(await place(what)),
  gaps: async (what) => gaps(await place(what)),
};

globalThis.onmessage = ({ data }) => WORK[data.what](data).then((took) => globalThis.postMessage(took),
  (error) => globalThis.postMessage({ error: String(error.stack ?? error) }));
