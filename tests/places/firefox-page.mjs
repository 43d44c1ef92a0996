// SPDX-License-Identifier: MIT
// The chat page in Firefox: what once went wrong on it (stories.mjs), as tests for Node's runner. On one thread: a driven Firefox may hang where
// workers start workers (undriven.mjs).
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { findFirefox } from '../bench/firefox.mjs';
import { SITE, eventually, refuseServiceWorkers } from '../web/browser.mjs';
import { KEYS, STORIES, hostModels, play } from '../web/stories.mjs';
import { within } from './workshop.mjs';

/** What a story asks of a browser. */
class FirefoxTab {
  #browser;
  #page;

  static async open(browser) {
    const tab = new FirefoxTab();
    tab.#browser = browser;
    tab.#page = await browser.newPage();
    // A service worker would bring threads.
    await tab.#page.evaluateOnNewDocument(refuseServiceWorkers);
    return tab;
  }

  open(url) {
    return this.#page.goto(url);
  }

  reload() {
    return this.#page.reload();
  }

  async type(selector, text) {
    await this.#page.focus(selector);
    for (const part of text.split(/([\uE000-\uE0FF])/).filter(Boolean)) {
      if (KEYS[part]) await this.#page.keyboard.press(KEYS[part]);
      else await this.#page.keyboard.type(part);
    }
  }

  evaluate(work, ...args) {
    return this.#page.evaluate(work, ...args);
  }

  settle(work, ...args) {
    return this.#page.evaluate(work, ...args);
  }

  async resize(width, height) {
    await this.#page.setViewport({ width, height });
    return width;
  }

  another() {
    return FirefoxTab.open(this.#browser);
  }

  close() {
    return this.#page.close();
  }
}

let site;
let models;
let browser;
before(async () => {
  site = await serve({ root: SITE, isolate: false });
  models = await hostModels();
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: findFirefox(), headless: true });
});
after(async () => {
  await browser?.close();
  await site?.close();
  models?.close();
});

/** Longest that a story may take, in ms. */
const STORY_MS = 90_000;

/** Tells a story in a tab of its own; `onHung` follows where the engine hung, probably where its worker starts that of chat templates (undriven.mjs). */
async function tell(name, onHung) {
  const tab = await FirefoxTab.open(browser);
  try {
    return await within(STORY_MS, play(name, tab, { url: site.url, root: SITE }, models.url));
  } catch (error) {
    if (!onHung) throw error;
    const saysSo = () => tab.evaluate(() => document.body.innerText.includes('engine/hung'));
    await eventually(saysSo, 'the page says that it hung').catch(() => { throw error; });    // it may be about to
  } finally {
    await tab.close();
  }
  return onHung();
}

/** PDF files are read by a worker below a worker, where a driven Firefox may hang; `web/readers.test.mjs` has them. */
const STORIES_HERE = Object.keys(STORIES).filter((name) => !name.startsWith('documents are read'));

for (const name of STORIES_HERE) {
  test(`Firefox: ${name}`, { timeout: 3 * STORY_MS }, (t) => tell(name, () => {
    t.diagnostic('the driven Firefox hung; once more');
    return tell(name);
  }));
}
