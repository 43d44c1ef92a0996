// SPDX-License-Identifier: MIT
// Conversations of other programs are added from their exports, with branches, thinking, texts and images. What cannot
// be taken is said, and files that want to harm do not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHATGPT, HOSTILE, LLAMA_JSON, LLAMA_JSONL, OPEN_WEBUI, chatGptZip } from '../fixtures/exports.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

const users = (page) => page.getByTestId('message-user').locator('.bubble').allInnerTexts();
const titles = (page) => page.locator('.list-title').allInnerTexts();

/** Opens the page and its list. */
async function openList() {
  const visit = await openChat(here);
  await visit.page.getByTestId('list-button').click();
  return visit;
}

/** Adds a file. @returns {Promise<string>} what the page says */
async function add({ chat }, content) {
  const dismiss = chat.notice.getByRole('button', { name: 'Dismiss' });
  if (await dismiss.count()) await dismiss.click();
  await chat.addFile(content);
  await chat.notice.waitFor();
  return chat.notice.locator('.card-message').innerText();
}

const show = async ({ page }, title) => {
  await page.locator('.list-open', { hasText: title }).click();
  await eventually(async () => (await page.title()).startsWith(title), `${title} is shown`);
};

/** Widths in pixels of the images that are shown and decoded. */
async function imageWidths(page) {
  const images = page.locator('.message.user img.thumb');
  await eventually(() => images.evaluateAll((nodes) => nodes.every(({ complete }) => complete)), 'they are decoded');
  return images.evaluateAll((nodes) => nodes.map(({ naturalWidth }) => naturalWidth));
}

test('ChatGPT: the archive with its parts and images, branches, thinking, and no marks of sources', async () => {
  const visit = await openList();
  const { page, chat, close } = visit;
  const said = await add(visit, chatGptZip());
  assert.equal(said, '2 conversations were added. Attached files left out, because only their names are in the file: 2. Calls of tools left out, because this page does not have these tools: 2.');
  await eventually(async () => (await titles(page)).sort().join() === 'Mills of the valley,Second', 'both are in the list');
  await show(visit, 'Mills of the valley');
  assert.deepEqual(await users(page), ['What turns this mill?', 'And in summer?']);
  assert.equal(await chat.text(), 'The river turns it, see the plan (example.com).');
  assert.match(await chat.reply.innerText(), /gpt-4o/);
  await chat.reply.locator('summary').click();
  assert.equal(await chat.reply.locator('.thought').innerText(), 'Water or wind.');
  assert.deepEqual(await imageWidths(page), [2]);
  await page.getByRole('button', { name: 'Later version' }).click();
  await eventually(async () => await chat.text() === 'The wind turns it.', 'the other branch');
  assert.deepEqual(await complaints(visit), []);
  assert.match(await add(visit, chatGptZip()), /^0 conversations were added\./, 'they are here already');
  await close();
});

test('ChatGPT: the JSON alone has only addresses of images', async () => {
  const visit = await openList();
  assert.match(await add(visit, JSON.stringify([CHATGPT])), /^One conversation was added\. Images left out, because only their addresses are in the file: 1\. Attached files/);
  await show(visit, 'Mills of the valley');
  assert.equal((await imageWidths(visit.page)).length, 0);
  await visit.close();
});

test('llama.cpp: JSON and JSONL, with branches, images, texts, and one reply around its calls', async () => {
  const visit = await openList();
  const { page, chat, close } = visit;
  const left = 'Images left out, because only their addresses are in the file: 1. Attached files left out, because only their names are in the file: 1. Calls of tools left out, because this page does not have these tools: 1.';
  assert.equal(await add(visit, JSON.stringify(LLAMA_JSON)), `One conversation was added. ${left}`);
  assert.equal(await add(visit, LLAMA_JSONL), `One conversation was added. ${left}`);
  for (const title of ['Opening hours again', 'Opening hours']) {
    await page.locator('.list-title').getByText(title, { exact: true }).click();
    await eventually(async () => (await page.title()) === `${title} · quern`, `${title} is shown`);
    assert.deepEqual(await users(page), ['Read this.']);
    assert.equal(await page.locator('.attached-text pre').textContent(), 'The mill opens at nine.');
    assert.deepEqual(await imageWidths(page), [2]);
    assert.equal(await chat.text(), 'Let me see.\n\nIt opens at nine.');
    await page.getByRole('button', { name: 'Earlier version' }).click();
    await eventually(async () => await chat.text() === 'First reply.', 'the other reply');
  }
  await close();
});

test('Open WebUI: thinking and calls are taken out of the text', async () => {
  const visit = await openList();
  const { page, chat, close } = visit;
  assert.equal(await add(visit, JSON.stringify(OPEN_WEBUI)), 'One conversation was added. Images left out, because only their addresses are in the file: 1. Attached files left out, because only their names are in the file: 1. Calls of tools left out, because this page does not have these tools: 1.');
  await show(visit, 'Bread');
  assert.deepEqual(await titles(page), ['★ Bread'], 'it is pinned here too');
  assert.equal(await chat.text(), 'With rye flour.');
  await chat.reply.locator('summary').click();
  assert.equal(await chat.reply.locator('.thought').innerText(), 'Flour & water.');
  await chat.ask('What is 27 + 45?');
  assert.deepEqual(await users(page), ['How is bread made?', 'What is 27 + 45?'], 'and it goes on here');
  assert.equal(await chat.error.count(), 0);
  await close();
});

test('files that want to harm are refused or bounded, and say so', { timeout: 120_000 }, async () => {
  const visit = await openList();
  for (const [name, [content, says]] of Object.entries(HOSTILE)) {
    assert.match(await add(visit, typeof content === 'function' ? content() : content), says, name);
  }
  assert.equal(await visit.page.evaluate(() => ({}).role), undefined);
  await show(visit, 'Hostile prototype');
  assert.deepEqual(await users(visit.page), ['polluted']);
  await show(visit, 'Hostile deep');
  await eventually(async () => (await users(visit.page)).at(-1) === '14998', 'its end is shown');
  await visit.close();
});

test('where the code for it cannot be fetched, the page says so', async () => {
  const visit = await openChat(here, { expected: /late\// });
  const { page, context, chat, close } = visit;
  await context.route('**/late/{imports,as-text}.js', (route) => route.abort());
  const needs = 'This part of the page has to be fetched once, which needs a network.';
  await chat.ask('Hello!');
  await page.getByTestId('list-button').click();
  assert.equal(await add(visit, '[]'), needs);
  await chat.notice.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByRole('button', { name: 'More about' }).click();
  await page.getByRole('button', { name: 'Save as text' }).click();
  await chat.notice.getByText(needs).waitFor();
  await close();
});
