// SPDX-License-Identifier: MIT
// Titles that the model makes after the first reply: when the page is idle and seen, never in the way of what the
// visitor sends, never in place of a title that the visitor wrote, and without loss of what the model knows.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { titleIn } from '../../web/conversation/late/titles.js';
import { tiny35 } from '../fixtures/qwen35-layout.mjs';
import { eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(() => site.remove());
const played = station({ root: site.root });
const here = station();

const WIDE = { viewport: { width: 1300, height: 800 } };

const asked = (page) => page.evaluate(() => globalThis.inBackground ?? 0);
const titles = async (page) => (await page.locator('.list-title').allInnerTexts()).join('|');

/** @param {string | boolean} title what the played model says; true: it never ends */
async function openPlayed(title) {
  const visit = await openChat(played, { ...WIDE, init: (said) => { globalThis.playedTitle = said; }, initArgument: title });
  await loadPlayed(visit);
  return visit;
}

/** Loads the played model as a file, since the toy makes no titles. */
async function loadPlayed({ chat }) {
  await chat.loadFile('played.gguf', 'GGUF');
  await chat.modelName('played');
}

test('what a model says becomes a title of at most six words', () => {
  for (const [said, title] of [
    ['How Water Mills Grind Grain', 'How Water Mills Grind Grain'], ['**Title: “Mills of the Valley.”**', 'Mills of the Valley'], ['# One two three four five six seven', 'One two three four five six'],
    ['磨坊与河流的故事。\nMore', '磨坊与河流的故事'], ['"..."', ''], ['', ''], ['Titel: Die Mühle', 'Die Mühle'], [`${'a'.repeat(90)}`, `${'a'.repeat(59)}…`], ['\u202eevil\u0000 name', 'evil name'],
  ]) assert.equal(titleIn(said), title);
});

test('after the first reply the model makes a title, which stays', async () => {
  const visit = await openPlayed('Mills of the Valley');
  const { page, chat, close } = visit;
  await page.getByTestId('list-button').click();
  await chat.ask('Write 3. What turns the mill?');
  await eventually(async () => await titles(page) === 'Write 3. What turns the mill?', 'at first the question');
  const place = await page.locator('.list-open').boundingBox();
  await eventually(async () => await titles(page) === 'Mills of the Valley', 'the title');
  assert.equal(await page.title(), 'Mills of the Valley · quern');
  assert.deepEqual(await page.locator('.list-open').boundingBox(), place, 'nothing moves');
  assert.equal(await chat.replies.count(), 1);
  await page.locator('#list-search').fill('valley');
  await eventually(async () => await page.locator('.list-open').count() === 1, 'a search finds it');
  await page.locator('#list-search').fill('turns');
  await eventually(async () => await page.locator('.list-open').count() === 1, 'and the text, too');
  await page.reload();
  await chat.ready();
  await loadPlayed(visit);
  await chat.ask('Write 3. Again?');
  await page.waitForTimeout(2500);
  assert.equal(await asked(page), 0, 'no second one');
  await close();
});

test('a title that the visitor writes stays, also one that is written meanwhile', async () => {
  const { page, chat, close } = await openPlayed('Mills of the Valley');
  await page.getByTestId('list-button').click();
  await chat.ask('Write 3. First?');
  await page.getByRole('button', { name: 'More about' }).click();
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByLabel('Name of the conversation').fill('My mill');
  await page.keyboard.press('Enter');
  await eventually(async () => await titles(page) === 'My mill', 'renamed');
  await eventually(() => page.evaluate(() => !document.querySelector('[data-testid=stop]:not([hidden])')), 'nothing runs');
  await page.waitForTimeout(3000);
  assert.equal(await titles(page), 'My mill');
  await close();
});

test('what the visitor sends ends the making of a title, and a hidden page makes none', async () => {
  const { page, chat, close } = await openPlayed(true);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { configurable: true, value: true }));
  await chat.ask('Write 3. First?');
  await page.waitForTimeout(2500);
  assert.equal(await asked(page), 0);
  await page.evaluate(() => {
    delete document.hidden;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await eventually(async () => await asked(page) === 1, 'it is begun when the page is seen');
  const start = performance.now();
  await chat.ask('Write 3. Second?');
  assert.ok(performance.now() - start < 1500);
  assert.equal(await chat.replies.count(), 2);
  await page.evaluate(() => { globalThis.playedTitle = 'Mills'; });
  await eventually(async () => (await page.title()) === 'Mills · quern', 'it is made afterwards');
  await close();
});

test('a title is asked for with the tools that the model has read, and of the model that has read them', async () => {
  const how = { ...WIDE, init: () => localStorage.setItem('quern:settings', '{"tools":"auto"}') };
  const visit = await openChat(played, how);
  const { page, chat, close } = visit;
  await loadPlayed(visit);
  await chat.ask('Write 3. First?');
  await eventually(async () => await asked(page) === 1, 'asked');
  assert.equal(await page.evaluate(() => globalThis.titleTools), 'none,now,calculate');
  await page.getByTestId('new-chat').click();
  await chat.ask('Write 3. Second?');
  await chat.loadFile('other.gguf', 'GGUF');
  await chat.modelName('other');
  await page.waitForTimeout(2500);
  await page.getByTestId('new-chat').click();
  await chat.ask('Write 3. Third?');
  await page.waitForTimeout(3000);
  assert.equal(await asked(page), 2, 'the other model is asked for the third only');
  await close();
});

test('a conversation that is deleted gets no title', async () => {
  const { page, chat, close } = await openPlayed('Mills');
  await page.getByTestId('list-button').click();
  await chat.ask('Write 3. First?');
  await page.getByRole('button', { name: 'More about' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.waitForTimeout(3000);
  assert.equal(await asked(page), 0);
  await close();
});

test('the toy makes no titles', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  await chat.ask('What is 27 + 45?');
  await page.waitForTimeout(2500);
  assert.equal(await page.title(), 'What is 27 + 45? · quern');
  await close();
});

for (const [name, make] of Object.entries({ talkative: talkativeModel, hybrid: () => tiny35({ context: 2048 }) })) {
  test(`a conversation stays known when a title was made: ${name}`, async () => {
    /** Tokens that the model knows of the second prompt, after a rest or at once. */
    const known = async (rests) => {
      const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0, maxTokens: 40 } });
      await chat.loadFile(`${name}.gguf`, make());
      await chat.modelName(name);
      await chat.ask('Tell me about the mill and the river in the valley, please, and about all that it grinds.');
      if (rests) await page.waitForTimeout(4500);     // the model writes nothing that is a title, but reads and writes
      await chat.ask('And in winter?');
      const tokens = await chat.cachedTokens();
      await close();
      return tokens;
    };
    const [atOnce, rested] = [await known(false), await known(true)];
    assert.ok(atOnce > 0 && rested >= atOnce, `${atOnce} at once, ${rested} after a title`);
  });
}
