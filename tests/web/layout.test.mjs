// SPDX-License-Identifier: MIT
// The chat page on screens of every size, on paper, and with forced colours.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';

const here = station();

/** Width and height in CSS pixels; the last two are a laptop at 200 % and at 400 %. */
const SCREENS = [[360, 740], [320, 568], [740, 360], [568, 320], [640, 360], [320, 256]];

/** Wide contents of a conversation. */
const WIDE = `${'averyveryverylongword'.repeat(20)}\n\n| ${'a column | '.repeat(12)}\n| ${'--- | '.repeat(12)}\n\n\`\`\`\n${'code '.repeat(60)}\n\`\`\`\n\nhttps://example.com/${'path/'.repeat(40)}`;

function storeWide([text, name]) {
  localStorage.setItem('quern:settings', '{"seed":1,"maxTokens":40}');
  localStorage.setItem('quern:chat', JSON.stringify({ version: 1, messages: [{ role: 'user', content: text }, { role: 'assistant', content: text, thinking: text, thoughtMs: 1, note: '' }] }));
  addEventListener('load', () => { document.getElementById('model-name').textContent = name; });
}

/**
 * In the page: controls and messages that are not inside the window's width, and those of the bar and the dock that are
 * not inside its height.
 */
function outside() {
  const inside = ({ left, right }) => left >= -0.5 && right <= innerWidth + 0.5;
  const whole = ({ top, bottom }) => top >= -0.5 && bottom <= innerHeight + 0.5;
  const seen = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility());
  const wide = seen('button, .bubble, .prose, .composer, .code, .table').filter((node) => !inside(node.getBoundingClientRect()));
  const low = seen('.bar button, .composer, .composer button').filter((node) => !whole(node.getBoundingClientRect()));
  return [...wide, ...low].map((node) => node.id || node.className || node.textContent);
}

const width = (page) => page.evaluate(() => [document.documentElement.scrollWidth, document.body.scrollWidth, innerWidth]);

for (const [w, h] of SCREENS) {
  test(`${w} by ${h}: nothing is cut off, and there is room to read`, async () => {
    const phone = { viewport: { width: w, height: h }, isMobile: true, hasTouch: true };
    const { page, chat, close } = await openChat(here, { ...phone, init: storeWide, initArgument: [WIDE, 'A-model-with-a-very-long-name-indeed-Q4_K_M'] });
    assert.deepEqual(await width(page), [w, w, w]);
    await chat.ask('Hello!');
    await page.locator('#model-name').evaluate((node) => { node.textContent = 'A-model-with-a-very-long-name-indeed-Q4_K_M'; });
    assert.deepEqual(await width(page), [w, w, w]);
    assert.deepEqual(await page.evaluate(outside), []);
    await chat.input.fill('line\n'.repeat(30));
    assert.deepEqual(await page.evaluate(outside), [], 'with a long message in the field');
    await chat.input.fill('');
    const room = await page.locator('#scroller').evaluate((node) => node.clientHeight);
    assert.ok(room >= 0.42 * h, `${room} of ${h} for the conversation`);
    for (const [opener, dialog] of [['#model-button', '#model-dialog'], ['#settings', '#settings-dialog']]) {
      await page.locator(opener).click();
      const box = await page.locator(dialog).boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= w && box.y >= 0 && box.y + box.height <= h, `${dialog} ${JSON.stringify(box)}`);
      assert.equal(await page.locator(dialog).evaluate((node) => node.scrollWidth > node.clientWidth), false, dialog);
      await page.locator(`${dialog} .button`).last().click({ trial: true });
      await page.locator(`${dialog} [data-close]`).click();
    }
    await close();
  });
}

/** In the page, before its scripts: adds up how much is moved without anybody's doing. */
function watchShifts() {
  globalThis.shifted = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) globalThis.shifted += value;
  }).observe({ type: 'layout-shift', buffered: true });
}

for (const [w, h] of [[390, 844], [360, 640], [1280, 800]]) {
  test(`${w} by ${h}: nothing moves while the page comes, and the first step is in sight`, async () => {
    const slow = (route) => setTimeout(() => route.continue(), 600);
    const visit = await here.open('icons/icon.svg', { viewport: { width: w, height: h }, init: watchShifts });
    const { page } = visit;
    await page.context().route('**/demo-q8_0.gguf', slow);
    await page.goto(here.url);
    await page.getByTestId('progress').waitFor();
    await page.getByTestId('status').getByText('Ready', { exact: true }).waitFor();
    const shifted = await page.evaluate(() => globalThis.shifted);
    assert.ok(shifted < 0.01, `${shifted}`);
    const [link, dock] = await Promise.all(['#get-real', '.dock'].map((part) => page.locator(part).boundingBox()));
    assert.ok(link.y + link.height <= dock.y, `${link.y} ${dock.y}`);
    await visit.close();
  });
}

test('the greeting is what a small screen shows first', async () => {
  const { page, close } = await openChat(here, { viewport: { width: 320, height: 480 } });
  assert.equal(await page.locator('#scroller').evaluate((node) => node.scrollTop), 0);
  await close();
});

test('paper gets the conversation and nothing else, dark on light', async () => {
  const { page, chat, close } = await openChat(here, { colorScheme: 'dark', init: storeSettings, initArgument: { temperature: 0 } });
  await page.getByTestId('theme').click();
  await page.getByTestId('theme').click();
  await chat.ask('What is the capital of Kenya?');
  await page.emulateMedia({ media: 'print' });
  const text = await page.evaluate(() => document.body.innerText.trim().split(/\s*\n\s*/));
  assert.deepEqual(text, ['What is the capital of Kenya?', await chat.text()]);
  const colours = await page.evaluate(() => [getComputedStyle(document.documentElement).colorScheme, getComputedStyle(document.querySelector('main')).overflowY]);
  assert.deepEqual(colours, ['light', 'visible']);
  await close();
});

test('forced colours: the switch, the lamp, gauges and dialogs are still there', async () => {
  const visit = await openChat(here, { forcedColors: 'active', init: storeSettings, initArgument: { temperature: 0 } });
  const { page, chat, close } = visit;
  await chat.ask('What is the capital of Kenya?');
  const colour = (selector, property = 'backgroundColor', pseudo = null) => page.evaluate((wanted) => getComputedStyle(document.querySelector(wanted[0]), wanted[2])[wanted[1]], [selector, property, pseudo]);
  const canvas = await colour('body');
  for (const selector of ['.lamp', '#context-fill']) assert.notEqual(await colour(selector), canvas, selector);
  const off = await colour('.track');
  await page.getByRole('switch').click();
  assert.notEqual(await colour('.track'), off);
  assert.notEqual(await colour('.track', 'backgroundColor', '::after'), await colour('.track'));
  await page.locator('#settings').click();
  assert.equal(await colour('#settings-dialog', 'borderTopStyle'), 'solid');
  assert.deepEqual(await complaints(visit), []);
  await close();
});
