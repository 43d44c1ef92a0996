// SPDX-License-Identifier: MIT
// The chat page in Firefox, on a phone's screen: a reply comes into sight wherever it was sent from, nothing is wider than the screen, and what
// does not count is said. On one thread: a driven Firefox may hang where workers start workers (firefox.test.mjs).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { findFirefox } from '../bench/firefox.mjs';
import { SITE, eventually } from './browser.mjs';

let site;
let browser;
before(async () => {
  site = await serve({ root: SITE, isolate: false });
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: findFirefox(), headless: true });
});
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Before the page runs: a conversation of several screens, and no service worker, which would bring threads. */
function prepare() {
  navigator.serviceWorker.register = () => Promise.reject(new DOMException('Refused.', 'SecurityError'));
  const said = Array.from({ length: 12 }, (_, i) => [{ role: 'user', content: `Question ${i}?` }, { role: 'assistant', content: 'A sentence of a reply.\n\n'.repeat(6) }]);
  localStorage.setItem('quern:chat', JSON.stringify({ version: 1, messages: said.flat() }));
}

test('Firefox, 360 by 640', { timeout: 90_000 }, async () => {
  const page = await browser.newPage();
  await page.setViewport({ width: 360, height: 640 });
  await page.evaluateOnNewDocument(prepare);
  await page.goto(site.url);
  const missing = () => page.$eval('#scroller', (node) => node.scrollHeight - node.clientHeight - node.scrollTop);
  const replies = async () => (await page.$$('[data-testid=message-assistant][aria-busy=false]')).length;
  await eventually(async () => await page.$eval('[data-testid=status]', (node) => node.textContent) === 'Ready', 'the model is there');
  for (let i = 1; i < 3; i++) {
    await page.$eval('#scroller', (node) => { node.scrollTop = 0; });
    await eventually(() => page.$('#to-end:not([hidden])'), 'there is a way back');
    await page.type('[data-testid=input]', 'Tell me a story about an owl and a golden key.');
    await page.keyboard.press('Enter');
    await eventually(async () => await replies() === 12 + i, 'the reply has come');
    await eventually(async () => await missing() <= 2, 'and is in sight');
    assert.deepEqual(await page.evaluate(() => [document.documentElement.scrollWidth, document.body.scrollWidth]), [360, 360]);
  }
  await page.click('[data-testid=settings]');
  await page.type('#set-temperature', '7');
  await page.keyboard.press('Tab');
  assert.match(await page.$eval('#settings-form [role=alert]', (node) => node.textContent), /^A number from 0 to 2 is needed/);
  await page.close();
});
