// SPDX-License-Identifier: MIT
// Reports the progress of a load to the page, at most ten times a second. The latest state is always reported, so a
// stalled download shows how far it came.

const INTERVAL_MS = 100;

export class Progress {
  #emit;
  #state = { phase: 'load', loaded: 0, total: 0, cached: false };
  #bytes = 0;
  #last = -Infinity;
  #timer;

  /** @param {(event: object) => void} emit */
  constructor(emit) {
    this.#emit = emit;
  }

  /**
   * Begins a part of the load, as openParts tells it. If the same bytes come again, the count stays until they pass it.
   */
  begin({ phase, total, cached }) {
    this.#bytes = 0;
    Object.assign(this.#state, { phase, total, cached });
  }

  add(bytes, total) {
    this.#bytes += bytes;
    this.#state.loaded = Math.max(this.#state.loaded, this.#bytes);
    this.#state.total ||= total ?? 0;
    this.#timer ??= setTimeout(() => this.#send(), Math.max(0, this.#last + INTERVAL_MS - performance.now()));
  }

  #send(more) {
    this.#timer = undefined;
    this.#last = performance.now();
    const { loaded, total } = this.#state;
    this.#emit({ type: 'progress', ...this.#state, total: total && Math.max(loaded, total), ...more });
  }

  /**
   * Reports at once that the server will be asked again later.
   * @param {{ms: number | null, code: string, message: string}} waiting
   */
  wait(waiting) {
    this.stop();
    this.#send({ phase: 'download', waiting });
  }

  /** Ends the reports. */
  stop() {
    this.#timer = clearTimeout(this.#timer);
  }

  /** Sends the last report: everything is loaded. */
  end(phase = this.#state.phase) {
    this.stop();
    const { loaded, cached } = this.#state;
    this.#emit({ type: 'progress', phase, loaded, total: loaded, cached });
  }
}
