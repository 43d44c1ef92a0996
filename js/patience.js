// SPDX-License-Identifier: MIT
// How often a failed request is repeated and how long it is waited before: 1, 2, 4 … 30 s with jitter, or what the server
// asks for; counted anew once bytes have come again. What cannot get better by waiting is not repeated.

import { QuernError } from './errors.js';
import { sleep } from './clock.js';

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
const LONGEST_TOLD_MS = 120_000;       // a server that asks for more is not waited for
const OFFLINE_MS = 5 * 60_000;
const POLL_MS = 1000;
const STALL_GAIN = 64 << 10;           // bytes that make up for a stall: one a minute is no progress

/** How often in a row each failure is put up with. */
const RETRIES = { 'net/range': 1, 'net/changed': 1, 'net/truncated': 3, 'net/stalled': 5, 'net/unreachable': 6, 'net/http': 4 };

/** Before the first answer: a wrong address does not get better. */
const RETRIES_OPENING = { ...RETRIES, 'net/unreachable': 0 };

/** Statuses that say "later". Others are final at first; later they may mean that a signed address ran out, which the next request renews. */
const isPassing = (status) => status >= 500 || status === 408 || status === 425 || status === 429;

export class Patience {
  #clock;
  #signal;
  #failures = 0;
  #opened;

  /** @param {boolean} opened whether the server has already answered well */
  constructor(clock, signal, opened) {
    this.#clock = clock;
    this.#signal = signal;
    this.#opened = opened;
  }

  /** Something worked. */
  reset() {
    this.#failures = 0;
  }

  /** Waits until the next attempt is due, or throws the error when it was one too many. @param {number} gained bytes since the last failure */
  async afterFailure(error, gained) {
    if (this.#signal.aborted || !(error instanceof QuernError)) throw error;
    if (!this.#clock.online()) return this.#untilOnline(error);
    if (error.code === 'net/stalled' ? gained >= STALL_GAIN : gained > 0) this.#failures = 0;
    this.#failures++;
    if (this.#failures > this.#retries(error)) throw error;
    await sleep(this.#clock, this.#delay(error), this.#signal);
  }

  #retries({ code, detail }) {
    if (detail.retryAfter > LONGEST_TOLD_MS) return 0;
    if (code === 'net/http' && !isPassing(detail.status)) return this.#opened ? 1 : 0;
    return (this.#opened ? RETRIES : RETRIES_OPENING)[code] ?? 0;
  }

  #delay({ detail }) {
    const own = Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#failures - 1)) * (0.5 + this.#clock.random() / 2);
    return detail.retryAfter ?? own;
  }

  async #untilOnline(error) {
    for (let waited = 0; this.#opened && waited < OFFLINE_MS; waited += POLL_MS) {
      await sleep(this.#clock, POLL_MS, this.#signal);
      if (this.#clock.online()) return;
    }
    throw new QuernError('net/offline', 'This device is offline.', { phase: 'load', detail: { host: error.detail.host }, cause: error });
  }
}
