// SPDX-License-Identifier: MIT
// Q09: a page that the browser has ended says so when it is back. The page is crashed in earnest, and its tab reloaded, which Playwright cannot do.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { SITE, eventually, howToStart } from './browser.mjs';

const TINY = join(tmpdir(), `quern-life-${process.pid}.gguf`);

let site;
let browser;
before(async () => {
  site = await serve({ root: SITE });
  browser = await puppeteer.launch({ ...howToStart([]), headless: true });
  await writeFile(TINY, tinyModel());
});
after(async () => {
  await browser?.close();
  await site?.close();
  await rm(TINY, { force: true });
});

const part = (name) => `[data-testid=${name}]`;

/** A tab with the page. */
async function open(page) {
  page ??= await browser.newPage();
  const text = (selector) => page.$eval(selector, (node) => node.textContent).catch(() => '');
  const ready = (name) => eventually(async () => await text(part('status')) === 'Ready' && (await text(part('model-name'))).startsWith(name), `${name} is ready`);
  return {
    page, ready,
    async notice() {
      const all = await page.$$eval(`${part('notice')} .card-message`, (nodes) => nodes.map((node) => node.textContent));
      return all.find((one) => one.startsWith('The browser')) ?? '';
    },
    async crash() {
      const session = await page.createCDPSession();
      const crashed = new Promise((done) => { page.once('error', done); });
      session.send('Page.crash').catch(() => {});
      await crashed;
      await page.reload();
      await ready('Demo');
    },
    async loadTiny() {
      await (await page.$(part('file-input'))).uploadFile(TINY);
      await ready('quern-life');
    },
    async ask(question) {
      await page.type(part('input'), question);
      await page.keyboard.press('Enter');
      await eventually(() => page.$(`${part('message-assistant')}[aria-busy=false]`), 'there is a reply');
    },
    async visit() {
      await page.goto(site.url);
      await ready('Demo');
    },
  };
}

test('Q09: ended by the browser: the page says so, and advises a smaller model when it was twice in a row', async () => {
  const tab = await open();
  await tab.visit();
  await tab.ask('Hello!');
  await tab.loadTiny();
  assert.equal(await tab.notice(), '');

  await tab.crash();
  assert.equal(await tab.notice(), 'The browser closed this page, most likely to save memory. The conversation is as it was last saved.');
  assert.equal((await tab.page.$$(part('message-user'))).length, 1);

  await tab.loadTiny();
  await tab.crash();
  assert.match(await tab.notice(), /twice in a row: a smaller model, or a smaller context in the settings, needs less\.$/);
  await (await tab.page.waitForSelector(`${part('notice')} ::-p-text(Choose a smaller model)`)).click();
  await tab.page.waitForSelector('#model-dialog[open]');

  await tab.crash();
  assert.match(await tab.notice(), /last saved\.$/, 'the demo model is none that a smaller one helps');
  await tab.page.reload();
  await tab.ready('Demo');
  assert.equal(await tab.notice(), '', 'left as usual');
  await tab.page.close();
});

test('Q09: a copy of a tab was not ended', async () => {
  const tab = await open();
  await tab.visit();
  const [target] = await Promise.all([
    browser.waitForTarget((one) => one.opener() === tab.page.target()), tab.page.evaluate(() => { globalThis.open(location.href); }),
  ]);
  const copy = await open(await target.page());
  await copy.ready('Demo');
  assert.equal(await copy.notice(), '');
  await copy.page.close();
  await tab.crash();
  assert.match(await tab.notice(), /^The browser closed this page/);
  await tab.page.close();
});
