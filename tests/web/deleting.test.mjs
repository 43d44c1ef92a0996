// SPDX-License-Identifier: MIT
// Messages that are deleted or edited by the visitor, all conversations deleted at once, and the days in the list.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, secondTab, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station();

const users = (page) => page.getByTestId('message-user').locator('.bubble').allInnerTexts();
const titles = (page) => page.locator('.list-title').allTextContents();
const open = (page) => page.getByTestId('list-button').click();

/** In the page: ids of the stored messages, and the text in which a search looks. */
function stored() {
  return new Promise((done) => {
    indexedDB.open('quern').onsuccess = ({ target: { result: db } }) => {
      const read = db.transaction(['messages', 'texts']);
      const messages = read.objectStore('messages').getAll();
      const texts = read.objectStore('texts').getAll();
      read.oncomplete = () => {
        db.close();
        done({ messages: messages.result.map(({ content }) => content).sort(), texts: texts.result });
      };
    };
  });
}

test('a message is deleted with what follows, from the store too, and comes back', async () => {
  const visit = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  const { page, chat, close } = visit;
  const questions = ['Hello!', 'What is 27 + 45?', 'What is the capital of Kenya?'];
  for (const question of questions) await chat.ask(question);
  const before = await page.evaluate(stored);
  const other = await secondTab(visit);
  await page.getByTestId('message-user').nth(1).getByRole('button', { name: 'Delete from here on' }).click();
  await eventually(async () => (await users(page)).length === 1, 'one question is left');
  await eventually(async () => (await users(other.page)).length === 1, 'in the other tab too');
  assert.deepEqual(await complaints(visit), []);
  await eventually(async () => (await page.evaluate(stored)).messages.length === 2, 'nothing of it is stored');
  assert.doesNotMatch((await page.evaluate(stored)).texts[0], /kenya/);
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => (await users(page)).length === 3, 'all are back');
  assert.equal(await page.getByTestId('notice').count(), 0);
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), questions);
  assert.deepEqual((await page.evaluate(stored)).messages, before.messages);
  assert.match((await page.evaluate(stored)).texts[0], /kenya/);
  await chat.reply.getByRole('button', { name: 'Delete from here on' }).click();
  await eventually(async () => await chat.replies.count() === 2, 'the last reply is gone');
  await page.getByRole('button', { name: 'Answer this' }).click();
  await chat.ended();
  assert.equal(await chat.replies.count(), 3);
  await close();
});

test('a version that is deleted leaves the other one; the only message goes with its conversation', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await chat.send('What is quern?');
  await eventually(async () => (await users(page)).join() === 'What is quern?', 'the other version');
  await chat.ended();
  await page.getByTestId('message-user').getByRole('button', { name: 'Delete from here on' }).click();
  await eventually(async () => (await users(page)).join() === 'Hello!', 'the first version');
  assert.equal(await page.locator('.branches').count(), 0);
  await page.getByTestId('message-user').getByRole('button', { name: 'Delete from here on' }).click();
  await page.locator('#welcome').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => (await users(page)).join() === 'Hello!', 'the conversation is back');
  await close();
});

test('a running reply stops before it is deleted', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await chat.loadFile('talker.gguf', talkativeModel());
  await chat.modelName('talker');
  await chat.send('Talk.');
  await eventually(async () => (await users(page)).length === 2, 'the question');
  await eventually(async () => (await chat.text()).length > 20, 'text comes');
  await page.getByTestId('message-user').last().getByRole('button', { name: 'Delete from here on' }).click();
  await eventually(async () => (await users(page)).join() === 'Hello!', 'the question is gone');
  await page.getByTestId('send').waitFor();
  await eventually(async () => (await page.evaluate(stored)).messages.length === 2, 'and so is its reply');
  await close();
});

test('an edited reply is another version, which the model reads and continues', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  await chat.ask('Hello!');
  const first = await chat.text();
  await chat.reply.getByRole('button', { name: 'Edit this reply' }).click();
  assert.equal(await chat.input.inputValue(), first);
  await chat.input.fill('The capital of Kenya is');
  await chat.input.press('Enter');
  await chat.reply.getByText('Edited.').waitFor();
  assert.equal(await chat.text(), 'The capital of Kenya is');
  assert.equal(await chat.reply.locator('.count').innerText(), '2/2');
  await page.reload();
  await chat.ready();
  assert.equal(await chat.text(), 'The capital of Kenya is', 'it is stored');
  await chat.reply.getByRole('button', { name: 'Continue this reply' }).click();
  await chat.ended();
  assert.match(await chat.text(), /^The capital of Kenya is.+/);
  await chat.reply.getByRole('button', { name: 'Earlier version' }).click();
  assert.equal(await chat.text(), first);
  await close();
});

test('all conversations are deleted, and come back', async () => {
  const { page, chat, close } = await openChat(here);
  for (const question of ['Hello!', 'What is quern?']) {
    await page.getByTestId('new-chat').click();
    await chat.ask(question);
  }
  await open(page);
  await page.getByRole('button', { name: 'Delete all' }).click();
  await page.getByText('2 conversations are deleted.').first().waitFor();
  await page.locator('#list-none').getByText('No conversation yet.').waitFor();
  assert.deepEqual(await users(page), []);
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => (await titles(page)).join() === 'What is quern?,Hello!', 'both are back');
  await eventually(async () => (await users(page)).join() === 'What is quern?', 'the last one is shown');
  await close();
});

test('the list has a heading for each day, week or month', async () => {
  const { page, chat, close } = await openChat(here, { locale: 'en-GB' });
  const day = (back) => new Date().setHours(0, 30, 0, 0) - back * 86_400_000;
  const made = [
    { id: 'now', changed: Date.now() }, { id: 'early', changed: new Date().setHours(0, 0, 0, 0) }, { id: 'one', changed: day(1) },
    { id: 'seven', changed: day(7) }, { id: 'old', changed: Date.UTC(2024, 4, 12, 12) }, { id: 'pin', changed: day(400), pinned: true },
  ];
  const conversations = made.map((one) => ({ ...one, title: one.id, messages: [{ id: `${one.id}1`, role: 'user', content: one.id }] }));
  await open(page);
  await chat.addFile(JSON.stringify({ quern: 1, conversations }));
  await eventually(async () => (await titles(page)).length === made.length, 'all rows');
  const lines = await page.locator('#list-rows').locator('h3, .list-title').allTextContents();
  assert.deepEqual(lines, [
    'Pinned', '★ pin', 'Today', 'now', 'early', 'Yesterday', 'one', 'Previous 7 days', 'seven', 'May 2024', 'old',
  ]);
  await page.locator('#list-search').fill('seven');
  await eventually(async () => await page.locator('#list-rows h3').count() === 1, 'headings of what is found only');
  await close();
});
