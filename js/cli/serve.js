// SPDX-License-Identifier: MIT
// `quern serve`: loads a model and answers requests of the OpenAI API and others with it, until it is told to end.

import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { interrupted } from './cli-signals.js';
import { downloadProgress } from './cli-models.js';
import { say, showStatus } from './cli-terminal.js';
import { wholeOf } from './cli-values.js';
import { badParam } from '../shared/errors.js';
import { openHeaders } from './inspect.js';
import { load } from '../node.js';
import { checkOptions } from '../page/options.js';
import { Guard, isLoopback } from './serve-guard.js';
import { HttpServer } from './serve-http.js';
import { Metrics } from './serve-metrics.js';
import { ServedModel } from './serve-model.js';

/** Milliseconds at the end for clients to read finished answers. */
const FLUSH_MS = 2000;

/** Default number of replies side by side. */
const PARALLEL = 8;

/**
 * Default and largest number of waiting requests, and further connections and requests for clients that are being
 * answered or refused.
 */
const QUEUE = 512;
const MOST_QUEUE = 8192;
const BESIDE = 512;

/** Default limits of images in requests: photos of phones, and the memory for decoding one of them. */
const IMAGES = { maxImagePixels: 2 ** 24, maxImages: 32, imageMemoryBytes: 640 * 2 ** 20 };

/** Leaves one core to HTTP if there are enough, because a compute thread that waits for a core delays all others. */
function threadsFor(cores) {
  return cores <= 2 ? undefined : Math.min(8, cores - 1);
}

function keysOf(given = [], { QUERN_API_KEY }) {
  const keys = [...given, ...(QUERN_API_KEY ? [QUERN_API_KEY] : [])];
  if (keys.some((key) => !/^[\x21-\x7e]+$/.test(key)))
    throw badParam('--api-key', 'must be visible ASCII letters without spaces');
  return keys;
}

function originsOf(given = []) {
  for (const origin of given) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    throw badParam('--cors-origin', "must be an origin such as 'https://example.org'");
  }
  return given;
}

/** Reads the flags, before anything is loaded. */
function readFlags(values, env) {
  const host = values.host ?? '127.0.0.1';
  const keys = keysOf(values['api-key'], env);
  if (!isLoopback(host) && keys.length === 0) {
    throw badParam('--host', `${host} lets other machines in, so it needs a key: set QUERN_API_KEY, or give --api-key`);
  }
  return {
    host,
    keys,
    port: wholeOf(values.port ?? '8080', '--port', [0, 65_535]),
    graceMs: 1000 * wholeOf(values.grace ?? '30', '--grace', [0, 3600]),
    queue: wholeOf(values.queue ?? String(QUEUE), '--queue', [0, MOST_QUEUE]),
    allowHosts: values['allow-host'], corsOrigins: originsOf(values['cors-origin']),
  };
}

/** The last part of a path or an address, without a query, fragment or revision. */
const fileOf = (model) => basename(model.replace(/[?#].*$/s, '').replace(/\/+$/, '')).replace(/(\.\w+)@.*$/, '$1');

function siteOf(model, options, values, served, metrics) {
  const file = fileOf(model);
  let template;
  return {
    served,
    metrics,
    file,
    name: values['model-name'] ?? file.replace(/\.gguf$/i, ''),
    onlyName: values['model-name'] !== undefined,
    version: createRequire(import.meta.url)('../package.json').version,
    slots: values.slots ?? false,
    sharesCaches: values['share-caches'] ?? false,
    template: () =>
      (template ??= openHeaders(model, { ...options, signal: undefined }).then((engine) => engine.chatTemplate())),
    started: Math.floor(Date.now() / 1000),
  };
}

const portTaken = (port) => (error) => {
  throw badParam('--port', `${port} cannot be listened on (${error.code})`);
};

/** Waits for an interrupt. */
const untilInterrupted = () => new Promise((resolve) => {
  if (interrupted.aborted) resolve();
  else interrupted.addEventListener('abort', resolve, { once: true });
});

export async function serve({ model, values, load: options }) {
  const { host, port, graceMs, queue, ...rules } = readFlags(values, process.env);
  const { threads = threadsFor(availableParallelism()), parallel = PARALLEL } = options;
  const said = Object.entries(options.visionOptions).filter(([, value]) => value !== undefined);
  const visionOptions = { ...IMAGES, ...Object.fromEntries(said) };
  const how = checkOptions('load', { ...options, threads, parallel, visionOptions });
  const metrics = new Metrics();
  const loadIt = () => load(model, { ...how, onProgress: downloadProgress() }).finally(() => showStatus(''));
  const served = new ServedModel({ load: loadIt, metrics, say, queue: { most: queue } });
  const site = siteOf(model, how, values, served, metrics);
  const http = new HttpServer(site, new Guard({ host, ...rules }), {
    connections: queue + BESIDE,
    underWay: queue + BESIDE,
  });
  const at = `http://${host.includes(':') ? `[${host}]` : host}:${await http.listen(port, host).catch(portTaken(port))}/v1`;
  try {
    await served.open();
    say(`${site.name} is served at ${at}`);
    await untilInterrupted();
    http.drain();
    await served.drain(graceMs);
    process.exitCode = 0;
  } finally {
    await http.close(FLUSH_MS);
    await served.close();
  }
}
