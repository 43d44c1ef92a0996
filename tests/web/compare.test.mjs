// SPDX-License-Identifier: MIT
// Two models on this device answer one question: the replies stand side by side, stay as versions of one message, and a
// button goes back to the first model.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { writeGguf } from '../fixtures/gguf-writer.mjs';
import { tinySpec } from '../fixtures/tiny.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, secondTab, storeSettings, talkativeModel } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const here = station();

let host;
before(async () => {
  const river = Buffer.from(writeGguf(tinySpec({ layers: 2, hidden: 64, ffn: 64, heads: 2, kvHeads: 1, headDim: 32, context: 4096, seed: 7 })));
  const pond = Buffer.from(writeGguf(tinySpec({ layers: 2, hidden: 64, ffn: 64, heads: 2, kvHeads: 1, headDim: 32, context: 256 })));
  host = await serveModels(({ url }) => (url.startsWith('/mill') ? talkativeModel() : (url.startsWith('/pond') ? pond : river)));
});
after(() => host.close());

const sheet = (page) => page.getByRole('dialog', { name: 'Two replies' });
const articles = (page) => sheet(page).getByRole('article');

async function openBoth({ names = ['river', 'mill'], ...options } = {}) {
  const visit = await openChat(here, { origins: [host.url], init: storeSettings, initArgument: { maxTokens: 40, temperature: 0 }, ...options });
  for (const name of names) {
    await visit.chat.loadUrl(`${host.url}/${name}.gguf`);
    await visit.chat.modelName(name);
  }
  return visit;
}

async function compareWith(page, name) {
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: `Compare ${name} with the model in use` }).click();
}

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

for (const [device, options, isStacked] of [['desktop', { viewport: { width: 1180, height: 760 } }, false], ['phone', PHONE, true]]) {
  test(`both replies are shown and kept, ${device}`, { timeout: 120_000 }, async () => {
    const visit = await openBoth(options);
    const { page, chat, close } = visit;
    await chat.ask('What turns the mill?');
    const first = await chat.reply.locator('.prose').textContent();
    await compareWith(page, 'river');
    await sheet(page).getByRole('button', { name: 'Go back to mill' }).waitFor();
    assert.match((await articles(page).allInnerTexts()).map((text) => text.split('\n')[0]).join(), /^mill.*,river/);
    assert.equal(await articles(page).first().locator('.prose').textContent(), first);
    assert.equal(await articles(page).last().locator('.prose').textContent(), await chat.reply.locator('.prose').textContent());
    const [left, right] = await Promise.all([articles(page).first().boundingBox(), articles(page).last().boundingBox()]);
    assert.equal(right.y > left.y + left.height - 1, isStacked);
    assert.deepEqual(await complaints(visit, 10), []);
    await sheet(page).getByRole('button', { name: 'Go back to mill' }).click();
    await chat.modelName('mill');
    assert.equal(await sheet(page).count(), 0);
    await page.getByRole('group', { name: 'Version 2 of 2' }).waitFor();
    await page.getByRole('button', { name: 'Earlier version' }).click();
    await eventually(async () => await chat.reply.locator('.prose').textContent() === first, 'the first reply');
    await page.reload();
    await chat.ready();
    await page.getByRole('group', { name: 'Version 1 of 2' }).waitFor();
    await close();
  });
}

test('without a question the page says what to do, and the model stays', async () => {
  const { page, chat, close } = await openBoth();
  await compareWith(page, 'river');
  await chat.notice.getByText('Ask something first: then the other model answers the same question.').waitFor();
  assert.equal(await chat.name.innerText(), 'mill');
  await page.locator('#model-button').click();
  await page.getByRole('button', { name: 'Compare river' }).waitFor();
  await page.waitForTimeout(300);
  await page.getByRole('button', { name: 'Delete river' }).click();
  await page.getByRole('button', { name: 'Keep', exact: true }).click();
  assert.equal(await page.getByRole('button', { name: 'Compare river' }).count(), 1, 'all actions are back');
  await page.getByRole('button', { name: 'Delete river' }).click();
  await page.getByRole('button', { name: /for good$/ }).click();
  await eventually(async () => await page.getByTestId('stored').count() === 1, 'deleted');
  assert.equal(await page.getByRole('button', { name: /^Compare/ }).count(), 0, 'the one in use has none');
  await close();
});

test('a model that cannot answer says why', async () => {
  const { page, chat, close } = await openBoth({ names: ['pond', 'mill'] });
  await chat.ask('Tell me about the mill. '.repeat(60));
  await compareWith(page, 'pond');
  await sheet(page).getByText('pond is in use now.', { exact: true }).waitFor();
  assert.match(await articles(page).last().innerText(), /^pond\n.*tokens/s);
  await close();
});

test('a conversation that is deleted in another tab ends the comparison', async () => {
  const visit = await openBoth({ initArgument: { maxTokens: 2000, temperature: 0 } });
  const { page, chat, close } = visit;
  await chat.send('What turns the mill?');
  await page.getByTestId('stop').click();
  await chat.ended();
  const other = await secondTab(visit);
  await other.page.getByTestId('list-button').click();
  await page.bringToFront();
  await compareWith(page, 'river');
  await sheet(page).waitFor();
  await other.page.getByRole('button', { name: 'More about' }).click();
  await other.page.getByRole('button', { name: 'Delete', exact: true }).click();
  await eventually(async () => await sheet(page).count() === 0, 'the dialog is closed');
  await page.locator('#welcome').waitFor();
  await close();
});
