// SPDX-License-Identifier: MIT
// From a source to a loaded engine: which build, how many threads, the bytes of one file after the other. The engine with
// 32-bit addresses reads the header and plans; where that does not fit and 64-bit addresses would help, one with these takes
// its place and is given the same bytes. `host` is what differs between a browser's worker and Node's.

import { Engine } from './engine.js';
import { instantiate } from './instance.js';
import { NOTICE } from './protocol.js';
import { chooseVariant, defaultThreads, hasMemory64 } from './variant.js';

const PROGRESS_INTERVAL_MS = 100;

/** What the engine with 32-bit addresses surely cannot hold. */
const TOO_LARGE = 2 ** 32;

/** Passes reports on at most ten times a second; the latest one is never lost, so that a stalled download shows how far it came. */
class RateLimited {
  #report;
  #last = -Infinity;
  #latest;
  #timer;

  constructor(report) {
    this.#report = report;
  }

  report(...args) {
    this.#latest = args;
    this.#timer ??= setTimeout(() => this.#send(), Math.max(0, this.#last + PROGRESS_INTERVAL_MS - performance.now()));
  }

  #send() {
    this.#timer = undefined;
    this.#last = performance.now();
    this.#report(...this.#latest);
  }

  end() {
    clearTimeout(this.#timer);
  }
}

/** The same chunks; while one is awaited, `work` is done, a little each time, until it says that nothing is left. */
async function* whileAwaiting(chunks, work) {
  const iterator = chunks[Symbol.asyncIterator]();
  let more = true;
  try {
    for (;;) {
      const next = iterator.next();
      more &&= work();
      const { done, value } = await next;
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return();
  }
}

/** Starts engines for one set of options and files. */
class Starter {
  #host;
  #options;
  #sizes;
  #threads;

  constructor(host, options, sizes) {
    this.#host = host;
    this.#options = options;
    this.#sizes = sizes;
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

  /** @returns {32 | 64} */
  get address() {
    const total = this.#sizes.reduce((sum, size) => sum + size, 0);
    return this.#options.address ?? (total > TOO_LARGE && this.canGrow ? 64 : 32);
  }

  /** @param {32 | 64} address @returns {Promise<Engine>} */
  async start(address) {
    const { build, scalar } = chooseVariant(this.#options.variant, address);
    const module = await this.#host.compile(address === 64 ? `${build}64` : build, this.#options.wasmUrl);
    const instance = await this.#instantiate(module, address);
    const [fileSize, ...rest] = this.#sizes;
    return new Engine(instance, {
      ...this.#options, threads: instance.threads, scalar, fileSize, files: this.#sizes.length,
      restSize: rest.reduce((sum, size) => sum + size, 0), memorySize: Math.min(instance.maximum, this.#allowed),
    });
  }

  /** Threads that do not start (a blocked script, a busy phone) cost speed, not the model. */
  async #instantiate(module, address) {
    const glue = this.#host.glue[address];
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

/** Feeds an engine; what it was fed is kept until the weights' header has ended, in case that another engine must take its place. */
class Feeder {
  #starter;
  #head = [];          // chunks, and the sizes of files that begin between them

  constructor(starter, engine) {
    this.#starter = starter;
    this.engine = engine;
  }

  async feed(chunk) {
    if (!this.#head) return this.engine.feed(chunk);
    this.#head.push(chunk.slice());
    const refusal = this.#try(chunk);
    if (!refusal && !this.engine.fileSize()) return undefined;
    const head = this.#head;
    this.#head = null;
    const { largest, wanted } = this.engine.plan();
    if (largest >= wanted || !this.#starter.canGrow) return refusal && Promise.reject(refusal);
    this.engine.close();
    this.engine = await this.#starter.start(64);
    for (const part of head) {
      if (typeof part === 'number') this.engine.nextFile(part);
      else this.engine.feed(part);
    }
    return undefined;
  }

  /** @param {number} size 0 where it is not known */
  nextFile(size) {
    this.#head?.push(size);
    this.engine.nextFile(size);
  }

  /** @returns {Error | undefined} the refusal of what does not fit */
  #try(chunk) {
    try {
      this.engine.feed(chunk);
      return undefined;
    } catch (error) {
      if (error.code !== 'mem/plan') throw error;
      return error;
    }
  }
}

async function readAll(feeder, { phase, total, cached = false, parts }, emit) {
  const report = (loaded, size) => emit({ type: 'progress', phase, loaded, total: size, cached });
  const progress = new RateLimited(report);
  let loaded = 0;
  try {
    for (const [i, { size, chunks }] of parts.entries()) {
      if (i > 0) feeder.nextFile(size);
      for await (const chunk of whileAwaiting(chunks, () => feeder.engine.warm())) {
        await feeder.feed(chunk);
        loaded += chunk.length;
        progress.report(loaded, total || feeder.engine.fileSize());
      }
    }
  } finally {
    progress.end();
  }
  emit({ type: 'progress', phase: 'load', loaded, total: loaded, cached });
}

/**
 * @param {object} host see service.js
 * @param {{phase: string, cached?: boolean, total: number, parts: {size: number, chunks: AsyncIterable<Uint8Array>}[]}} opened
 * @returns {Promise<Engine>}
 */
export async function startEngine(host, opened, options, emit) {
  const starter = new Starter(host, options, opened.parts.map(({ size }) => size));
  const feeder = new Feeder(starter, await starter.start(starter.address));
  await readAll(feeder, opened, emit);
  feeder.engine.finish();
  return feeder.engine;
}
