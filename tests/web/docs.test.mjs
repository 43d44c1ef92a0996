// SPDX-License-Identifier: MIT
// The documentation in Chromium, in a folder below a server's root. It can be read and searched by keyboard alone,
// without a violation of its own policy or a request to another origin (Visit checks that), and axe finds no problem,
// in light, in dark and on a phone.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildDocs } from '../../tools/docs.mjs';
import { removeFolder, temporaryFolder } from '../js/support/pack.mjs';
import { complaints, eventually, station } from './browser.mjs';

const folder = temporaryFolder();
before(() => buildDocs({ out: join(folder, 'some/where') }));
after(() => removeFolder(folder));
const here = station({ root: folder });

const DESK = { viewport: { width: 1360, height: 900 } };
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const open = (path, options = DESK) => here.open(`some/where/${path}`, options);

test('a search by keyboard leads to an option', async () => {
  const visit = await open('recipes/images.html');
  const { page } = visit;
  await page.keyboard.press('/');
  await page.keyboard.type('context size');
  await page.getByRole('dialog').getByText('LoadOptions.contextSize', { exact: true }).waitFor();
  assert.match(await page.getByRole('dialog').getByRole('status').innerText(), /^\d+ found$/);
  assert.deepEqual(await complaints(visit), []);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/some/where/reference/load.html#LoadOptions.contextSize');
  await eventually(() => page.locator(':target').isVisible(), 'the option');
  await visit.close();
});

test('the switch of the theme is kept from page to page', async () => {
  const visit = await open('index.html', { ...DESK, colorScheme: 'light' });
  const { page } = visit;
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await page.getByRole('link', { name: 'Thinking' }).click();
  await page.waitForURL('**/thinking.html');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await visit.close();
});

test('on a phone the list of pages opens over the text', async () => {
  const visit = await open('reference/profile.html', { ...PHONE, colorScheme: 'dark' });
  const { page } = visit;
  assert.deepEqual(await complaints(visit), []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE.viewport.width);
  await page.getByRole('button', { name: 'All pages' }).click();
  await page.getByRole('link', { name: 'From a CDN' }).click();
  await page.waitForURL('**/cdn.html');
  assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'From a CDN');
  await visit.close();
});

test('the playground is the chat page', async () => {
  const visit = await open('index.html');
  await visit.page.getByRole('link', { name: 'Playground', exact: true }).click();
  await visit.page.getByTestId('status').getByText('Ready', { exact: true }).waitFor();
  await visit.close();
});
