// SPDX-License-Identifier: MIT
// WebKit as Debian has it (WebKitGTK's MiniBrowser), on a display without a screen, by the few commands of W3C WebDriver
// that the tests and the benchmark need.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { start, freePort } from './workshop.mjs';

/** What an answer of the driver's may take, in ms. */
const PATIENCE_MS = 60_000;

/** What a page's promise may take, in ms: fetch() itself waits no longer for an answer. */
const PROMISE_MS = 290_000;

/** In the environment: WebKitGTK hides SharedArrayBuffer otherwise, which Safari does not. */
export const SHARED = { JSC_useSharedArrayBuffer: '1' };

/** An X server that draws into memory. @returns {Promise<{name: string, close: () => void}>} */
async function openDisplay() {
  const server = spawn('Xvfb', ['-displayfd', '1', '-screen', '0', '1280x1024x24', '-nolisten', 'tcp'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [number] = await once(server.stdout, 'data');
  return { name: `:${String(number).trim()}`, close: () => server.kill() };
}

export class WebKit {
  #driver;
  #session;
  #window;                          // undefined: the only one
  #driven = { window: undefined };  // shared by all tabs of a browser

  /** Its version. */
  version;

  /** @param {object} env variables of the browser's */
  static async open(t, env = {}) {
    const webkit = new WebKit();
    const display = await openDisplay();
    t.after(() => display.close());
    const port = await freePort();
    webkit.#driver = `http://127.0.0.1:${port}`;
    const kill = await start(['WebKitWebDriver', `--port=${port}`], `${webkit.#driver}/status`, { env: { DISPLAY: display.name, ...env } });
    t.after(kill);
    const { sessionId, capabilities } = await webkit.#ask('POST', '/session', { capabilities: { alwaysMatch: { timeouts: { script: PROMISE_MS } } } });
    webkit.#session = `/session/${sessionId}`;
    webkit.version = capabilities.browserVersion;
    return webkit;
  }

  /** A command to the session, in this tab. */
  async #tell(method, path, body, patience) {
    if (this.#driven.window !== this.#window) {
      await this.#ask('POST', `${this.#session}/window`, { handle: this.#window });
      this.#driven.window = this.#window;
    }
    return this.#ask(method, this.#session + path, body, patience);
  }

  async #ask(method, path, body, patience = PATIENCE_MS) {
    const response = await fetch(this.#driver + path, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(patience) });
    const { value } = await response.json();
    if (!response.ok) throw new Error(`WebDriver, ${path.split('/').at(-1)}: ${value.error}: ${value.message}`);
    return value;
  }

  open(url) {
    return this.#tell('POST', '/url', { url });
  }

  reload() {
    return this.#tell('POST', '/refresh', {});
  }

  /** Makes the page's inside as large as asked, or as near to it as a window gets. @returns {Promise<number>} its width */
  async resize(width, height) {
    const inside = () => this.evaluate(() => [innerWidth, innerHeight]);
    const outer = await this.#tell('GET', '/window/rect');
    const [w, h] = await inside();
    await this.#tell('POST', '/window/rect', { width: width + outer.width - w, height: height + outer.height - h });
    return (await inside())[0];
  }

  /** Another tab of the same browser. @returns {Promise<WebKit>} */
  async another() {
    this.#window ??= this.#driven.window = await this.#tell('GET', '/window');
    const tab = new WebKit();
    tab.version = this.version;
    tab.#driver = this.#driver;
    tab.#session = this.#session;
    tab.#driven = this.#driven;
    tab.#window = (await this.#tell('POST', '/window/new', { type: 'tab' })).handle;
    return tab;
  }

  async close() {
    await this.#tell('DELETE', '/window');
    this.#driven.window = undefined;    // whatever the next tab is, it has to be chosen
  }

  /** Keys, in the element that a selector finds. */
  async type(selector, text) {
    const found = await this.#tell('POST', '/element', { using: 'css selector', value: selector });
    await this.#tell('POST', `/element/${Object.values(found)[0]}/value`, { text });
  }

  /** What a function returns in the page; no promises. */
  evaluate(work, ...args) {
    return this.#tell('POST', '/execute/sync', { script: `return (${work})(...arguments)`, args });
  }

  /** What a function's promise gives. */
  async settle(work, ...args) {
    const script = `const done = [...arguments].pop(); (${work})(...arguments).then((value) => done({ value }), (error) => done({ error: String(error) }))`;
    const { value, error } = await this.#tell('POST', '/execute/async', { script, args }, PROMISE_MS);
    if (error) throw new Error(error);
    return value;
  }
}
