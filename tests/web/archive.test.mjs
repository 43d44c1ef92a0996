// SPDX-License-Identifier: MIT
// Hundreds of conversations with a hundred messages each: the list opens, searches and switches at once. Tabs that
// write at random show the same in the end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { length } from '../fixtures/lengths.mjs';
import { familiesOf, pathTo } from '../../web/conversation/tree.js';
import { soon } from '../js/support/soon.mjs';
import { eventually, station } from './browser.mjs';
import { ChatPage, openChat, storeSettings } from './chat-page.mjs';

const here = station();

/** The best of several attempts, since other work on the machine only slows them down. */
const best = (values) => Math.round(Math.min(...values));

/** What a page does for a few hundred, it does for a thousand, as the counts of records tell. */
const MANY = length(200, 1000);
const MESSAGES = 100;

const id = (i, j) => `m${String(i).padStart(5, '0')}-${String(j).padStart(4, '0')}`;
const words = (i, j) => `Message ${j} of conversation ${i}: the **quick** brown fox, \`jumps(${i * j})\` over the lazy dog.\n\n- one\n- two`;

function conversation(i) {
  const messages = Array.from({ length: MESSAGES }, (_, j) => ({
    id: id(i, j), conversation: `c${i}`, parent: j ? id(i, j - 1) : '', role: j % 2 ? 'assistant' : 'user', content: i === MANY / 2 && j === 50 ? 'A needle.' : words(i, j),
  }));
  const entry = { id: `c${i}`, title: `Conversation ${i}`, created: i, changed: i + 1, leaf: id(i, MESSAGES - 1) };
  return { entry, messages, text: [entry.title, ...messages.map(({ content }) => content)].join('\n').toLowerCase() };
}

/** In the page: writes conversations as the page does (tables.js), but a hundred at a time: an import takes a minute. */
async function writeAll(conversations) {
  const db = await new Promise((done, fail) => { Object.assign(indexedDB.open('quern'), { onsuccess: ({ target }) => done(target.result), onerror: fail }); });
  const transaction = db.transaction(['conversations', 'messages', 'texts'], 'readwrite', { durability: 'relaxed' });
  for (const { entry, messages, text } of conversations) {
    transaction.objectStore('conversations').put(entry);
    transaction.objectStore('texts').put(text, entry.id);
    for (const message of messages) transaction.objectStore('messages').put(message);
  }
  await new Promise((done, fail) => { Object.assign(transaction, { oncomplete: done, onabort: fail }); });
  db.close();
}

/** In the page, before anything else: counts the records that are read of each table, in `globalThis.reads`. */
function countReads() {
  globalThis.reads = {};
  for (const name of ['get', 'getAll']) {
    const real = IDBObjectStore.prototype[name];
    IDBObjectStore.prototype[name] = function count(...given) {
      const request = real.apply(this, given);
      request.addEventListener('success', () => {
        globalThis.reads[this.name] = (globalThis.reads[this.name] ?? 0) + (Array.isArray(request.result) ? request.result.length : 1);
      });
      return request;
    };
  }
}

/** The records that were read since the last call. */
const readsOf = (page) => page.evaluate(() => {
  const { conversations = 0, messages = 0, texts = 0 } = globalThis.reads;
  globalThis.reads = {};
  return { conversations, messages, texts };
});

/** In the page: ms from an action until `isDone`, which is checked in every frame. */
async function timed([selector, text, value]) {
  const node = document.querySelector(selector);
  const isDone = () => [...document.querySelectorAll(text.selector)].some((one) => one.textContent.includes(text.has)) && document.querySelectorAll(text.selector).length <= text.most;
  const start = performance.now();
  if (value === undefined) node.click();
  else {
    node.value = value;
    node.dispatchEvent(new Event('input'));
  }
  while (!isDone()) await new Promise((done) => { requestAnimationFrame(done); });
  return performance.now() - start;
}

test('many conversations', { timeout: 240_000 }, async (t) => {
  const { page, chat, close } = await openChat(here, { init: countReads });
  for (let i = 0; i < MANY; i += 100) await page.evaluate(writeAll, Array.from({ length: 100 }, (_, j) => conversation(i + j)));
  await page.evaluate(() => { sessionStorage.clear(); });
  await page.reload();
  await chat.ready();
  await page.locator('.message.last .prose p', { hasText: `Message 99 of conversation ${MANY - 1}:` }).waitFor();
  const { conversations, ...rest } = await readsOf(page);
  assert.deepEqual(rest, { messages: MESSAGES, texts: 0 }, 'the page reads the messages of one conversation');
  assert.ok(conversations <= MANY + 2, `${conversations} entries, each once`);
  const took = { open: [], search: [], back: [], common: [], switch: [] };
  for (let i = 0; i < 5; i++) {
    if (await page.getByTestId('list').isVisible()) await page.locator('#list-close').click();
    await readsOf(page);
    took.open.push(await page.evaluate(timed, ['#list-button', { selector: '.list-title', has: `Conversation ${MANY - 1}`, most: MANY }]));
    await eventually(async () => await page.locator('.list-title').count() === MANY, 'all rows');
    assert.deepEqual(await readsOf(page), { conversations: 0, messages: 0, texts: 0 }, 'the list reads nothing again');
    await page.locator('#list-search').focus();
    took.search.push(await page.evaluate(timed, ['#list-search', { selector: '.list-title', has: `Conversation ${MANY / 2}`, most: 1 }, 'needle']));
    await page.locator('.list-found', { hasText: 'needle' }).waitFor();
    assert.deepEqual(await readsOf(page), { conversations: 1, messages: MESSAGES, texts: i ? 0 : MANY }, 'texts once, and messages of what is found');
    took.back.push(await page.evaluate(timed, ['#list-search', { selector: '.list-title', has: `Conversation ${MANY - 1}`, most: MANY }, '']));
    await eventually(async () => await page.locator('.list-title').count() === MANY, 'all rows');
    took.common.push(await page.evaluate(timed, ['#list-search', { selector: '.list-found', has: 'quick', most: MANY }, 'quick']));
    await page.waitForTimeout(500);
    const { messages } = await readsOf(page);
    assert.ok(messages >= MESSAGES && messages <= 30 * MESSAGES, `${messages} messages are read for the rows in sight`);
    await page.evaluate(timed, ['#list-search', { selector: '.list-title', has: `Conversation ${MANY - 1}`, most: MANY }, '']);
    await readsOf(page);
    took.switch.push(await page.evaluate(timed, [`#list-rows li[data-id=c${MANY - 100 + i}] .list-open`, { selector: '.message.last .prose p', has: `Message 99 of conversation ${MANY - 100 + i}:`, most: 1 }]));
    assert.deepEqual(await readsOf(page), { conversations: 1, messages: MESSAGES, texts: 0 }, 'one conversation is read');
  }
  await eventually(async () => await page.locator('.message').count() === MESSAGES, 'the earlier messages follow');
  await page.locator('#list-search').fill('quick');
  await page.locator('#list-rows').evaluate((node) => { node.scrollTop = node.scrollHeight; });
  await page.locator('#list-rows li[data-id=c0] .list-found').waitFor();
  const ms = Object.fromEntries(Object.entries(took).map(([name, all]) => [name, best(all)]));
  t.diagnostic(JSON.stringify(ms));
  assert.ok(ms.open < 100 && ms.search < 200 && ms.switch < 100, JSON.stringify(took));
  await close();
});

test('the way through fifty thousand messages, and what stands beside each, is found at once', async () => {
  const messages = Array.from({ length: 50_000 }, (_, j) => ({ id: id(0, j), parent: j ? id(0, j - 1) : '' }));
  const beside = { id: 'z', parent: id(0, 1) };
  await soon(400, () => {
    const start = performance.now();
    const path = pathTo(messages, messages.at(-1).id);
    const families = familiesOf([beside, ...messages]);
    const took = performance.now() - start;
    assert.deepEqual(path, messages);
    assert.deepEqual(families.get(id(0, 1)), [messages[2], beside]);
    return took;
  });
});

test('of thousands of messages the last ones are shown, and earlier ones when somebody scrolls up to them', async () => {
  const { page, chat, close } = await openChat(here);
  await page.getByTestId('list-button').click();
  const messages = Array.from({ length: 5000 }, (_, j) => ({ id: id(0, j), parent: j ? id(0, j - 1) : '', role: j % 2 ? 'assistant' : 'user', content: `Word ${j}.` }));
  await chat.addFile(JSON.stringify({ quern: 1, conversations: [{ id: 'long', messages }] }));
  await page.locator('#list-rows li[data-id=long] .list-open').click();
  const count = () => page.locator('.message').count();
  await eventually(async () => await count() >= 240, 'some are shown');
  await page.waitForTimeout(500);
  const shown = await count();
  assert.ok(shown < 300, `${shown} are shown`);
  await page.locator('#scroller').evaluate((node) => { node.scrollTop = 0; });
  await eventually(async () => await count() > shown, 'earlier ones follow');
  await close();
});

/** In the page: every conversation with its messages, sorted. */
async function everything() {
  const db = await new Promise((done, fail) => { Object.assign(indexedDB.open('quern'), { onsuccess: ({ target }) => done(target.result), onerror: fail }); });
  const all = (name) => new Promise((done) => { db.transaction(name).objectStore(name).getAll().onsuccess = ({ target }) => done(target.result); });
  const found = { conversations: await all('conversations'), messages: await all('messages') };
  db.close();
  return found;
}

/** Opens a conversation of the list, whose rows may be replaced meanwhile. */
async function openRow(page, n) {
  const wanted = await page.locator('#list-rows li[data-id]').nth(n).getAttribute('data-id');
  await eventually(async () => {
    await page.locator(`#list-rows li[data-id="${wanted}"] .list-open`).click({ timeout: 2000 }).catch(() => {});
    return page.locator(`#list-rows li[data-id="${wanted}"] [aria-current]`).isVisible();
  }, 'the conversation is shown');
}

test('two tabs at random on five conversations see the same at the end', { timeout: 600_000 }, async () => {
  const rounds = length(6, 120);
  const visit = await openChat(here, { init: storeSettings, initArgument: { maxTokens: 12 } });
  const second = await visit.page.context().newPage();
  await second.goto(here.url);
  const tabs = [visit, { page: second, chat: new ChatPage(second) }];
  await tabs[1].chat.ready();
  for (const { page } of tabs) await page.getByTestId('list-button').click();
  let seed = 7;
  const random = (n) => Math.floor(((seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff) * n);
  const said = [];
  for (let i = 0; i < rounds; i++) {
    await Promise.all(tabs.map(async ({ page, chat }, tab) => {
      const rows = page.locator('.list-open');
      const count = await rows.count();
      if (count < 5 && random(3) === 0) await page.getByTestId('new-chat').click();
      else if (count) await openRow(page, random(Math.min(5, count)));
      const text = `Tab ${tab}, message ${i}`;
      await chat.send(text);
      const isShown = async () => (await page.locator('.bubble').allInnerTexts()).includes(text);
      await eventually(async () => await isShown() || await chat.input.inputValue() === text, 'sent, or given back');
      await eventually(() => page.getByTestId('send').isVisible(), 'an end');
      if (await isShown()) said.push(text);
      else await chat.input.fill('');    // the other tab was writing there
    }));
  }
  await Promise.all(tabs.map(({ page }) => page.reload()));
  await Promise.all(tabs.map(({ chat }) => chat.ready()));
  const [one, other] = await Promise.all(tabs.map(({ page }) => page.evaluate(everything)));
  assert.deepEqual(one, other);
  const stored = one.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  assert.deepEqual(stored.toSorted(), said.toSorted(), 'everything that was sent is there');
  const ids = new Set(one.messages.map((message) => message.id));
  assert.ok(one.messages.every(({ parent }) => parent === '' || ids.has(parent)));
  await visit.close();
});
