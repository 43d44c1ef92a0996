// SPDX-License-Identifier: MIT
// Feeds the files of a model to an engine, one after the other. An engine with 32-bit addresses reads the header and
// plans the memory. If the plan does not fit and 64-bit addresses would help, an engine with 64-bit addresses replaces
// it and gets the same bytes. So does the full build, if the text build refuses the first file, because of its format
// or a weight type. Each file's header tells where its contents end, and the code that fetches the file is told.

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
 * @param {import('../engine/engine.js').Engine} engine @param {NextFile} file
 */
export function begin(engine, { size, isProjector }) {
  if (isProjector) engine.vision(size);
  else engine.nextFile(size);
}

/** What an engine takes: a chunk, the beginning of a NextFile, or this end of the last file. */
const END = {};

function give(engine, part) {
  if (part instanceof Uint8Array) engine.feed(part);
  else if (part === END) engine.finish();
  else begin(engine, part);
}

/** Whether the text build has refused a file that the full build may read (src/engine/text_build.c). */
const isForFull = ({ detail }) => detail?.rule === 'build';

/** Feeds an engine. Keeps what it was given until the weights' header has ended, in case another must replace it. */
export class Feeder {
  #starter;
  #head = [];

  constructor(starter, instance) {
    this.#starter = starter;
    this.engine = starter.engine(instance);
  }

  warm() { return this.engine.warm(); }

  async feed(chunk) {
    await this.#give(this.#head ? chunk.slice() : chunk);
    await this.engine.uploaded();
  }

  /** @param {NextFile} file */
  nextFile(file) { return this.#give(file); }

  async finish() {
    await this.#give(END);
    await this.engine.settle();
  }

  async #give(part) {
    if (!this.#head) return give(this.engine, part);
    this.#head.push(part);
    let refusal = this.#try([part]);
    if (refusal && isForFull(refusal)) refusal = await this.#replace(this.#starter.full());
    if (!refusal && !this.engine.fileSize()) return undefined;
    if (!refusal) refusal = await this.engine.settle().catch((error) => error);
    if (refusal && this.#starter.hasDevice) refusal = await this.#replace(this.#starter.processor(refusal));
    const { largest, wanted } = this.engine.plan();
    if (largest < wanted && this.#starter.canGrow) refusal = await this.grow();
    if (refusal) throw refusal;
    this.#head = null;
    return undefined;
  }

  /** @returns {any} the refusal that another engine may not give; undefined if there is none */
  #try(parts) {
    try {
      for (const part of parts) give(this.engine, part);
      return undefined;
    } catch (error) {
      if (error.code !== 'mem/plan' && !isForFull(error) && !this.#starter.hasDevice) throw error;
      return error;
    }
  }

  /** Replaces the engine by one with 64-bit addresses. */
  grow() { return this.#replace(this.#starter.larger()); }

  async #replace(starting) {
    this.engine.close();
    this.engine = this.#starter.engine(await starting);
    return this.#try(this.#head);
  }
}

/** Reads only the headers of a model that is downloaded and not run, so that nothing but a model is stored. */
export class HeaderReader extends Feeder {
  #rest;

  constructor(starter, instance, rest) {
    super(starter, instance);
    this.#rest = rest;
  }

  warm() { return false; }

  /** Reads up to the end of a header, then lets messages in. */
  async feed(chunk) {
    if (!this.engine.fileSize()) await super.feed(chunk);
    return this.#rest();
  }

  nextFile({ isProjector }) { return super.nextFile({ size: 0, isProjector }); }
}

/**
 * Reads all files to the ends that their headers tell. A file that is longer is refused.
 * @param {Feeder} reader
 * @param {import('../store/local.js').Part[]} parts
 * @param {number} projectors number of projectors, which come last
 */
export async function readAll(reader, parts, projectors) {
  for (const [i, { size, name, chunks, endsAt }] of parts.entries()) {
    if (i > 0) await reader.nextFile({ size, isProjector: i >= parts.length - projectors });
    let end = 0;
    for await (const chunk of whileAwaiting(described(name, chunks), () => reader.warm())) {
      await reader.feed(chunk);
      if (end) continue;
      end = reader.engine.fileSize();
      if (end) endsAt?.(end);
    }
  }
  await reader.finish();
}
