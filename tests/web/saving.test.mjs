// SPDX-License-Identifier: MIT
// Saved states of conversations in pages: a reload goes on at once, two tabs share a name, and a deleted conversation
// leaves no file. In Firefox: a story of stories.mjs. Damaged files, failing stores, neighbours:
// tests/js/worker/saving.test.mjs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PROJECT, complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const here = station();
const library = station({ root: PROJECT });

let models;
before(async () => { models = await serveModels(({ url }) => (url === '/talkative.gguf' ? talkativeModel() : undefined)); });
after(() => models?.close());

const LONG = `${'Tell me about the mill. '.repeat(40)}What is quern?`;

/** In the page: names and sizes of the files of saved conversations. */
async function keptFiles() {
  const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('quern', { create: true });
  const files = [];
  for await (const [name, handle] of folder) {
    const file = name.startsWith('kv-') && await handle.getFile().catch(() => null);    // the file may be deleted meanwhile
    if (file) files.push([name, file.size]);
  }
  return files;
}

/** In the page: whether one of them is being written. */
async function isKeeping() {
  const { held } = await navigator.locks.query();
  return held.some(({ name }) => name.startsWith('quern:kv-'));
}

/** Waits until this many conversations are saved, and none is being written. */
async function kept(page, wanted) {
  await eventually(async () => !await page.evaluate(isKeeping) && (await page.evaluate(keptFiles)).length === wanted, `${wanted} are kept`);
  return page.evaluate(keptFiles);
}

/** In the page: dates all deletions back, so that none can be undone. */
function hurry() {
  return new Promise((done, fail) => {
    const opening = indexedDB.open('quern');
    opening.onerror = fail;
    opening.onsuccess = () => {
      const transaction = opening.result.transaction('conversations', 'readwrite');
      transaction.objectStore('conversations').openCursor().onsuccess = ({ target: { result: cursor } }) => {
        if (cursor?.value.deleted) cursor.update({ ...cursor.value, deleted: 1 });
        cursor?.continue();
      };
      transaction.oncomplete = () => {
        opening.result.close();
        done();
      };
    };
  });
}

/** The page with a model from a server, which it loads again after a reload. */
async function openTalk() {
  const visit = await openChat(here, { origins: [models.url], init: storeSettings, initArgument: { temperature: 0, maxTokens: 40 } });
  await visit.chat.loadUrl(`${models.url}/talkative.gguf`);
  await visit.chat.modelName('talkative');
  return visit;
}

test('after a reload a conversation goes on at once, and one that is deleted leaves no file', async () => {
  const { page, chat, close } = await openTalk();
  const first = await chat.ask(LONG);
  const [[name, bytes]] = await kept(page, 1);
  assert.ok(bytes > 500_000, `${bytes} bytes`);
  await page.reload();
  await chat.modelName('talkative');
  assert.equal(await chat.text(), first);
  await chat.ask('And what is it for?');
  assert.ok(await chat.cachedTokens() > 200, `${await chat.cachedTokens()} known`);
  await page.getByTestId('new-chat').click();
  await chat.ask(`Please. ${LONG}`);
  await kept(page, 2);

  await page.getByTestId('list-button').click();
  const row = page.locator('#list-rows li', { hasText: 'Tell me about the mill.' }).last();
  const remove = async () => {
    const more = row.getByRole('button', { name: /^More about/ });
    if (await more.getAttribute('aria-expanded') === 'false') await more.click();
    await row.getByRole('button', { name: 'Delete', exact: true }).click();
  };
  await remove();
  await page.getByRole('button', { name: 'Undo' }).click();
  assert.ok((await kept(page, 2)).some(([file]) => file === name), 'brought back, with its file');
  await remove();
  await page.evaluate(hurry);
  await page.reload();
  await chat.modelName('talkative');
  const [[left]] = await kept(page, 1);
  assert.notEqual(left, name);
  await close();
});

test('what is deleted while the demo model answers, which keeps nothing, leaves no file either, nor what was typed', async () => {
  const { page, chat, close } = await openTalk();
  await chat.ask(LONG);
  await kept(page, 1);
  await chat.input.fill('half a thought');
  await page.evaluate(() => localStorage.removeItem('quern:model'));
  await page.clock.install();
  await page.reload();
  await chat.modelName(chat.builtIn);
  await page.getByTestId('list-button').click();
  await page.getByRole('button', { name: /^More about/ }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  await page.clock.fastForward(11_000);   // until the deletion cannot be undone
  await kept(page, 0);
  await eventually(() => page.evaluate(() => localStorage.getItem('quern:drafts') === '[]'), 'the draft is gone');
  await close();
});

test('the model dialog counts what was read of conversations, and deletes it', async () => {
  const { page, chat, close } = await openTalk();
  await page.locator('#model-button').click();
  await page.locator('#storage-text').getByText('used').waitFor();
  assert.equal(await page.getByTestId('stored-talks').count(), 0);
  await page.keyboard.press('Escape');
  await chat.ask(LONG);
  const [[, bytes]] = await kept(page, 1);
  await page.locator('#model-button').click();
  const row = page.getByTestId('stored-talks');
  assert.match(await row.innerText(), new RegExp(`${Math.round(bytes / 1e5) / 10} MB, so that one conversation goes`));
  assert.deepEqual(await complaints({ page }), []);
  await row.getByRole('button', { name: 'Delete' }).click();
  await row.getByRole('button', { name: /for good/ }).click();
  await kept(page, 0);
  await eventually(async () => await row.count() === 0, 'the row is gone');
  await page.keyboard.press('Escape');
  assert.ok((await chat.ask('And what is it for?')).length > 0);
  await kept(page, 1);
  await close();
});

/** In the page: asks a question repeatedly under a name, with an engine of its own. */
async function ask({ question, times, save }) {
  const model = await globalThis.quern.load('../../web/models/demo-q8_0.gguf', { threads: 2 });
  const replies = [];
  for (let i = 0; i < times; i++) {
    const { text, usage } = await model.chat(question, { temperature: 0, maxTokens: 40, save }).result;
    replies.push({ text, cached: usage.cachedTokens });
  }
  const all = save ? await model.saved() : [];
  await model.dispose();
  return { replies, kept: all.map(({ name, tokens }) => [name, tokens > 200]) };
}

test('two tabs, two engines, one name: each says what it says alone', async () => {
  const visit = await library.open('tests/web/library.html');
  const other = await visit.page.context().newPage();
  await other.goto(`${library.url}tests/web/library.html`);
  const tabs = [visit.page, other];
  for (const page of tabs) await page.waitForFunction(() => globalThis.quern);
  const questions = [LONG, LONG.replace('What', 'Who')];
  const alone = await visit.page.evaluate(ask, { question: questions[0], times: 1 });
  const alike = await visit.page.evaluate(ask, { question: questions[1], times: 1 });
  const texts = [alone, alike].map(({ replies: [{ text }] }) => text);
  const found = await Promise.all(tabs.map((page, i) => page.evaluate(ask, { question: questions[i], times: 3, save: 'one' })));
  assert.deepEqual(found.map(({ replies }) => replies.map(({ text }) => text)), texts.map((text) => [text, text, text]));
  for (const { kept: all } of found) assert.deepEqual(all, [['one', true]]);
  const again = await other.evaluate(ask, { question: questions[0], times: 1, save: 'one' });
  assert.ok(again.replies[0].cached > 200, 'the tabs\' beginning is kept');
  assert.equal(again.replies[0].text, texts[0]);
  await visit.page.evaluate(async () => globalThis.quern.models.forget('one'));
  assert.deepEqual(await visit.page.evaluate(keptFiles), []);
  await visit.close();
});
