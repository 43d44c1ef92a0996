// SPDX-License-Identifier: MIT
// Decides how often a failed request is repeated, and after what time: 1, 2, 4 … 30 s with jitter, or the time that the
// server asks for. Counting restarts when bytes arrive. Errors that waiting cannot cure are final.

import { QuernError } from '../shared/errors.js';
import { sleep } from '../shared/clock.js';

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
const LONGEST_TOLD_MS = 120_000;       // a server that asks for more is given up
const OFFLINE_MS = 5 * 60_000;
const POLL_MS = 1000;
const STALL_GAIN = 64 << 10;           // bytes that make up for a stall: one byte a minute is no progress

/** How often each failure is tolerated before bytes arrive again. */
const RETRIES = {
  'net/range': 1,
  'net/changed': 1,
  'net/truncated': 3,
  'net/stalled': 5,
  'net/unreachable': 6,
  'net/http': 4,
  final: 1,
};

/**
 * The same before the first answer: a wrong address does not get better, and a server that never answers is reported
 * within two minutes.
 */
const RETRIES_OPENING = { ...RETRIES, 'net/unreachable': 0, 'net/stalled': 2, final: 0 };

/**
 * Every status is final, except those that mean "later". During a download even a final one is repeated once, since a
 * signed address may have expired, and the next request renews it.
 */
const kindOf = ({ code, detail: { status } }) =>
  code === 'net/http' && status < 500 && ![408, 425, 429].includes(status) ? 'final' : code;

export class Patience {
  #clock;
  #signal;
  #onWait;
  #failures = new Map();   // kind -> number of failures since bytes arrived
  #opened;

  /**
   * @param {{clock: object, onWait: (waiting: {ms: number | null, code: string, message: string}) => void}} server
   * @param {boolean} opened whether the server has already answered correctly
   */
  constructor({ clock, onWait }, signal, opened) {
    this.#clock = clock;
    this.#onWait = onWait;
    this.#signal = signal;
    this.#opened = opened;
  }

  /** Records progress. */
  reset() {
    this.#failures.clear();
  }

  /**
   * Waits until the next attempt is due, or throws the error if there were too many.
   * @param {number} gained bytes since the last failure
   */
  async afterFailure(error, gained) {
    if (this.#signal.aborted || !(error instanceof QuernError)) throw error;
    if (!this.#clock.online()) return this.#untilOnline(error);
    if (error.code === 'net/stalled' ? gained >= STALL_GAIN : gained > 0) this.reset();
    const kind = kindOf(error);
    const times = (this.#failures.get(kind) ?? 0) + 1;
    this.#failures.set(kind, times);
    if (times > this.#retries(kind, error)) throw error;
    const ms = this.#delay(error);
    this.#tell(ms, error);
    await sleep(this.#clock, ms, this.#signal);
  }

  #tell(ms, { code, message }) {
    this.#onWait({ ms, code, message });
  }

  #retries(kind, { detail }) {
    if (detail.retryAfter > LONGEST_TOLD_MS) return 0;
    return (this.#opened ? RETRIES : RETRIES_OPENING)[kind] ?? 0;
  }

  #delay({ detail }) {
    const failures = [...this.#failures.values()].reduce((all, times) => all + times);
    const own = Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1)) * (0.5 + this.#clock.random() / 2);
    return detail.retryAfter ?? own;
  }

  async #untilOnline(error) {
    const offline = new QuernError('net/offline', 'This device is offline.', {
      phase: 'load',
      detail: { host: error.detail.host },
      cause: error,
    });
    if (this.#opened) this.#tell(null, offline);
    for (let waited = 0; this.#opened && waited < OFFLINE_MS; waited += POLL_MS) {
      await sleep(this.#clock, POLL_MS, this.#signal);
      if (this.#clock.online()) return;
    }
    throw offline;
  }
}
