// SPDX-License-Identifier: MIT
// Firefox as Debian has it: the package, isolated and not. Its chat page: tests/web/firefox-page.test.mjs.
import puppeteer from 'puppeteer-core';
import { findFirefox } from '../bench/firefox.mjs';
import { libraryCases, openUnbundled } from './unbundled.mjs';
import { outputOf } from './workshop.mjs';

export const title = 'Firefox';

const CONDITIONS = { isolated: { isolate: true, threads: 2 }, 'not isolated': { isolate: false, threads: 1 } };

const version = () => /[\d.]+/.exec(outputOf(findFirefox(), ['--version']))[0];

/** A Firefox for one case. */
async function openTab(t) {
  const browser = await puppeteer.launch({ browser: 'firefox', executablePath: findFirefox(), headless: true });
  t.after(() => browser.close());
  const page = await browser.newPage();
  return { open: (url) => page.goto(url), evaluate: (work) => page.evaluate(work) };
}

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `Firefox, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => openUnbundled({ kind: 'Firefox', isolate: condition.isolate, open: openTab }, t),
  cases: libraryCases(condition),
}));
