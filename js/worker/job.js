// SPDX-License-Identifier: MIT
// One of the things that a page has asked its engine's worker for, until it is answered or nobody wants it any more.

/** What a page asks for; its signal aborts when it is stopped. */
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

  /** Does something, or something else where it fails as the job is stopped. */
  async unlessStopped(work, instead) {
    try {
      return await work();
    } catch (error) {
      if (this.stopped && error === this.signal.reason) return instead();
      throw error;
    }
  }
}
