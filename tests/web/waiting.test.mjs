// SPDX-License-Identifier: MIT
// Messages that are sent while a reply is written: they wait in sight for its end, can be taken back, and are never
// lost. The engine is played (played-model.js).
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(() => site.remove());
const here = station({ root: site.root });

/** Holds all replies back, or lets them go on, so that a slow machine has time to type. */
const hold = (page, isHeld = true) => page.evaluate((held) => { globalThis.isHeld = held; }, isHeld);

const waiting = (page) => page.locator('#queued li');
const questions = (page) => page.getByTestId('message-user').locator('.bubble').allInnerTexts();

test('messages wait for the end of the reply, one after the other', async () => {
  const visit = await openChat(here);
  const { page, chat, close } = visit;
  await hold(page);
  await chat.send('Write 80.');
  await page.getByTestId('stop').waitFor();
  await chat.send('Write 40. Then this.');
  await chat.send('Write 5. And that.');
  assert.deepEqual(await waiting(page).locator('span').allInnerTexts(), ['Next: Write 40. Then this.', 'Next: Write 5. And that.']);
  assert.equal(await chat.input.inputValue(), '');
  const ofQueue = (await complaints(visit)).filter((text) => text.includes('#queued'));     // the played text has faults of its own
  assert.deepEqual(ofQueue, []);
  await hold(page, false);
  await eventually(async () => (await questions(page)).length === 3, 'all are asked');
  await chat.ended();
  assert.deepEqual(await questions(page), ['Write 80.', 'Write 40. Then this.', 'Write 5. And that.']);
  assert.equal(await chat.replies.count(), 3);
  assert.equal(await waiting(page).count(), 0);
  await close();
});

test('a waiting message is taken back into the field; a reply that is stopped or fails gives all back', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.send('Talk.');
  await page.getByTestId('stop').waitFor();
  await chat.send('First.');
  await chat.send('Second.');
  await waiting(page).first().getByRole('button', { name: 'Do not send this' }).click();
  assert.equal(await chat.input.inputValue(), 'First.');
  await chat.input.press('End');
  await page.getByTestId('stop').click();
  await chat.ended();
  await eventually(async () => await chat.input.inputValue() === 'First.\n\nSecond.', 'both are there');
  assert.deepEqual([await waiting(page).count(), await questions(page)], [0, ['Talk.']]);
  await chat.input.fill('');
  await hold(page);
  await chat.send('Fail.');
  await page.getByTestId('stop').waitFor();
  await chat.send('Third.');
  await hold(page, false);
  await chat.error.waitFor();
  await eventually(async () => await chat.input.inputValue() === 'Third.', 'not asked after a failure');
  await close();
});

test('a message waits in its own conversation, and survives a page that is left', async () => {
  const { page, chat, close } = await openChat(here);
  await hold(page);
  await chat.send('Write 60. A');
  await page.getByTestId('stop').waitFor();
  await chat.send('Write 3. B');
  await page.getByTestId('new-chat').click();
  assert.equal(await waiting(page).count(), 0);
  await hold(page, false);
  await page.goBack();
  await eventually(async () => (await questions(page)).join() === 'Write 60. A,Write 3. B', 'asked where it was written');
  await chat.ended();
  await chat.send('Talk.');
  await page.getByTestId('stop').waitFor();
  await chat.send('Kept?');
  await page.reload();
  await chat.ready();
  assert.equal(await chat.input.inputValue(), 'Kept?');
  await close();
});
