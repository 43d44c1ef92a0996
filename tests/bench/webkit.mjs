// SPDX-License-Identifier: MIT
// One engine in one tab of a WebKit of its own; what tab.mjs is for Chromium. Debian's WebKitGTK, whose engine Safari has.
import { readFileSync } from 'node:fs';
import { SHARED, WebKit } from '../places/webdriver.mjs';
import { processFamily, processMemory } from './machine.mjs';

/** The processes of ours that show pages. */
const pages = () => processFamily(process.pid).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0].endsWith('/WebKitWebProcess'));

export class WebKitTab {
  #webkit;
  #ends = [];
  #empty;    // memory of the processes before anything was loaded: pid -> bytes

  /** @param {string} base of a server over the project @param {string} module that drives the engine, as a path of the project */
  static async open(base, module) {
    const tab = new WebKitTab();
    try {
      tab.#webkit = await WebKit.open({ after: (end) => tab.#ends.unshift(end) }, SHARED);
      await tab.#webkit.open(`${base}tests/bench/page/page.html`);
      await tab.#webkit.settle(async (url) => { globalThis.engine = await import(url); }, base + module);
      tab.#empty = new Map(pages().map((id) => [id, processMemory(id).now]));
      return tab;
    } catch (error) {
      await tab.close();
      throw error;
    }
  }

  get version() {
    return `WebKitGTK ${this.#webkit.version}`;
  }

  call(name, options = {}) {
    return this.#webkit.settle((method, argument) => globalThis.engine[method](argument), name, options);
  }

  /** Bytes by which the processes that show pages grew at their peaks. */
  async peak() {
    return pages().reduce((sum, id) => sum + Math.max(0, processMemory(id).peak - (this.#empty.get(id) ?? 0)), 0);
  }

  async close() {
    for (const end of this.#ends) await end();
  }
}
