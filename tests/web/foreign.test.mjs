// SPDX-License-Identifier: MIT
// The page shares its storage with everything else on its origin: its tables may contain foreign rows, its channel
// foreign messages, its storage foreign marks. Each is ignored: the page opens, searches, stores and cleans up as
// without it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

/** A value that cannot be converted to text. */
const ODD = { toString: 1, valueOf: 1 };

const conversation = (id, content) => ({ id, title: `The ${id}`, changed: 1, messages: [{ id: `${id}1`, role: 'user', content }] });

/** In the page: puts rows into a table; `key`: of rows without a key of their own. */
async function putRows([table, rows]) {
  const db = await new Promise((done, fail) => { Object.assign(indexedDB.open('quern'), { onsuccess: ({ target }) => done(target.result), onerror: fail }); });
  const transaction = db.transaction(table, 'readwrite');
  const store = transaction.objectStore(table);
  for (const [value, key] of rows) store.put(value === 'bytes' ? new Uint8Array(5) : value, ...(store.keyPath ? [] : [key]));
  await new Promise((done) => { transaction.oncomplete = done; });
  db.close();
}

/** In the page. @returns {Promise<any>} a row */
async function rowOf([table, key]) {
  const db = await new Promise((done, fail) => { Object.assign(indexedDB.open('quern'), { onsuccess: ({ target }) => done(target.result), onerror: fail }); });
  const row = await new Promise((done) => { db.transaction(table).objectStore(table).get(key).onsuccess = ({ target }) => done(target.result ?? null); });
  db.close();
  return row;
}

async function withTwo(use, options) {
  const visit = await openChat(here, options);
  const failures = [];
  visit.page.on('pageerror', (error) => failures.push(String(error)));
  await visit.page.getByTestId('list-button').click();
  await visit.chat.addFile(JSON.stringify({ quern: 1, conversations: [conversation('heron', 'A needle in the reeds.'), conversation('otter', 'Nothing to see.')] }));
  await visit.chat.notice.getByText('2 conversations were added.').waitFor();
  await use(visit);
  assert.deepEqual(failures, []);
  await visit.close();
}

const titles = (page) => page.locator('.list-title').allTextContents();

test('rows that are no texts are not found, and end neither the search nor what is stored', async () => {
  await withTwo(async ({ page, chat }) => {
    const odd = [[5, 'a'], [null, 'b'], [ODD, 'c'], ['bytes', 'd'], [['A needle'], 'e'], [ODD, 'otter'], [7n, 'f']];
    await page.evaluate(putRows, ['texts', odd]);
    await page.reload();
    await chat.ready();
    if (!await page.getByTestId('list').isVisible()) await page.getByTestId('list-button').click();
    await page.locator('#list-search').fill('needle');
    await eventually(async () => (await titles(page)).join() === 'The heron', 'what is a text is found');
    await page.locator('#list-search').fill('');
    await page.locator('#list-rows li[data-id=otter] .list-open').click();
    await page.waitForURL(/#c=otter$/);
    await chat.ask('Say heron again, please.');
    await eventually(async () => typeof await page.evaluate(rowOf, ['texts', 'otter']) === 'string', 'the text is one again');
    await page.locator('#list-search').fill('again');
    await eventually(async () => (await titles(page)).join() === 'The otter', 'and found');
  });
});

test('an entry whose date is none keeps no other from being swept', async () => {
  await withTwo(async ({ page, chat }) => {
    const odd = { id: 'aaa', deleted: ODD, title: ODD, changed: ODD };
    await page.evaluate(putRows, ['conversations', [[odd], [{ id: 'gone', title: 'Gone', deleted: 5 }], [{ id: 7, deleted: 5 }], [{ id: ['x'] }]]]);
    await page.reload();
    await chat.ready();
    await eventually(async () => await page.evaluate(rowOf, ['conversations', 'gone']) === null, 'what was deleted has gone');
    assert.deepEqual((await page.evaluate(rowOf, ['conversations', 'heron'])).title, 'The heron');
  });
});

test('messages on the channel that name no conversation are passed over', async () => {
  await withTwo(async ({ page }) => {
    await page.evaluate(() => {
      const channel = new BroadcastChannel('quern:conversations');
      for (const data of [{ toString: 1, valueOf: 1 }, null, undefined, 5, 7n, [], ['heron'], {}, '', new Uint8Array(3), 'nobody']) channel.postMessage(data);
      channel.close();
    });
    await page.evaluate(putRows, ['conversations', [[{ id: 'heron', title: 'The crane', changed: 9 }]]]);
    await page.evaluate(() => new BroadcastChannel('quern:conversations').postMessage('heron'));
    await eventually(async () => (await titles(page)).includes('The crane'), 'and what follows them is heard');
  });
});

test('marks in the storage that are none are as if there were none', async () => {
  const init = (value) => {
    for (const name of ['life', 'open', 'isolation-tried', 'list', 'drafts', 'settings', 'model', 'download', 'chat']) {
      for (const storage of [localStorage, sessionStorage]) storage.setItem(`quern:${name}`, JSON.stringify(value));
    }
  };
  const named = { name: ODD, times: ODD, heavy: ODD, version: 1, messages: [ODD, null], source: ODD, label: ODD, kind: ODD, id: ODD, text: ODD };
  for (const value of [named, ODD, [named, null], 'x', 5]) {
    const { page, chat, close } = await openChat(here, { init, initArgument: value });
    assert.ok((await chat.ask('What is the capital of Kenya?')).length > 0);
    assert.equal(await page.getByTestId('error').count(), 0);
    await close();
  }
});
