// SPDX-License-Identifier: MIT
// The model in use, and the load under way. A new model replaces the old one only when it is ready, so a failed or
// cancelled load changes nothing. If the memory does not hold both, the old model is released first and the load is
// tried once more.
import { load, models } from 'quern';
import { codeOf, explain } from '../shell/failure.js';
import { say } from '../shell/words.js';

/**
 * @typedef {{source: string | File, vision?: string | File, label: string, kind: 'demo' | 'url' | 'file'}} Choice
 * vision: the projector file
 */

/** Rejects when the signal aborts, which ends waiting for another promise. */
function aborted(signal) {
  return new Promise((_, reject) => {
    const fail = () => reject(signal.reason);
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/**
 * Fetches the demo model in one piece, as the service worker does at the same time, so that the browser downloads it
 * once. Returns its address instead if that fails: the library tries again, and has the words for it.
 * @returns {Promise<Blob | string>}
 */
async function fetchWhole(url, { signal, onProgress }) {
  try {
    const { ok, body, headers } = await fetch(url, { signal });
    if (!ok) return url;
    const reader = body.getReader();
    const parts = [];
    const total = headers.has('Content-Encoding') ? 0 : Number(headers.get('Content-Length'));
    let loaded = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      parts.push(next.value);
      loaded += next.value.length;
      onProgress({ phase: 'download', loaded, total });
    }
    return new Blob(parts);
  } catch (error) {
    if (signal.aborted) throw error;
    return url;
  }
}

export class Session {
  library = { load, models, explain };    // for what is fetched late, and must not bring a second copy
  #model = null;
  #choice = null;
  #job = null;      // promise of the load under way
  #loading = null;  // its {coming, optionsFor, abort}
  #events;

  /**
   * @param {object} events
   * @param {(progress: object) => void} events.onProgress
   * @param {() => void} events.onChange the model, or whether one is loading, has changed
   * @param {() => Promise<void>} events.beforeSwap ends what still uses the old model
   */
  constructor(events) {
    this.#events = events;
  }

  get model() { return this.#model; }
  get choice() { return this.#choice; }
  get isLoading() { return this.#loading !== null; }

  /**
   * Loads a model and makes it the current one. Cancels a load that is under way, since there is only one at a time.
   * @param {Promise<Choice>} coming
   * @param {(choice: Choice) => object} optionsFor options of the library's `load`
   * @param {Promise<void>} [prepared] must be done before the load
   */
  async open(coming, optionsFor, prepared) {
    this.cancel();
    const mine = { coming, optionsFor, abort: new AbortController() };
    const earlier = this.#job;
    this.#loading = mine;
    this.#job = this.#replace(Promise.all([earlier?.catch(() => {}), prepared]), mine);
    this.#events.onChange();
    try {
      await this.#job;
    } finally {
      if (this.#loading === mine) this.#loading = this.#job = null;
      this.#events.onChange();
    }
  }

  cancel() {
    this.#loading?.abort.abort(new DOMException('The load was cancelled.', 'AbortError'));
  }

  /** The current model, or the one being loaded when there is none yet. */
  async ready(signal) {
    if (!this.#model && this.#job) await Promise.race([this.#job, aborted(signal)]);
    signal.throwIfAborted();
    if (!this.#model) throw new Error(say`No model is loaded. Choose one at the top of the page.`);
    return this.#model;
  }

  /** Notes where the model in use is stored now. @param {{source: string, vision?: string}} place */
  keptAt(place) {
    this.#choice = { ...this.#choice, ...place, kind: 'url' };
    this.#events.onChange();
  }

  /** Releases a model, the current or an earlier one. A model whose engine has failed is of no further use. */
  async release(model) {
    if (this.#model === model) this.#model = null;
    await model?.dispose().catch(() => {});
  }

  /**
   * Deletes what models have stored of a conversation: through the current model, which may be about to store it, and
   * directly, since that model may have no store.
   */
  async forget(name) {
    await this.#model?.forget(name).catch(() => {});
    await models.forget(name);
  }

  async #replace(before, { coming, optionsFor, abort }) {
    const [choice] = await Promise.all([coming, before]);
    abort.signal.throwIfAborted();
    const request = {
      ...optionsFor(choice), signal: abort.signal,
      onProgress: (progress) => { if (!abort.signal.aborted) this.#events.onProgress(progress); },
    };
    const source = choice.kind === 'demo' ? await fetchWhole(choice.source, request) : choice.source;
    const model = await load(source, request).catch(async (error) => {
      if (!this.#model || !codeOf(error).startsWith('mem/')) throw error;
      await this.#retire();
      return load(source, request);
    });
    await this.#retire();
    this.#model = model;
    this.#choice = choice;
  }

  /**
   * Releases the old model, if there is one, and ends its replies. Replies that are requested from now on wait for the
   * new model.
   */
  async #retire() {
    const model = this.#model;
    if (!model) return;
    this.#model = null;
    await this.#events.beforeSwap();
    await this.release(model);
  }
}
