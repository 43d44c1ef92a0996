// SPDX-License-Identifier: MIT
// One engine in one tab of a Chromium of its own, so that memory can be told apart. The module in the page (page/*.js) exports
// what it can be asked for.
import { launchChromium, launchProfile } from '../web/browser.mjs';
import { processMemory } from './machine.mjs';

/** Waiting for a slow engine on a slow machine is no fault. */
export const PATIENCE_MS = 1_200_000;

/** Chromium's processes that hold a tab's data: Blobs are in the browser's own. */
const DATA_PROCESSES = ['renderer', 'browser'];

export class Tab {
  #browser;
  #cdp;
  #page;
  #empty;    // memory of the processes before anything was loaded: pid -> bytes

  /**
   * @param {string} base of a server over the project @param {string} module that drives the engine, as a path of the project
   * @param {string} [profile] a folder for what pages store; without it nothing outlives the tab
   */
  static async open(base, module, profile) {
    const tab = new Tab();
    const context = profile && await launchProfile(profile);
    tab.#browser = context ? context.browser() : await launchChromium([], true);
    tab.#cdp = await tab.#browser.newBrowserCDPSession();
    tab.#page = await (context ?? tab.#browser).newPage();
    tab.#page.setDefaultTimeout(PATIENCE_MS);
    await tab.#page.goto(`${base}tests/bench/page/page.html`);
    await tab.#page.evaluate(async (url) => { globalThis.engine = await import(url); }, base + module);
    tab.#empty = new Map((await tab.#processes()).map(({ id }) => [id, processMemory(id).now]));
    return tab;
  }

  get version() {
    return `Chromium ${this.#browser.version()}`;
  }

  get browser() {
    return this.#browser;
  }

  get page() {
    return this.#page;
  }

  async #processes() {
    const { processInfo } = await this.#cdp.send('SystemInfo.getProcessInfo');
    return processInfo.filter(({ type }) => DATA_PROCESSES.includes(type));
  }

  /** Calls what the page's module exports. */
  call(name, options = {}) {
    return this.#page.evaluate(([method, argument]) => globalThis.engine[method](argument), [name, options]);
  }

  /**
   * When the last byte of a file had come, by the browser's own record of the request.
   * @returns {Promise<number>} milliseconds since 1970, as `performance.timeOrigin + performance.now()` gives them
   */
  async lastByteAt(url) {
    const find = (name) => {
      const entry = performance.getEntriesByName(name).at(-1);
      return entry && performance.timeOrigin + entry.responseEnd;
    };
    // Only the worker that fetches is asked: the engines' threads are asleep inside a call and would not answer.
    const fetching = this.#page.workers().filter((worker) => worker.url().endsWith('/dist/worker.js'));
    for (const place of [this.#page, ...fetching]) {
      const time = await place.evaluate(find, url);
      if (time) return time;
    }
    throw new Error(`the browser has no record of ${url}`);
  }

  /**
   * Bytes by which the processes grew over the empty tab: at their peaks, and now.
   * @returns {Promise<{peak: number, now: number}>}
   */
  async growth() {
    const sum = { peak: 0, now: 0 };
    for (const { id } of await this.#processes()) {
      const { peak, now } = processMemory(id);
      const empty = this.#empty.get(id) ?? 0;
      sum.peak += Math.max(0, peak - empty);
      sum.now += Math.max(0, now - empty);
    }
    return sum;
  }

  /** Most memory that loading and computing took. */
  async peak() {
    return (await this.growth()).peak;
  }

  close() {
    return this.#browser.close();
  }
}
