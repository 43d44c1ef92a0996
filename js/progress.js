// SPDX-License-Identifier: MIT
// Progress of a load as the page hears of it: bytes from wherever, at most ten times a second; the latest state is never
// lost, so that a stalled download shows how far it came.

const INTERVAL_MS = 100;

export class Progress {
  #emit;
  #state = { phase: 'load', loaded: 0, total: 0, cached: false };
  #last = -Infinity;
  #timer;

  /** @param {(event: object) => void} emit */
  constructor(emit) {
    this.#emit = emit;
  }

  /** What is loaded, as openParts tells it. */
  begin({ phase, total, cached }) {
    Object.assign(this.#state, { phase, total, cached });
  }

  add(bytes, total) {
    this.#state.loaded += bytes;
    this.#state.total ||= total ?? 0;
    this.#timer ??= setTimeout(() => this.#send(), Math.max(0, this.#last + INTERVAL_MS - performance.now()));
  }

  #send() {
    this.#timer = undefined;
    this.#last = performance.now();
    const { loaded, total } = this.#state;
    this.#emit({ type: 'progress', ...this.#state, total: total && Math.max(loaded, total) });
  }

  /** No more reports. */
  stop() {
    clearTimeout(this.#timer);
  }

  /** The last report: all is there. */
  end(phase = this.#state.phase) {
    this.stop();
    const { loaded, cached } = this.#state;
    this.#emit({ type: 'progress', phase, loaded, total: loaded, cached });
  }
}
