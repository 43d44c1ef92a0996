// SPDX-License-Identifier: MIT
// Texts that do not fit the context: the passages nearest to the question are sent instead, with their places. How
// passages are cut and ranked, and the whole way in the page.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../dist/node.js';
import { cut, nearest, scores } from '../../web/document/passages.js';
import { lines, makePdf } from '../fixtures/documents.mjs';
import { PROJECT, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

/** Words that no question below has. */
const FILLER = 'Grain comes by boat, and flour goes by cart. ';

test('passages are cut at pages, headings and paragraphs, and keep every letter', () => {
  const text = ['# Mill', 'The first.', 'The second.', '[page 2]', 'On the page.', '## Wheel', 'It turns.'].join('\n\n');
  assert.deepEqual(cut(text, 1000), [
    { place: 'Mill', text: '# Mill\n\nThe first.\n\nThe second.' },
    { place: 'page 2, Mill', text: 'On the page.' },
    { place: 'page 2, Wheel', text: '## Wheel\n\nIt turns.' },
  ]);
  for (const [name, long] of Object.entries({
    lines: Array.from({ length: 300 }, (_, i) => `${i},value ${i}`).join('\n'), sentences: FILLER.repeat(200), chinese: '磨坊主把金钥匙藏在井里。'.repeat(200),
    letters: 'a'.repeat(5000), pairs: '🍞'.repeat(2500), spaces: ' '.repeat(5000),
  })) {
    const passages = cut(long, 400);
    assert.equal(passages.map((one) => one.text).join('').replaceAll(/\s/g, ''), long.replaceAll(/\s/g, ''), name);
    for (const { text: one } of passages) {
      assert.ok(one.length <= 400, `${name}: ${one.length}`);
      assert.ok(one.isWellFormed?.() ?? true, name);
    }
  }
  const [, second] = cut(Array.from({ length: 100 }, (_, i) => `line ${i + 1}`).join('\n'), 400);
  assert.equal(second.text.split('\n')[0], second.place, 'the number of the line is right');
});

test('a rare word of the question counts more than a frequent one, in any language and form', () => {
  const near = (texts, question) => {
    const found = scores(texts, question);
    return found.indexOf(Math.max(...found));
  };
  assert.equal(near(['the mill, the mill, the mill', 'the key', 'the mill'], 'Where is the key of the mill?'), 1);
  for (const [question, wanted] of [
    ['Keys?', 'A key is there.'], ['Wo sind die Mühlen?', 'Die Mühle steht am Fluss.'], ['QUE FERME LE MOULIN', 'les moulins sont fermes'], ['金钥匙在哪里?', '磨坊主把金钥匙藏在井里。'],
    ['水車はどこですか', '村の水車は川にあります'], ['물레방아 어디', '물레방아는 강가에 있다'], ['где мельница', 'ты видишь мельницу'], ['أين الطاحونة', 'هذه الطاحونة قديمة'],
  ]) {
    assert.equal(near([FILLER, 'Anything else, 123.', wanted, '天气很好。'], question), 2, question);
  }
  assert.deepEqual(scores(['no', 'none'], 'question'), [0, 0]);
  assert.deepEqual(scores([], 'question'), []);
  assert.deepEqual(scores(['constructor', '__proto__ toString'], '').every((score) => score === 0), true);
});

test('as many as fit, in the order of the document; small texts are whole; without a word in common the beginning', () => {
  const text = Array.from({ length: 50 }, (_, i) => `[page ${i + 1}]\n\n${FILLER.repeat(10)}${i % 20 === 10 ? `Key ${i}.` : ''}`).join('\n\n');
  const book = { name: 'book.pdf', text };
  const [found, small] = nearest({ texts: [book, { name: 'n', text: 'short' }], question: 'key?', most: 2000 });
  assert.match(found, /^\(2 of 50 passages, those nearest to the question\)\n\n\[page 11\]\n[^[]*Key 10\.\n\n\[page 31\]\n[^[]*Key 30\.$/);
  assert.equal(small, null);
  const [one] = nearest({ texts: [book], question: 'key?', most: 600, least: 1600 });
  assert.match(one, /^\(1 of 50 passages, those nearest to the question\)\n\n\[page 11\]/);
  const three = `# A\n\n${'key '.repeat(100)}\n\n# B\n\n${'key grain '.repeat(40)}\n\n# C\n\nNo key.`;
  assert.match(nearest({ texts: [{ name: 'n', text: three }], question: 'key', most: 500, least: 1600 })[0], /^\(1 of 3 passages.*\)\n\n\[A\]/, 'a short one is not nearer, and does not fill the room');
  const [first] = nearest({ texts: [book], question: 'Sum it up!', most: 1500, least: 1600 });
  assert.match(first, /^\(3 of 50 passages.*\)\n\n\[page 1\][^[]*\n\n\[page 2\][^[]*\n\n\[page 3\][^[]*$/);
});

/** A book whose page 41 says where the key is. */
const book = () => makePdf(Array.from({ length: 60 }, (_, i) => lines(...Array(30).fill(FILLER), ...(i === 40 ? ['The golden key lies below the third stone.'] : []))));

async function attach(page, name, buffer) {
  const chosen = page.waitForEvent('filechooser');
  await page.getByTestId('attach').click();
  await (await chosen).setFiles({ name, mimeType: '', buffer });
  await page.locator('#attached li').filter({ hasText: name }).getByText(/tokens/).waitFor();
}

test('a book that does not fit: the message has its nearest passages, an edited one others', async (t) => {
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'));
  t.after(() => model.dispose());
  const { page, chat, close } = await openChat(here, { viewport: { width: 1280, height: 800 } });
  await attach(page, 'book.pdf', book());
  await chat.notice.getByText(/^The text takes [\d,]+ tokens, and the context holds 1,024 tokens: only the passages nearest to your question will be read\./).waitFor();
  await chat.ask('Where does the golden key lie?');
  assert.equal(await chat.error.count(), 0);
  const shown = page.locator('.attached-text');
  await shown.getByText('book.pdf, the nearest passages').click();
  const sent = await shown.locator('pre').textContent();
  assert.match(sent, /^\(\d+ of \d+ passages, those nearest to the question\)\n\n[^]*\[page 41\]\n[^]*The golden key lies below the third stone\./);
  const tokens = await model.countTokens(`book.pdf\n\`\`\`\n${sent}\n\`\`\``);
  assert.ok(tokens < 1024 - 256, `${tokens} tokens leave room for the reply`);
  await page.reload();
  await chat.ready();
  assert.equal(await shown.locator('pre').textContent(), sent, 'they are kept');
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  await page.locator('#attached li').filter({ hasText: 'book.pdf' }).getByText(/[\d,]{6} tokens/).waitFor();
  await chat.send('Boat?');
  await page.locator('.message.user .bubble').getByText('Boat?', { exact: true }).waitFor();
  await chat.ended();
  const other = await shown.locator('pre').textContent();
  assert.match(other, /\[page 1\]/);
  assert.doesNotMatch(other, /golden/);
  await page.getByTestId('list-button').click();
  await page.getByRole('button', { name: 'More about' }).click();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as text' }).click()]);
  assert.ok((await readFile(await saved.path(), 'utf8')).includes(other));
  await close();
});

test('a text that would push out the conversation: the whole, or the passages', async (t) => {
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'));
  t.after(() => model.dispose());
  const content = (times) => `The golden key.\n\n${'Grain by boat.\n\n'.repeat(times)}`;
  let times = 50;
  while (await model.countTokens(`most.txt\n\`\`\`\n${content(times)}\n\`\`\``) < 1010) times++;
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await eventually(async () => !(await page.locator('#context-text').innerText()).startsWith('0 of'), 'the meter shows the reply');
  await attach(page, 'most.txt', Buffer.from(content(times)));
  await chat.notice.getByText(/tokens are left: the model will no longer read the beginning/).waitFor();
  await page.getByRole('button', { name: 'Send the nearest passages' }).click();
  await chat.notice.getByText(/and only the passages nearest to your question will be read\.$/).waitFor();
  await page.getByRole('button', { name: 'Send the whole' }).click();
  await page.getByRole('button', { name: 'Send the nearest passages' }).click();
  await chat.ask('Which key?');
  assert.match(await page.locator('.attached-text pre').textContent(), /^\(1 of \d+ passages, those nearest to the question\)\n\n\[line 1\]\nThe golden key\./);
  await attach(page, 'most.txt', Buffer.from(content(times)));
  await chat.notice.getByText(/tokens are left: the model will no longer read the beginning/).waitFor();
  await chat.ask('Which key?');
  assert.equal(await page.locator('.attached-text pre').last().textContent(), content(times), 'the choice was for one message');
  await close();
});
