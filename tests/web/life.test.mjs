// SPDX-License-Identifier: MIT
// Q09: a page that the browser has ended says so when it is back. The page really crashes, and its tab is reloaded,
// which Playwright cannot do.
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { serve } from '../../tools/serve.mjs';
import { length } from '../fixtures/lengths.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { SITE, eventually, howToStart } from './browser.mjs';
import { talkativeModel } from './chat-page.mjs';

const TINY = join(tmpdir(), `quern-life-${process.pid}.gguf`);
const TALKER = join(tmpdir(), `quern-talker-${process.pid}.gguf`);

let site;
let browser;
before(async () => {
  site = await serve({ root: SITE });
  browser = await puppeteer.launch({ ...howToStart([]), headless: true });
  await writeFile(TINY, tinyModel());
  await writeFile(TALKER, talkativeModel());
});
after(async () => {
  await browser?.close();
  await site?.close();
  for (const file of [TINY, TALKER]) await rm(file, { force: true });
});

const part = (name) => `[data-testid=${name}]`;

/** Opens a tab with the page. */
async function open(page) {
  page ??= await browser.newPage();
  const text = (selector) => page.$eval(selector, (node) => node.textContent).catch(() => '');
  const ready = (name) => eventually(async () => await text(part('status')) === 'Ready' && (await text(part('model-name'))).startsWith(name), `${name} is ready`);
  return {
    page, ready,
    /** The sentence about an end, or '' if there is none within the time that a mark may take to go. */
    async notice() {
      const end = Date.now() + 3000;
      while (Date.now() < end && !await this.said()) await new Promise((done) => { setTimeout(done, 50); });
      return this.said();
    },
    async said() {
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

/** In the page: every stored message of every conversation. */
async function storedMessages() {
  const db = await new Promise((done, fail) => { Object.assign(indexedDB.open('quern'), { onsuccess: ({ target }) => done(target.result), onerror: fail }); });
  const all = await new Promise((done) => { db.transaction('messages').objectStore('messages').getAll().onsuccess = ({ target }) => done(target.result); });
  db.close();
  return all.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Longest part, in ms, of a growing reply that may be lost. On a machine where reading the page takes long, everything
 * takes longer.
 */
const BEHIND_MS = 1000;

test('killed at random moments of a talk: at most a second of a reply is lost, nothing else', { timeout: 900_000 }, async (t) => {
  const tab = await open();
  await tab.visit();
  const { page } = tab;
  const load = async () => {
    await (await page.$(part('file-input'))).uploadFile(TALKER);
    await tab.ready('quern-talker');
  };
  const kills = length(2, 50);
  let seed = 11;
  const random = () => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff;
  let before = await page.evaluate(storedMessages);
  const earlier = before.length;
  const lost = [];
  for (let i = 0; i < kills; i++) {
    await load();
    const replies = (await page.$$(part('message-assistant'))).length;
    await page.type(part('input'), `Question ${i}`);
    await page.keyboard.press('Enter');
    await eventually(async () => (await page.$$(part('message-assistant'))).length > replies, 'it is asked');
    const seen = [];    // [ms, letters of the new reply on the screen]
    const end = performance.now() + 200 + 2800 * random();
    const letters = (all, old) => all[old]?.textContent.length ?? 0;
    while (performance.now() < end) seen.push([performance.now(), await page.$$eval(`${part('message-assistant')} .prose`, letters, replies)]);
    const killed = performance.now();
    await tab.crash();
    const stored = await page.evaluate(storedMessages);
    for (const message of before) {
      const now = stored.find(({ id }) => id === message.id);
      assert.equal(now?.content, message.content, 'what was finished stays');
    }
    const added = stored.filter(({ id }) => !before.some((message) => message.id === id));
    assert.equal(added[0]?.content, `Question ${i}`);
    const slowest = Math.max(0, ...seen.slice(1).map(([time], k) => time - seen[k][0]));
    const due = seen.findLast(([time]) => time < killed - BEHIND_MS - 3 * slowest)?.[1] ?? 0;
    const kept = added[1]?.content.length ?? 0;
    lost.push(Math.max(0, seen.at(-1)[1] - kept));
    assert.ok(kept >= due, `${kept} letters of ${due} that were there a second before`);
    before = stored;
  }
  t.diagnostic(`letters lost at each kill: ${lost.join(' ')}`);
  assert.equal(before.slice(earlier).filter(({ role }) => role === 'user').length, kills);
  await page.close();
});
