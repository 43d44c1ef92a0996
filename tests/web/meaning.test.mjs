// SPDX-License-Identifier: MIT
// Passages of long documents by their meaning: an embedding model on this device finds what the words do not. Vectors
// are made once and deleted with their conversation; words alone decide when the visitor wants it or something fails.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cuts, merged, nearest, search } from '../../web/document/passages.js';
import { meaningModel } from '../fixtures/meaning.mjs';
import { scriptedModel } from '../fixtures/scripted.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

const here = station();

let host;
let isGone = false;
const SAYS = ['<tool_call>', '\n{"name": "search_documents", "arguments": {"words": "foxes"}}\n', '</tool_call>'];
const caller = scriptedModel(SAYS, { context: 16384 });
before(async () => {
  const files = {
    '/tiny-embedding.gguf': Buffer.from(meaningModel(['xz'])), '/slow-embedding.gguf': Buffer.from(meaningModel(['xz'], { layers: 8 })),
  };
  host = await serveModels(({ url }) => (isGone ? undefined : files[url]));
});
after(() => host.close());

/** Has no letter of the group, and no word of the questions. */
const FILLER = 'Grain comes by boat, and flour goes by cart. ';

/** A book whose third part has a word of the question, and whose ninth part has its meaning. */
const book = (parts) => Buffer.from(Array.from({ length: parts }, (_, i) => [
  `# Part ${i + 1}`, FILLER.repeat(15) + (i === 2 ? 'Millers rest at noon.' : i === 8 ? 'Lazy animals lie below a third stone.' : ''),
].join('\n\n')).join('\n\n'));

const QUESTION = 'Where does the fox rest?';
const BY_BOTH = /^\(2 of \d+ passages, those nearest to the question by words and meaning\)\n\n\[Part 3\]\n[^]*noon\.\n\n\[Part 9\]\n[^]*third stone\.$/;
const BY_WORDS = /^\(1 of \d+ passages, those nearest to the question\)\n\n\[Part 3\]\n[^]*noon\.$/;

/** Counts the texts whose vectors are made. */
function countVectors() {
  const post = Worker.prototype.postMessage;
  globalThis.counted = 0;
  Worker.prototype.postMessage = function postMessage(message, ...more) {
    if (message?.options && Array.isArray(message.texts)) globalThis.counted += message.texts.length;
    return post.call(this, message, ...more);
  };
}
const counted = (page) => page.evaluate(() => globalThis.counted);

/** A visit with an embedding model on the device, and the demo model in use. */
async function openWith(name, options = {}) {
  const visit = await openChat(here, { origins: [host.url], init: countVectors, ...options });
  const { page, chat } = visit;
  await chat.loadUrl(`${host.url}/${name}.gguf`);
  await chat.modelName(name);
  await chat.notice.getByText(`${name} is for searching in documents; it does not chat.`).waitFor();
  await page.locator('#model-button').click();
  await page.getByTestId('stored').getByText('for documents', { exact: true }).waitFor();
  assert.equal(await page.getByTestId('stored').getByRole('button', { name: /^(Load|Compare)/ }).count(), 0, 'it is not for chats');
  await page.getByRole('button', { name: 'Load Demo model' }).click();
  await chat.modelName(chat.builtIn);
  return visit;
}

async function attach(page, name, buffer) {
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name, mimeType: '', buffer });
  await page.locator('#attached li').filter({ hasText: name }).getByText(/tokens/).waitFor();
}

const sent = (page) => page.locator('.attached-text pre').last().textContent();

/** Number of rows with vectors in the page's database. */
const rowsOf = (page) => page.evaluate(() => new Promise((done) => {
  const opening = indexedDB.open('quern');
  opening.onsuccess = () => {
    const asking = opening.result.transaction('messages').objectStore('messages').getAllKeys();
    asking.onsuccess = () => {
      opening.result.close();
      done(asking.result.filter(([, id]) => typeof id === 'number').length);
    };
  };
}));

test('orders are merged by the reciprocals of ranks; what has no likeness has its words', () => {
  assert.deepEqual(merged([3, 0, 1], [0, 0.2, undefined]), [1 / 11, 1 / 11, 1 / 12]);
  assert.deepEqual(merged([2, 1], [-0.5, 0.1]), [1 / 11, 1 / 12 + 1 / 11]);
  const texts = [{ name: 'book', text: String(book(16)) }];
  const [passages] = cuts({ texts, most: 2000 });
  assert.equal(passages.length, 16);
  const likeness = [passages.map((_, i) => (i === 8 ? 0.5 : 0))];
  assert.match(nearest({ texts, question: QUESTION, most: 2000, likeness })[0], BY_BOTH);
  assert.match(nearest({ texts, question: QUESTION, most: 2000 })[0], BY_WORDS);
  assert.deepEqual(search({ texts, question: 'fox', most: 2000 }), []);
  assert.deepEqual(search({ texts, question: 'fox', most: 2000, likeness }).map(({ name, place }) => `${name}, ${place}`), ['book, Part 9']);
  const size = (text, most) => cuts({ texts: [{ name: '', text }], most })[0][0].text.length;
  assert.deepEqual([size('a'.repeat(5000), 1e5), size('a'.repeat(5000), 1600), size('a'.repeat(5000), 1500), size('磨'.repeat(5000), 1e5)], [800, 800, 400, 300]);
});

test('the meaning finds what the words do not; vectors are made once, and go with the conversation', { timeout: 240_000 }, async () => {
  const visit = await openWith('tiny-embedding');
  const { page, chat, close } = visit;
  await attach(page, 'book.txt', book(16));
  await chat.notice.getByText(/will be read\. They are found by their words and, with tiny-embedding, by their meaning\.$/).waitFor();
  assert.deepEqual(await complaints(visit), []);
  await chat.ask(QUESTION);
  await page.locator('.attached-text').getByText('book.txt, passages near by words and meaning').waitFor();
  assert.match(await sent(page), BY_BOTH);
  const [, all] = /of (\d+) passages/.exec(await sent(page));
  assert.equal(await counted(page), Number(all) + 1, 'all passages and the question');
  await eventually(async () => await rowsOf(page) === 1, 'the vectors are kept');
  await page.reload();
  await chat.ready();
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await page.locator('#attached li').getByText(/tokens/).waitFor();
  await chat.send('Where do foxes rest?');
  await page.locator('.message.user .bubble').getByText('Where do foxes rest?', { exact: true }).waitFor();
  await chat.ended();
  assert.match(await sent(page), BY_BOTH);
  assert.equal(await counted(page), 1, 'only the question');
  await page.getByTestId('list-button').click();
  await page.getByRole('button', { name: 'More about' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await eventually(async () => await rowsOf(page) === 0, 'they are deleted');
  await close();
});

test('a model from the disk searches in documents by their meaning, too', { timeout: 240_000 }, async () => {
  const { page, chat, close } = await openWith('tiny-embedding', {
    init: () => localStorage.setItem('quern:settings', '{"tools":"auto","contextSize":16384}'), initArgument: undefined,
  });
  await chat.loadFile('caller.gguf', caller);
  await chat.modelName('caller');
  await attach(page, 'book.txt', book(16));
  await chat.send('Foxes?');
  const call = page.getByTestId('call').first();
  await call.getByText('Called search_documents').waitFor();
  await page.getByTestId('stop').or(page.getByTestId('send')).first().waitFor();
  await call.locator('summary').click();
  await call.getByText(/^\[book\.txt, Part 9\]\n[^]*Lazy animals lie below a third stone\.$/).waitFor();
  await close();
});

test('words alone: by choice, by a button while passages are read, and where memory is short', { timeout: 240_000 }, async () => {
  const { page, chat, close } = await openWith('slow-embedding');
  await attach(page, 'book.txt', book(400));
  await page.getByRole('button', { name: 'Compare words only' }).click();
  await chat.notice.getByText(/They are found by their words\.$/).waitFor();
  await chat.ask(QUESTION);
  assert.match(await sent(page), BY_WORDS);
  assert.equal(await counted(page), 0);
  await attach(page, 'book.txt', book(400));
  await page.getByRole('button', { name: 'Compare the meaning, too' }).click();
  await page.getByRole('button', { name: 'Compare words only' }).waitFor();
  await chat.send(QUESTION);
  await page.locator('.editing').getByText(/^Reading [\d,]+ of [\d,]+ passages/).waitFor();
  await page.locator('.editing').getByRole('button', { name: 'Compare words only' }).click();
  await page.locator('.attached-text').nth(1).waitFor();
  await chat.ended();
  assert.match(await sent(page), BY_WORDS);
  assert.ok(await counted(page) < 2000, 'the rest was not read');
  await page.evaluate(() => Object.defineProperty(navigator, 'deviceMemory', { value: 0.05, configurable: true }));
  await attach(page, 'book.txt', book(400));
  await chat.notice.getByText(/by their words alone\. slow-embedding and the model in use need about [\d.]+ MB together, which is much for this device\.$/).waitFor();
  await close();
});

test('a reply that is being written comes first', { timeout: 240_000 }, async () => {
  const { page, chat, close } = await openWith('slow-embedding');
  await chat.loadFile('mill.gguf', talkativeModel());
  await chat.modelName('mill');
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 0, 'a reply is written');
  await attach(page, 'book.txt', book(400));
  await chat.send(QUESTION);
  const line = page.locator('.editing');
  await line.getByText('Waiting until the reply is written…').waitFor();
  await page.locator('.queued').getByText(`Next: ${QUESTION}`).waitFor();
  assert.equal(await counted(page), 0);
  await page.getByTestId('stop').click();
  await line.getByText(/^Reading [\d,]+ of [\d,]+ passages/).waitFor();
  await line.getByRole('button', { name: 'Compare words only' }).click();
  await page.locator('.attached-text').waitFor();
  await page.getByTestId('stop').click();
  await chat.ended();
  await close();
});

/** Damages what is stored of a model in the middle of its file. */
const damage = (page, size) => page.evaluate(async (wanted) => {
  let found = 0;
  const visit = async (folder) => {
    for await (const handle of folder.values()) {
      if (handle.kind === 'directory') await visit(handle);
      else {
        const file = await handle.getFile();
        if (file.size < wanted) continue;
        const writable = await handle.createWritable({ keepExistingData: true });
        await writable.write({ type: 'write', position: file.size / 2 | 0, data: new Uint8Array(64).fill(255) });
        await writable.close();
        found++;
      }
    }
  };
  await visit(await navigator.storage.getDirectory());
  return found;
}, size);

test('a model that is damaged: the words decide, with a sentence, and it is not tried again', { timeout: 240_000 }, async (t) => {
  const { page, chat, close } = await openWith('slow-embedding', { expected: /404/ });
  assert.ok(await damage(page, 300_000) > 0);
  isGone = true;
  t.after(() => { isGone = false; });
  await attach(page, 'book.txt', book(16));
  await chat.ask(QUESTION);
  assert.match(await sent(page), BY_WORDS);
  await chat.notice.getByText(/^The passages are found by their words alone\. .{20}/).waitFor();
  await attach(page, 'book.txt', book(16));
  await chat.notice.getByText(/will be read\. The passages are found by their words alone\. .{20}/).waitFor();
  await close();
});

test('without such a model the page suggests one, which is only downloaded', { timeout: 240_000 }, async () => {
  const visit = await openChat(here, { expected: /404/, origins: ['https://huggingface.co'] });
  const { page, chat, close } = visit;
  let isThere = true;
  const gone = { status: 404, headers: { 'Access-Control-Allow-Origin': '*' }, body: '' };
  await visit.context.route('https://huggingface.co/**', (route) => (isThere ? undefined : route.fulfill(gone)));
  await attach(page, 'book.txt', book(16));
  await chat.notice.getByText(/They are found by their words\. With Qwen3-Embedding-0\.6B \(639 MB\) they are found by their meaning, too\.$/).waitFor();
  await page.getByRole('button', { name: 'Show Qwen3-Embedding-0.6B' }).click();
  const download = page.getByRole('button', { name: 'Download Qwen3-Embedding-0.6B' });
  await eventually(() => download.evaluate((node) => node === document.activeElement), 'it is shown');
  assert.deepEqual(await complaints(visit), []);
  await download.click();
  await page.locator('#search-shelf').getByRole('button', { name: 'Cancel' }).click();
  await download.waitFor();
  assert.match(await page.locator('#search-shelf').innerText(), /Q8_0: 639 MB to download\./);
  isThere = false;
  await download.click();
  await page.locator('#search-shelf .problem').getByText(/huggingface\.co/).waitFor();
  await download.waitFor();
  assert.equal(await chat.name.innerText(), chat.builtIn, 'the model in use stays');
  await close();
});
