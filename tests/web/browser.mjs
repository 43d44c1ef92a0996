// SPDX-License-Identifier: MIT
// Shared by all browser tests: Debian's Chromium through playwright-core, a server for one folder, and visits to a
// page. A visit fails on any error in the console, any uncaught exception, any violation of the content security policy
// or of Trusted Types, and any request to another origin.
import assert from 'node:assert/strict';
import { accessSync, constants, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import { after, before } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { processMemory } from '../bench/machine.mjs';
import { PROJECT } from '../fixtures/golden.mjs';

export { PROJECT };
export const SITE = join(PROJECT, 'build/site');

/** Longest wait for anything on a page, in ms: generous, for machines that do much else besides. */
const PATIENCE_MS = 30_000;

const require = createRequire(import.meta.url);

/** Loads Playwright. An `import` of its 7 MB of CommonJS would read them twice, to find the names that they export. */
export const playwright = () => require('playwright-core');

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'chrome'];

/** The same engine without a browser's windows and extensions; a test takes two thirds of the processor time in it. */
const SHELL = 'chromium-headless-shell';

const QUIET = [
  '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function findChromium(names) {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram);
  if (!found) throw new Error(`no Chromium on PATH (${NAMES.join(', ')}); install one or set CHROMIUM to its path`);
  return found;
}

/**
 * Options of a driver's `launch`.
 * @param {string[]} flags of V8
 * @param {boolean} [whole] the full browser, with extensions
 * @param {string[]} [more] arguments of the browser
 */
export const howToStart = (flags, whole = false, more = []) => ({
  executablePath: findChromium(whole ? NAMES : [SHELL, ...NAMES]),
  args: [...more, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), ...(flags.length ? [`--js-flags=${flags.join(',')}`] : []), ...QUIET],
});

/** @param {string[]} [flags] of V8 @param {boolean} [whole] @param {string[]} [more] arguments of the browser */
export function launchChromium(flags = [], whole = false, more = []) {
  return playwright().chromium.launch(howToStart(flags, whole, more));
}

/**
 * The full browser, with a profile in a folder that keeps what pages store.
 * @returns {Promise<import('playwright-core').BrowserContext>}
 */
export function launchProfile(folder) {
  return playwright().chromium.launchPersistentContext(folder, howToStart([], true));
}

/** Runs in the page before anything else: collects what the browser reports by events only. */
function recordViolations() {
  globalThis.violations = [];
  addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) => {
    globalThis.violations.push(`${violatedDirective} ${blockedURI} ${sample}`.trim());
  });
}

/**
 * Runs in a page before anything else: removes the service worker, as in a private window, which saves a third of the
 * processor time.
 */
export function refuseServiceWorkers() {
  if (navigator.serviceWorker) navigator.serviceWorker.register = () => Promise.reject(new DOMException('Refused.', 'SecurityError'));
}

/** One page in a context of its own. */
export class Visit {
  context;
  page;
  /** Text of everything that page and workers wrote to the console. */
  console = [];
  #problems = [];
  #own;
  #expected;

  /**
   * @param {import('playwright-core').Browser} browser
   * @param {string} url
   * @param {object} options those of a context, and
   *   origins: other origins that may be requested; expected: a pattern of problems that belong to the test;
   *   init: a function that the page runs first, with initArgument; serviceWorker: whether it may have one
   */
  static async open(browser, url, { origins = [], expected = /^$/, init, initArgument, serviceWorker = false, ...contextOptions } = {}) {
    const visit = new Visit();
    visit.#own = new Set([new URL(url).origin, ...origins]);
    visit.#expected = expected;
    // No animations: drawing them takes a sixth of the processor time.
    visit.context = await browser.newContext({ reducedMotion: 'reduce', ...contextOptions });
    visit.context.setDefaultTimeout(PATIENCE_MS);
    await visit.context.addInitScript(recordViolations);
    if (!serviceWorker) await visit.context.addInitScript(refuseServiceWorkers);
    if (init) await visit.context.addInitScript(init, initArgument);
    visit.page = await visit.context.newPage();
    visit.#watch();
    await visit.page.goto(url);
    return visit;
  }

  #watch() {
    this.page.on('console', (message) => {
      this.console.push(message.text());
      if (['error', 'warning', 'assert'].includes(message.type())) this.#problems.push(`console: ${message.text()} (${message.location().url})`);
    });
    this.page.on('pageerror', (error) => this.#problems.push(`uncaught: ${error.stack ?? error}`));
    this.page.on('dialog', (dialog) => {
      this.#problems.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    // The context's event covers workers and the service worker too.
    this.context.on('request', (request) => {
      const { origin, protocol } = new URL(request.url());
      if (/^(http|ws)s?:$/.test(protocol) && !this.#own.has(origin)) this.#problems.push(`foreign request: ${request.url()}`);
    });
  }

  /** Closes the page, and fails if anything unexpected has happened on it. */
  async close() {
    const violations = await this.page.evaluate(() => globalThis.violations);
    await this.context.close();
    const problems = [...this.#problems, ...violations.map((text) => `policy: ${text}`)];
    assert.deepEqual(problems.filter((text) => !this.#expected.test(text)), []);
  }
}

/**
 * A server and a browser for the tests of one file.
 * @param {object} [options] of `serve`, `flags` of V8, `more` arguments of the browser, whether the `whole` browser is
 *   used, and whether pages may have their service worker
 * @returns {{url: string, server: object, browser: object, open: (path?: string, options?: object) => Promise<Visit>}}
 *   filled in before the first test
 */
export function station({ flags, more, whole, serviceWorker, ...options } = {}) {
  const here = { open: (path = '', visit = {}) => Visit.open(here.browser, here.url + path, { serviceWorker, ...visit }) };
  before(async () => {
    here.server = await serve({ root: SITE, ...options });
    here.url = here.server.url;
    here.browser = await launchChromium(flags, whole, more);
  });
  after(async () => {
    await here.browser?.close();
    await here.server?.close();
  });
  return here;
}

/**
 * Waits until something becomes true; polls in Node, since a page's policy may forbid polling there.
 * @param {string | (() => string | Promise<string>)} what is awaited, for the failure; a function may tell the present
 *   state
 */
export async function eventually(check, what, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  while (!await check()) {
    if (Date.now() > end) assert.fail(`not within ${patience / 1000} s: ${typeof what === 'function' ? await what() : what}`);
    await new Promise((done) => { setTimeout(done, 20); });
  }
}

/**
 * Bytes of memory that a browser's pages and their workers use now.
 * @param {import('playwright-core').Browser} browser
 */
export async function rendererMemory(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  return processInfo.filter(({ type }) => type === 'renderer').reduce((sum, { id }) => sum + processMemory(id).now, 0);
}

let source;

/** Only the text of axe: pages run it. */
const axe = () => source ??= readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** Axe's rules that look at colours. */
const COLOUR_RULES = ['color-contrast', 'link-in-text-block'];

/**
 * The violations that axe finds on a page, one per line, in light and dark. A button's visible text must be in its name,
 * for voice control, and everything to press is large enough. More rules than `least` must apply, or axe has seen no
 * page.
 */
export async function complaints({ page }, least = 20) {
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axe());
  const rules = { 'label-content-name-mismatch': { enabled: true }, 'target-size': { enabled: true } };
  const run = (options) => page.evaluate((given) => globalThis.axe.run(given), options);
  const { violations, passes } = await run({ resultTypes: ['violations'], rules });
  assert.ok(passes.length > least, `${passes.length} rules apply`);
  const scheme = await page.evaluate(() => (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'));
  const other = scheme === 'dark' ? 'light' : 'dark';
  await page.emulateMedia({ colorScheme: other });
  const inOther = await run({ resultTypes: ['violations'], runOnly: COLOUR_RULES });
  await page.emulateMedia({ colorScheme: scheme });
  const lines = (found, where) => found.map(({ id, nodes }) => `${id}${where}: ${nodes.map(({ target }) => target).join(', ')}`);
  return [...lines(violations, ''), ...lines(inOther.violations, `, ${other}`)];
}
