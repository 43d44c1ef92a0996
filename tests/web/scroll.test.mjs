// SPDX-License-Identifier: MIT
// Scrolling of the conversation: a reply comes into view wherever it was sent from, and a visitor who has scrolled up
// is left alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { some } from '../fixtures/lengths.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';

const here = station();

const WINDOWS = {
  'a phone': { viewport: { width: 390, height: 740 }, deviceScaleFactor: 2.75, isMobile: true, hasTouch: true },
  'a desktop': { viewport: { width: 1280, height: 800 } },
};

/** A stored conversation that is several windows high. */
function storeTalk() {
  const said = Array.from({ length: 12 }, (_, i) => [
    { role: 'user', content: `Question ${i}?` }, { role: 'assistant', content: 'A sentence of a reply.\n\n'.repeat(6), thinking: '', thoughtMs: 0, note: '' },
  ]);
  if (!localStorage.getItem('quern:chat')) localStorage.setItem('quern:chat', JSON.stringify({ version: 1, messages: said.flat() }));
}

/** Pixels between the visible part and the end. */
const missing = (page) => page.locator('#scroller').evaluate((node) => node.scrollHeight - node.clientHeight - node.scrollTop);

/**
 * Scrolls to the top until the page accepts it: for a moment after a jump it accepts only a wheel or a finger, and on a
 * slow machine that moment may be now.
 */
async function moveUp(page) {
  await eventually(async () => {
    await page.locator('#scroller').evaluate((node) => {
      node.scrollTop = 0;
      return new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
    });
    return page.locator('#to-end').isVisible();
  }, 'there is a way back');
}

const atEnd = (page, what) => eventually(async () => await missing(page) <= 2, what);

for (const [what, window] of some(Object.entries(WINDOWS), 2)) {
  test(`a message sent from the top, and each one after it, shows its reply, on ${what}`, async () => {
    const { page, chat, close } = await openChat(here, { ...window, init: storeTalk });
    for (let i = 0; i < 3; i++) {
      await moveUp(page);
      await chat.ask('Hello!');
      await atEnd(page, `the reply of message ${i} is in sight`);
    }
    await close();
  });

  test(`a text of several lines, put in and sent within a frame, shows its reply, on ${what}`, async () => {
    const { page, chat, close } = await openChat(here, { ...window, init: storeTalk });
    const before = await chat.replies.count();
    await page.evaluate(() => {
      const input = document.querySelector('[data-testid=input]');
      input.value = 'One line\n'.repeat(8);
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.form.requestSubmit();
    });
    await chat.replies.nth(before).waitFor();
    await chat.ended();
    await atEnd(page, 'the reply is in sight');
    await close();
  });
}

/** Starts a reply that does not end. */
async function openTalking() {
  const visit = await openChat(here, { viewport: { width: 1000, height: 500 } });
  const { page, chat } = visit;
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await chat.send('Talk.');
  await eventually(() => page.locator('#scroller').evaluate((node) => node.scrollTop > 300), 'it has scrolled along');
  await page.locator('#scroller').hover();
  await page.waitForTimeout(300);     // movements right after sending do not count
  return visit;
}

const place = (page) => page.locator('#scroller').evaluate((node) => node.scrollTop);
const height = (page) => page.locator('#scroller').evaluate((node) => node.scrollHeight);

test('a small turn of the wheel while a reply is written is left alone; at the end it goes along again', async () => {
  const { page, chat, close } = await openTalking();
  await page.mouse.wheel(0, -30);
  await eventually(async () => await missing(page) > 20, 'it has moved up');
  await eventually(() => page.locator('#to-end').isVisible(), 'there is a way back');
  const [there, tall] = [await place(page), await height(page)];
  await eventually(async () => await height(page) > tall + 100, 'the reply grows');
  assert.equal(await place(page), there, 'and nothing moves');
  await eventually(async () => {
    await page.mouse.wheel(0, 2000);
    return !await page.locator('#to-end').isVisible();
  }, 'the wheel leads to the end');
  const before = await height(page);
  await eventually(async () => await height(page) > before + 100, 'the reply grows');
  await eventually(async () => await missing(page) < 80, 'and is followed');
  await page.keyboard.press('Escape');
  await chat.ended();
  await atEnd(page, 'to its end');
  await close();
});

test('the page does not fight with somebody who scrolls up through a reply', async () => {
  const { page, close } = await openTalking();
  const places = [await place(page)];
  for (let i = 0; i < 8; i++) {
    await page.mouse.wheel(0, -25);
    await page.waitForTimeout(60);
    places.push(await place(page));
  }
  assert.deepEqual(places.slice(1), places.slice(1).toSorted((a, b) => b - a), `only upward: ${places}`);
  await page.locator('#to-end').click();
  await eventually(async () => await missing(page) < 80, 'Latest leads back');
  await close();
});
