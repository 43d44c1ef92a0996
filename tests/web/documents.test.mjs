// SPDX-License-Identifier: MIT
// Texts beside a message: dropped, pasted or picked files of any text, and long pastes. They are shown with their
// tokens, sent in front of the question, and kept. Other files are no models either, unless they begin as one.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../dist/node.js';
import { tinyModel } from '../fixtures/tiny.mjs';
import { PROJECT, complaints, eventually, station } from './browser.mjs';
import { openChat, talkativeModel } from './chat-page.mjs';
import { playedSite } from './played.mjs';

const site = await playedSite();
after(() => site.remove());
const here = station();
const played = { open: (path, options) => playedHere.open(path, options) };
const playedHere = station({ root: site.root });

/** In the page: hands files or a text to the field, as a paste or a drop does. @returns {boolean} whether it was taken */
function hand({ kind, files = [], text }) {
  const data = new DataTransfer();
  for (const { name, type = '', numbers } of files) data.items.add(new File([Uint8Array.from(numbers)], name, { type }));
  if (text !== undefined) data.setData('text/plain', text);
  const init = { bubbles: true, cancelable: true };
  const event = kind === 'paste' ? new ClipboardEvent('paste', { ...init, clipboardData: data }) : new DragEvent('drop', { ...init, dataTransfer: data });
  document.getElementById('input').dispatchEvent(event);
  return event.defaultPrevented;
}

const file = (name, content, type) => ({ name, type, numbers: [...Buffer.from(content)] });
const drop = (page, ...files) => page.evaluate(hand, { kind: 'drop', files });
const paste = (page, what) => page.evaluate(hand, { kind: 'paste', ...what });
const chips = (page) => page.locator('#attached li');
const chip = (page, name) => chips(page).filter({ hasText: name });

const NOTES = '# Notes\n\nThe mill opens at nine.\n';

test('a file of text becomes a part of the message, whatever its ending, while a reply is written too', async (t) => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 20, 'text comes');
  const names = ['a.txt', 'b.md', 'c.csv', 'd.py', 'e.json', 'f.svg', 'g.log', 'h.html', 'Makefile'];
  await drop(page, ...names.map((name) => file(name, `${name} says hello`, name === 'f.svg' ? 'image/svg+xml' : '')));
  await eventually(async () => await chips(page).count() === names.length, 'all are there');
  assert.deepEqual(await chips(page).locator('bdi').allInnerTexts(), names);
  assert.equal(await chat.notice.count(), 0);
  assert.equal(await chat.error.count(), 0);
  assert.equal(await chat.name.innerText(), 'talkative');
  await page.getByTestId('stop').click();
  await chat.ended();
  await page.reload();
  await chat.ready();
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'));
  t.after(() => model.dispose());
  const tokens = await model.countTokens('b.md\n```\nb.md says hello\n```');
  await chip(page, 'b.md').getByText(`${tokens} tokens`).waitFor();
  await page.getByRole('button', { name: 'Remove b.md' }).click();
  assert.equal(await chips(page).count(), names.length - 1, 'what was attached is there after a reload, and can be taken away');
  assert.deepEqual(await complaints({ page }), []);
  await close();
});

test('a text is read before the question, folded in the conversation, kept and exported', async () => {
  const { page, chat, close } = await openChat(played, { viewport: { width: 1280, height: 800 } });
  await drop(page, file('notes.md', `\uFEFF${NOTES}`), file('deep.md', 'a\r\n````\nb'));
  await eventually(async () => await chips(page).count() === 2, 'both are there');
  await chat.ask('Write 3. When?');
  assert.equal(await chips(page).count(), 0);
  const read = `notes.md\n\`\`\`\n${NOTES}\n\`\`\`\n\ndeep.md\n\`\`\`\`\`\na\n\`\`\`\`\nb\n\`\`\`\`\`\n\nWrite 3. When?`;
  assert.deepEqual(await page.evaluate(() => globalThis.shown), [read]);
  await page.reload();
  await chat.ready();
  const shown = page.locator('.attached-text').first();
  assert.equal(await shown.locator('pre').isVisible(), false);
  await shown.getByText(`notes.md, ${NOTES.length} characters`).click();
  assert.equal(await shown.locator('pre').textContent(), NOTES);
  assert.equal(await page.locator('.message.user .bubble').innerText(), 'Write 3. When?');
  await page.getByTestId('list-button').click();
  const [whole] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save all' }).click()]);
  const { conversations: [{ messages }] } = JSON.parse(await readFile(await whole.path(), 'utf8'));
  assert.deepEqual(messages[0].texts[0], { name: 'notes.md', text: NOTES });
  await page.getByRole('button', { name: 'More about' }).click();
  const [one] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as text' }).click()]);
  assert.ok((await readFile(await one.path(), 'utf8')).includes(`notes.md\n\`\`\`\n${NOTES}`));
  await page.getByRole('button', { name: 'Edit and send again' }).click();
  assert.equal(await chips(page).count(), 2, 'an edited message has its texts');
  await page.keyboard.press('Escape');
  assert.equal(await chips(page).count(), 0);
  await close();
});

test('files that are neither text nor a model say so, and nothing is loaded', async () => {
  const { page, chat, close } = await openChat(here);
  for (const [name, content, says] of [
    ['report.pdf', '%PDF-1.7\n', 'report.pdf is damaged, or is no PDF file'], ['letter.docx', 'PK\x03\x04\x14', 'letter.docx is damaged'],
    ['data.bin', '\x00\x01\x02', 'data.bin is no image, model, document or text'],
    ['empty.txt', '', 'empty.txt is empty.'],
  ]) {
    await drop(page, file(name, content));
    await chat.notice.getByText(says).waitFor();
  }
  await drop(page, { name: 'latin.txt', numbers: [72, 0xe9, 10] });
  await chat.notice.getByText('latin.txt is no image, model, document or text').waitFor();
  await drop(page, file('photo.HEIC', 'ftypheic'));
  await chat.notice.getByText('The model in use reads text only.').waitFor();
  assert.equal(await chips(page).count(), 0);
  assert.equal(await chat.error.count(), 0);
  assert.equal(await chat.name.innerText(), chat.builtIn);
  await drop(page, { name: 'utf16.txt', numbers: [0xff, 0xfe, ...Buffer.from('Grüße', 'utf16le')] });
  await chip(page, 'utf16.txt').waitFor();
  await close();
});

test('a model is recognised by its first bytes', async () => {
  const { page, chat, close } = await openChat(here);
  await drop(page, { name: 'no-ending', numbers: [...tinyModel()] });
  await chat.modelName('no-ending');
  await close();
});

test('a picked file, and a pasted one', async () => {
  const { page, close } = await openChat(here);
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByTestId('attach').click()]);
  await chooser.setFiles({ name: 'picked.txt', mimeType: 'text/plain', buffer: Buffer.from('picked') });
  await chip(page, 'picked.txt').waitFor();
  assert.equal(await paste(page, { files: [file('pasted.py', 'print()')], text: '/home/me/pasted.py' }), true, 'a file manager adds the path');
  await chip(page, 'pasted.py').waitFor();
  await close();
});

test('a long paste becomes a part, and one button puts it into the text; a short one is typed text', async () => {
  const { page, chat, close } = await openChat(here);
  assert.equal(await paste(page, { text: 'word '.repeat(700) }), false);
  const long = 'line\r\n'.repeat(1000);
  assert.equal(await paste(page, { text: long }), true);
  assert.equal(await paste(page, { text: long }), true);
  assert.deepEqual(await chips(page).locator('bdi').allInnerTexts(), ['Pasted text', 'Pasted text 2']);
  await chat.input.fill('Before.');
  await chips(page).first().getByRole('button', { name: 'Put into the text' }).click();
  assert.equal(await chat.input.inputValue(), `Before.${long.replaceAll('\r', '')}`);
  assert.equal(await chips(page).count(), 1);
  await close();
});

test('a text that is too long for the context says so before it is sent', async (t) => {
  const model = await load(join(PROJECT, 'web/models/demo-q8_0.gguf'));
  t.after(() => model.dispose());
  const content = (words) => 'a b '.repeat(words);
  let words = 100;
  while (await model.countTokens(`page.txt\n\`\`\`\n${content(words)}\n\`\`\``) < 1010) words++;
  const { page, chat, close } = await openChat(here);
  await drop(page, file('book.txt', 'word '.repeat(5000)));
  await chat.notice.getByText(/^The text takes [\d,]+ tokens, and the context holds 1,024 tokens: only the passages nearest to your question will be read\./).waitFor();
  await page.getByRole('button', { name: 'Remove book.txt' }).click();
  await eventually(async () => await chat.notice.count() === 0, 'gone with it');
  await chat.ask('Hello!');
  await eventually(async () => /^\d\d+ of/.test(await page.locator('#context-text').innerText()), 'it is counted');
  await drop(page, file('page.txt', content(words)));
  await chat.notice.getByText(/^The text takes 1,\d{3} tokens, and (?:1,)?\d{3} tokens are left/).waitFor();
  assert.match(await chat.notice.innerText(), /left: the model will no longer read the beginning of the conversation\./);
  await close();
});
