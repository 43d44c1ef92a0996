// SPDX-License-Identifier: MIT
// What the page says, in the words and numbers of visitors.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PAIR } from '../fixtures/vision/golden.mjs';
import { station } from './browser.mjs';
import { openChat, storeSettings } from './chat-page.mjs';

const here = station();

test('a reply of a few words has no speed, and a longer one has', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  await chat.ask('What is 27 + 45?');
  assert.match(await chat.reply.locator('.caption').innerText(), /^Demo model \(toy\)$/);
  assert.equal(await page.getByTestId('speed').innerText(), '');
  await chat.ask('Tell me a story about an owl and a golden key.');
  assert.match(await chat.reply.locator('.caption').innerText(), /^Demo model \(toy\) · [\d,.]+ tokens\/s$/);
  await close();
});

test('numbers of tokens are grouped, in errors too', async () => {
  const { chat, close } = await openChat(here);
  await chat.send('word '.repeat(5000));
  await chat.error.getByText(/The prompt has (?:at least )?\d+,\d{3} tokens, but the context holds 1,024, the reply included\./).waitFor();
  await close();
});

test('a projector alone says what to choose, without the name of an option', async () => {
  const { chat, close } = await openChat(here);
  await chat.loadFile('vision.gguf', readFileSync(PAIR.options.vision));
  await chat.error.waitFor();
  assert.equal(await chat.error.locator('.card-message').innerText(), 'This file is the vision part of a model (a projector), or was taken for one.');
  assert.doesNotMatch(await chat.error.innerText(), /`/);
  await close();
});
