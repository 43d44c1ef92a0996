// SPDX-License-Identifier: MIT
// The worker's half of the package without a worker: a host for start.js over the built engine. Tests choose what the
// machine has, and see what is started.

import { readFile } from 'node:fs/promises';
import glue32 from '../../../dist/node/quern-simd.mjs';
import glue64 from '../../../dist/node/quern-simd64.mjs';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { startEngine } from '../../../js/worker/start.js';

const modules = new Map();
export const glue = { 32: glue32, 64: glue64 };

export function compile(build) {
  if (!modules.has(build)) modules.set(build, readFile(new URL(`../../../dist/quern-${build}.wasm`, import.meta.url)).then(WebAssembly.compile));
  return modules.get(build);
}

/**
 * @returns {import('../../../js/worker/start.js').EngineHost & {started: string[]}} `started`: names of the builds that
 *   were started
 */
export function testHost(machine = {}) {
  const started = [];
  return {
    started, glue: { 32: async () => glue32, 64: async () => glue64, gpu: async () => (await import('../../../build/wasm/node/quern-gpu.mjs')).default },
    gpu: () => import('../../../js/worker/gpu-node.js'), obstacle: '', hardwareThreads: 1, deviceMemory: undefined, post() {}, rest() {}, storeOf: () => undefined,
    openParts: () => Promise.reject(new Error('see startOver')),
    compile(build) {
      started.push(build);
      return compile(build);
    },
    ...machine,
  };
}

/** Bytes as one part. Each chunk is overwritten when the next one is requested; `read` counts the requested bytes. */
export function partOf(bytes, { size = bytes.length, chunk = 65536 } = {}) {
  const part = { size, read: 0 };
  const buffer = new Uint8Array(chunk);
  part.chunks = (async function* chunks() {
    for (; part.read < bytes.length; buffer.fill(0xee)) {
      const piece = bytes.subarray(part.read, part.read + chunk);
      part.read += piece.length;
      buffer.set(piece);
      yield buffer.subarray(0, piece.length);
    }
  })();
  return part;
}

export const opened = (...parts) => ({ phase: 'load', total: parts.reduce((sum, { size }) => sum + size, 0), parts });

async function* counted(chunks, onBytes) {
  for await (const chunk of chunks) {
    onBytes(chunk.length);
    yield chunk;
  }
}

/**
 * Starts an engine from an opened source.
 * @param {import('../../../js/worker/start.js').EngineHost} host
 * @param {any} source the opened source; `located`: its description by source.js, if that matters
 */
export function startOver(host, source, options = {}, emit = () => {}) {
  /** @type {typeof host.openParts} */
  const openParts = async (_, { onBytes }) => ({
    cached: false, async discard() {}, ...source, parts: source.parts.map(({ size, chunks }) => ({ size, chunks: counted(chunks, onBytes) })),
  });
  return startEngine({ ...host, openParts }, source.located ?? {}, options, emit);
}

/**
 * Makes an instance with one thread, calls `use` with its memory, and feeds an engine with `options`.
 * @param {Uint8Array} bytes
 * @param {any} options
 * @returns {Promise<Engine>} not finished
 */
export async function engineOver(bytes, { address = 32, use = () => {}, ...options } = {}) {
  const instance = await instantiate(glue[address], await compile(address === 64 ? 'simd64' : 'simd'), 1, address);
  use(instance);
  const engine = new Engine(instance, { threads: 1, memoryLimit: instance.maximum, ...options });
  engine.feed(bytes);
  return engine;
}

/** Logits of every token, or hidden states if the model has no output head. */
export function logitsOf(engine, ids) {
  const { headless, vocabSize, dim } = engine.facts;
  const width = headless ? dim : vocabSize;
  const all = new Float32Array(ids.length * width);
  const sequence = engine.sequence();
  sequence.set(ids, headless ? 'states' : 'all');
  while (sequence.pending > 0) {
    engine.step(0);
    const part = headless ? sequence.states() : sequence.logits();
    if (part) all.set(part.rows, part.first * width);
  }
  sequence.free();
  return Buffer.from(all.buffer);
}
