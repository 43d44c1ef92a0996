// SPDX-License-Identifier: MIT
// Makes a loaded engine, or a stored model, from a source: chooses the build and the number of threads, and handles
// failures.

import { Engine } from '../engine/engine.js';
import { QuernError, isOf } from '../shared/errors.js';
import { instantiate } from '../engine/instance.js';
import { Feeder, HeaderReader, readAll } from './intake.js';
import { Progress } from './progress.js';
import { ENGINE, NOTICE } from '../shared/protocol.js';
import { sum } from '../shared/sum.js';
import { WAITING } from '../shared/waiting.js';
import { chooseVariant, defaultThreads, hasMemory64 } from '../shared/variant.js';

/**
 * @import { OpenOptions, Opened } from '../store/local.js'
 *
 * What starting an engine needs; it differs between a browser's worker, Node's and the tests'.
 * @typedef {object} EngineHost
 * @property {(build: string, wasmUrl?: string) => Promise<WebAssembly.Module>} compile a build of wasm-files.js
 * @property {boolean} [lends] whether compiled modules can be passed to the page
 * @property {Record<32 | 64, () => Promise<Function>>} glue the factory that Emscripten made, by the bits of addresses
 * @property {(store: any) => object | undefined} storeOf the store that the option names
 * @property {(source: any, options: OpenOptions) => Promise<Opened>} openParts opens a source as source.js describes it
 * @property {(message: object, transfer?: ArrayBuffer[]) => void} post to the page
 * @property {() => void | Promise<void>} rest lets waiting messages in
 * @property {string} obstacle why only one thread can be used; '' if there is no reason
 * @property {number | undefined} hardwareThreads
 * @property {number | undefined} deviceMemory bytes, if so few that they are a limit
 */

/** More bytes than an engine with 32-bit addresses can hold. */
const TOO_LARGE = 2 ** 32;

/** The number of projectors, which are the last files of a source. */
export const projectorsOf = ({ projectors = 0, beside }) => projectors + (beside ? 1 : 0);

/**
 * Whether a model may have vision: it has a projector, or it is a folder, since some of a folder's files are known only
 * to an engine with vision. Other models use a smaller build.
 */
function maySee(source) {
  const { kind, folder, [kind]: files = [] } = source;
  const isGguf = (file) => /\.gguf([?#]|$)/i.test(file.name ?? file);
  return projectorsOf(source) > 0 || Boolean(folder) || (files.length > 1 && !files.every(isGguf));
}

/** Options about vision. `noVision` disables it. */
function visionOf({ noVision = false }, { visionOptions }) {
  const { maxPixels, maxVideoPixels, mediaCacheBytes: mediaCache } = visionOptions ?? {};
  return { noVision, maxPixels, maxVideoPixels, mediaCache };
}

/**
 * Makes an instance of a compiled engine. A module that the page kept from an earlier load is used again: it needs no
 * fetching, and its code is as fast as it became there. The page gets a new module once it works.
 * @template T
 * @param {EngineHost} host
 * @param {{build: string, address: 32 | 64, sees: boolean}} which
 * @param {{engines?: Record<string, {url?: string, module: WebAssembly.Module}>, wasmUrl?: string}} options
 * @param {(event: object) => void} emit
 * @param {(glue: Function, module: WebAssembly.Module) => Promise<T>} use
 * @returns {Promise<T>}
 */
async function withEngine(host, { build, address, sees }, { engines = {}, wasmUrl }, emit, use) {
  const file = `${build}${address === 64 ? '64' : ''}${sees ? '' : '-text'}`;
  const { [file]: { url, module: lent } = {} } = engines;
  const isLent = lent && url === wasmUrl;
  const [module, glue] = await Promise.all([isLent ? lent : host.compile(file, wasmUrl), host.glue[address]()]);
  const instance = await use(glue, module);
  if (host.lends && !isLent) emit({ type: ENGINE, build: file, url: wasmUrl, module });
  return instance;
}

/** Starts the engines of one load. */
class Starter {
  #host;
  #emit;
  #options;
  #threads;
  #sees;
  #projectors;   // number of projectors, which are the last files
  #sizes;        // of all files, once measure() was called

  constructor(host, source, options, emit) {
    this.#host = host;
    this.#emit = emit;
    this.#options = { ...options, ...visionOf(source, options) };
    this.#sees = maySee(source);
    this.#projectors = projectorsOf(source);
    this.#threads = host.obstacle ? 1 : options.threads ?? defaultThreads(host.hardwareThreads);
  }

  /** Bytes that may be used, apart from the limit of addresses. */
  get #allowed() {
    return Math.min(this.#options.memoryLimit ?? Infinity, this.#host.deviceMemory ?? Infinity);
  }

  /** Whether 64-bit addresses are available and would help. An engine file that the caller chose is not replaced. */
  get canGrow() {
    return !this.#options.address && !this.#options.wasmUrl && this.#allowed > TOO_LARGE && hasMemory64();
  }

  /** Makes the first instance: with 32-bit addresses, unless the caller wants 64. */
  first() {
    return this.#instance(this.#options.address ?? 32);
  }

  /** Makes the instance that replaces one with 32-bit addresses. */
  larger() {
    return this.#instance(64);
  }

  /** Sets the sizes of the files. @returns {boolean} whether they surely need 64-bit addresses, and can have them */
  measure(parts) {
    this.#sizes = parts.map(({ size }) => size);
    return this.canGrow && sum(this.#sizes) > TOO_LARGE;
  }

  /** @param {32 | 64} address of a new instance */
  async #instance(address) {
    const { build, scalar } = chooseVariant(this.#options.variant, address);
    const instance = await withEngine(
      this.#host,
      { build, address, sees: this.#sees },
      this.#options,
      this.#emit,
      (glue, module) => this.#instantiate(glue, module, address),
    );
    if (instance.hasNoVision && this.#projectors)
      throw new QuernError('env/version', 'The engine at wasmUrl has no vision.', { phase: 'start' });
    return { ...instance, scalar, address };
  }

  /** With 'auto', weights are quantized only if larger addresses would not help. */
  #quantize({ address }) {
    const { quantize } = this.#options;
    return quantize === 'auto' && address === 32 && this.canGrow ? 'none' : quantize;
  }

  engine(instance) {
    const [fileSize, ...rest] = this.#sizes;
    const files = this.#sizes.length - this.#projectors;
    return new Engine(instance, {
      ...this.#options, noVision: this.#options.noVision || instance.hasNoVision,
      quantize: this.#quantize(instance), threads: instance.threads, scalar: instance.scalar, fileSize, files,
      // 0 would mean that there is no projector
      restSize: sum(rest), visionSize: this.#projectors && Math.max(1, sum(this.#sizes.slice(files))),
      memoryLimit: Math.min(instance.maximum, this.#allowed), waiting: WAITING,
    });
  }

  /** Makes an instance. If the threads do not start (a blocked script, a busy phone), one thread is used. */
  async #instantiate(glue, module, address) {
    const threads = this.#threads;
    try {
      return { ...await instantiate(glue, module, threads, address), threads };
    } catch (error) {
      if (error.code !== 'env/worker' || threads === 1) throw error;
      this.#host.post({ type: NOTICE, text: 'quern: the engine\'s threads did not start, so one thread is used.' });
      return { ...await instantiate(glue, module, 1, address), threads: 1 };
    }
  }
}

/**
 * Opens a source while an instance starts. `memory()` returns the Staging of the engine, which exists before bytes are
 * read.
 * @param {EngineHost} host
 */
async function open(host, source, options, { starting, memory, progress, onBytes = (n) => progress.add(n) }) {
  const notice = ({ code, message }) => host.post({ type: NOTICE, text: `quern: ${code}: ${message}` });
  const onWait = (waiting) => progress.wait(waiting);
  const opening = host.openParts(source, { ...options, memory, notice, onBytes, onWait, saysEnds: true });
  const [opened, instance] = await Promise.all([opening, starting]);
  progress.begin(opened);
  return { opened, instance };
}

/** Loads a file again, once, if it changed on its server during the load. */
async function onceMore(host, work) {
  try {
    return await work();
  } catch (error) {
    if (error.code !== 'net/changed') throw error;
    host.post({ type: NOTICE, text: `quern: ${error.message} It is loaded again.` });
    return work();
  }
}

/** Discards a stored file that turns out to be no model while it is read. */
async function keptIfGood(opened, progress, read) {
  try {
    return await read();
  } catch (error) {
    if (isOf('model', error)) await opened.discard();
    throw error;
  } finally {
    progress.stop();
  }
}

async function load(host, source, options, progress, emit) {
  const starter = new Starter(host, source, options, emit);
  let feeder;
  const onBytes = (n) => progress.add(n, feeder?.engine.fileSize());
  const memory = () => feeder.engine.staging;
  const { opened, instance } = await open(host, source, options, {
    starting: starter.first(),
    memory,
    progress,
    onBytes,
  });
  try {
    await keptIfGood(opened, progress, async () => {
      const isLarge = starter.measure(opened.parts);
      feeder = new Feeder(starter, instance);
      if (isLarge) await feeder.replace();
      await readAll(feeder, opened.parts, projectorsOf(source));
    });
  } catch (error) {
    if (error.code === 'net/changed') feeder.engine.close();
    throw error;
  }
  return feeder.engine;
}

/**
 * @param {EngineHost} host
 * @param {object} source as source.js describes it
 * @param {(event: object) => void} emit gets progress, and new modules
 * @returns {Promise<Engine>}
 */
export async function startEngine(host, source, options, emit) {
  const progress = new Progress(emit);
  const engine = await onceMore(host, () => load(host, source, options, progress, emit));
  progress.end('load');
  return engine;
}

/**
 * Stores a model without loading it. An engine lends its memory and its hash, and reads the headers.
 * @param {EngineHost} host
 */
export async function storeModel(host, source, options, emit) {
  const progress = new Progress(emit);
  const starting = withEngine(host, { ...chooseVariant(), address: 32, sees: maySee(source) }, options, emit,
    (glue, module) => instantiate(glue, module, 1, 32));
  await onceMore(host, async () => {
    let reader;
    const memory = () => reader.engine.staging;
    const { opened, instance } = await open(
      host,
      source,
      { ...options, mustStore: true },
      { starting, memory, progress },
    );
    const projectors = projectorsOf(source);
    reader = new HeaderReader(host, instance, opened.parts.length - projectors);
    await keptIfGood(opened, progress, () => readAll(reader, opened.parts, projectors));
  });
  progress.end();
}
