// SPDX-License-Identifier: MIT
// A page in a browser, by Playwright or by the little of W3C WebDriver that this needs (Safari has nothing else).
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import playwright from 'playwright-core';
import { howToStart } from '../web/browser.mjs';

/** @returns {Promise<{evaluate: (expression: string) => Promise<any>, close: () => Promise<void>}>} */
export async function openPlaywright(name, url) {
  const browser = await playwright[name].launch(name === 'chromium' ? howToStart([]) : {});
  const page = await browser.newPage();
  await page.goto(url);
  return { evaluate: (expression) => page.evaluate(expression), close: () => browser.close() };
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

async function ask(base, method, path, body) {
  const response = await fetch(base + path, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(60_000) });
  const { value } = await response.json();
  if (!response.ok) throw new Error(`WebDriver, ${method} ${path}: ${value.error}: ${value.message}`);
  return value;
}

/** A driver needs a moment before it listens. */
async function untilReady(base) {
  for (let left = 100; ; left--) {
    const status = await ask(base, 'GET', '/status').catch((error) => ({ error }));
    if (status.ready) return;
    if (!left) throw new Error(`the driver is not ready: ${status.error ?? status.message}`);
    await new Promise((done) => { setTimeout(done, 100); });
  }
}

/** @param {string[]} command that the port is added to @param {string} browserName as its capabilities have it */
export async function openDriven([program, ...args], browserName, url, capabilities = {}) {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const flag = args.pop();
  const driver = spawn(program, [...args, ...(flag.endsWith('=') ? [flag + port] : [flag, String(port)])], { stdio: 'inherit' });
  const failed = new Promise((_, reject) => { driver.once('error', reject); });
  try {
    await Promise.race([untilReady(base), failed]);
    const { sessionId } = await ask(base, 'POST', '/session', { capabilities: { alwaysMatch: { browserName, ...capabilities } } });
    const session = `/session/${sessionId}`;
    await ask(base, 'POST', `${session}/url`, { url });
    return {
      evaluate: (expression) => ask(base, 'POST', `${session}/execute/sync`, { script: `return ${expression}`, args: [] }),
      async close() {
        await ask(base, 'DELETE', session).catch(() => {});
        driver.kill();
      },
    };
  } catch (error) {
    driver.kill();
    throw error;
  }
}
