// SPDX-License-Identifier: MIT
// How the bytes of a model's files come into an engine, one file after the other. The engine with 32-bit addresses
// reads the header and plans; where that does not fit and 64-bit addresses would help, one with these takes its place
// and is given the same bytes. Each file's header tells where its contents end, which is passed on to whoever fetches
// it.

import { Engine } from '../engine/engine.js';
import { described } from './described.js';

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

/**
 * @typedef {{size: number, isProjector: boolean}} NextFile size: 0 where it is not known
 * @param {Engine} engine @param {NextFile} file
 */
export function begin(engine, { size, isProjector }) {
  if (isProjector) engine.vision(size);
  else engine.nextFile(size);
}

/**
 * Feeds an engine; what it was fed is kept until the weights' header has ended, in case that another engine must take
 * its place.
 */
export class Feeder {
  #starter;
  #head = [];          // chunks, and what began the files between them

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

  /** An engine with 64-bit addresses takes over. */
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

/** The same for a model that is only stored: its headers are read, so that nothing is kept that is no model. */
export class HeaderReader {
  #host;

  constructor(host, instance, files) {
    this.#host = host;
    this.engine = new Engine(instance, { threads: 1, inspect: true, files, memoryLimit: instance.maximum });
  }

  warm() { return false; }

  /** Then lets messages in. */
  feed(chunk) {
    if (!this.engine.fileSize()) this.engine.feed(chunk);
    return this.#host.rest();
  }

  nextFile({ isProjector }) { begin(this.engine, { size: 0, isProjector }); }
}

/**
 * Reads all files to their ends, which they tell: whatever goes on after that is refused.
 * @param {Feeder | HeaderReader} reader
 * @param {import('../store/local.js').Part[]} parts
 * @param {number} projectors how many of them come last
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
