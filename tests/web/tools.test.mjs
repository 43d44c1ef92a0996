// SPDX-License-Identifier: MIT
// The page's tools with the demo model: a call folded like thinking, its result, and a reply that continues; stored,
// exported and imported. The code for tools is fetched with the first call, and not without one. Calls of the library
// alone: library.test.mjs.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { asMarkdown } from '../../web/conversation/late/as-text.js';
import { fromPortable, toPortable } from '../../web/conversation/portable.js';
import { firstRead, promptOf } from '../../web/conversation/prompt.js';
import { checkMessage } from '../../web/conversation/record.js';
import { calculated } from '../../web/tools/calculator.js';
import { take } from '../../web/tools/calls.js';
import { complaints, station } from './browser.mjs';
import { ChatPage, openChat, storeSettings } from './chat-page.mjs';

const here = station();

test('a calculator reads what is written, and nothing else', () => {
  for (const [text, value] of [
    ['1+2*3', '7'], ['(1 + 2) * 3', '9'], ['2^3^2', '512'], ['-2^2', '-4'], ['7 % 4 - 10 / 4', '0.5'], ['0.1+0.2', '0.3'], ['.5e2', '50'], ['--1', '1'], ['2 ^ -1', '0.5'], [' 8 ', '8'],
  ]) assert.equal(calculated(text), value, text);
  for (const text of ['', '1+', '(1', '1)', '1 2', 'x', '2**3', '1/0', '1e400', 'alert(1)', '1;2']) assert.throws(() => calculated(text), Error, text);
});

test('what was called becomes steps of a message, which the model reads again, and files have', () => {
  const message = { id: 'b', role: 'assistant', parent: 'a', content: 'Wait.', thinking: 'Hm.' };
  const call = (id, given) => ({ type: 'tool-call', index: 0, id, name: 'calculate', arguments: { expression: given } });
  for (const event of [call('1', '1+1'), call('2', '2+2'), { type: 'tool-result', id: '2', content: '4', isError: false }, { type: 'tool-result', id: '1', content: 'Error: no', isError: true }]) take(message, event);
  message.content = 'So far.';
  for (const event of [{ type: 'tool-call-start' }, call('3', '3+3')]) take(message, event);
  message.content = 'Done.';
  const stored = checkMessage(JSON.parse(JSON.stringify(message)));
  assert.deepEqual(stored.steps, [
    { content: 'Wait.', thinking: 'Hm.', calls: [{ id: '1', name: 'calculate', arguments: '{"expression":"1+1"}', failed: true, result: 'Error: no' }, { id: '2', name: 'calculate', arguments: '{"expression":"2+2"}', failed: false, result: '4' }] },
    { content: 'So far.', thinking: '', calls: [{ id: '3', name: 'calculate', arguments: '{"expression":"3+3"}', failed: false }] },
  ]);
  assert.deepEqual(promptOf(/** @type {any} */ ({ path: [{ id: 'a', role: 'user', content: 'q' }, stored] }), { system: '', sees: false }), [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: 'Wait.', thinking: 'Hm.', toolCalls: [{ id: '1', name: 'calculate', arguments: '{"expression":"1+1"}' }, { id: '2', name: 'calculate', arguments: '{"expression":"2+2"}' }] },
    { role: 'tool', toolCallId: '1', content: 'Error: no' }, { role: 'tool', toolCallId: '2', content: '4' }, { role: 'assistant', content: 'Done.' },
  ]);
  const path = [{ id: 'a', role: 'user', content: 'q' }, stored, { id: 'c', role: 'user', content: 'r' }, { id: 'd', role: 'assistant', content: '' }];
  assert.deepEqual([0, 5, 6].map((dropped) => firstRead({ path, run: null }, dropped)), ['a', 'c', '']);
  assert.match(asMarkdown({ entry: { title: 'T', leaf: 'b' }, messages: [stored] }), /Wait\.\n\n\*\(called calculate\)\*\n\n {4}\{"expression":"1\+1"\}\n {4}Error: no\n.*So far\.\n.*\nDone\.\n$/s);
  for (const steps of [5, [5], [{ calls: 5 }], [{ calls: [5, { id: 'x' }] }]]) assert.ok(checkMessage({ ...message, steps }).content === 'Done.', 'what is damaged does no harm');
});

test('an image of a result belongs to its call: shown, stored, and read again by a model that sees', async () => {
  const message = { id: 'b', role: 'assistant', parent: 'a', content: '', thinking: '' };
  const blob = new Blob(['x'], { type: 'image/png' });
  take(message, { type: 'tool-call', id: '1', name: 'look', arguments: {} });
  take(message, { type: 'tool-result', id: '1', name: 'look', content: 'A cat.', parts: [{ type: 'image', image: blob }, { type: 'text', text: 'A cat.' }], isError: false });
  message.content = 'Done.';
  const stored = checkMessage(message);
  assert.deepEqual(checkMessage(fromPortable(JSON.parse(JSON.stringify(await toPortable(stored))))).media.map(({ blob: { size, type }, ...about }) => ({ ...about, size, mime: type })), [{ type: 'image', name: 'Image of look', call: '1', size: 1, mime: 'image/png' }]);
  assert.deepEqual([stored.media, stored.steps[0].calls[0].result], [[{ type: 'image', name: 'Image of look', blob, call: '1' }], 'A cat.']);
  const read = (sees) => promptOf(/** @type {any} */ ({ path: [{ id: 'a', role: 'user', content: 'q' }, stored] }), { system: '', sees }).slice(2);
  assert.deepEqual(read(true), [{ role: 'tool', toolCallId: '1', content: [{ type: 'image', image: blob }, { type: 'text', text: 'A cat.' }] }, { role: 'assistant', content: 'Done.' }]);
  assert.deepEqual(read(false), [{ role: 'tool', toolCallId: '1', content: 'A cat.' }, { role: 'assistant', content: 'Done.' }]);
});

test('a call is folded like thinking, with its result; it stays with the conversation and is exported', async () => {
  const visit = await openChat(here, { init: storeSettings, initArgument: { temperature: 0, seed: 1, tools: 'required', maxTokens: 150 } });
  const { page, chat, close } = visit;
  const asked = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname.split('/').pop()));
  const text = await chat.ask('What time is it?');
  const call = page.getByTestId('call');
  await call.first().waitFor();
  assert.deepEqual(['page-tools.js', 'extras.js', 'grammar.wasm'].filter((name) => !asked.includes(name)), []);
  assert.match(await call.first().locator('summary').innerText(), /^(Called (now|calculate)|calculate has failed)$/);
  assert.equal(await call.first().getAttribute('open'), null);
  await call.first().locator('summary').click();
  assert.match(await call.first().innerText(), /Arguments\s+\{.*\}\s+(Result|Error)\s+\S/s);
  await page.reload();
  await new ChatPage(page).ready();
  assert.deepEqual([await chat.text(), await call.count()], [text, 1]);
  await page.getByTestId('list-button').click();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save all' }).click();
  const { conversations: [{ messages }] } = JSON.parse(await readFile(await (await download).path(), 'utf8'));
  const [{ steps: [{ calls }] }] = messages.filter(({ role }) => role === 'assistant');
  assert.ok(calls[0].result && JSON.parse(calls[0].arguments));
  assert.deepEqual(await complaints(visit), []);
  await close();
});

test('a call that is cut off is told in words', async () => {
  const { chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0, seed: 1, tools: 'required', maxTokens: 8 } });
  await chat.ask('What time is it?');
  assert.match(await chat.reply.innerText(), /^Cut off: the longest reply was reached\. The call of (a tool|now|calculate) was cut off\.$/m);
  assert.doesNotMatch(await chat.reply.innerText(), /tool_call/);
  await close();
});

test('a page of plain text fetches none of it', async () => {
  const asked = [];
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  page.on('request', (request) => asked.push(new URL(request.url()).pathname.split('/').pop()));
  await chat.ask('Hi');
  assert.deepEqual(asked.filter((name) => /tools|extras|grammar/.test(name)), []);
  await close();
});
