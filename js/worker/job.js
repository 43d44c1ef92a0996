// SPDX-License-Identifier: MIT
// A request of a page to its engine's worker, until it is answered or stopped.

/** A request of the page; its signal aborts when it is stopped. */
export class Job {
  #leave = new AbortController();
  signal = this.#leave.signal;
  onStop() {}

  constructor({ id, stopped = false }) {
    this.id = id;
    this.stopped = stopped;
    if (stopped) this.#leave.abort();
  }

  stop() {
    this.stopped = true;
    this.#leave.abort();
    this.onStop();
  }

  /** Runs `work`; runs `instead` if it fails because the job was stopped. */
  async unlessStopped(work, instead) {
    try {
      return await work();
    } catch (error) {
      if (this.stopped && error === this.signal.reason) return instead();
      throw error;
    }
  }
}
