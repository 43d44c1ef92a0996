// SPDX-License-Identifier: MIT
// The engine worker's end of the line to the template worker: one rendering at a time, each with a deadline. A
// template that misses it is ended together with its worker; the next rendering starts a new one.

import { deadline } from '../shared/clock.js';
import { QuernError } from '../shared/errors.js';

const DEADLINE_MS = 2000;
const START_DEADLINE_MS = 10_000;

const broken = (problem) => new QuernError(
  'model/format', `The model's chat template cannot be used: ${problem.replace(/[\x00-\x1f\x7f]/g, ' ').slice(0, 120)}.`,
  { detail: { rule: 'template' } },
);

const notStarted = (why) => new QuernError('env/worker', `The worker for chat templates did not start (${why}).`);

/**
 * @typedef {object} TemplatePort a template worker as it is used here; each listener takes the place of the one before
 * @property {(request: object) => void} post
 * @property {(receive: (message: any) => void) => void} onMessage
 * @property {(fail: (error: any) => void) => void} onError
 * @property {() => void} terminate
 */

export class Renderer {
  #start;
  #port = null;
  #turn = Promise.resolve();

  /** @param {() => TemplatePort} start starts the template worker, which says `ready` first */
  constructor(start) {
    this.#start = start;
  }

  /** @returns {Promise<string>} */
  render(template, variables) {
    const mine = this.#turn.then(() => this.#renderNow(template, variables));
    this.#turn = mine.catch(() => {});
    return mine;
  }

  async #renderNow(template, variables) {
    if (!this.#port) await this.#open();
    this.#port.post({ template, variables });
    const { text, problem } = await this.#next(DEADLINE_MS, () => broken(`it ran for over ${DEADLINE_MS / 1000} seconds`), broken);
    if (problem !== undefined) throw broken(problem);
    return text;
  }

  async #open() {
    this.#port = this.#start();
    await this.#next(START_DEADLINE_MS, () => notStarted('no answer'), notStarted);
  }

  /** The worker's next message; silence or a failure ends the worker. */
  async #next(ms, late, failed) {
    const port = this.#port;
    let cancel;
    try {
      return await new Promise((resolve, reject) => {
        cancel = deadline(ms, () => reject(late()));
        port.onMessage(resolve);
        port.onError((error) => reject(failed(String(error?.message ?? 'it crashed'))));
      });
    } catch (error) {
      this.#port = null;
      port.terminate();
      throw error;
    } finally {
      cancel();
    }
  }
}
