// SPDX-License-Identifier: MIT
// The page's tools with a played model, which calls what its question says: the search in documents, programs, and the
// switches of all tools. What the demo model does with them: tools.test.mjs.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { search } from '../../web/document/passages.js';
import { station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(site.remove);
const here = station({ root: site.root });

const WITH_TOOLS = { init: storeSettings, initArgument: { tools: 'auto' } };

/** Opens the page, whose played model may call tools. */
const open = (more = {}) => openChat(here, { ...WITH_TOOLS, ...more });

/** The names of the tools that the last question had. */
const offered = (page) => page.evaluate(() => globalThis.offered.map(({ name }) => name));

/** Lets the model call a tool. @returns {Promise<string>} the result, as the reply shows it */
async function call({ page, chat }, name, given) {
  assert.match(await chat.ask(`Call ${name} ${JSON.stringify(given)}`), /^It said: /);
  return page.getByTestId('call').last().locator('pre').last().textContent();
}

async function attach(page, name, text) {
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
  await page.locator('#attached li').filter({ hasText: name }).waitFor();
}

const FILLER = 'Grain comes by boat, and flour goes by cart. ';

test('a search finds the nearest passages of all documents, in their order, or none', () => {
  const texts = [
    { name: 'a.txt', text: `# Mill\n\n${FILLER.repeat(30)}\n\n# Key\n\nThe golden key is below the stone.` },
    { name: 'b.txt', text: `[page 1]\n\n${FILLER}\n\n[page 2]\n\nA second key is in the well.` },
  ];
  assert.deepEqual(search({ texts, question: 'Where are keys?', most: 1000 }), [
    { name: 'a.txt', place: 'Key', text: '# Key\n\nThe golden key is below the stone.' },
    { name: 'b.txt', place: 'page 2', text: 'A second key is in the well.' },
  ]);
  assert.deepEqual(search({ texts, question: 'golden key', most: 90 }).map(({ name }) => name), ['a.txt'], 'the nearest one, if there is room for one');
  assert.deepEqual(search({ texts, question: 'zebra', most: 1000 }), []);
  assert.deepEqual(search({ texts: [], question: 'key', most: 1000 }), []);
});

test('the search is offered where there are documents, and answers with document and place', async () => {
  const visit = await open();
  const { page, chat, close } = visit;
  assert.equal(await chat.ask('Call search_documents {"words": "key"}'), 'There is no search_documents.');
  assert.deepEqual(await offered(page), ['now', 'calculate']);
  await attach(page, 'book.txt', `# Mill\n\n${FILLER.repeat(40)}\n\n# Secrets\n\nThe golden key is below the third stone.`);
  assert.equal(await call(visit, 'search_documents', { words: 'golden keys' }), '[book.txt, Secrets]\n# Secrets\n\nThe golden key is below the third stone.');
  assert.match(await page.evaluate(() => globalThis.offered.at(-1).description), /of this conversation: book\.txt$/);
  assert.equal(await call(visit, 'search_documents', { words: 'zebra' }), 'No passage of the documents has any of these words.', 'also in later questions');
  const calls = chat.page.getByTestId('call');
  await calls.last().locator('summary').click();
  assert.match(await calls.last().innerText(), /Called search_documents[^]*zebra[^]*No passage/);
  await page.getByTestId('new-chat').click();
  assert.equal(await chat.ask('Call search_documents {"words": "key"}'), 'There is no search_documents.', 'not in another conversation');
  await close();
});
