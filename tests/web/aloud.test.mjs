// SPDX-License-Identifier: MIT
// Replies are read aloud by voices of the device, never by others, in the language of their script, until they are
// stopped or no longer shown. The browser's voices are played here.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaints, eventually, station } from './browser.mjs';
import { openChat } from './chat-page.mjs';

const here = station();

/** In the page, before its scripts: a browser that speaks. globalThis.spoken collects; an utterance ends on demand. */
function playVoices(voices) {
  const spoken = globalThis.spoken = [];
  let current = null;
  globalThis.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  const synthesis = new EventTarget();
  Object.assign(synthesis, {
    getVoices: () => voices,
    speak(utterance) {
      spoken.push([utterance.text, utterance.voice.name, utterance.lang]);
      current = utterance;
    },
    cancel() {
      const last = current;
      current = null;
      if (last) setTimeout(() => last[globalThis.cancelEnds ? 'onend' : 'onerror'](), 20);     // browsers tell it later
    },
  });
  globalThis.endUtterance = () => current.onend();
  Object.defineProperty(globalThis, 'speechSynthesis', { value: synthesis });
}

const LOCAL = [{ name: 'Anna', lang: 'de-DE', localService: true }, { name: 'Mei', lang: 'zh-CN', localService: true }, { name: 'Ada', lang: 'en-US', localService: true }];
const FAR = { name: 'Cloud', lang: 'en-US', localService: false, default: true };

async function openReply(content, voices = [FAR, ...LOCAL]) {
  const stored = { version: 1, messages: [{ role: 'user', content: 'q' }, { role: 'assistant', content, thinking: '', thoughtMs: 0, note: '' }] };
  const init = ([text, play, all]) => {
    localStorage.setItem('quern:chat', text);
    new Function(`return ${play}`)()(all);
  };
  return openChat(here, { init, initArgument: [JSON.stringify(stored), String(playVoices), voices] });
}

const isNotFetched = (page) => page.evaluate(() => performance.getEntriesByType('resource').every(({ name }) => !/aloud/.test(name)));

const start = (page) => page.getByRole('button', { name: 'Read aloud' });
const stop = (page) => page.getByRole('button', { name: 'Stop reading' });
const spoken = (page) => page.evaluate(() => globalThis.spoken);

test('a reply is read in pieces, without code and formulas, by a voice of the device', async () => {
  const long = 'A sentence about the mill by the river. '.repeat(12);
  const visit = await openReply(`# Mills\n\n${long}\n\n- one $x^2$\n- two [link](https://example.com/)\n\n\`\`\`js\nlet secret = 1;\n\`\`\`\n\n$$\nE = mc^2\n$$\n\nEnd.`);
  const { page, close } = visit;
  await start(page).click();
  await stop(page).waitFor();
  assert.deepEqual(await complaints(visit), []);
  while (await stop(page).isVisible()) await page.evaluate(() => globalThis.endUtterance());
  const all = await spoken(page);
  assert.ok(all.every(([text, voice, lang]) => text.length <= 240 && voice === 'Ada' && lang === 'en-US'), JSON.stringify(all));
  const text = all.map(([piece]) => piece).join(' ');
  assert.equal(text, `Mills ${long.trim()} one Formula two link Code. Formula. End.`);
  assert.equal(await start(page).isVisible(), true);
  await close();
});

test('the script tells the language; without a voice of the device for it nothing is said', async () => {
  const { page, close } = await openReply('磨坊在河边。');
  await start(page).click();
  await stop(page).click();
  assert.deepEqual((await spoken(page)).map(([, voice]) => voice), ['Mei']);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Read aloud');
  await close();
  const other = await openReply('Мельница стоит у реки.');
  await start(other.page).click();
  await other.page.locator('#announcer').getByText('This device has no voice for this language.').waitFor();
  assert.deepEqual(await spoken(other.page), []);
  await other.close();
});

test('a reading that is begun again at once goes on, whatever the voice tells of the one before', async () => {
  for (const ends of [false, true]) {
    const { page, close } = await openReply('One.\n\nTwo.');
    await page.evaluate((how) => { globalThis.cancelEnds = how; }, ends);
    await start(page).click();
    await page.evaluate(() => {
      document.querySelector('[aria-label="Stop reading"]').click();
      document.querySelector('[aria-label="Read aloud"]').click();
    });
    await page.waitForTimeout(200);
    assert.ok(await stop(page).isVisible());
    assert.deepEqual((await spoken(page)).map(([text]) => text), ['One.', 'One.']);
    await close();
  }
});

test('it ends when another conversation is shown', async () => {
  const { page, close } = await openReply('One. Two.');
  await start(page).click();
  await stop(page).waitFor();
  await page.getByTestId('new-chat').click();
  await eventually(() => page.evaluate(() => { try { globalThis.endUtterance(); return false; } catch { return true; } }), 'it is cancelled');
  assert.equal((await spoken(page)).length, 1);
  await close();
});

test('where all voices are elsewhere, or there are none, there is no button', async () => {
  for (const voices of [[FAR], []]) {
    const { page, chat, close } = await openReply('One.', voices);
    await chat.ask('Hello!');
    await page.waitForTimeout(500);
    assert.equal(await start(page).count(), 0);
    assert.ok(await isNotFetched(page), 'nor is its code fetched');
    await close();
  }
});
