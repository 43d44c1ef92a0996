// SPDX-License-Identifier: MIT
// A model file from the disk is kept on this device with one switch: copied with progress, in the list afterwards, and
// loaded by the next visit. Where there is no room, or the copying is stopped, the page says so and nothing stays.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { tinyModel } from '../fixtures/tiny.mjs';
import { PAIR } from '../fixtures/vision/golden.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';

const here = station();

const stored = (page) => page.getByTestId('stored').allInnerTexts();
const picked = (page) => page.getByTestId('picked');
const keep = (page) => page.getByRole('switch', { name: 'Keep on this device' });

/** Loads a model from the disk and opens the dialog. */
async function openPicked(options) {
  const visit = await openChat(here, options);
  await visit.chat.loadFile('My mill.Q8_0.gguf', tinyModel());
  await visit.chat.modelName('My mill.Q8_0');
  await visit.page.locator('#model-button').click();
  await picked(visit.page).waitFor();
  return visit;
}

test('a file is kept with one switch, in the list as a downloaded one, and there after a reload', async () => {
  const visit = await openPicked();
  const { page, chat, close } = visit;
  assert.match(await picked(page).innerText(), /^My mill\.Q8_0\s+in use\s+[\d.]+ kB on your disk\. After a reload it has to be chosen again\.\s+Keep on this device$/);
  assert.deepEqual(await complaints(visit), []);
  await keep(page).click();
  await eventually(async () => /^My mill Q8_0 in use\s+[\d.]+ kB, complete/.test((await stored(page))[0]?.replaceAll('\n', ' ')), async () => `in the list: ${await stored(page)}`);
  assert.equal(await picked(page).count(), 0);
  await page.reload();
  await chat.modelName('My mill.Q8_0');
  assert.equal(await chat.notice.getByText('has to be chosen again').count(), 0);
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Delete My mill.Q8_0' }).click();
  await page.getByRole('button', { name: /for good$/ }).click();
  await eventually(async () => (await stored(page)).length === 0, 'it can be deleted');
  await close();
});

test('a model and its projector are kept together', async () => {
  const { page, chat, close } = await openChat(here);
  await page.getByTestId('file-input').setInputFiles([PAIR.options.vision, PAIR.source].map((path, i) => ({ name: i ? 'sees.gguf' : 'sees-mmproj.gguf', mimeType: '', buffer: readFileSync(path) })));
  await chat.modelName('sees');
  await page.locator('#model-button').click();
  await keep(page).click();
  await eventually(async () => /2 files, complete/.test((await stored(page))[0]), 'both are there');
  await page.reload();
  await chat.modelName('sees');
  assert.equal(await chat.fact('Vision'), 'images and videos');
  await close();
});

test('where the code for it cannot be fetched, the dialog is as useful as without it', async () => {
  const visit = await openChat(here, { expected: /^console: .*late\/keeping/ });
  await visit.context.route('**/late/keeping.js', (route) => route.abort());
  await visit.chat.loadFile('My mill.Q8_0.gguf', tinyModel());
  await visit.chat.modelName('My mill.Q8_0');
  const asked = visit.page.waitForEvent('requestfailed', (request) => request.url().endsWith('/late/keeping.js'));
  assert.match(await visit.chat.fact('Context'), /\d/);
  await asked;
  assert.equal(await keep(visit.page).count(), 0);
  await visit.close();
});

test('without room the page says how much there is, and nothing is copied', async () => {
  const init = () => { navigator.storage.estimate = async () => ({ usage: 5e9, quota: 5e9 + 1000 }); };
  const { page, close } = await openPicked({ init });
  await keep(page).click();
  await picked(page).getByText(/^It has [\d.]+ kB, but only 1\.0 kB can still be stored here\.$/).waitFor();
  assert.equal(await keep(page).getAttribute('aria-checked'), 'false');
  assert.deepEqual(await stored(page), []);
  await close();
});

test('the copying can be stopped, which leaves nothing', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await page.locator('#model-button').click();
  await picked(page).waitFor();
  await page.evaluate(() => {
    const node = document.querySelector('[data-testid=picked] [role=switch]');
    node.click();
    node.click();
  });
  await picked(page).getByText('It is not kept.').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('#model-button').click();
  await picked(page).waitFor();
  assert.deepEqual(await stored(page), []);
  await close();
});
