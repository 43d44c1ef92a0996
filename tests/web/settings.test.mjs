// SPDX-License-Identifier: MIT
// The settings drawer: valid values, invalid values with their message, and the context that a load got.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tinyModel } from '../fixtures/tiny.mjs';
import { complaints, station } from './browser.mjs';
import { openChat, secondTab, storeSettings } from './chat-page.mjs';

const here = station();

const stored = (page) => page.evaluate(() => JSON.parse(localStorage.getItem('quern:settings')));
const alert = (page) => page.locator('#settings-form [role=alert]');

/** Types into a field and leaves it. */
async function enter(page, label, text) {
  await page.getByLabel(label, { exact: true }).fill('');
  await page.getByLabel(label, { exact: true }).pressSequentially(text);
  await page.keyboard.press('Tab');
}

test('what is out of range does not count, says why, and goes on saying so', async () => {
  const visit = await openChat(here, { init: storeSettings, initArgument: { temperature: 0.7 } });
  const { page, close } = visit;
  await page.locator('#settings').click();
  await enter(page, 'Temperature', '5');
  await enter(page, 'Top-k', '2.5');
  await enter(page, 'Longest reply', '-1');
  assert.deepEqual(await alert(page).allInnerTexts(), [
    'A number from 0 to 2 is needed. Until then: 0.7.', 'A whole number from 1 to 1,000 is needed. Until then: model\'s own.', 'A whole number from 1 to 1,000,000 is needed. Until then: no limit.',
  ]);
  assert.deepEqual(await complaints(visit), []);
  await page.keyboard.press('Escape');
  await page.locator('#settings').click();
  assert.equal(await alert(page).count(), 3, 'still');
  assert.equal(await page.getByLabel('Temperature').getAttribute('aria-invalid'), 'true');
  assert.equal((await stored(page)).temperature, 0.7);
  await page.getByLabel('Temperature').fill('0.33');
  assert.equal(await alert(page).count(), 2, 'gone as soon as it is right');
  assert.equal((await stored(page)).temperature, 0.33);
  await page.getByRole('button', { name: 'Reset all' }).click();
  assert.equal(await alert(page).count(), 0);
  await close();
});

test('context sizes are those that people type, and the page says where a model holds less', async () => {
  const { page, chat, close } = await openChat(here);
  for (const [typed, says] of [['300', ''], ['5000', 'The model in use holds 512 tokens at most.']]) {
    await page.locator('#settings').click();
    await enter(page, 'Context size', typed);
    assert.equal(await alert(page).count(), 0);
    await page.keyboard.press('Escape');
    await chat.loadFile(`tiny ${typed}.gguf`, tinyModel({ context: 512 }));
    await chat.modelName(`tiny ${typed}`);
    await page.getByText(says ? 'of 512 tokens' : 'of 300 tokens').waitFor();
    assert.equal(await page.locator('#context-took').textContent(), says);
  }
  await close();
});

test('a system prompt that is too long leads to the settings, and a shorter one is tried at once', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { system: 'Be kind. '.repeat(1500), seed: 1 } });
  await chat.send('Hello!');
  await chat.error.waitFor();
  assert.match(await chat.error.innerText(), /This model cannot hold more/);
  await chat.error.getByRole('button', { name: 'Shorten the system prompt' }).click();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'set-system');
  await page.getByLabel('System prompt').fill('Be kind.');
  await page.keyboard.press('Escape');
  await chat.error.waitFor({ state: 'detached' });
  await chat.ended();
  assert.ok((await chat.text()).length > 0);
  await close();
});

test('a reset can be taken back, the system prompt too', async () => {
  const settings = { system: 'You are a miller.', temperature: 0.5, tools: 'auto', thinking: true };
  const visit = await openChat(here, { init: storeSettings, initArgument: settings });
  const { page, close } = visit;
  await page.locator('#settings').click();
  await page.getByRole('button', { name: 'Reset all' }).click();
  assert.deepEqual(await stored(page), { thinking: true });
  assert.equal(await page.getByLabel('System prompt').inputValue(), '');
  assert.deepEqual(await complaints(visit), []);
  await page.getByRole('button', { name: 'Undo' }).click();
  assert.deepEqual(await stored(page), settings);
  assert.equal(await page.getByLabel('System prompt').inputValue(), 'You are a miller.');
  assert.equal(await page.getByLabel('Tools').inputValue(), 'auto');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'settings-reset');
  await page.getByRole('button', { name: 'Reset all' }).click();
  await enter(page, 'Top-k', '7');
  assert.equal(await page.getByRole('button', { name: 'Undo' }).count(), 0, 'a later change is not undone with it');
  await close();
});

test('two tabs: neither takes away what the other has set', async () => {
  const visit = await openChat(here);
  const tabs = [visit.page, (await secondTab(visit)).page];
  for (const [i, [label, text]] of [['System prompt', 'Be kind.'], ['Temperature', '0.5'], ['Top-k', '7']].entries()) {
    const page = tabs[i % 2];
    await page.locator('#settings').click();
    await enter(page, label, text);
    await page.keyboard.press('Escape');
  }
  await tabs[1].getByRole('switch', { name: 'Thinking' }).click();
  assert.deepEqual(await stored(tabs[0]), { system: 'Be kind.', temperature: 0.5, topK: 7, thinking: true });
  await tabs[0].locator('#settings').click();
  await tabs[0].getByRole('button', { name: 'Reset all' }).click();
  assert.deepEqual(await stored(tabs[0]), { thinking: true });
  await visit.close();
});

test('a message that is too long leads back to the message', async () => {
  const { chat, close } = await openChat(here);
  await chat.send('word '.repeat(5000));
  await chat.error.getByRole('button', { name: 'Edit the message' }).click();
  assert.match(await chat.input.inputValue(), /^word word/);
  await close();
});
