// SPDX-License-Identifier: MIT
// Describes a model by the headers of its files (src/engine/info.c). It reads no weights, fetches only the beginning of
// a file on a server, and stores nothing. For the command line only: a page's size limit has no room for it.

import glue from './node/quern-simd.mjs';
import { Engine } from '../engine/engine.js';
import { compile, openAny, storeOf } from '../worker/host-node.js';
import { instantiate } from '../engine/instance.js';
import { listFolder } from '../store/listing.js';
import { models } from '../node.js';
import { checkOptions } from '../page/options.js';
import { pathIn } from '../shared/folder.js';
import { platform } from '../page/platform-node.js';
import { explained, resolveBoth } from '../page/start.js';
import { described } from '../worker/described.js';
import { begin } from '../worker/intake.js';
import { projectorsOf } from '../worker/start.js';
import { headerBytes } from '../net/peek.js';

/** The bytes of the files, read on demand; from the store, if the model is complete there. */
async function open(located, has, { store = true, memory, ...options }) {
  const { beside, ...one } = located;
  const how = { store, memory, ...options };
  if (beside) return [...(await open(one, has, how)), ...(await open(beside, async () => false, how))];
  const stored = located.kind === 'urls' && store && (await has(store).catch(() => false));
  if (located.kind !== 'urls' || stored)
    return (await openAny(located, { ...options, store: storeOf(stored && store), memory })).parts;
  const { urls } = located.folder ? await listFolder({ ...located, id: '' }, options) : located;
  return urls.map((url) => ({ size: 0, name: pathIn(url), chunks: headerBytes(url, options) }));
}

async function readHeader(engine, chunks) {
  for await (const chunk of chunks) {
    engine.feed(chunk);
    if (engine.fileSize()) return;
  }
}

/**
 * @param {string | URL} source
 * @param {object} options as for load(); those that matter only to a running model are checked and not used
 * @returns {Promise<Engine>} an engine that has read the headers: facts and tokens
 */
export const openHeaders = (source, options) => explained(source, () => readAll(source, options));

async function readAll(source, options) {
  const { contextSize, kv, chunk, quantize, memoryLimit, headers, signal, store, vision } = checkOptions(
    'load',
    options,
  );
  const { source: located } = resolveBoth(platform, source, vision);
  const instance = await instantiate(glue, await compile('simd'), 1, 32);
  const has = (where) => models.has(source, { store: where, vision });
  const parts = await open(located, has, { headers, signal, store, memory: () => engine.staging });
  const files = parts.length - projectorsOf(located);
  const engine = new Engine(instance, {
    threads: 1, contextSize, kv, chunk, quantize, inspect: true, files, memoryLimit: memoryLimit ?? instance.maximum,
  });
  for (const [i, { name, chunks }] of parts.entries()) {
    if (i > 0) begin(engine, { size: 0, isProjector: i >= files });
    await readHeader(engine, described(name, chunks));
  }
  engine.finish();
  return engine;
}

/** The part of Info (index.d.ts) about the file, its dimensions and the plan. */
export const inspect = async (source, options) => (await openHeaders(source, options)).facts;
