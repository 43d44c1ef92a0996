// SPDX-License-Identifier: MIT
// Progress of a load as the page hears of it: bytes from wherever, at most ten times a second; the latest state is
// never lost, so that a stalled download shows how far it came.

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

  /** What is loaded, as openParts tells it. When all of it comes a second time, the number waits for the bytes. */
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
   * Told at once: the server is asked again later.
   * @param {{ms: number | null, code: string, message: string}} waiting
   */
  wait(waiting) {
    this.stop();
    this.#send({ phase: 'download', waiting });
  }

  /** No more reports. */
  stop() {
    this.#timer = clearTimeout(this.#timer);
  }

  /** The last report: all is there. */
  end(phase = this.#state.phase) {
    this.stop();
    const { loaded, cached } = this.#state;
    this.#emit({ type: 'progress', phase, loaded, total: loaded, cached });
  }
}
