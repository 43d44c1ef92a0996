// SPDX-License-Identifier: MIT
// The model dialog says how fast models are here: an estimate, by a measurement of the device that is kept, and then
// what was measured.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { load } from '../../dist/node.js';
import { makeModel, measure } from '../../web/model/late/yardstick.js';
import { soon } from '../js/support/soon.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const here = station();

let host;
before(async () => { host = await serveModels(() => talkativeModel()); });
after(() => host.close());

const ESTIMATE = /Estimate for this device: about [\d.,]+ tokens a second\./;
const rows = async (page) => (await page.locator('#shelf li').allInnerTexts()).slice(1);
const kept = (page, key) => page.evaluate((name) => JSON.parse(localStorage.getItem(`quern:${name}`)), key);

test('the yardstick is a model that loads, and one of twice its size reads about as many bytes in a second', async (t) => {
  assert.ok(makeModel(6).size > 1.9 * makeModel(3).size && makeModel(3).size < 60e6);
  await soon(3, async () => {
    const [small, large] = [await measure(load, 3), await measure(load, 6)];
    t.diagnostic(`${(small / 1e9).toFixed(1)} and ${(large / 1e9).toFixed(1)} GB/s`);
    return Math.max(small, large) / Math.min(small, large);
  });
});

test('each known model has an estimate, which is kept; larger files are slower', { timeout: 120_000 }, async () => {
  const visit = await openChat(here);
  const { page, chat, close } = visit;
  await page.locator('#model-button').click();
  await eventually(async () => (await rows(page)).every((text) => ESTIMATE.test(text)), 'all have one');
  const speeds = (await rows(page)).map((text) => Number(/about ([\d.,]+)/.exec(text)[1].replace(',', '')));
  const sizes = await page.locator('#shelf li[data-size]').evaluateAll((nodes) => nodes.map(({ dataset }) => Number(dataset.size)));
  assert.ok(speeds[sizes.indexOf(Math.min(...sizes))] > 3 * speeds[sizes.indexOf(Math.max(...sizes))], `${speeds}`);
  assert.deepEqual(await complaints(visit), []);
  const { at, rate } = await kept(page, 'device');
  assert.ok(rate > 1e8);
  await page.reload();
  await chat.ready();
  await page.locator('#model-button').click();
  await eventually(async () => ESTIMATE.test((await rows(page))[0]), 'at once');
  await page.waitForTimeout(2500);
  assert.equal((await kept(page, 'device')).at, at, 'it is not measured again');
  await close();
});

test('the speed of a model that has written replaces the estimate, and nothing is measured while a reply is written', { timeout: 120_000 }, async () => {
  const { page, chat, close } = await openChat(here, { origins: [host.url], init: storeSettings, initArgument: { maxTokens: 200, temperature: 0 } });
  await chat.loadUrl(`${host.url}/mill.gguf`);
  await chat.modelName('mill');
  await chat.ask('Talk.');
  await eventually(async () => await kept(page, 'speeds'), 'it is noted');
  const row = page.getByTestId('stored');
  await page.locator('#model-button').click();
  await row.getByText(/^Measured here: [\d.,]+ tokens a second\.$/).waitFor();
  const [[url, speed]] = await kept(page, 'speeds');
  assert.equal(url, `${host.url}/mill.gguf`);
  assert.ok(speed > 0);
  await page.keyboard.press('Escape');
  await page.evaluate(() => localStorage.removeItem('quern:device'));
  await page.locator('#settings').click();
  await page.locator('#set-maxTokens').fill('');
  await page.keyboard.press('Tab');
  await page.locator('#settings-dialog [data-close]').click();
  await chat.send('Talk on.');
  await page.locator('html[data-state=working]').waitFor();
  await page.locator('#model-button').click();
  await page.waitForTimeout(3000);
  assert.equal(await kept(page, 'device'), null);
  await page.keyboard.press('Escape');
  await page.getByTestId('stop').click();
  await chat.ended();
  await close();
});
