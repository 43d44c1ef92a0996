// SPDX-License-Identifier: MIT
// The settings of replies belong to the conversation that is shown, which keeps them: after a reload, in another tab,
// in a file and back. New conversations have settings of their own, and conversations of before go on with those.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, test } from 'node:test';
import { LLAMA_JSON } from '../fixtures/exports.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, secondTab } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(() => site.remove());
const here = station({ root: site.root });

const OF_TALK = 'These settings belong to this conversation, which keeps them.';
const OF_NEW = 'New conversations begin with these settings.';

const system = (page) => page.locator('#set-system');
const openSettings = async (page) => {
  await page.locator('#settings').click();
  await page.locator('#preset').waitFor();
};
const closeSettings = (page) => page.locator('#settings-dialog [data-close]').click();

/** Sets the system prompt of what is shown. */
async function setSystem(page, text) {
  await openSettings(page);
  await system(page).fill(text);
  await page.keyboard.press('Tab');
  await closeSettings(page);
}

/** What the model was given at last. */
const given = (page) => page.evaluate(() => globalThis.shown);
const openTalk = async (page, title) => {
  if (!await page.getByTestId('list').isVisible()) await page.getByTestId('list-button').click();
  await page.locator('.list-open', { hasText: title }).click();
  await eventually(async () => (await page.title()).startsWith(title), `${title} is shown`);
};

test('a conversation keeps its settings, and a new one begins with those of new ones', async () => {
  const visit = await openChat(here, { viewport: { width: 1300, height: 800 } });
  const { page, chat, close } = visit;
  await openSettings(page);
  await page.getByText(OF_NEW).waitFor();
  await closeSettings(page);
  await setSystem(page, 'You are a miller.');
  await chat.ask('Write 3. First?');
  assert.deepEqual(await given(page), ['You are a miller.', 'Write 3. First?']);
  await page.getByTestId('new-chat').click();
  await setSystem(page, 'You are a baker.');
  await page.getByRole('switch', { name: 'Thinking' }).click();
  await chat.ask('Write 3. Second?');
  assert.deepEqual(await given(page), ['You are a baker.', 'Write 3. Second?']);

  await openTalk(page, 'Write 3. First?');
  assert.equal(await page.getByRole('switch', { name: 'Thinking' }).getAttribute('aria-checked'), 'false');
  await openSettings(page);
  await page.getByText(OF_TALK).waitFor();
  assert.equal(await system(page).inputValue(), 'You are a miller.');
  assert.deepEqual(await complaints(visit), []);
  await system(page).fill('You are an old miller.');
  await page.keyboard.press('Tab');
  await closeSettings(page);
  await chat.ask('Write 3. Third?');
  assert.equal((await given(page))[0], 'You are an old miller.');
  await page.getByTestId('new-chat').click();
  await openSettings(page);
  assert.equal(await system(page).inputValue(), 'You are a baker.', 'new ones are as they were');
  assert.equal(await page.getByRole('button', { name: 'Begin new conversations with them, too' }).count(), 0);
  await closeSettings(page);

  await openTalk(page, 'Write 3. First?');
  await openSettings(page);
  await page.getByRole('button', { name: 'Begin new conversations with them, too' }).click();
  await page.getByText('New conversations begin with these settings, too.').first().waitFor();
  await closeSettings(page);
  await page.reload();
  await chat.ready();
  await page.getByTestId('new-chat').click();
  await chat.ask('Write 3. Fourth?');
  assert.equal((await given(page))[0], 'You are an old miller.');
  await openTalk(page, 'Write 3. Second?');
  await chat.ask('Write 3. Fifth?');
  assert.equal((await given(page))[0], 'You are a baker.');
  assert.equal(await page.getByRole('switch', { name: 'Thinking' }).getAttribute('aria-checked'), 'true');
  await close();
});

test('a reply that waits has the settings of its conversation, whatever is shown meanwhile', async () => {
  const { page, chat, close } = await openChat(here);
  await setSystem(page, 'You are a miller.');
  await chat.ask('Write 3. First?');
  await chat.send('Write 40. Second?');
  await chat.send('Write 3. Third?');
  await page.getByTestId('new-chat').click();
  await setSystem(page, 'You are a baker.');
  await eventually(async () => (await given(page)).at(-1) === 'Write 3. Third?', 'it is asked');
  assert.equal((await given(page))[0], 'You are a miller.');
  await close();
});

test('settings of a conversation follow to another tab, into a file, and back', async () => {
  const visit = await openChat(here);
  const { page, chat, close } = visit;
  await setSystem(page, 'You are a miller.');
  await chat.ask('Write 3. First?');
  const other = await secondTab(visit);
  await openSettings(other.page);
  await setSystem(page, 'You are two millers.');
  await eventually(async () => await system(other.page).inputValue() === 'You are two millers.', 'the other tab shows it');
  await other.page.close();
  await page.getByTestId('list-button').click();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save all' }).click();
  const all = await readFile(await (await saved).path(), 'utf8');
  assert.equal(JSON.parse(all).conversations[0].preset.system, 'You are two millers.');
  await close();

  const next = await openChat(here);
  await next.page.getByTestId('list-button').click();
  const hostile = JSON.parse(all);
  Object.assign(hostile.conversations[0].preset, { temperature: 900, topK: 'many', seed: -1, tools: 'all', maxTokens: { a: 1 }, contextSize: 64 });
  await next.chat.addFile(JSON.stringify(hostile));
  await openTalk(next.page, 'Write 3. First?');
  await next.page.locator('#list-close').click();
  await next.chat.ask('Write 3. Again?');
  assert.equal((await given(next.page))[0], 'You are two millers.');
  await openSettings(next.page);
  assert.deepEqual(await next.page.locator('#settings-form input').evaluateAll((nodes) => nodes.map(({ value }) => value).filter(Boolean)), []);
  await next.close();
});


test('a conversation of before has the settings of new ones until it is used; one of llama.cpp brings its system prompt', async () => {
  const { page, chat, close } = await openChat(here);
  await setSystem(page, 'You are a miller.');
  await page.getByTestId('list-button').click();
  await chat.addFile(JSON.stringify({ quern: 1, conversations: [{ id: 'old', title: 'Of before', messages: [{ id: 'a', role: 'user', content: 'Hello?' }] }] }));
  await chat.addFile(JSON.stringify([{ ...LLAMA_JSON[0], messages: LLAMA_JSON[0].messages.map(({ extra, ...message }) => ({ ...message, content: message.content.replace('miller', 'llama') })) }]));
  await openTalk(page, 'Opening hours');
  await page.locator('#list-close').click();
  await chat.ask('Write 3. Hello?');
  assert.equal((await given(page))[0], 'You are a llama.');
  await openTalk(page, 'Of before');
  await page.locator('#list-close').click();
  await openSettings(page);
  assert.equal(await system(page).inputValue(), 'You are a miller.');
  await closeSettings(page);
  await chat.ask('Write 3. And?');
  assert.equal((await given(page))[0], 'You are a miller.');
  await page.getByTestId('new-chat').click();
  await setSystem(page, 'You are a baker.');
  await openTalk(page, 'Of before');
  await page.locator('#list-close').click();
  await chat.ask('Write 3. Still?');
  assert.equal((await given(page))[0], 'You are a miller.', 'it has kept them');
  await close();
});
