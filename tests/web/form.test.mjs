// SPDX-License-Identifier: MIT
// The form of the chat page: keyboard, names and roles for assistive technology, small and large windows, light and
// dark. Text from anywhere (typed, stored, from a file) stays text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tinyModel } from '../fixtures/tiny.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station();

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

/** Markup that would run if the page used it as markup. */
const VECTORS = [
  '<img src=x onerror="alert(1)">', '<script>alert(2)</script>', '<svg onload=alert(3)>', '"><iframe src="javascript:alert(4)"></iframe>',
  '[link](javascript:alert(5))', '![image](x" onerror="alert(6))', '[data](data:text/html,<script>alert(7)</script>)',
  '<https://example.com/"onmouseover="alert(8)>', '<a href="vbscript:alert(9)">x</a>', '```html\n<img src=x onerror=alert(10)>\n```',
  '![tracker](https://example.com/pixel.png)', '<style>*{display:none}</style>', '<math><mi xlink:href="javascript:alert(11)">x</mi></math>',
];

/** In the page: parts of a conversation that could run, load, or lead to a forbidden place. */
function dangers(selector) {
  const nodes = [...document.querySelectorAll(`${selector} *`)];
  const bad = (node) => /^(script|iframe|object|embed|img|style|link|form|base|meta|math)$/i.test(node.localName)
    || [...node.attributes].some(({ name, value }) => /^on/.test(name) || /^\s*(javascript|data|vbscript):/i.test(value));
  return nodes.filter(bad).map((node) => node.outerHTML.slice(0, 200));
}

/** In the page: controls without a name, by the browser's rules for names. */
function namelessControls() {
  const text = (node) => (node.getAttribute('aria-label') || node.labels?.[0]?.textContent || node.textContent || node.title || '').trim();
  const seen = (node) => node.checkVisibility({ visibilityProperty: true });
  return [...document.querySelectorAll('button, input, textarea, select, a[href], summary, [role=meter], [role=log], dialog')]
    .filter((node) => seen(node) && !text(node) && !node.getAttribute('aria-labelledby')).map((node) => node.outerHTML.slice(0, 120));
}

const scrollsSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth || document.body.scrollWidth > innerWidth);

test('Enter sends, Shift+Enter breaks the line, Escape stops and keeps the focus in the field', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await chat.input.focus();
  await page.keyboard.type('one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two');
  assert.equal(await chat.input.inputValue(), 'one\ntwo');
  assert.equal(await chat.replies.count(), 0);
  await page.keyboard.press('Enter');
  assert.equal(await page.getByTestId('message-user').innerText(), 'one\ntwo');
  assert.equal(await chat.input.inputValue(), '');
  await eventually(async () => (await chat.text()).length > 0, 'text comes');
  await page.keyboard.press('Escape');
  await chat.ended();
  assert.match(await chat.reply.innerText(), /^Stopped\.$/m);
  assert.equal(await chat.input.evaluate((node) => node === document.activeElement), true);
  await close();
});

/**
 * In the page: sends a key that an input method takes to the focused field, as most browsers report it, and as Safari
 * does.
 */
function composeWith(key) {
  for (const how of [{ isComposing: true }, { keyCode: 229 }]) {
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...how }));
  }
}

test('keys of an input method are not for the page', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 1280, height: 700 } });
  await chat.ask('Hello!');
  await page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  for (const key of ['Enter', 'Escape']) await page.evaluate(composeWith, key);
  assert.equal(await page.locator('#editing').isVisible(), true, 'the editing goes on');
  assert.deepEqual([await chat.input.inputValue(), await page.getByTestId('message-user').count()], ['Hello!', 1]);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('#editing').isVisible(), false);
  await page.getByTestId('list-button').click();
  await page.getByRole('button', { name: /^More about/ }).click();
  await page.getByRole('button', { name: 'Rename' }).click();
  const name = page.getByLabel('Name of the conversation');
  await name.fill('Greetings');
  for (const key of ['Enter', 'Escape']) await page.evaluate(composeWith, key);
  assert.equal(await name.inputValue(), 'Greetings', 'the name is still being written');
  await page.keyboard.press('Enter');
  await page.locator('.list-title', { hasText: 'Greetings' }).waitFor();
  await close();
});

test('an empty message is not sent', async () => {
  const { page, chat, close } = await openChat(here);
  assert.equal(await page.getByTestId('send').isDisabled(), true);
  await chat.input.fill('  \n ');
  await page.keyboard.press('Enter');
  assert.equal(await page.getByTestId('message-user').count(), 0);
  await close();
});

test('everything can be reached and named without eyes', async () => {
  const { page, chat, close } = await openChat(here);
  const log = page.getByRole('log', { name: 'Conversation' });
  assert.equal(await log.getAttribute('aria-live'), 'polite');
  await chat.ask('Hello!');
  assert.equal(await log.getByRole('article').count(), 2);
  assert.equal(await page.getByRole('textbox', { name: 'Message' }).count(), 1);
  for (const name of ['Send', 'New chat', 'Settings', 'Switch between light and dark']) {
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 1, name);
  }
  assert.equal(await page.getByRole('meter', { name: 'Context used' }).count(), 1);
  assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
  assert.equal(await page.getByRole('main').count(), 1);
  assert.deepEqual(await page.evaluate(namelessControls), []);
  await eventually(async () => /^Reply: \S/.test(await page.locator('#announcer').innerText()), 'the finished reply is announced once');
  assert.ok(await page.locator('html').getAttribute('lang'));
  await close();
});

test('dialogs are named, hold the focus and give it back', async () => {
  const { page, close } = await openChat(here);
  for (const [opener, name] of [['#model-button', 'Model'], ['[data-testid=settings]', 'Settings']]) {
    await page.locator(opener).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name, exact: true }).waitFor();
    assert.deepEqual(await page.evaluate(namelessControls), [], name);
    assert.equal(await page.evaluate(() => document.querySelector('dialog[open]').contains(document.activeElement)), true);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.equal(await page.evaluate((selector) => document.activeElement === document.querySelector(selector), opener), true, `${name} gives the focus back`);
  }
  await close();
});

test('the Tab key reaches every control of the page, in order', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.input.fill('so that Send can be reached');
  const reached = new Set();
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement?.id));
  }
  for (const id of ['model-button', 'new-chat', 'theme', 'settings', 'input', 'send']) assert.ok(reached.has(id), `${id} not in ${[...reached]}`);
  await close();
});

test('on a phone nothing scrolls sideways, and everything to press is large enough', async () => {
  const { page, chat, close } = await openChat(here, PHONE);
  assert.equal(await scrollsSideways(page), false);
  await chat.ask(`${'averyveryverylongword'.repeat(20)} and https://example.com/${'path/'.repeat(60)}`);
  assert.equal(await scrollsSideways(page), false);
  const small = await page.evaluate(() => [...document.querySelectorAll('header button, #send, #stop')]
    .filter((node) => node.checkVisibility()).map((node) => ({ id: node.id, ...node.getBoundingClientRect().toJSON() }))
    .filter(({ width, height }) => Math.min(width, height) < 24).map(({ id }) => id));
  assert.deepEqual(small, []);
  await page.locator('#model-button').click();
  assert.equal(await scrollsSideways(page), false);
  const box = await page.locator('#model-dialog').boundingBox();
  assert.ok(box.x >= 0 && box.x + box.width <= 390, JSON.stringify(box));
  await close();
});

test('light and dark: as the system says, until it is switched, and the choice is kept', async () => {
  const { page, chat, close } = await openChat(here, { colorScheme: 'dark' });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await page.emulateMedia({ colorScheme: 'light' });
  const light = await background();
  assert.notEqual(light, dark);
  await page.getByTestId('theme').click();
  await eventually(async () => await background() === dark, 'dark after the switch');
  await page.reload();
  await chat.ready();
  assert.equal(await background(), dark);
  await page.getByTestId('theme').click();
  await eventually(async () => await background() === light, 'light after another');
  await close();
});

test('what a visitor types is shown as text', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 4, seed: 1 } });
  const typed = VECTORS.slice(0, 5).join('\n');
  await chat.ask(typed);
  assert.equal(await page.getByTestId('message-user').locator('.bubble').evaluate((node) => node.textContent), typed);
  assert.deepEqual(await page.evaluate(dangers, '#log'), []);
  await close();
});

test('what a model writes becomes markup of the harmless kind only', async () => {
  const content = `# Title\n\n**bold** and \`code\`\n\n- item\n\n${VECTORS.join('\n\n')}\n\n[good](https://example.com/page)`;
  const stored = { version: 1, messages: [{ role: 'user', content: VECTORS[0] }, { role: 'assistant', content, thinking: VECTORS.join('\n'), thoughtMs: 1, note: VECTORS[1] }] };
  const { page, chat, close } = await openChat(here, {
    init: (chatText) => localStorage.setItem('quern:chat', chatText), initArgument: JSON.stringify(stored),
  });
  assert.deepEqual(await page.evaluate(dangers, '#log'), []);
  assert.match(await chat.text(), /<script>alert\(2\)<\/script>/);
  assert.equal(await chat.reply.locator('strong').innerText(), 'bold');
  const links = await chat.reply.locator('.prose a').evaluateAll((nodes) => nodes.map(({ href, rel, target }) => ({ href, rel, target })));
  for (const { href, rel } of links) assert.ok(/^https?:/.test(href) && /noopener|noreferrer/.test(rel), `${href} ${rel}`);
  assert.ok(links.some(({ href }) => href === 'https://example.com/page'));
  await close();
});

test('names out of a model file are shown as text', async () => {
  const { page, chat, close } = await openChat(here);
  const name = '<img src=x onerror=alert(1)>\u202Egnp';
  await chat.loadFile(`${name}.gguf`, tinyModel({}, { kv: { 'general.name': ['string', name] } }));
  await eventually(async () => (await page.getByTestId('model-name').innerText()).startsWith('<img src=x'), 'the label is the file name');
  assert.match(await chat.fact('In use'), /^<img src=x onerror=alert\(1\)>/);
  for (const where of ['.bar', '#tray', '#model-facts']) assert.deepEqual(await page.evaluate(dangers, where), [], where);
  await close();
});
