// SPDX-License-Identifier: MIT
// The platform of Node: as platform-web.js, but with worker threads and paths.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { QuernError, badParam } from '../shared/errors.js';
import { BELOW, VOCABULARY, modelOf } from '../shared/folder.js';
import { foreignOf } from '../shared/foreign.js';
import { refusal } from '../shared/named.js';
import { allowRelaxed } from '../shared/node-flags.js';
import { unreadable } from '../shared/path-node.js';
import { END } from '../shared/protocol.js';
import { locate } from './source.js';
import { workerFile } from './worker-node.js';
import { FolderStore } from '../store/store-node.js';
import { describeSupport } from '../shared/variant.js';

function failure(error, started) {
  return started
    ? new QuernError('engine/trap', `The engine crashed (${error.message}).`, { cause: error })
    : new QuernError('env/worker', `The engine's worker did not start: ${error.message}.`, {
        phase: 'start',
        cause: error,
      });
}

/**
 * Flags of the process are not passed to its workers: some make them fail (--input-type). V8's flags apply to all
 * threads anyway.
 */
const NO_FLAGS = { execArgv: [] };

/** How long a worker may take to end itself. */
const END_GRACE_MS = 1000;

/** Starts a worker that keeps the process alive only while a call is pending. */
function startWorker(workerUrl) {
  const worker = new Worker(workerUrl ? new URL(workerUrl) : workerFile(), NO_FLAGS);
  let started = false;
  const gone = new Promise((resolve) => { worker.once('exit', resolve); });
  return {
    post: (message, transfer) => worker.postMessage(message, transfer),
    onMessage: (receive) => worker.on('message', (message) => { started = true; receive(message); }),
    onError(fail) {
      worker.on('error', (error) => fail(failure(error, started)));
      worker.on('messageerror', (error) => fail(failure(error, started)));
      worker.on('exit', (code) =>
        fail(new QuernError('engine/lost', `The engine's worker has ended (exit code ${code}).`)),
      );
    },
    keepAlive: (needed) => (needed ? worker.ref() : worker.unref()),
    /**
     * Asks the worker to end itself, because Node crashes when a worker is terminated while it requests a file (20) or
     * imports its modules (24).
     */
    async terminate() {
      worker.ref();   // keeps the process alive until the worker has ended
      worker.postMessage({ type: END });
      await Promise.race([gone, sleep(END_GRACE_MS, undefined, { ref: false })]);
      await worker.terminate();
    },
  };
}

const isWebUrl = (text) => /^(https?|blob|data):/i.test(text);

function resolveUrl(url) {
  const text = String(url);
  return URL.canParse(text) ? text : pathToFileURL(text).href;
}

function addressOf(text) {
  if (!URL.canParse(text)) throw badParam('source', `is not an address: '${text.slice(0, 64)}'`);
  return text;
}

function pathOfUrl(text) {
  try {
    return fileURLToPath(text);
  } catch (error) {
    throw Object.assign(badParam('source', `is not the address of a file on this machine: '${text.slice(0, 64)}'`), {
      cause: error,
    });
  }
}

function pathOf(text) {
  if (/^[a-z][a-z\d+.-]+:\/\//i.test(text) && !/^file:/i.test(text)) {
    throw badParam('source', `must begin with http:// or https:// where it is an address, not '${text.slice(0, 64)}'`);
  }
  const path = /^file:/i.test(text) ? pathOfUrl(text) : text;
  if (path.includes('\0')) throw badParam('source', `has a character 0, which no path has: '${path.slice(0, 64)}'`);
  return path;
}

/** Runs a file system call on a path, and explains its error. */
function ask(path, question) {
  try {
    return question();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/**
 * Returns the stat of a path, or null if nothing exists there. With `throwIfNoEntry: false`, Node 26 returns the same
 * for a path that leads through a file.
 */
function standingAt(path) {
  try {
    return statSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Names in a subfolder; none if it does not exist or cannot be read. */
function namesBelow(path, folder) {
  try {
    return readdirSync(join(path, folder)).map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
}

/** The files of a folder, or of a checkpoint with its vocabulary beside it. */
function filesAt(path) {
  if (existsSync(path + VOCABULARY)) return [path + VOCABULARY, path];
  if (!ask(path, () => standingAt(path))?.isDirectory()) return [path];
  const names = ask(path, () => readdirSync(path));
  names.push(...BELOW.filter((folder) => names.includes(folder)).flatMap((folder) => namesBelow(path, folder)));
  const model = modelOf(names);
  const foreign = foreignOf(names);
  if (foreign) throw refusal(foreign);
  if (!model) {
    throw badParam(
      'source',
      'is a folder without a model: it has no safetensors files, nor a checkpoint with its .tokenizer file; name a GGUF file itself',
    );
  }
  return model.map((i) => join(path, names[i]));
}

/** Blobs are sent as streams: a Blob that stands for a file (openAsBlob) crashes Node 20 when a worker reads it. */
function resolveSource(source) {
  const located = locate(source, (text) => (isWebUrl(text) ? { url: addressOf(text) } : { path: pathOf(text) }));
  if (located.kind === 'paths' && located.paths.length === 1)
    return { source: { ...located, paths: filesAt(located.paths[0]) } };
  if (located.kind !== 'blobs') return { source: located };
  const streams = located.blobs.map((blob, i) => ({
    stream: blob.stream(),
    size: blob.size,
    name: located.names?.[i],
  }));
  return { source: { kind: 'streams', streams }, transfer: streams.map(({ stream }) => stream) };
}

/** @param {boolean | string | object} store */
function storeOf(store) {
  if (typeof store === 'object') return store;
  return store ? new FolderStore(store === true ? undefined : store) : null;
}

export const platform = {
  startWorker,
  resolveUrl,
  resolveSource,
  images: () => import('./images-node.js'),
  vectors: () => import('./vectors.js'),
  late: () => import('./start-late.js'),
  storeOf,
  persist() {},
};

export function support() {
  allowRelaxed();
  return describeSupport({ isolated: true, threads: availableParallelism() });
}
