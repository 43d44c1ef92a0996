// SPDX-License-Identifier: MIT
// Presets: made, chosen, renamed, deleted and brought back in the settings, and taken over from a link after a question.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';

const here = station();

const stored = (page, key) => page.evaluate((name) => JSON.parse(localStorage.getItem(`quern:${name}`)), key);
const select = (page) => page.locator('#preset');
const press = (page, name) => page.locator('#presets').getByRole('button', { name, exact: true }).click();
const chosen = (page) => select(page).evaluate(({ selectedOptions: [option] }) => option.textContent);

const MILLER = { system: 'You are a miller.', temperature: 0, tools: 'auto', thinking: true };

async function openSettings(page) {
  await page.locator('#settings').click();
  await select(page).waitFor();
}

test('a preset is made of the present settings, chosen, renamed, deleted and brought back', async () => {
  const settings = { ...MILLER, contextSize: 400 };
  const visit = await openChat(here, { init: storeSettings, initArgument: settings });
  const { page, close } = visit;
  await openSettings(page);
  assert.equal(await chosen(page), 'The values below');
  await press(page, 'Save as a preset');
  await page.getByLabel('Name of the preset').fill('Miller');
  await page.keyboard.press('Enter');
  assert.equal(await chosen(page), 'Miller');
  assert.deepEqual(await stored(page, 'presets'), [{ name: 'Miller', ...MILLER }]);
  assert.deepEqual(await complaints(visit), []);
  await select(page).selectOption('The model’s own');
  assert.deepEqual(await stored(page, 'settings'), { contextSize: 400, thinking: false }, 'options of a load stay');
  assert.equal(await page.getByLabel('System prompt').inputValue(), '');
  await press(page, 'Undo');
  assert.deepEqual(await stored(page, 'settings'), settings);
  assert.equal(await chosen(page), 'Miller');
  await page.getByLabel('Temperature').fill('0.5');
  await page.keyboard.press('Tab');
  assert.equal(await chosen(page), 'The values below', 'a change makes them others');
  await select(page).selectOption('Miller');
  assert.equal(await page.getByLabel('Temperature').inputValue(), '0');
  await press(page, 'Rename');
  await page.getByLabel('Name of the preset').fill('Old miller');
  await page.keyboard.press('Escape');
  assert.equal(await chosen(page), 'Miller', 'Escape keeps the name, and the settings open');
  await press(page, 'Rename');
  await page.getByLabel('Name of the preset').fill('Old miller');
  await press(page, 'Store');
  assert.equal(await chosen(page), 'Old miller');
  await press(page, 'Delete');
  assert.deepEqual(await stored(page, 'presets'), []);
  assert.equal(await page.getByLabel('System prompt').inputValue(), MILLER.system, 'its values stay');
  await press(page, 'Undo');
  assert.equal(await chosen(page), 'Old miller');
  await page.getByRole('button', { name: 'Reset all' }).click();
  assert.equal(await chosen(page), 'The values below', 'the switch for thinking is no field');
  await close();
});

test('a link shows its preset, and changes something only if the visitor says so', async () => {
  const { page, close } = await openChat(here, { init: storeSettings, initArgument: { ...MILLER }, permissions: ['clipboard-read', 'clipboard-write'] });
  await openSettings(page);
  await press(page, 'Save as a preset');
  await page.getByLabel('Name of the preset').fill('Miller <b>');
  await page.keyboard.press('Enter');
  await press(page, 'Copy a link');
  await page.getByText('The link is copied.').first().waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  await close();

  const path = link.slice(here.url.length);
  const other = await openChat({ open: (_, options) => here.open(path, options) });
  const dialog = other.page.getByRole('dialog', { name: 'Use the preset “Miller <b>”?' });
  assert.deepEqual(await dialog.locator('dd').allInnerTexts(), ['You are a miller.', '0', 'If the model wants', 'On']);
  assert.equal(await stored(other.page, 'settings'), null);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  assert.deepEqual([await stored(other.page, 'settings'), await stored(other.page, 'presets')], [null, null]);
  assert.equal(new URL(other.page.url()).hash, '', 'a reload does not ask again');
  await other.page.evaluate((hash) => { location.hash = hash; }, new URL(link).hash);
  await dialog.getByRole('button', { name: 'Use it' }).click();
  await eventually(async () => await chosen(other.page) === 'Miller <b>', 'it is in use');
  assert.deepEqual(await stored(other.page, 'settings'), MILLER);
  await press(other.page, 'Undo');
  assert.deepEqual(await stored(other.page, 'settings'), { thinking: false });
  await other.close();
});

test('values that no field allows do not come with a link, and a link without a preset says so', async () => {
  const hostile = { name: `A\u202E${'a'.repeat(200)}`, system: 7, temperature: 5, topK: 2.5, topP: '1', seed: -1, tools: 'all', thinking: 'yes', contextSize: 9, maxTokens: 10 };
  const { page, close } = await openChat({ open: (_, options) => here.open(`#preset=${encodeURIComponent(JSON.stringify(hostile))}`, options) });
  assert.deepEqual(await page.locator('#preset-dialog dd').allInnerTexts(), ['10']);
  await page.getByRole('button', { name: 'Use it' }).click();
  await eventually(async () => (await stored(page, 'settings'))?.maxTokens === 10, 'it is in use');
  assert.deepEqual(Object.keys((await stored(page, 'presets'))[0]), ['name', 'maxTokens']);
  await page.keyboard.press('Escape');
  await page.evaluate(() => { location.hash = 'preset=%7B'; });
  await page.getByRole('dialog', { name: 'This link holds no preset that can be read.' }).getByRole('button', { name: 'Cancel' }).click();
  await close();
});
