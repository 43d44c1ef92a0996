// SPDX-License-Identifier: MIT
// From a source to a loaded engine, or to a stored model: which build, how many threads, what happens when something
// fails.

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
 * What an engine is started by, which differs between a browser's worker, Node's and the tests'.
 * @typedef {object} EngineHost
 * @property {(build: string, wasmUrl?: string) => Promise<WebAssembly.Module>} compile one of wasm-files.js
 * @property {boolean} [lends] whether the page can be given what is compiled
 * @property {Record<32 | 64, () => Promise<Function>>} glue the factory that Emscripten made, by the bits of addresses
 * @property {(store: any) => object | undefined} storeOf a store as the option names it, from here
 * @property {(source: any, options: OpenOptions) => Promise<Opened>} openParts a source as source.js locates it
 * @property {(message: object, transfer?: ArrayBuffer[]) => void} post to the page
 * @property {() => void | Promise<void>} rest lets waiting messages in
 * @property {string} obstacle why only one thread can be used; '' when more can
 * @property {number | undefined} hardwareThreads
 * @property {number | undefined} deviceMemory bytes, where so few that they are a limit
 */

/** What the engine with 32-bit addresses surely cannot hold. */
const TOO_LARGE = 2 ** 32;

/** How many of a source's last files are projectors. */
export const projectorsOf = ({ projectors = 0, beside }) => projectors + (beside ? 1 : 0);

/**
 * Whether a model may see: with a projector, or as a folder, some of whose files are known only to an engine with
 * vision. What cannot takes a smaller build.
 */
function maySee(source) {
  const { kind, folder, [kind]: files = [] } = source;
  const isGguf = (file) => /\.gguf([?#]|$)/i.test(file.name ?? file);
  return projectorsOf(source) > 0 || Boolean(folder) || (files.length > 1 && !files.every(isGguf));
}

/** What an engine with vision, or without where it might have some, is started with. */
function visionOf({ blind = false }, { visionOptions }) {
  const { maxPixels, maxVideoPixels, mediaCacheBytes: mediaCache } = visionOptions ?? {};
  return { blind, maxPixels, maxVideoPixels, mediaCache };
}

/**
 * Makes an instance of a compiled engine: of the page's, if it has one from an earlier load, which needs no fetching
 * and is as fast as it became there. A new one that is good is lent to it.
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

/** Starts engines for one set of options. */
class Starter {
  #host;
  #emit;
  #options;
  #threads;
  #sees;
  #projectors;   // how many of the files, the last ones
  #sizes;        // of the files, once they are known

  constructor(host, source, options, emit) {
    this.#host = host;
    this.#emit = emit;
    this.#options = { ...options, ...visionOf(source, options) };
    this.#sees = maySee(source);
    this.#projectors = projectorsOf(source);
    this.#threads = host.obstacle ? 1 : options.threads ?? defaultThreads(host.hardwareThreads);
  }

  /** Bytes that may be used, whatever can be addressed. */
  get #allowed() {
    return Math.min(this.#options.memoryLimit ?? Infinity, this.#host.deviceMemory ?? Infinity);
  }

  /** Whether 64-bit addresses are there and would help. A file of the engine that the caller chose stays. */
  get canGrow() {
    return !this.#options.address && !this.#options.wasmUrl && this.#allowed > TOO_LARGE && hasMemory64();
  }

  /** The wasm instance that comes first: 32-bit addresses, unless the caller wants others. */
  first() {
    return this.#instance(this.#options.address ?? 32);
  }

  /** The instance that will take the place of one with 32-bit addresses. */
  larger() {
    return this.#instance(64);
  }

  /** Tells how large the files are. @returns {boolean} whether they surely need 64-bit addresses, and can have them */
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
    if (instance.isBlind && this.#projectors)
      throw new QuernError('env/version', 'The engine at wasmUrl is one without vision.', { phase: 'start' });
    return { ...instance, scalar, address };
  }

  /** Weights become smaller by themselves only where larger addresses would not help. */
  #quantize({ address }) {
    const { quantize } = this.#options;
    return quantize === 'auto' && address === 32 && this.canGrow ? 'none' : quantize;
  }

  engine(instance) {
    const [fileSize, ...rest] = this.#sizes;
    const files = this.#sizes.length - this.#projectors;
    return new Engine(instance, {
      ...this.#options, blind: this.#options.blind || instance.isBlind,
      quantize: this.#quantize(instance), threads: instance.threads, scalar: instance.scalar, fileSize, files,
      // 0 would say that there is none
      restSize: sum(rest), visionSize: this.#projectors && Math.max(1, sum(this.#sizes.slice(files))),
      memoryLimit: Math.min(instance.maximum, this.#allowed), waiting: WAITING,
    });
  }

  /** Threads that do not start (a blocked script, a busy phone) cost speed, not the model. */
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
 * Opens a source while an instance starts. `memory()` gives the Staging of the engine that is fed, which is there
 * before bytes are asked for.
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

/** A file that changed on its server meanwhile is loaded again, once, from the start. */
async function onceMore(host, work) {
  try {
    return await work();
  } catch (error) {
    if (error.code !== 'net/changed') throw error;
    host.post({ type: NOTICE, text: `quern: ${error.message} It is loaded again.` });
    return work();
  }
}

/** What turns out to be no model while it is read is not kept. */
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
 * @param {object} source as source.js locates it
 * @param {(event: object) => void} emit of progress, and of what is compiled
 * @returns {Promise<Engine>}
 */
export async function startEngine(host, source, options, emit) {
  const progress = new Progress(emit);
  const engine = await onceMore(host, () => load(host, source, options, progress, emit));
  progress.end('load');
  return engine;
}

/** Only stores a model. An engine lends its memory and its hash, and reads the headers. @param {EngineHost} host */
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
