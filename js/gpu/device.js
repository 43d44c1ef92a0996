// SPDX-License-Identifier: MIT
// A WebGPU device for the engine: what src/compute/gpu/port.h asks for. Buffers and uploads happen at once; commands
// are encoded into one compute pass for each submit, and answer() resolves when what they were asked for lies in the
// engine's memory. Nothing here waits, so errors come later: settle() throws those of the load, and a lost device makes
// answer() reject.

import { QuernError } from '../shared/errors.js';
import { COMMAND, READ_WORDS } from './commands.js';
import { READ, USAGE } from './flags.js';
import { answersLate, nudge } from './nudge.js';
import { layoutsOf } from './panels.js';
import { Pipelines } from './pipelines.js';
import { faultsOf, runnerOf } from './trial.js';

const { MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE } = USAGE;

/** Bytes of uploads after which they are begun: implementations keep their copies until then. */
const UPLOAD_BYTES = 16 * 2 ** 20;
const UPLOADING_BYTES = 64 * 2 ** 20;

/** A device that has ended no work for so long hangs. Shaders may be compiled at their first use, and software is slow. */
const ANSWER_MS = 10_000;
const SLOW_ANSWER_MS = 300_000;

/** What a command takes in the uniform buffer: no device asks for a larger alignment. */
const COMMAND_BYTES = 4 * COMMAND.words;

export const unavailable = (why, cause) => new QuernError('env/gpu', why, { phase: 'start', cause });
const lost = (why) => new QuernError('gpu/lost', `The graphics device was lost (${why}).`, { phase: 'load' });

export class Device {
  #gpu;
  #adapter;
  #device;
  #copies;
  #memory = null;          // of the engine
  #how;                    // of shaders: whether the language has packed dot products; whether they are the fast ones
  #pipelines;
  #buffers = [null];       // by id
  #scratch;                // id of the buffer
  #table;                  // of the step
  #commands;
  #unused;                 // two buffers for what a shader does not use
  #uploaded = 0;           // bytes since the last submit
  #uploading = 0;          // bytes since the last wait
  #answers = [];           // what was asked for: promises of the last submits
  #pending = new Set();    // promises of the device that are not settled
  #readers = [];           // buffers for reading that are free
  #lived = 0;              // when work ended that nobody waits for: an image begins much of it before the first answer
  #failure = null;
  #isLost = false;
  #tell;
  #flushes = false;        // subnormal numbers become 0
  #isLate = false;         // whether it answers late unless it is nudged
  #isSlow;                 // whether it is software
  #mustBeExact;

  constructor(gpu, adapter, device, how) {
    const { copies = false, fast = false, isSlow = false, mustBeExact = false, tell = () => {} } = how;
    this.#gpu = gpu;
    this.#adapter = adapter;
    this.#device = device;
    this.#copies = copies;
    this.#tell = tell;
    this.#mustBeExact = mustBeExact;
    this.#isSlow = isSlow;
    const packed = Boolean(gpu.wgslLanguageFeatures?.has('packed_4x8_integer_dot_product'));
    this.#how = { packed, fast };
    this.#pipelines = new Pipelines(device, this.#how);
    this.#unused = [0, 1].map(() => this.#newBuffer(16, STORAGE));    // read and written ones must differ
    device.addEventListener?.('uncapturederror', ({ error }) => { this.#failure ??= error.message; });
    device.lost.then(({ message }) => {
      this.#failure ??= message || 'it is gone';
      this.#isLost = true;
    });
    device.pushErrorScope('out-of-memory');
    device.pushErrorScope('validation');
  }

  /** What the device is: for `info.gpu`. exact: whether no number differs from the processor's, however small. */
  get facts() {
    const { vendor = '', architecture = '', description = '' } = this.#adapter.info ?? {};
    return { vendor, architecture, description, exact: !this.#how.fast && !this.#flushes };
  }

  /** Refuses a device that computes other numbers than the processor, or with fast kernels wrong ones (trial.js). */
  async try(change) {
    const { fast } = this.#how;
    const run = runnerOf(this.#device, this.#pipelines);
    const faults = await faultsOf(this.#how, run, change).catch((error) => {
      throw unavailable('The graphics device does not answer.', error);
    });
    this.#flushes = faults.includes('subnormal');
    const wrong = faults.filter((name) => name !== 'subnormal');
    const why = (wrong.length || !this.#mustBeExact ? wrong : faults).join(', ');
    if (!why) {
      this.#isLate = await answersLate(this.#device);
      return;
    }
    this.close();
    throw unavailable(fast
      ? `The graphics device computes wrongly (${why}).`
      : `The graphics device computes other numbers than the processor (${why}); gpu: 'fast' allows that.`);
  }

  /** The engine's memory, in which addresses are. @param {WebAssembly.Memory} memory */
  set memory(memory) { this.#memory = memory; }

  /** Waits for the errors of what was made since the last call. */
  async settle() {
    const scopes = [this.#device.popErrorScope(), this.#device.popErrorScope()];
    const popped = Promise.all(scopes.map((scope) => this.#asked(scope)));
    const [invalid, short] = await popped.catch(() => []);    // of a device that is lost
    if (this.#isLost) throw lost(this.#failure);
    this.#device.pushErrorScope('out-of-memory');
    this.#device.pushErrorScope('validation');
    if (short)
      throw new QuernError('mem/load', 'The graphics device has not enough memory for this model.', { phase: 'load' });
    const why = invalid?.message ?? this.#failure;
    if (why) throw unavailable(`The graphics device refuses the engine's work (${why.slice(0, 300)}).`);
  }

  /** Waits for uploads, if so many are under way that their copies take much memory. */
  async uploaded() {
    if (this.#uploading < UPLOADING_BYTES) return;
    this.#uploading = 0;
    await this.#wait(this.#done()).catch(() => {});    // settle() throws if the device is lost
  }

  close() {
    this.#tell = () => {};
    this.#device.destroy();
  }

  /** Closes it, and waits for the end of what it was asked for. */
  async end() {
    this.close();
    await Promise.allSettled(this.#pending);
  }

  // --- src/compute/gpu/port.h ---

  layouts(words, n, pieces) {
    const { buffer } = this.#memory;
    this.#pipelines.layouts = layoutsOf(new Int32Array(buffer, words), n, new Int32Array(buffer, pieces));
  }

  /** Whether keys and values have other bits than the processor's. */
  fast() { return Number(this.#how.fast); }

  binding() {
    const { maxStorageBufferBindingSize, maxBufferSize } = this.#device.limits;
    return Math.floor((Math.min(maxStorageBufferBindingSize, maxBufferSize, 2 ** 32 - 4) - 4) / 4) * 4;
  }

  buffer(bytes) {
    const made = this.#newBuffer(bytes, STORAGE);
    return this.#buffers.push(made) - 1;
  }

  release(id) {
    this.#buffers[id]?.destroy();
    delete this.#buffers[id];
    this.#pipelines.forget();
  }

  write(id, offset, address, bytes) {
    this.#upload(this.#buffers[id], offset, address, bytes);
    this.#uploaded += bytes;
    this.#uploading += bytes;
    if (this.#uploaded < UPLOAD_BYTES) return;
    this.#device.queue.submit([]);
    this.#uploaded = 0;
  }

  /** WebGPU copies only from one buffer to another. */
  copy(id, to, from, bytes) {
    const encoder = this.#device.createCommandEncoder();
    const between = this.#newBuffer(bytes, 0);
    encoder.copyBufferToBuffer(this.#buffers[id], from, between, 0, bytes);
    encoder.copyBufferToBuffer(between, 0, this.#buffers[id], to, bytes);
    this.#device.queue.submit([encoder.finish()]);
    between.destroy();
  }

  submit(scratch, commands, n, table, words, reads, nReads) {
    const encoder = this.#device.createCommandEncoder();
    if (n) {
      this.#table = this.#large(this.#table, 4 * words, STORAGE);
      this.#upload(this.#table, 0, table, 4 * words);
      this.#commands = this.#large(this.#commands, n * COMMAND_BYTES, UNIFORM);
      this.#upload(this.#commands, 0, commands, n * COMMAND_BYTES);
      if (scratch !== this.#scratch) this.#pipelines.forget();
      this.#scratch = scratch;
      this.#compute(encoder, new Uint32Array(this.#memory.buffer, commands, n * COMMAND.words), n);
    }
    const asked = this.#ask(encoder, new Uint32Array(this.#memory.buffer, reads, nReads * READ_WORDS));
    this.#device.queue.submit([encoder.finish()]);
    if (asked.total) this.#answers.push(this.#asked(this.#receive(asked)));
    else this.#done().then(() => { this.#lived = performance.now(); }, () => {});
  }

  /** Remembers a promise of the device. It may be rejected before somebody waits for it. */
  #asked(promise) {
    const settled = () => this.#pending.delete(promise);
    this.#pending.add(promise);
    promise.then(settled, settled);
    return promise;
  }

  /**
   * Waits until everything that was asked for has come.
   * @returns {Promise<number>} milliseconds since it was asked for
   */
  async answer() {
    const began = performance.now();
    let timer;
    const late = new Promise((_, reject) => {
      const look = () => {
        const limit = this.#isSlow || this.#pipelines.isFresh ? SLOW_ANSWER_MS : ANSWER_MS;
        const left = Math.max(began, this.#lived) + limit - performance.now();
        if (left > 0) timer = setTimeout(look, left);
        else reject(new Error('the graphics device does not answer'));
      };
      look();
    });
    try {
      await this.#wait(Promise.race([Promise.all(this.#answers), late]));
      if (this.#failure) throw new Error(this.#failure);
    } catch (error) {
      this.#tell(`quern: the graphics device was lost: ${this.#failure ?? error.message}`);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#answers = [];
    }
    this.#pipelines.isFresh = false;
    return performance.now() - began;
  }

  #done() { return this.#asked(this.#device.queue.onSubmittedWorkDone()); }

  // --- buffers ---

  #newBuffer(bytes, usage) {
    return this.#device.createBuffer({ size: Math.max(16, bytes), usage: usage | COPY_SRC | COPY_DST });
  }

  /** The buffer, or a larger one in its place. */
  #large(buffer, bytes, usage) {
    if (buffer && buffer.size >= bytes) return buffer;
    buffer?.destroy();
    this.#pipelines.forget();
    return this.#newBuffer(2 * bytes, usage);
  }

  #upload(buffer, offset, address, bytes) {
    const view = new Uint8Array(this.#memory.buffer, address, bytes);
    this.#device.queue.writeBuffer(buffer, offset, this.#copies ? view.slice() : view);
  }

  // --- commands ---

  /** One pass, one bind group for each command. Nothing is made here for a command, since a token has hundreds. */
  #compute(encoder, words, n) {
    const pass = encoder.beginComputePass();
    const offset = [0];
    let pipeline;
    for (let i = 0, at = 0; i < n; i++, at += COMMAND.words) {
      const next = this.#pipelines.of(words, at);
      if (next !== pipeline) pass.setPipeline(pipeline = next);
      offset[0] = i * COMMAND_BYTES;
      pass.setBindGroup(0, this.#group(words[at + COMMAND.matrix], words[at + COMMAND.pages]), offset);
      const groups = at + COMMAND.groups;
      pass.dispatchWorkgroups(words[groups], words[groups + 1], words[groups + 2]);
    }
    pass.end();
  }

  /** Of buffers that a command names; an engine has fewer than 2^20. */
  #group(matrix, pages) {
    return this.#pipelines.bound(matrix * 2 ** 20 + pages, () => [
      { buffer: this.#buffers[this.#scratch] },
      { buffer: this.#table },
      { buffer: this.#commands, size: COMMAND_BYTES },
      { buffer: this.#buffers[matrix] ?? this.#unused[0] },
      { buffer: this.#buffers[pages] ?? this.#unused[1] },
    ]);
  }

  // --- what comes back ---

  #wait(work) {
    if (this.#isLate) nudge(this.#device, work);
    return work;
  }

  /** Copies what is asked for into a buffer that can be read. */
  #ask(encoder, words) {
    const parts = [];
    let total = 0;
    for (let i = 0; i < words.length; i += READ_WORDS) {
      const [buffer, offset, bytes, to] = words.subarray(i, i + READ_WORDS);
      parts.push({ buffer, offset, bytes, to, at: total });
      total += bytes;
    }
    if (!total) return { total };
    let reader = this.#readers.pop();
    if (!reader || reader.size < total) {
      reader?.destroy();
      reader = this.#device.createBuffer({ size: total, usage: MAP_READ | COPY_DST });
    }
    for (const { buffer, offset, bytes, at } of parts)
      encoder.copyBufferToBuffer(this.#buffers[buffer], offset, reader, at, bytes);
    return { reader, parts, total };
  }

  async #receive({ reader, parts, total }) {
    await reader.mapAsync(READ, 0, total);
    const bytes = new Uint8Array(reader.getMappedRange(0, total));
    for (const part of parts)
      new Uint8Array(this.#memory.buffer, part.to, part.bytes).set(bytes.subarray(part.at, part.at + part.bytes));
    reader.unmap();
    this.#readers.push(reader);
  }
}
