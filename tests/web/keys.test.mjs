// SPDX-License-Identifier: MIT
// The shortcuts of the keyboard: what each key does, where it does nothing, and the dialog that lists them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';

const here = station();

const focused = (page) => page.evaluate(() => document.activeElement.id);
const users = (page) => page.getByTestId('message-user').count();
const isOpen = (page) => page.getByTestId('list').evaluate(({ open }) => open);

for (const width of [1280, 390]) {
  test(`${width} wide: the list, its search and a new chat by keys`, async () => {
    const { page, chat, close } = await openChat(here, { viewport: { width, height: 800 } });
    await chat.ask('Hello!');
    await page.keyboard.press('Control+b');
    await eventually(() => isOpen(page), 'the list is open');
    await page.keyboard.press('Control+b');
    await eventually(async () => !await isOpen(page), 'the list is closed');
    await page.keyboard.press('Control+k');
    await eventually(async () => await focused(page) === 'list-search', 'the search has the focus');
    await page.keyboard.type('a?');
    assert.equal(await page.locator('#list-search').inputValue(), 'a?', 'a question mark is a letter in a field');
    await page.keyboard.press('Control+Shift+O');
    await eventually(async () => await users(page) === 0, 'a new chat');
    assert.equal(await isOpen(page), width > 1000, 'a list over the page makes room');
    await eventually(async () => await focused(page) === 'input', 'the field has the focus');
    await close();
  });
}

test('the arrow edits the last message from an empty field only, and Escape ends the edit', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.input.press('ArrowUp');
  assert.equal(await chat.input.inputValue(), '', 'there is no message yet');
  await chat.ask('Hello!');
  await chat.input.fill('a\nb');
  await chat.input.press('ArrowUp');
  assert.equal(await chat.input.inputValue(), 'a\nb');
  await chat.input.fill('');
  await chat.input.press('ArrowUp');
  assert.equal(await chat.input.inputValue(), 'Hello!');
  await page.keyboard.press('Escape');
  assert.equal(await chat.input.inputValue(), '');
  await page.locator('#settings').focus();
  await page.keyboard.press('Shift+Escape');
  assert.equal(await focused(page), 'input');
  await close();
});

test('Escape stops a reply, and Ctrl+Shift+L copies it', async () => {
  const { page, chat, close } = await openChat(here, { permissions: ['clipboard-read', 'clipboard-write'] });
  await chat.loadFile('talker.gguf', talkativeModel());
  await chat.modelName('talker');
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 20, 'text comes');
  await page.keyboard.press('Escape');
  await chat.status.getByText('Stopped', { exact: true }).waitFor();
  await page.keyboard.press('Control+Shift+L');
  await page.locator('#announcer').getByText('Copied', { exact: true }).waitFor({ state: 'attached' });
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.length > 20);
  await close();
});

test('the shortcuts are listed: by a question mark, by Ctrl+/ and from the settings', async () => {
  const { page, chat, close } = await openChat(here);
  const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await chat.input.press('?');
  assert.equal(await chat.input.inputValue(), '?');
  await chat.input.press('Control+/');
  await dialog.getByText('New chat').waitFor();
  assert.deepEqual((await dialog.locator('kbd').allInnerTexts()).slice(0, 3), ['Ctrl+Shift+O', 'Ctrl+K', 'Ctrl+B']);
  await page.keyboard.press('Control+b');
  assert.equal(await isOpen(page), false, 'nothing happens behind a dialog');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.locator('#theme').focus();
  await page.keyboard.press('?');
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.locator('#settings').click();
  await page.getByRole('button', { name: 'Keyboard shortcuts' }).click();
  await dialog.waitFor();
  assert.equal(await page.locator('#new-chat').getAttribute('title'), 'New chat (Ctrl+Shift+O)');
  assert.equal(await page.locator('#new-chat').getAttribute('aria-keyshortcuts'), 'Control+Shift+O');
  await close();
});

test('keyboards without Latin letters, and Macs', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await page.evaluate(() => dispatchEvent(new KeyboardEvent('keydown', { key: 'и', code: 'KeyB', ctrlKey: true })));
  await eventually(() => isOpen(page), 'Ctrl and the key of B');
  await close();
  const init = () => Object.defineProperty(navigator, 'platform', { value: 'MacIntel' });
  const mac = await openChat(here, { init });
  assert.equal(await mac.page.locator('#list-button').getAttribute('title'), 'Conversations (⌘B)');
  await mac.page.keyboard.press('Control+b');
  assert.equal(await isOpen(mac.page), false, 'moves the cursor on a Mac');
  await mac.page.keyboard.press('Meta+b');
  await eventually(() => isOpen(mac.page), 'Command and B');
  await mac.close();
});
