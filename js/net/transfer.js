// SPDX-License-Identifier: MIT
// One pass over a remote file: fetches the wanted chunks and yields them in order. Lanes (parallel requests) take runs
// of chunks from the front of a pool, write the bytes into chunk buffers, and put back whatever they did not finish,
// half-filled chunks included, so that a fault costs no byte twice. A lane begins a chunk only after its last one is
// stored (onChunk), so that a crash costs each lane one chunk. The number of buffers is limited: a lane waits for the
// consumer before it begins a chunk too far ahead, unless the consumer waits for that chunk. If the server does not
// support ranges, one lane reads everything and skips stored chunks.

import { QuernError } from '../shared/errors.js';
import { reasonOf } from '../shared/clock.js';
import { Pace } from './pace.js';
import { Patience } from './patience.js';
import { checkTrailing } from './trailing.js';

const SPAN = 16;         // chunks that a lane takes at once while there are other lanes
const ALONE = 4;         // chunks in memory while there are no other lanes

export class Transfer {
  #remote;
  #wanted;               // Runs
  #pool;                 // wanted chunks that no lane has taken
  #running = new Set();  // runs that lanes have taken
  #chunks = new Map();   // index -> {bytes, size, filled, kept}; kept: the stored bytes, null before
  #spare = [];           // buffers for reuse
  #head;                 // the chunk that the consumer waits for
  #lanes = 0;
  #pace;
  #abort = new AbortController();
  #waiters = [];

  constructor(remote, wanted, most) {
    this.#remote = remote;
    this.#wanted = wanted;
    this.#head = wanted.first;
    this.#pool = wanted.below(remote.count);
    this.#pace = new Pace(remote.clock, most, remote.chunkSize);
    this.#abort.signal.addEventListener('abort', () => this.#wake());
  }

  /** @returns {AsyncGenerator<{index: number, bytes: Uint8Array}>} */
  async* run(signal) {
    const onAbort = () => this.#abort.abort(reasonOf(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      this.#crew();
      for (let index = this.#head; ; index = this.#wanted.next(index + 1)) {
        const chunk = await this.#complete(index);
        if (!chunk) return;
        yield { index, bytes: chunk.kept };
        this.#release(index);
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#abort.abort();
      while (this.#lanes) await this.#change();
    }
  }

  // --- the consumer's side ---

  /** Returns the chunk once it is stored; null if the file ended before it. */
  async #complete(index) {
    this.#head = index;
    this.#wake();
    for (;;) {
      if (this.#abort.signal.aborted) throw reasonOf(this.#abort.signal);
      const chunk = this.#chunks.get(index);
      if (chunk?.kept) return chunk;
      if (index >= this.#remote.count) return null;
      await this.#change();
    }
  }

  #release(index) {
    const { bytes } = this.#chunks.get(index);
    if (bytes.length) this.#spare.push(bytes);   // else the consumer has transferred the buffer
    this.#chunks.delete(index);
    this.#head = index + 1;
    this.#wake();
  }

  #change = () => new Promise((resolve) => { this.#waiters.push(resolve); });

  #wake() {
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  // --- work ---

  #width = () => (this.#remote.ranges && this.#remote.end !== null ? this.#pace.lanes : 1);

  /** Starts lanes up to the current number. */
  #crew() {
    while (this.#lanes < this.#width() && !this.#abort.signal.aborted && (this.#pool.any || this.#share())) {
      this.#lanes++;
      this.#lane().catch((error) => this.#abort.abort(error)).finally(() => {
        this.#lanes--;
        this.#crew();
        this.#wake();
      });
    }
  }

  /** Takes the far part of the longest run from its lane, if it is long enough. */
  #share() {
    const run = [...this.#running].reduce(
      (longest, one) => (one.to - one.from > longest.to - longest.from ? one : longest),
      { from: 0, to: 0 },
    );
    const cut = run.from + SPAN;
    if (cut >= run.to) return false;
    this.#pool.put({ from: cut, to: run.to });
    run.to = cut;
    return true;
  }

  /**
   * Takes the next run, preferably one whose first chunk is half filled. If the server does not support ranges, takes
   * everything, since nothing can be skipped.
   */
  #take() {
    if (!this.#remote.ranges) return this.#pool.takeAll();
    return this.#pool.take(this.#width() > 1 ? SPAN : Infinity, (index) => this.#chunks.has(index));
  }

  async #lane() {
    const patience = new Patience(this.#remote, this.#abort.signal, true);
    while (this.#pool.any && this.#lanes <= this.#width()) {
      const run = this.#take();
      const tally = { gained: 0 };
      this.#running.add(run);
      const error = await this.#fill(run, tally).then(() => null, (reason) => reason);
      this.#running.delete(run);
      if (run.from < run.to) this.#pool.put(run);
      this.#wake();
      if (!error || run.from >= run.to) patience.reset();   // a failure after the last byte does not matter
      else if (this.#lanes > 1 && isRefusal(error)) this.#pace.settle(1);
      else await patience.afterFailure(error, tally.gained);
    }
  }

  /** Reads one answer into the chunks of a run, until the run is done, the answer ends, or an earlier run waits. */
  async #fill(run, tally) {
    const answer = await this.#remote.answer(this.#position(run), run.to, this.#abort.signal);
    let pos = answer.start;
    try {
      for (let piece; (piece = await answer.read());) {
        const more = await this.#write(run, piece, pos, tally);
        pos += piece.length;
        if (!more && pos !== answer.end) return;   // else one more read sees the end, which keeps the connection
      }
    } finally {
      answer.close();
    }
    if (answer.end === null) await this.#finish(run, pos);
    else if (pos < answer.end) throw this.#truncated(pos);
  }

  /** Copies a piece that begins at `pos` into its chunks; returns false if no more of the answer is needed. */
  async #write(run, piece, pos, tally) {
    if (this.#remote.size === null) checkTrailing(this.#remote.host, pos + piece.length, this.#remote.end);
    for (let used = 0; used < piece.length && run.from < run.to;) {
      if (this.#isThere(run.from)) run.from++;
      else if (!(await this.#room(run.from))) return false;
      else used = this.#copy(run, piece, used, pos, tally);
      await this.#keep(run);
    }
    return run.from < run.to;
  }

  /** Waits until the run's first chunk is stored, if it is complete. */
  async #keep(run) {
    const chunk = this.#chunks.get(run.from);
    if (!chunk || chunk.kept || chunk.filled < chunk.size) return;
    const [start, whole] = [this.#remote.clock.now(), chunk.bytes.subarray(0, chunk.size)];
    await this.#remote.onChunk(run.from, whole).catch((error) => this.#abort.abort(error));
    this.#pace.waited(this.#remote.clock.now() - start);
    chunk.kept = whole;
    run.from++;
    this.#wake();
  }

  /**
   * Copies the bytes of a piece that belong to the run's first chunk, skipping those before it.
   * @returns {number} where in the piece to continue
   */
  #copy(run, piece, used, pos, tally) {
    const from = Math.max(used, this.#position(run) - pos);
    if (from >= piece.length) return piece.length;
    const chunk = this.#chunk(run.from);
    const part = piece.subarray(from, from + chunk.size - chunk.filled);
    chunk.bytes.set(part, chunk.filled);
    chunk.filled += part.length;
    tally.gained += part.length;
    this.#remote.onBytes(part.length);
    if (this.#pace.count(part.length)) this.#crew();
    return from + part.length;
  }

  /**
   * Waits until there is room for a chunk; false if the lane must go back to an earlier chunk that the consumer waits
   * for.
   */
  async #room(index) {
    const start = this.#remote.clock.now();
    while (!this.#chunks.has(index) && index !== this.#head && this.#chunks.size >= this.#most()) {
      if (this.#abort.signal.aborted) throw reasonOf(this.#abort.signal);
      if (this.#pool.first < index) return false;
      await this.#change();
    }
    this.#pace.waited(this.#remote.clock.now() - start);
    return true;
  }

  /**
   * Most chunks in memory. With several lanes, each has a run. While the end of the contents is unknown, no chunk is
   * begun ahead.
   */
  #most() {
    if (this.#remote.end === null) return 1;
    return this.#pace.lanes === 1 ? ALONE : this.#pace.lanes * SPAN + 1;
  }

  /** Whether a chunk need not be fetched: it is stored, has been yielded, or is not wanted. */
  #isThere(index) {
    const chunk = this.#chunks.get(index);
    if (chunk) return chunk.kept;
    return index < this.#head || (!this.#remote.ranges && !this.#wanted.has(index));
  }

  #chunk(index) {
    const { chunkSize, size } = this.#remote;
    if (!this.#chunks.has(index)) {
      const bytes = this.#spare.pop() ?? new Uint8Array(chunkSize);
      this.#chunks.set(index, {
        bytes,
        size: Math.min(chunkSize, (size ?? Infinity) - index * chunkSize),
        filled: 0,
        kept: null,
      });
    }
    return this.#chunks.get(index);
  }

  /** Offset of the next byte that a run needs. */
  #position({ from }) {
    return from * this.#remote.chunkSize + (this.#chunks.get(from)?.filled ?? 0);
  }

  /** Handles the end of a file whose size the server did not tell. */
  async #finish(run, size) {
    if (size < this.#position(run)) throw this.#truncated(size);
    this.#remote.size = size;
    const last = this.#chunks.get(run.from);
    if (last) last.size = last.filled;
    await this.#keep(run);
    run.to = run.from;
    this.#wake();
  }

  #truncated(received) {
    const { host, size } = this.#remote;
    return new QuernError(
      'net/truncated',
      `The download from ${host} ended early, after ${received} of ${size ?? 'an unknown number of'} bytes.`,
      {
        phase: 'load',
        detail: { host, received, total: size ?? 0 },
      },
    );
  }
}

/** Whether an error may mean that the server does not allow several requests at a time. */
const isRefusal = ({ code }) => code === 'net/http' || code === 'net/range' || code === 'net/unreachable';
