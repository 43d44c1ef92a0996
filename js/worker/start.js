// SPDX-License-Identifier: MIT
// Makes a loaded engine, or a stored model, from a source: chooses the build and the number of threads, and handles
// failures.

import { Engine } from '../engine/engine.js';
import { badParam, isOf } from '../shared/errors.js';
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
 * @property {Record<32 | 64 | 'gpu', () => Promise<Function>>} glue the factory that Emscripten made, by the bits of
 *   addresses, or for the GPU's build
 * @property {() => Promise<typeof import('./gpu.js')>} gpu loads the code for graphics devices
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

/** Weights and cache lie on a graphics device, and nobody tells how much memory it has. */
const UNKNOWN = 2 ** 53;

/** The number of projectors, which are the last files of a source. */
export const projectorsOf = ({ projectors = 0, beside }) => projectors + (beside ? 1 : 0);

/** Whether the text build does not read a file of this name. */
const isOther = (name) => /\.(?:safetensors|json)(?:[?#]|$)|\b(?:IQ[123]_|NVFP4\b)/i.test(name);

/**
 * Whether a load needs the full build, as far as names tell: for vision, a profile, files that are not GGUF, IQ1 to
 * IQ3, or several files. Others begin with the text build, which is smaller (src/engine/text_build.c), and get the full
 * build if a header asks for it. `type` means a GGUF file of a folder.
 */
function needsFull(source, { profile = false }) {
  const { kind, folder, type, [kind]: files = [] } = source;
  const names = files.map((file) => file.name ?? file);
  return profile || projectorsOf(source) > 0 || Boolean(folder && !type) || names.length > 1 || names.some(isOther);
}

/** Options about vision. `noVision` disables it. */
function visionOf({ noVision = false }, { visionOptions }) {
  const { maxPixels, maxVideoPixels, mediaCacheBytes: mediaCache } = visionOptions ?? {};
  return { noVision, maxPixels, maxVideoPixels, mediaCache };
}

const onlyText = () => badParam('options.wasmUrl',
  'is a text build of the engine, which reads single GGUF files only, without IQ1 to IQ3, vision and profiles; name the file without -text');

/** Starts the engines of one load. */
class Starter {
  #host;
  #emit;
  #options;
  #threads;
  #full;         // whether the full build is used
  #address;      // bits of addresses
  #projectors;   // number of projectors, which are the last files
  #sizes;        // of all files, once measure() was called
  #gpu;          // the code for graphics devices, once one is wanted
  #device = null;   // the graphics device that computes; null: the processor

  /** @param {any} options of the load; inspect: headers only are read */
  constructor(host, source, options, emit) {
    this.#host = host;
    this.#emit = emit;
    this.#options = { ...options, ...visionOf(source, options) };
    this.#full = needsFull(source, options);
    this.#address = options.address ?? 32;
    this.#projectors = projectorsOf(source);
    this.#threads = host.obstacle ? 1 : options.threads ?? defaultThreads(host.hardwareThreads);
  }

  /** Bytes that may be used, apart from the limit of addresses. */
  get #allowed() {
    return Math.min(this.#options.memoryLimit ?? Infinity, this.#host.deviceMemory ?? Infinity);
  }

  /** Whether 64-bit addresses are available and would help. An engine file that the caller chose is not replaced. */
  get canGrow() {
    const { address, inspect, wasmUrl } = this.#options;
    const isFree = this.#address === 32 && !address && !inspect && !wasmUrl && !this.#device;
    return isFree && this.#allowed > TOO_LARGE && hasMemory64();
  }

  /** Makes the first instance: with 32-bit addresses, unless the caller wants 64, or on a graphics device. */
  async first() {
    const { backend = 'cpu', inspect } = this.#options;
    if (backend !== 'cpu' && !inspect) {
      this.#gpu = await this.#host.gpu().catch((error) => { if (backend !== 'auto') throw error; });
      this.#device = await this.#gpu?.openFor(this.#options, this.#host) ?? null;
    }
    return this.#instance();
  }

  get hasDevice() { return this.#device !== null; }

  /** Makes the instance that replaces one whose device does not run the model, with 'auto'. */
  processor(refusal) {
    this.#device = this.#gpu.without(refusal, this.#options, this.#host, this.#device);
    return this.#instance();
  }

  /** Makes the instance that replaces one with 32-bit addresses. */
  larger() {
    this.#address = 64;
    return this.#instance();
  }

  /** Makes the instance of the full build that replaces one of the text build. */
  async full() {
    if (this.#options.wasmUrl) throw onlyText();
    this.#full = true;
    return this.#instance();
  }

  /** Sets the sizes of the files. @returns {boolean} whether they surely need 64-bit addresses, and can have them */
  measure(parts) {
    this.#sizes = parts.map(({ size }) => size);
    return this.canGrow && sum(this.#sizes) > TOO_LARGE;
  }

  /**
   * Makes an instance of a compiled engine. A module that the page kept from an earlier load is used again: it needs no
   * fetching, and its code is as fast as it became there. The page gets a new module once it works.
   */
  async #instance() {
    const { engines = {}, profile, variant, wasmUrl } = this.#options;
    const address = this.#address;
    const { build, scalar } = chooseVariant(variant, address);
    const file = this.#device ? 'gpu' : `${build}${address === 64 ? '64' : ''}${this.#full ? '' : '-text'}`;
    const { [file]: { url, module: lent } = {} } = engines;
    const isLent = lent && url === wasmUrl;
    const compiling = isLent ? lent : this.#host.compile(file, wasmUrl);
    const [module, glue] = await Promise.all([compiling, this.#host.glue[this.#device ? 'gpu' : address]()]);
    const instance = await this.#instantiate(glue, module, address);
    if (this.#host.lends && !isLent) this.#emit({ type: ENGINE, build: file, url: wasmUrl, module });
    if (instance.isText && (profile || this.#projectors)) throw onlyText();
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
    if (this.#options.inspect)
      return new Engine(instance, { threads: 1, inspect: true, files, memoryLimit: instance.maximum });
    return new Engine(instance, {
      ...this.#options, device: this.#device, backend: 0,
      quantize: this.#quantize(instance), threads: instance.threads, scalar: instance.scalar,
      fileSize, files,
      // 0 would mean that there is no projector
      restSize: sum(rest), visionSize: this.#projectors && Math.max(1, sum(this.#sizes.slice(files))),
      memoryLimit: this.#device ? this.#options.memoryLimit ?? UNKNOWN : Math.min(instance.maximum, this.#allowed),
      waiting: WAITING,
    });
  }

  /** Makes an instance. If the threads do not start (a blocked script, a busy phone), one thread is used. */
  async #instantiate(glue, module, address) {
    const threads = this.#device ? 1 : this.#threads;
    try {
      return { ...await instantiate(glue, module, threads, address, this.#device), threads };
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
      if (isLarge) await feeder.grow();
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
  await onceMore(host, async () => {
    const starter = new Starter(host, source, { ...options, threads: 1, inspect: true }, emit);
    let reader;
    const memory = () => reader.engine.staging;
    const { opened, instance } = await open(host, source, { ...options, mustStore: true }, {
      starting: starter.first(),
      memory,
      progress,
    });
    starter.measure(opened.parts);
    reader = new HeaderReader(starter, instance, host.rest);
    await keptIfGood(opened, progress, () => readAll(reader, opened.parts, projectorsOf(source)));
  });
  progress.end();
}
