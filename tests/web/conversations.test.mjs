// SPDX-License-Identifier: MIT
// Conversations are safe: no reload, crash, other tab or new chat loses a message or a typed text. They can be
// searched, named, deleted and restored. Messages have versions, and a reply that was cut off can be continued.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { length } from '../fixtures/lengths.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, secondTab, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station();

const users = (page) => page.getByTestId('message-user').locator('.bubble').allInnerTexts();
const titles = (page) => page.locator('.list-title').allTextContents();
const row = (page, title) => page.locator('#list-rows li', { hasText: title });

/** In the page, before its scripts: collects its workers in `workers`. */
/** The page does not learn that a worker has died, as with an abandoned worker. */
function learnNothing() {
  const { request } = LockManager.prototype;
  LockManager.prototype.request = function ask(name, ...rest) {
    return name.startsWith('quern-worker-') ? new Promise(() => {}) : request.call(this, name, ...rest);
  };
}

function keepWorkers() {
  globalThis.workers = [];
  globalThis.Worker = class extends Worker {
    constructor(...all) {
      super(...all);
      globalThis.workers.push(this);
    }
  };
}

async function openTalker(options) {
  const visit = await openChat(here, options);
  await visit.chat.loadFile('talkative.gguf', talkativeModel());
  await visit.chat.modelName('talkative');
  return visit;
}

/**
 * In the page: ends the model as soon as a text of some length is stored, long enough to show something beside Markdown
 * marks, and short enough that a page that is closed, and still writes a little, does not fill the context.
 */
async function endWhenStored() {
  let text = '';
  while (text.length <= 200) text = await globalThis.storedText('assistant');
  globalThis.workers.at(-1).terminate();
  return text;
}

/** In the page: the last stored message of this role; '' if there is none. */
function storedText(wanted) {
  return new Promise((done, fail) => {
    const opening = indexedDB.open('quern');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const all = opening.result.transaction('messages').objectStore('messages').getAll();
      all.onsuccess = () => {
        opening.result.close();
        done(all.result.findLast(({ role }) => role === wanted)?.content ?? '');
      };
    };
  });
}

async function openList(page) {
  await page.getByTestId('list-button').click();
  await page.getByTestId('list').waitFor();
}

/** One of the small actions of a row of the list. */
async function act(page, title, action) {
  const more = row(page, title).getByRole('button', { name: /^More about/ });
  if (await more.getAttribute('aria-expanded') === 'false') await more.click();
  await row(page, title).getByRole('button', { name: action, exact: true }).click();
}

test('a reload in the middle of a reply keeps what was written, and the reply goes on', async () => {
  const { page, chat, close } = await openTalker({ init: `(${keepWorkers})(); (${learnNothing})(); globalThis.storedText = ${storedText};` });
  await chat.send('Talk.');
  const before = await page.evaluate(endWhenStored);
  await page.reload();
  await chat.ready();
  const kept = await page.evaluate(storedText, 'assistant');
  assert.deepEqual(await users(page), ['Talk.']);
  assert.ok((await chat.text()).length > 100);
  assert.ok(kept.startsWith(before), kept);
  assert.match(await chat.reply.innerText(), /Interrupted: the page was closed\./);
  await chat.reply.getByRole('button', { name: 'Continue this reply' }).click();
  await eventually(async () => !(await chat.reply.innerText()).includes('Interrupted'), 'the reply goes on');
  await chat.ended();
  const whole = await chat.text();
  assert.ok((await page.evaluate(storedText, 'assistant')).startsWith(kept), 'the same beginning');
  assert.match(await chat.reply.innerText(), /Demo model/);
  await page.reload();
  await chat.ready();
  assert.equal(await chat.text(), whole);
  await close();
});

test('a question without an answer can be answered after a reload', async () => {
  const { page, chat, close } = await openChat(here, { init: keepWorkers });
  await page.evaluate(() => { globalThis.workers.at(-1).postMessage = () => { throw new Error('gone'); }; });
  await chat.send('Hello!');
  await chat.error.waitFor();
  await eventually(async () => await page.evaluate(storedText, 'user') === 'Hello!', 'the question is stored');
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), ['Hello!']);
  assert.equal(await chat.replies.count(), 0);
  await page.getByRole('button', { name: 'Answer this' }).click();
  await chat.ended();
  assert.ok((await chat.text()).length > 0);
  await close();
});

test('two tabs: neither takes away what the other has', async () => {
  const visit = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  const { page, chat, close } = visit;
  await chat.ask('Hello!');
  const other = await secondTab(visit);
  assert.deepEqual(await users(other.page), ['Hello!'], 'the second tab goes on with the last conversation');
  await other.chat.ask('What is 27 + 45?');
  await eventually(async () => (await users(page)).length === 2, 'the first tab sees it');
  assert.equal(await chat.text(), await other.chat.text());
  await other.page.getByTestId('new-chat').click();
  await other.chat.ask('What is the capital of Kenya?');
  assert.deepEqual(await users(page), ['Hello!', 'What is 27 + 45?']);
  await chat.ask('What is quern?');
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), ['Hello!', 'What is 27 + 45?', 'What is quern?']);
  await other.page.reload();
  await other.chat.ready();
  assert.deepEqual(await users(other.page), ['What is the capital of Kenya?']);
  await close();
});

test('while one tab writes in a conversation another one does not, and keeps what was typed', async () => {
  const visit = await openTalker();
  const { page, chat, close } = visit;
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 100, 'text comes');
  const other = await secondTab(visit);
  await other.chat.reply.getByText('Being written in another tab.').waitFor();
  assert.equal(await other.chat.reply.getByRole('button', { name: 'Continue this reply' }).count(), 0);
  const node = await other.chat.reply.elementHandle();
  const before = (await other.chat.text()).length;
  await eventually(async () => (await other.chat.text()).length > before + 100, 'and grows there');
  assert.equal(await node.evaluate((one) => one.isConnected && one.ariaBusy), 'true', 'where it is, unread until its end');
  await other.chat.send('Me too.');
  await other.chat.status.getByText('Another tab is writing in this conversation').waitFor();
  assert.equal(await other.chat.input.inputValue(), 'Me too.');
  assert.match(await other.page.evaluate(() => localStorage.getItem('quern:drafts')), /Me too\./, 'a reload would not lose it either');
  await other.page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  await other.chat.send('Talk differently.');
  await other.chat.status.getByText('Another tab is writing in this conversation').waitFor();
  await other.page.locator('#editing').waitFor();
  assert.equal(await other.chat.input.inputValue(), 'Talk differently.', 'what was edited is still being edited');
  await other.page.keyboard.press('Escape');
  assert.equal(await other.chat.input.inputValue(), 'Me too.');
  await page.keyboard.press('Escape');
  await chat.ended();
  await eventually(async () => (await other.chat.text()) === (await chat.text()), 'the other tab shows the whole reply');
  await other.chat.reply.getByText('Stopped.').waitFor();
  await chat.send('Talk.');
  await other.chat.reply.getByText('Being written in another tab.').waitFor();
  await page.reload();
  await other.chat.reply.getByText('Interrupted: the page was closed.').waitFor();
  await other.chat.reply.getByRole('button', { name: 'Continue this reply' }).waitFor();
  await close();
});

/** In the page, before its scripts: the browser has locks but grants none, as if the page's storage were blocked. */
function refuseLocks() {
  for (const name of ['request', 'query']) LockManager.prototype[name] = () => Promise.reject(new DOMException('Refused.', 'SecurityError'));
}

test('where the browser refuses locks the page asks and answers all the same, and shows what was interrupted', async () => {
  const { page, chat, close } = await openTalker({ init: `(${refuseLocks})(); globalThis.storedText = ${storedText};` });
  await chat.send('Talk.');
  await eventually(async () => (await page.evaluate(storedText, 'assistant')).length > 200, 'the reply is stored as it grows');
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), ['Talk.']);
  await chat.reply.getByRole('button', { name: 'Continue this reply' }).waitFor();
  assert.ok((await chat.ask('Hello!')).length > 0);
  await close();
});

test('what could not be asked is in the field again, and can be asked', async () => {
  const { page, chat, close } = await openChat(here, { expected: /^uncaught: Error: played/ });
  await chat.ask('Hello!');
  await page.evaluate(() => {
    globalThis.random = Math.random;
    Math.random = () => { throw new Error('played'); };     // no message gets an id
  });
  await chat.send('What is quern?');
  await eventually(async () => await chat.input.inputValue() === 'What is quern?', 'it is back');
  await page.evaluate(() => { Math.random = globalThis.random; });
  assert.ok((await chat.ask('What is quern?')).length > 0);
  await close();
});

test('a reply that cannot even say how it has failed is over', async () => {
  const { page, chat, close } = await openChat(here, { init: keepWorkers, expected: /^uncaught: TypeError/ });
  await page.evaluate(() => {
    globalThis.workers.at(-1).postMessage = () => { throw new Error('gone'); };
    globalThis.card = document.getElementById('t-card');
    globalThis.card.id = '';      // no failure can be shown
  });
  await chat.send('Hello!');
  await page.locator('[data-testid=message-assistant][aria-busy=false]').waitFor({ state: 'attached' });
  await page.evaluate(() => { globalThis.card.id = 't-card'; });
  await page.getByTestId('new-chat').click();
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  assert.equal(await page.getByTestId('list-button').getAttribute('aria-label'), 'Conversations', 'nothing is being written');
  await close();
});

test('a reply out of a file that is too long to go on fails, and nothing waits for it', async () => {
  const { page, chat, close } = await openChat(here);
  await openList(page);
  const long = { id: 'm', role: 'assistant', content: 'word '.repeat(5000), note: 'Stopped.' };
  await chat.addFile(JSON.stringify({ quern: 1, conversations: [{ id: 'c', title: 'Long', messages: [long] }] }));
  await row(page, 'Long').locator('.list-open').click();
  await chat.reply.getByRole('button', { name: 'Continue this reply' }).click();
  await chat.error.getByRole('button', { name: 'Try again' }).waitFor();
  await chat.ended();
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await close();
});

/** In the page: from now on the browser has no room, and later it has room again. */
function haveNoRoom() {
  const { put } = IDBObjectStore.prototype;
  globalThis.haveRoom = () => { IDBObjectStore.prototype.put = put; };
  IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); };
}

test('what the browser has no room for stays as long as the page, says so once, and is stored when there is room', async () => {
  const visit = await openChat(here, { viewport: { width: 1280, height: 700 } });
  const { page, chat, close } = visit;
  await chat.ask('Hello!');
  await page.evaluate(haveNoRoom);
  await chat.ask('What is 27 + 45?');
  await chat.notice.getByText(/does not let the page save the conversation/).waitFor();
  await chat.notice.getByRole('button', { name: 'Dismiss' }).click();
  await chat.ask('What is the capital of Kenya?');
  assert.equal(await chat.notice.count(), 0, 'it was said');
  const asked = ['Hello!', 'What is 27 + 45?', 'What is the capital of Kenya?'];
  const other = await secondTab(visit);
  assert.deepEqual(await users(other.page), ['Hello!']);
  await other.chat.ask('What is quern?');
  assert.deepEqual(await users(page), asked, 'what another tab has stored takes nothing away');
  await openList(page);
  await page.getByTestId('new-chat').click();
  await eventually(async () => (await users(page)).length === 0, 'a new chat');
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => (await users(page)).length > 0, 'the conversation');
  assert.deepEqual(await users(page), asked, 'looking elsewhere takes nothing away');
  await page.getByTestId('new-chat').click();
  await chat.ask('What is quern?');
  await row(page, 'What is quern?').getByText('Not stored').waitFor();
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => (await users(page)).length === 3, 'the conversation');
  await row(page, 'What is quern?').locator('.list-open').click();
  await eventually(async () => (await users(page)).join() === 'What is quern?', 'one that was never stored is found in the list');
  await page.evaluate(() => globalThis.haveRoom());
  await chat.ask('What is quern now?');
  await row(page, 'What is quern?').getByRole('button', { name: /^More about/ }).waitFor();
  assert.equal((await titles(page)).length, 2);
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => (await users(page)).length === 3, 'the conversation');
  await chat.ask('Hello again!');
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), [...asked, 'Hello again!']);
  assert.equal(await chat.replies.count(), 4);
  await close();
});

test('a message of hundreds of KB outlives a reload, folded', async () => {
  const { page, chat, close } = await openChat(here);
  const text = 'Lorem ipsum dolor. '.repeat(length(8000, 32_000)).trim();
  await chat.ask('Hello!');
  await chat.send(text);
  await chat.error.waitFor();
  await page.reload();
  await chat.ready();
  assert.deepEqual((await page.getByTestId('message-user').locator('.bubble').evaluateAll((all) => all.map((one) => one.textContent.length))), [6, text.length]);
  assert.ok((await page.getByTestId('message-user').last().boundingBox()).height < 400);
  await page.getByRole('button', { name: 'Show all' }).click();
  assert.ok((await page.getByTestId('message-user').last().boundingBox()).height > 5000);
  await close();
});

test('the list: open, search, rename, pin, delete and undo', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  const questions = ['What is the capital of Kenya?', 'What is 27 + 45?', 'What is quern?'];
  for (const question of questions) {
    await page.getByTestId('new-chat').click();
    await chat.ask(question);
  }
  await openList(page);
  await eventually(async () => (await titles(page)).length === 3, 'three');
  assert.deepEqual(await titles(page), questions.toReversed());
  await page.locator('#list-search').fill('NAÏROBI');
  await eventually(async () => (await titles(page)).length === 1, 'one is found, by its reply');
  await row(page, 'Kenya').locator('.list-open').click();
  await eventually(async () => (await users(page)).join() === questions[0], 'it is shown');
  await eventually(() => page.evaluate(() => document.activeElement.id === 'input'), 'and can be gone on with');
  await page.locator('#list-search').fill('');
  await eventually(async () => (await titles(page)).length === 3, 'three again');

  await act(page, 'Kenya', 'Rename');
  await page.getByLabel('Name of the conversation').fill('Africa');
  await page.keyboard.press('Enter');
  await eventually(async () => (await titles(page)).includes('Africa'), 'the new name');
  await eventually(async () => await page.title() === 'Africa · quern', 'in the title too');
  await act(page, '27 + 45', 'Pin');
  await eventually(async () => (await titles(page))[0] === '★ What is 27 + 45?', 'pinned');

  await act(page, 'Africa', 'Delete');
  await eventually(async () => (await titles(page)).length === 2, 'two');
  await eventually(async () => (await users(page)).length === 0, 'a new chat is shown');
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => (await titles(page)).length === 3, 'three');
  await eventually(async () => (await users(page)).join() === questions[0], 'it is shown again');
  await page.reload();
  await chat.ready();
  await eventually(async () => (await titles(page)).length === 3, 'the list is open again, with all');
  await close();
});

test('a row of the list stays as it is while a reply grows: what is open, what has the focus', async () => {
  const { page, chat, close } = await openTalker();
  await chat.send('Talk.');
  await openList(page);
  await row(page, 'Talk.').waitFor();
  await page.getByRole('button', { name: /^More about/ }).click();
  await row(page, 'Talk.').getByRole('button', { name: 'Pin' }).focus();
  const written = (await chat.text()).length;
  const grown = async () => (await page.evaluate(storedText, 'assistant')).length > written;
  await eventually(grown, 'the reply grows, and is stored');
  await page.waitForTimeout(500);    // until the list has updated
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Pin');
  await page.keyboard.press('Enter');
  await eventually(async () => (await titles(page))[0] === '★ Talk.', 'pinned');
  assert.equal(await page.evaluate(() => Boolean(document.activeElement.closest('#list-rows'))), true, 'the focus is in the list');
  await page.keyboard.press('Escape');
  await chat.ended();
  assert.match(await chat.reply.innerText(), /^Stopped\.$/m, 'Esc stops beside the open list');
  await close();
});

test('all conversations go into a file and come back, on another device too', async () => {
  const first = await openChat(here);
  await first.chat.ask('Hello!');
  const reply = await first.chat.text();
  await openList(first.page);
  const saved = first.page.waitForEvent('download');
  await first.page.getByRole('button', { name: 'Save all' }).click();
  const all = await readFile(await (await saved).path());
  const markdown = first.page.waitForEvent('download');
  await act(first.page, 'Hello!', 'Save as text');
  assert.match((await markdown).suggestedFilename(), /^Hello!\.md$/);
  await first.close();

  const { page, chat, close } = await openChat(here);
  await openList(page);
  for (const text of ['{', '[]', '{"quern":1,"conversations":7}', '{"quern":1,"conversations":[null,{"id":"../x"},{"id":"a","messages":[{"id":"b","role":"boss"}]}]}']) {
    await chat.addFile(text);
    await chat.notice.getByText(/holds no conversations|^0 conversations/).waitFor();
    await chat.notice.getByRole('button', { name: 'Dismiss' }).click();
  }
  const late = { id: 'late', title: 'Late', created: 1e300, changed: 1e300, messages: [{ id: 'b', role: 'user', content: 'When?' }] };
  await chat.addFile(JSON.stringify({ quern: 1, conversations: [late] }));
  await row(page, 'Late').waitFor();    // whatever date it has
  await chat.addFile(all);
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => (await users(page)).length === 1, 'it is shown');
  assert.deepEqual([await users(page), await chat.text()], [['Hello!'], reply]);
  await chat.addFile(all);
  await chat.notice.getByText('0 conversations were added.').waitFor();
  await close();
});

/** In the page, before its scripts: limits the length of JSON, as a browser does at half a gigabyte. */
function limitTexts(most) {
  const { stringify } = JSON;
  JSON.stringify = (...given) => {
    const text = stringify(...given);
    if (text?.length > most) throw new RangeError('Invalid string length');
    return text;
  };
}

/** In the page: deletes a conversation, like another tab whose message has not arrived yet. */
function takeAway(id) {
  return new Promise((done) => {
    indexedDB.open('quern').onsuccess = ({ target: { result: db } }) => {
      const transaction = db.transaction('conversations', 'readwrite');
      transaction.objectStore('conversations').delete(id);
      transaction.oncomplete = () => {
        db.close();
        done();
      };
    };
  });
}

test('what is too long for one text goes into a file too, without what has just been deleted; where one cannot be made the page says why', async () => {
  const { page, chat, close } = await openChat(here, { init: limitTexts, initArgument: 10_000 });
  const conversation = (id, length) => ({ id, title: `The ${id}`, messages: [{ id: `${id}1`, role: 'user', content: 'x'.repeat(length) }] });
  await openList(page);
  await chat.addFile(`{"quern":1,"conversations":[${['first', 'second', 'third', 'fourth'].map((id) => JSON.stringify(conversation(id, 4000)))}]}`);
  await eventually(async () => (await titles(page)).length === 4, 'four');
  await page.evaluate(takeAway, 'second');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save all' }).click();
  const { quern, conversations } = JSON.parse(await readFile(await (await download).path(), 'utf8'));
  assert.equal(quern, 1);
  assert.deepEqual(conversations.map(({ id, messages: [{ content }] }) => [id, content.length]).sort(), [['first', 4000], ['fourth', 4000], ['third', 4000]]);
  await chat.addFile(`{"quern":1,"conversations":[${JSON.stringify(conversation('long', 11_000))}]}`);
  await row(page, 'The long').waitFor();
  await page.getByRole('button', { name: 'Save all' }).click();
  await chat.notice.getByText('Invalid string length').waitFor();
  await close();
});

test('messages have versions: a reply written again, a question in other words', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  await chat.ask('What is the capital of Kenya?');
  await chat.ask('What is 27 + 45?');
  await page.getByTestId('message-user').first().getByRole('button', { name: 'Edit and send again' }).click();
  assert.equal(await chat.input.inputValue(), 'What is the capital of Kenya?');
  await chat.input.fill('What is the capital of France?');
  await page.keyboard.press('Enter');
  await page.getByRole('group', { name: 'Version 2 of 2' }).waitFor();
  await chat.ended();
  assert.deepEqual(await users(page), ['What is the capital of France?']);
  await page.getByRole('button', { name: 'Earlier version' }).click();
  await eventually(async () => (await users(page)).length === 2, 'the earlier ones');
  assert.deepEqual(await users(page), ['What is the capital of Kenya?', 'What is 27 + 45?']);
  await chat.replies.first().hover();
  await chat.replies.first().getByRole('button', { name: 'Write this reply again' }).click();
  await eventually(async () => (await chat.replies.count()) === 1 && await page.getByTestId('send').isVisible(), 'another reply');
  await page.reload();
  await chat.ready();
  assert.deepEqual(await users(page), ['What is the capital of Kenya?']);
  assert.equal(await page.getByRole('group', { name: /^Version 2 of 2/ }).count(), 1);
  assert.equal(await page.getByRole('group', { name: /^Version 1 of 2/ }).count(), 1);
  await close();
});

test('drafts stay with their conversations; editing puts them aside, and ends with a new chat', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await chat.input.fill('half a thought');
  await page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  assert.equal(await chat.input.inputValue(), 'Hello!');
  await page.keyboard.press('Escape');
  assert.equal(await chat.input.inputValue(), 'half a thought');
  await page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  await page.getByTestId('new-chat').click();
  await page.locator('#editing').waitFor({ state: 'hidden' });
  assert.equal(await chat.input.inputValue(), '');
  await chat.input.fill('something new');
  await page.reload();
  await chat.ready();
  assert.equal(await chat.input.inputValue(), 'something new');
  await openList(page);
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => await chat.input.inputValue() === 'half a thought', 'its draft is back');
  await close();
});

test('drafts stay with their conversations where the browser keeps none, and however long they are', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 1280, height: 700 } });
  await chat.ask('Hello!');
  await openList(page);
  const lookElsewhere = async () => {
    await page.getByTestId('new-chat').click();
    await eventually(async () => await chat.input.inputValue() === '', 'nothing is typed there');
    await row(page, 'Hello!').locator('.list-open').click();
    await eventually(async () => (await users(page)).length === 1, 'the conversation');
  };
  const long = 'x'.repeat(150_000);
  await chat.input.fill(long);
  await lookElsewhere();
  assert.equal((await chat.input.inputValue()).length, long.length);
  await page.evaluate(() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; });
  await chat.input.fill('half a thought');
  await lookElsewhere();
  assert.equal(await chat.input.inputValue(), 'half a thought');
  await chat.ask('a thought');
  await page.getByTestId('new-chat').click();
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => (await users(page)).length === 2, 'the conversation');
  assert.equal(await chat.input.inputValue(), '', 'what was sent does not come back');
  await close();
});

test('what a link brings goes into a new conversation, and takes no draft away', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 1280, height: 700 } });
  await chat.ask('Hello!');
  await chat.input.fill('half a thought');
  await page.goto(`${here.url}?prompt=Hi`);
  await chat.ready();
  assert.deepEqual([await chat.input.inputValue(), await users(page)], ['Hi', []]);
  await chat.input.pressSequentially(' there');
  const typed = await chat.input.inputValue();
  await page.goto(`${here.url}?prompt=Bye`);
  await chat.ready();
  assert.equal(await chat.input.inputValue(), `${typed}\n\nBye`);
  await openList(page);
  await row(page, 'Hello!').locator('.list-open').click();
  await eventually(async () => await chat.input.inputValue() === 'half a thought', 'its draft is back');
  await close();
});

test('an edited message can be sent in the middle of a reply', async () => {
  const { page, chat, close } = await openTalker();
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 50, 'text comes');
  await page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  await page.keyboard.press('Escape');
  assert.equal(await page.getByTestId('stop').isVisible(), true, 'Escape ends the editing, not the reply');
  await page.getByTestId('message-user').getByRole('button', { name: 'Edit and send again' }).click();
  await chat.input.fill('Talk more.');
  await page.keyboard.press('Enter');
  await eventually(async () => (await users(page)).join() === 'Talk more.' && (await chat.text()).length > 0, 'the new reply');
  await page.keyboard.press('Escape');
  await chat.ended();
  await close();
});

test('what no longer fits is left out, which a reload does not change', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { contextSize: 256, maxTokens: 20 } });
  for (let i = 0; i < 12; i++) await chat.ask(`Tell me a short story about an owl and ${i} keys, please.`);
  const left = () => page.locator('.left-out').count();
  const before = await left();
  assert.ok(before > 0 && before < 24, `${before}`);
  assert.equal(await page.locator('.first-read').count(), 1);
  await page.reload();
  await chat.ready();
  await eventually(async () => await left() === before, 'as before');
  const meter = page.getByTestId('context-meter');
  await eventually(async () => Number(await meter.getAttribute('aria-valuenow')) > 20, 'and the meter knows');
  await chat.ask('And now about a bear?');
  assert.ok(Number(await meter.getAttribute('aria-valuenow')) <= 256, 'with its reply it fits');
  assert.equal((await users(page)).length, 13, 'it is shown as before');
  await openList(page);
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save all' }).click();
  const { conversations } = JSON.parse(await readFile(await (await download).path(), 'utf8'));
  assert.equal(conversations[0].messages.length, 26, 'and stored');
  await close();
});

test('the one conversation of earlier versions is taken over, once', async () => {
  const old = { version: 1, messages: [{ role: 'user', content: 'Old?' }, { role: 'assistant', content: 'Very **old**.', thinking: '', thoughtMs: 0, note: '' }] };
  const { page, chat, close } = await openChat(here);
  await page.evaluate((text) => localStorage.setItem('quern:chat', text), JSON.stringify(old));
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await chat.ready();
  assert.deepEqual([await users(page), await chat.text()], [['Old?'], 'Very old.']);
  assert.equal(await page.evaluate(() => localStorage.getItem('quern:chat')), null);
  await openList(page);
  assert.equal((await titles(page)).length, 1);
  await close();
});

const addressIn = (page) => page.evaluate(() => location.hash);

test('conversations have addresses: back and forth, a bookmark, another tab; one that is deleted is a new one', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 1280, height: 800 }, init: storeSettings, initArgument: { seed: 1, maxTokens: 4 } });
  assert.equal(await addressIn(page), '');
  await chat.ask('First.');
  const first = await addressIn(page);
  assert.match(first, /^#c=\w+$/);
  await page.getByTestId('new-chat').click();
  await eventually(async () => await addressIn(page) === '', 'a new one has none');
  await chat.ask('Second.');
  const second = await addressIn(page);
  assert.notEqual(second, first);
  await page.goBack();
  await eventually(async () => (await users(page))[0] === 'First.', 'back');
  await page.goForward();
  await eventually(async () => (await users(page))[0] === 'Second.', 'forth');
  const bookmark = await page.context().newPage();
  await bookmark.goto(here.url + first);
  await bookmark.getByText('First.').first().waitFor();
  await page.getByTestId('list-button').click();
  const [opened] = await Promise.all([page.context().waitForEvent('page'), row(page, 'First.').locator('.list-open').click({ button: 'middle' })]);
  await opened.getByText('First.').first().waitFor();
  assert.equal((await users(page))[0], 'Second.', 'this tab stays');
  await row(page, 'Second.').getByRole('button', { name: 'More about' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await eventually(async () => (await users(page)).length === 0, 'deleted');
  await page.goBack();
  await eventually(async () => await addressIn(page) === '' && (await users(page)).length === 0, 'gone is gone');
  await page.goBack();
  await eventually(async () => (await users(page))[0] === 'First.', 'and blocks no way');
  await close();
});

test('New chat stands at the head of the list', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 390, height: 700 }, init: storeSettings, initArgument: { seed: 1, maxTokens: 4 } });
  await chat.ask('First.');
  await page.getByTestId('list-button').click();
  await page.getByTestId('list').getByRole('button', { name: 'New chat' }).click();
  await eventually(async () => (await users(page)).length === 0, 'a new one');
  assert.equal(await page.getByTestId('list').isVisible(), false);
  await close();
});

test('the message that is edited is marked, and the buttons of a question leave its answer beside it', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { seed: 1, maxTokens: 4 } });
  await chat.ask('First.');
  const [question, answer] = await Promise.all(['.bubble', '.prose'].map((part) => page.locator(part).first().boundingBox()));
  assert.ok(answer.y - question.y - question.height <= 20, `${answer.y - question.y - question.height}`);
  const marked = page.locator('.message.edited');
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  assert.equal(await marked.getByText('First.').count(), 1);
  await page.keyboard.press('Escape');
  assert.equal(await marked.count(), 0);
  await close();
});

test('where fingers type, Enter makes a line', async () => {
  const { page, chat, close } = await openChat(here, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, init: storeSettings, initArgument: { seed: 1, maxTokens: 4 } });
  await chat.input.fill('First');
  await chat.input.press('Enter');
  await chat.input.pressSequentially('line');
  assert.equal(await chat.input.inputValue(), 'First\nline');
  assert.equal(await chat.input.getAttribute('enterkeyhint'), 'enter');
  await page.getByTestId('send').tap();
  await page.getByTestId('message-user').waitFor();
  await close();
});

test('a search shows the place in each conversation, and leads there, on another branch too', async () => {
  const messages = Array.from({ length: 60 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${i === 21 ? 'The **Crème** brûlée is ready.' : `Turn ${i}.`}\n\n${'More text. '.repeat(40)}` }));
  const visit = await openChat(here, { viewport: { width: 1280, height: 700 }, init: (text) => localStorage.setItem('quern:chat', text), initArgument: JSON.stringify({ version: 1, messages }) });
  const { page, chat, close } = visit;
  await page.getByTestId('list-button').click();
  await page.locator('#list-search').fill('creme BRULEE');
  const found = page.locator('.list-found');
  await found.waitFor();
  assert.match(await found.innerText(), /^The \*\*Crème\*\* brûlée is ready\. More text/);
  assert.equal(await found.locator('mark').innerText(), 'Crème');
  assert.deepEqual(await complaints(visit), []);
  const place = chat.replies.filter({ hasText: 'brûlée' });
  const isInSight = () => place.locator('strong').first().evaluate((node) => {
    const { top, bottom } = node.getBoundingClientRect();
    const view = document.getElementById('scroller').getBoundingClientRect();
    return top > view.top && bottom < view.bottom;
  }).catch(() => false);
  await page.locator('.list-open').click();
  await eventually(isInSight, 'it is in sight');
  assert.equal(await page.evaluate(() => [...CSS.highlights.get('found')].join()), 'Crème');
  await new Promise((done) => { setTimeout(done, 600); });
  assert.ok(await isInSight(), 'and stays there');
  await page.locator('#list-search').fill('');
  await eventually(async () => await found.count() === 0, 'gone with the search');
  await close();
});
