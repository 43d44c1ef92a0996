// SPDX-License-Identifier: MIT
// One engine in one tab of a Firefox of its own; what tab.mjs is for Chromium. Debian's Firefox is driven by WebDriver BiDi.
import { accessSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import puppeteer from 'puppeteer-core';
import { processFamily, processMemory } from './machine.mjs';
import { PATIENCE_MS } from './tab.mjs';

/** Longest wait for the browser's report of a request that has ended already. */
const REPORT_MS = 5000;

export function findFirefox() {
  const paths = [process.env.FIREFOX, '/usr/bin/firefox-esr', '/usr/bin/firefox'].filter(Boolean);
  const found = paths.find((path) => {
    try {
      accessSync(path);
      return true;
    } catch {
      return false;
    }
  });
  if (!found) throw new Error(`no Firefox (${paths.join(', ')}); install one or set FIREFOX to its path`);
  return found;
}

/** Whether a process shows pages: its last argument says so. */
const showsPages = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(Boolean).at(-1) === 'tab';

export class FirefoxTab {
  #browser;
  #page;
  #version;
  #empty;                 // memory of the processes before anything was loaded: pid -> bytes
  #ended = new Map();     // url -> when its last byte had come, in ms since 1970

  /**
   * @param {string} base of a server over the project @param {string} module that drives the engine, as a path of the project
   * @param {string} [profile] a folder for it; else a new one that is removed
   */
  static async open(base, module, profile) {
    const tab = new FirefoxTab();
    tab.#browser = await puppeteer.launch({
      browser: 'firefox', protocol: 'webDriverBiDi', executablePath: findFirefox(), headless: true, protocolTimeout: PATIENCE_MS, userDataDir: profile,
    });
    tab.#version = (await tab.#browser.version()).replace('firefox/', 'Firefox ');
    tab.#page = await tab.#browser.newPage();
    tab.#page.on('requestfinished', (request) => tab.#ended.set(request.url(), request.timing()?.responseEnd));
    await tab.#page.goto(`${base}tests/bench/page/page.html`);
    await tab.#page.evaluate(async (url) => { globalThis.engine = await import(url); }, base + module);
    const pages = processFamily(tab.#browser.process().pid).filter(showsPages);
    tab.#empty = new Map(pages.map((id) => [id, processMemory(id).now]));
    return tab;
  }

  get version() {
    return this.#version;
  }

  call(name, options = {}) {
    return this.#page.evaluate(([method, argument]) => globalThis.engine[method](argument), [name, options]);
  }

  /** When the last byte of a file had come, in milliseconds since 1970, by the browser's own record of the request. */
  async lastByteAt(url) {
    for (const end = Date.now() + REPORT_MS; Date.now() < end; await sleep(10)) if (this.#ended.has(url)) return this.#ended.get(url);
    throw new Error(`the browser has no record of ${url}`);
  }

  /** Bytes by which the processes that show pages grew at their peaks. Not of the main process: it holds much of a download that comes this fast. */
  async peak() {
    const alive = new Set(processFamily(this.#browser.process().pid));
    const grown = [...this.#empty].filter(([id]) => alive.has(id)).map(([id, empty]) => Math.max(0, processMemory(id).peak - empty));
    return grown.reduce((sum, bytes) => sum + bytes, 0);
  }

  close() {
    return this.#browser.close();
  }
}
