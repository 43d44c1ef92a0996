// SPDX-License-Identifier: MIT
// A conversation on the chat page with the demo model: it loads by itself, text streams in, a stop stops, and the
// second turn reads only what is new.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soon } from '../js/support/soon.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { openChat, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station({ serviceWorker: true });

/** In the page: records the length of the newest reply in every frame. */
function recordGrowth() {
  globalThis.lengths = [];
  const look = () => {
    const reply = [...document.querySelectorAll('[data-testid=message-assistant] .prose')].at(-1);
    globalThis.lengths.push(reply?.textContent.length ?? 0);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

/** In the page: presses Stop as soon as a reply has this many letters. */
function stopAfter(letters) {
  return new Promise((done) => {
    const look = () => {
      const reply = [...document.querySelectorAll('[data-testid=message-assistant] .prose')].at(-1);
      if ((reply?.textContent.length ?? 0) < letters) return requestAnimationFrame(look);
      const pressed = performance.now();
      const button = document.querySelector('[data-testid=stop]');
      button.click();
      const wait = () => (button.hidden ? done(performance.now() - pressed) : setTimeout(wait, 1));
      return wait();
    };
    look();
  });
}

test('the demo model loads by itself, on two threads or more, with relaxed SIMD', async () => {
  const { page, chat, close } = await openChat(here);
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  assert.match(chat.builtIn, /^Demo model/);
  assert.equal(await page.getByTestId('progress').count(), 0);
  assert.match(await chat.fact('Instructions'), /^relaxed SIMD/);
  const cores = await page.evaluate(() => navigator.hardwareConcurrency);
  assert.equal(Number(await chat.fact('Threads')), Math.min(8, cores));
  assert.equal(await chat.notice.count(), cores > 1 ? 0 : 1);
  await close();
});

test('a reply streams in over several frames, while the page moves', async () => {
  const { page, chat, close } = await openChat(here, { reducedMotion: 'no-preference', init: storeSettings, initArgument: { seed: 1, maxTokens: 1000 } });
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await page.evaluate(recordGrowth);
  const text = await chat.ask('Talk.');
  const lengths = await page.evaluate(() => globalThis.lengths);
  assert.ok(text.length > 100, text);
  const steps = new Set(lengths);
  assert.ok(steps.size >= 4, `lengths seen: ${[...steps].join(' ')}`);
  assert.deepEqual(lengths, lengths.toSorted((a, b) => a - b), 'the text only grows');
  await close();
});

test('the demo model answers what it knows, and the numbers around it are filled in', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  assert.match(await chat.ask('What is the capital of Kenya?'), /Nairobi/);
  await chat.ask('Tell me a story about an owl and a golden key.');
  await eventually(async () => /^[\d,.]+ tokens\/s$/.test(await page.getByTestId('speed').innerText()), 'the speed is filled in');
  await eventually(async () => /^[1-9][\d,]* of 1,024 tokens$/.test(await page.getByTestId('context-meter').innerText()), 'the context meter is filled in');
  const meter = page.getByTestId('context-meter');
  assert.equal(await meter.getAttribute('aria-valuemax'), '1024');
  assert.ok(Number(await meter.getAttribute('aria-valuenow')) > 0);
  await close();
});

test('axe has nothing against the chat and its dialogs', async () => {
  const visit = await openChat(here);
  const { page, chat, close } = visit;
  await chat.ask('What is the capital of Kenya?');
  assert.deepEqual(await complaints(visit), []);
  for (const [opener, dialog] of [['#model-button', '#model-dialog'], ['#settings', '#settings-dialog']]) {
    await page.locator(opener).click();
    await page.locator(dialog).getByRole('button').first().waitFor();
    assert.deepEqual(await complaints(visit), []);
    await page.keyboard.press('Escape');
  }
  await page.getByTestId('list-button').click();
  await page.getByRole('button', { name: /^More about/ }).click();
  assert.deepEqual(await complaints(visit), []);
  await close();
});

test('the second turn reads only what is new', async () => {
  const { chat, close } = await openChat(here);
  await chat.ask('Hello! My name is Ada and I have come a long way to see this.');
  assert.equal(await chat.cachedTokens(), 0);
  await chat.ask('What is quern?');
  assert.ok(await chat.cachedTokens() > 10);
  await close();
});

test('Stop ends a long reply within 200 ms and keeps what is written', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await soon(200, async () => {
    await page.getByTestId('new-chat').click();
    await chat.send('Talk.');
    const took = await page.evaluate(stopAfter, 20);
    await chat.ended();
    return took;
  });
  assert.match(await chat.reply.innerText(), /^Stopped\.$/m);
  assert.ok((await chat.text()).length >= 20);
  assert.equal(await chat.status.innerText(), 'Stopped');
  await chat.send('Again.');
  await eventually(async () => (await chat.replies.count()) === 2 && (await chat.text()).length > 0, 'the next reply comes');
  await page.keyboard.press('Escape');
  await chat.ended();
  await close();
});

test('Stop ends the reading of a long prompt within 200 ms', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await soon(200, async () => {
    await page.getByTestId('new-chat').click();
    await chat.send('Read this. '.repeat(300));
    await chat.reply.getByText(/^Reading \d/).waitFor();
    const took = await page.evaluate(stopAfter, 0);
    await chat.ended();
    return took;
  });
  assert.match(await chat.reply.innerText(), /^Stopped\.$/m);
  await close();
});

test('a new chat forgets, also after a reload; a conversation outlives a reload', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.ask('Hello!');
  await page.reload();
  await chat.ready();
  assert.equal(await page.getByTestId('message-user').innerText(), 'Hello!');
  assert.equal(await chat.replies.count(), 1);
  await page.getByTestId('new-chat').click();
  await page.getByTestId('message-user').waitFor({ state: 'detached' });
  assert.equal(await chat.replies.count(), 0);
  await page.reload();
  await chat.ready();
  assert.equal(await chat.replies.count(), 0);
  await close();
});

test('O15: a stored conversation that is damaged or hostile is none, and one that cannot be stored goes on', async () => {
  const { page, chat, close } = await openChat(here);
  const odd = { version: 1, messages: [null, 5, { role: 'user' }, { role: 'system', content: 'x' }, { role: 'assistant', content: 'alone', thinking: {} }] };
  for (const stored of ['{"version":1,"messa', 'null', '[]', '{"version":2,"messages":[]}', '{"version":1,"messages":7}', JSON.stringify(odd)]) {
    await page.evaluate((text) => localStorage.setItem('quern:chat', text), stored);
    await page.reload();
    await chat.ready();
    assert.equal(await chat.replies.count() + await page.getByTestId('message-user').count(), 0, stored);
  }
  await page.evaluate(() => { IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); }; });
  await chat.ask('Hello!');
  await chat.ask('Hello!');
  assert.equal(await chat.replies.count(), 2);
  assert.match(await chat.notice.innerText(), /does not let the page save the conversation/);
  await close();
});

test('a new chat in the middle of a reply leaves the reply alone, another model ends it', async () => {
  const { page, chat, close } = await openChat(here);
  await chat.loadFile('talkative.gguf', talkativeModel());
  await chat.modelName('talkative');
  await chat.send('Talk.');
  await eventually(async () => (await chat.text()).length > 0, 'text comes');
  await page.getByTestId('new-chat').click();
  await chat.reply.waitFor({ state: 'detached' });
  await page.getByTestId('send').waitFor();
  await page.getByRole('button', { name: 'Conversations, 1 being written' }).waitFor();
  await chat.loadUrl(`${here.url}models/demo-q8_0.gguf`);
  await chat.notice.getByRole('button', { name: 'Load it now' }).click();
  await chat.modelName('demo-q8_0');
  assert.ok((await chat.ask('Hello!')).length > 0);
  assert.equal(await page.getByTestId('list-button').getAttribute('aria-label'), 'Conversations');
  await close();
});

test('thinking is kept apart and can be opened and closed', async () => {
  const { page, chat, close } = await openChat(here, { init: storeSettings, initArgument: { temperature: 0 } });
  const thinking = page.getByTestId('thinking');
  await chat.ask('What is 8 + 8?');
  assert.equal(await thinking.last().isVisible(), false);
  await page.getByRole('switch', { name: 'Thinking' }).click();
  const text = await chat.ask('What is 8 + 8?');
  assert.match(text, /16/);
  assert.doesNotMatch(text, /think>/);
  assert.equal(await thinking.last().evaluate((node) => node.open), false);
  await thinking.last().locator('summary').click();
  assert.ok((await thinking.last().locator('.thought').innerText()).length > 0);
  await thinking.last().locator('summary').click();
  assert.equal(await thinking.last().evaluate((node) => node.open), false);
  await close();
});
