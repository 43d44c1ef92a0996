// SPDX-License-Identifier: MIT
// Feeds the files of a model to an engine, one after the other. An engine with 32-bit addresses reads the header and
// plans the memory. If the plan does not fit and 64-bit addresses would help, an engine with 64-bit addresses replaces
// it and gets the same bytes. Each file's header tells where its contents end, and the code that fetches the file is
// told.

import { Engine } from '../engine/engine.js';
import { described } from './described.js';

/** Passes chunks on. Calls `work` once per awaited chunk, until it returns false. */
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

/**
 * @typedef {{size: number, isProjector: boolean}} NextFile size: 0 if unknown
 * @param {Engine} engine @param {NextFile} file
 */
export function begin(engine, { size, isProjector }) {
  if (isProjector) engine.vision(size);
  else engine.nextFile(size);
}

/**
 * Feeds an engine. Keeps the bytes until the weights' header has ended, in case another engine must replace this one.
 */
export class Feeder {
  #starter;
  #head = [];          // chunks, with a NextFile between those of different files

  constructor(starter, instance) {
    this.#starter = starter;
    this.engine = starter.engine(instance);
  }

  warm() { return this.engine.warm(); }

  async feed(chunk) {
    if (!this.#head) return this.engine.feed(chunk);
    this.#head.push(chunk.slice());
    const refusal = this.#try(chunk);
    if (!refusal && !this.engine.fileSize()) return undefined;
    const { largest, wanted } = this.engine.plan();
    if (largest < wanted && this.#starter.canGrow) return this.replace();
    if (refusal) throw refusal;
    this.#head = null;
    return undefined;
  }

  /** @returns {Error | undefined} the refusal if the model does not fit */
  #try(chunk) {
    try {
      this.engine.feed(chunk);
      return undefined;
    } catch (error) {
      if (error.code !== 'mem/plan') throw error;
      return error;
    }
  }

  /** Replaces the engine by one with 64-bit addresses. */
  async replace() {
    this.engine.close();
    this.engine = this.#starter.engine(await this.#starter.larger());
    const head = this.#head;
    this.#head = null;
    for (const part of head) {
      if (part instanceof Uint8Array) this.engine.feed(part);
      else begin(this.engine, part);
    }
  }

  /** @param {NextFile} file */
  nextFile(file) {
    this.#head?.push(file);
    begin(this.engine, file);
  }
}

/** Reads only the headers of a model that is downloaded and not run, so that nothing but a model is stored. */
export class HeaderReader {
  #host;

  constructor(host, instance, files) {
    this.#host = host;
    this.engine = new Engine(instance, { threads: 1, inspect: true, files, memoryLimit: instance.maximum });
  }

  warm() { return false; }

  /** Reads up to the end of a header, then lets messages in. */
  feed(chunk) {
    if (!this.engine.fileSize()) this.engine.feed(chunk);
    return this.#host.rest();
  }

  nextFile({ isProjector }) { begin(this.engine, { size: 0, isProjector }); }
}

/**
 * Reads all files to the ends that their headers tell. A file that is longer is refused.
 * @param {Feeder | HeaderReader} reader
 * @param {import('../store/local.js').Part[]} parts
 * @param {number} projectors number of projectors, which come last
 */
export async function readAll(reader, parts, projectors) {
  for (const [i, { size, name, chunks, endsAt }] of parts.entries()) {
    if (i > 0) reader.nextFile({ size, isProjector: i >= parts.length - projectors });
    let end = 0;
    for await (const chunk of whileAwaiting(described(name, chunks), () => reader.warm())) {
      await reader.feed(chunk);
      if (end) continue;
      end = reader.engine.fileSize();
      if (end) endsAt?.(end);
    }
  }
  reader.engine.finish();
}
