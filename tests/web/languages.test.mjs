// SPDX-License-Identifier: MIT
// The page in eight languages, as people meet it: from the first paint, after a choice, without the network, mirrored,
// on a phone; and whether all of its words come from the tables.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { check, collect, languages, problemsOf } from '../../tools/languages.mjs';
import { SPOKEN } from '../../web/translate.js';
import { PROJECT, complaints, eventually, station } from './browser.mjs';
import { ChatPage, talkativeModel } from './chat-page.mjs';

const here = station();
const kept = station({ serviceWorker: true });

const textOf = (file) => readFileSync(join(PROJECT, file), 'utf8');
const tableOf = (language) => JSON.parse(textOf(`web/languages/${language}.json`));

const ALL = ['en', ...await languages()];

/** Opens the page in a browser of a language, and waits for the demo model. */
async function openIn(locale, options = {}, place = here) {
  const visit = await place.open('', { locale, ...options });
  const chat = new ChatPage(visit.page);
  await ready(visit.page);
  return { ...visit, chat, close: () => visit.close() };
}

const ready = (page) => page.locator('html[data-state=ready]').waitFor();

const languageOf = (page) => page.locator('html').getAttribute('lang');

const GREETINGS = { en: 'Hello. I run right here, in this tab.' };
for (const language of ALL.slice(1)) GREETINGS[language] = tableOf(language)[GREETINGS.en];

// --- the tables ---

test('no table lacks a sentence, has one too many, or puts in other values', async () => {
  assert.deepEqual(await check(), []);
  assert.ok([...collect().values()].flat().length > 400);
});

test('the check finds each kind of fault', () => {
  const keys = [{ key: 'Stop' }, { key: '{1} of {2}' }, { key: '{1} files', one: '{1} file' }, { key: '{1} rows', one: 'One row' }];
  const right = { 'Stop': 'Arrêter', '{1} of {2}': '{1} sur {2}', 'net/http': 'Non', '{1} files': { one: '{1} fichier', many: '{1} fichiers', other: '{1} fichiers' },
    '{1} rows': { one: '{1} ligne', many: '{1} lignes', other: '{1} lignes' } };
  const faults = (changes) => problemsOf('fr', { ...right, ...changes }, keys, ['net/http']);
  assert.deepEqual(faults({}), []);
  for (const changes of [
    { Stop: undefined }, { Stop: '' }, { '{1} of {2}': '{1} sur {1}' }, { '{1} of {2}': '{1}' }, { Halt: 'Halte' }, { 'net/http': undefined },
    { '{1} files': '{1} fichiers' }, { '{1} files': { one: '{1} fichier', other: '{1} fichiers' } }, { '{1} files': { one: 'fichier', many: '{1}', other: '{1}' } },
    { '{1} rows': { one: 'Une ligne', many: '{1} lignes', other: '{1} lignes' } },      // 0 is "one" in French
  ]) assert.equal(faults(changes).length, 1, JSON.stringify(changes));
});

test('the page offers the languages that have a table, and has a sentence for each error that a visitor can meet', () => {
  const [, inBoot] = /LANGUAGES = \[([^\]]+)\]/.exec(textOf('web/boot.js'));
  const offered = [...textOf('web/index.html').matchAll(/<option value="([\w-]+)" lang=/g)].map(([, language]) => language);
  assert.deepEqual(inBoot.match(/[\w-]+/g).sort(), [...ALL].sort());
  assert.deepEqual(offered.sort(), [...ALL].sort());
  const [, union] = /export type ErrorCode =([^;]+);/.exec(textOf('js/index.d.ts'));
  const codes = union.match(/[a-z]+\/[a-z]+/g).filter((code) => code !== 'use/schema');     // the page asks for none
  assert.deepEqual(Object.keys(tableOf('errors')).sort(), codes.sort());
});

/** The page's words in a language, without a browser. */
async function wordsIn(lang, table, dir = 'ltr') {
  Object.assign(globalThis, { document: { documentElement: { lang, dir } }, quernWords: table });
  const words = await import(`../../web/shell/words.js?${lang}`);
  delete globalThis.document;
  delete globalThis.quernWords;
  return words;
}

test('plurals, numbers and lists follow the rules of the language', async () => {
  const english = await wordsIn('en', null);
  assert.deepEqual([1, 2, 0].map((n) => english.plural(n, '{1} file', '{1} files')), ['1 file', '2 files', '0 files']);
  assert.deepEqual([english.number(1234.56, 1), english.number(999), english.number(0.05), english.large(2_755_328)], ['1,234.6', '999', '0.05', '2.8 million']);
  assert.equal(english.say`${'{2}'} of ${3000}`, '{2} of 3,000', 'a value is no place');
  assert.equal(english.list('a', '', 'b'), 'a, b');
  assert.deepEqual(english.sayNodes`${'x'} or ${'y'}`.filter(Boolean), ['x', ' or ', 'y']);
  const german = await wordsIn('de', tableOf('de'));
  assert.deepEqual([german.number(1234.56, 1), german.number(0.7), german.say`${1} of ${2000}`], ['1.234,6', '0,7', '1 von 2.000']);
  assert.equal(german.sayOf('Edited.'), 'Bearbeitet.');
  for (const text of ['What an old page has stored', 'constructor', '{1} files', 'a {1}', '{0}'])
    assert.equal(german.sayOf(text), text, 'stored by anybody');
  const arabic = await wordsIn('ar', tableOf('ar'), 'rtl');
  const files = [1, 2, 3, 11, 100].map((n) => arabic.plural(n, '{1} file', '{1} files'));
  assert.equal(new Set(files).size, 5);
  assert.ok(arabic.say`Loading ${'a.gguf'}`.endsWith('\u2068a.gguf\u2069'), 'a name keeps its direction');
  const japanese = await wordsIn('ja', tableOf('ja'));
  assert.equal(japanese.joined('一。', '', '二。'), '一。二。');
  assert.equal(japanese.large(2_800_000), '280万');
});

// --- a language from the start ---

/** In the page, before its scripts: notes each greeting that can be seen. */
function watchGreetings() {
  globalThis.greetings = new Set();
  const look = () => {
    const node = document.getElementById('greeting');
    if (node?.checkVisibility({ visibilityProperty: true })) globalThis.greetings.add(node.textContent);
    requestAnimationFrame(look);
  };
  look();
}

test('a German browser shows German from the first paint, with its numbers', async () => {
  const visit = await here.open('icons/icon.svg', { locale: 'de-DE', init: watchGreetings });
  const { page } = visit;
  await page.context().route('**/late/de.json', (route) => setTimeout(() => route.continue(), 700));
  await page.goto(here.url);
  await ready(page);
  assert.deepEqual(await page.evaluate(() => [...globalThis.greetings]), [GREETINGS.de]);
  assert.equal(await languageOf(page), 'de');
  const chat = new ChatPage(page);
  await chat.ask('What is the capital of Kenya?');
  await page.getByText(/^\d+ von 1\.024 Tokens$/).waitFor();
  assert.equal(await chat.status.innerText(), 'Bereit');
  await page.locator('#model-button').click();
  await page.getByText(/^Klein und schnell, gut für den Anfang\. Q8_0: 639\sMB herunterzuladen, etwa 1,2\sGB Arbeitsspeicher\.$/).waitFor();
  await visit.close();
});

test('an English page asks for no table, and one whose table does not come is English', async () => {
  const asked = [];
  const { page, close } = await openIn('en-GB');
  page.on('request', (request) => asked.push(request.url()));
  await page.reload();
  await ready(page);
  assert.equal(asked.filter((url) => /json|translate/.test(url)).length, 0);
  assert.equal(await page.locator('.foreign').isVisible(), false);
  await close();
  const visit = await here.open('icons/icon.svg', { locale: 'fr-FR', expected: /404/ });
  await visit.page.context().route('**/late/fr.json', (route) => route.fulfill({ status: 404, body: 'Not found' }));
  await visit.page.goto(here.url);
  await ready(visit.page);
  assert.equal(await visit.page.locator('#greeting').innerText(), GREETINGS.en);
  assert.equal(await languageOf(visit.page), 'en');
  await visit.close();
});

for (const [locale, language] of [['de-AT', 'de'], ['pt-PT', 'pt-BR'], ['zh-CN', 'zh-Hans'], ['es-MX', 'es'], ['sv-SE', 'en']]) {
  test(`a browser in ${locale} gets ${language}`, async () => {
    const { page, close } = await openIn(locale);
    assert.equal(await page.locator('#greeting').innerText(), GREETINGS[language]);
    assert.equal(await page.locator('.foreign').isVisible(), language !== 'en', 'the toy speaks English only');
    await close();
  });
}

// --- the choice ---

const choose = async (page, language) => {
  await page.locator('#settings').click();
  await page.locator('#language').selectOption(language);
};

/** Tables that the service worker has kept. */
const keptTables = (page) => page.evaluate(async () => {
  const stored = await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).keys()));
  return stored.flat().map(({ url }) => url.split('/').at(-1)).filter((name) => name.endsWith('.json')).sort();
});

test('a language that is chosen stays, without the network too, and no other table is fetched for that', async () => {
  const { page, context, close } = await openIn('en-US', { expected: /Failed to load resource: net::ERR_/ }, kept);
  await page.locator('html[data-offline=ready]').waitFor();
  assert.deepEqual(await keptTables(page), []);
  await page.getByTestId('input').fill('half a question');
  await choose(page, 'fr');
  await page.locator('html[lang=fr]').waitFor();
  await ready(page);
  assert.equal(await page.getByTestId('input').inputValue(), 'half a question');
  assert.deepEqual(await keptTables(page), ['fr.json']);
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator('#greeting').innerText(), GREETINGS.fr);
  await choose(page, 'ja');
  await page.getByText(tableOf('fr')['This language cannot be fetched now.']).last().waitFor();
  assert.equal(await page.locator('#language').inputValue(), 'fr');
  await context.setOffline(false);
  await page.locator('#language').selectOption('');
  await page.locator('html[lang=en]').waitFor();
  await close();
});

test('a visit that begins in another language keeps its table', async () => {
  const { page, context, close } = await openIn('de-DE', { expected: /Failed to load resource: net::ERR_/ }, kept);
  await page.locator('html[data-offline=ready]').waitFor();
  await eventually(async () => (await keptTables(page)).includes('de.json'), 'the table is kept');
  await context.setOffline(true);
  await page.reload();
  await ready(page);
  assert.equal(await page.locator('#greeting').innerText(), GREETINGS.de);
  await close();
});

test('a reply is not ended by another language unless the visitor says so', async () => {
  const { page, chat, close } = await openIn('en-US', { init: () => localStorage.setItem('quern:settings', '{"seed":1}') });
  await chat.loadFile('talker.gguf', talkativeModel());
  await chat.modelName('talker');
  await chat.send('Hello!');
  await page.locator('html[data-state=working]').waitFor();
  await choose(page, 'es');
  await page.getByText('That ends replies, and a model from a file has to be chosen again.').last().waitFor();
  assert.equal(await languageOf(page), 'en');
  assert.equal(await page.getByTestId('stop').isHidden(), false, 'it goes on');
  await page.getByRole('button', { name: 'Load the page again' }).click();
  await page.locator('html[lang=es]').waitFor();
  await ready(page);
  assert.match(await chat.reply.locator('.aside').innerText(), /^Interrumpida: se cerró la página\.$/);
  await close();
});

// --- errors ---

test('a document that is not read says why in the language of the page', async () => {
  const { page, chat, close } = await openIn('fr-FR');
  const chosen = page.waitForEvent('filechooser');
  await page.locator('#attach').click();
  await (await chosen).setFiles({ name: 'cut.docx', mimeType: '', buffer: Buffer.from('PK\x03\x04 and nothing else') });
  const sentence = tableOf('fr')['{1} is damaged: its archive ends too early or has wrong bytes.'].replace('{1}', 'cut.docx');
  await chat.notice.getByText(sentence).waitFor();
  await close();
});

test('an error is told in the language of the page, with the package\'s English sentence in small', async () => {
  for (const [locale, own] of [['de-DE', tableOf('de')['model/format']], ['en-US', null]]) {
    const { chat, close } = await openIn(locale);
    await chat.loadFile('text.gguf', 'This is no model, but a text that is long enough to be recognised as one.');
    await chat.error.waitFor();
    const detail = chat.error.locator('.card-detail');
    if (own) {
      assert.equal(await chat.error.locator('.card-message').innerText(), own);
      assert.deepEqual([await detail.getAttribute('lang'), await detail.getAttribute('dir')], ['en', 'ltr']);
    }
    const english = own ? detail : chat.error.locator('.card-message');
    assert.match(await english.innerText(), /[a-z] [a-z].*\.$/);
    assert.equal(await detail.count(), own ? 1 : 0);
    assert.equal(await chat.error.locator('code').innerText(), 'model/format');
    await close();
  }
});

// --- every language in the main states ---

/** What a person opens one after the other. @returns {AsyncGenerator<string>} the name of each state */
async function* states(page, chat) {
  yield 'empty';
  await chat.ask('What is the capital of Kenya?');
  yield 'a reply';
  await page.locator('#settings').click();
  await page.locator('#preset').waitFor();
  yield 'settings';
  await page.locator('#settings-dialog [data-close]').click();
  await page.locator('#model-button').click();
  await page.locator('#shelf li').nth(7).waitFor();
  yield 'models';
  await page.locator('#model-dialog [data-close]').click();
  if (!await page.locator('#list').isVisible()) await page.getByTestId('list-button').click();
  await page.locator('#list-rows .tool').first().click();
  yield 'the list';
}

/** In the page: whether it scrolls sideways, and buttons that do not hold their words. */
function cut() {
  const wide = [document.documentElement, document.body, ...document.querySelectorAll('dialog[open], .scroller')]
    .filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.id || node.className || node.tagName);
  const buttons = [...document.querySelectorAll('button, .button')].filter((node) => node.checkVisibility());
  const clipped = buttons.filter((node) => node.scrollWidth > node.clientWidth || node.getBoundingClientRect().right > innerWidth + 0.5
    || node.getBoundingClientRect().left < -0.5);
  return [...wide, ...clipped.map((node) => `${node.id} ${node.textContent.trim()}`)];
}

for (const language of ALL) {
  for (const width of [360, 1280]) {
    test(`${language}, ${width} wide: nothing is cut off${width === 360 ? ', and axe finds nothing' : ''}`, async () => {
      const options = { viewport: { width, height: 740 }, init: () => localStorage.setItem('quern:settings', '{"temperature":0}') };
      const visit = await openIn(language, options);
      for await (const state of states(visit.page, visit.chat)) {
        assert.deepEqual(await visit.page.evaluate(cut), [], state);
        if (width === 360) assert.deepEqual(await complaints(visit), [], state);
      }
      await visit.close();
    });
  }
}

test('Arabic is mirrored; addresses, code and amounts are not', async () => {
  const { page, chat, close } = await openIn('ar-EG', { viewport: { width: 1280, height: 800 } });
  const middle = async (selector) => {
    const { x, width } = await page.locator(selector).first().boundingBox();
    return x + width / 2;
  };
  assert.equal(await page.locator('html').getAttribute('dir'), 'rtl');
  assert.ok(await middle('#list-button') > await middle('#model-button'));
  assert.ok(await middle('#model-button') > await middle('#settings'));
  assert.ok(await middle('#attach') > await middle('#send'));
  await chat.ask('What is the capital of Kenya?');
  const [log, bubble] = await Promise.all(['#log', '.bubble'].map((part) => page.locator(part).boundingBox()));
  assert.ok(bubble.x - log.x < 100, 'the question is on the left');
  await page.getByTestId('list-button').click();
  assert.ok(await middle('#list') > 1280 / 2);
  assert.ok(await middle('#scroller') < 1280 / 2);
  const mirrored = (name) => page.locator(`use[href="#i-${name}"]`).first().evaluate((node) => getComputedStyle(node).transform);
  assert.deepEqual([await mirrored('list'), await mirrored('send')], ['matrix(-1, 0, 0, 1, 0, 0)', 'none']);
  await page.locator('#settings').click();
  assert.ok(await middle('#settings-dialog') < 1280 / 2);
  await page.locator('#settings-dialog [data-close]').click();
  await page.locator('#model-button').click();
  assert.equal(await page.getByTestId('model-url').evaluate((node) => getComputedStyle(node).direction), 'ltr');
  const places = await page.locator('.pick .size').first().evaluate((node) => {
    const text = node.firstChild;
    const at = (letter) => {
      const range = new Range();
      range.setStart(text, text.data.indexOf(letter));
      range.setEnd(text, text.data.indexOf(letter) + 1);
      return range.getBoundingClientRect().x;
    };
    return [at('3'), at('M')];
  });
  assert.ok(places[0] < places[1], 'a number stands before its unit, from left to right');
  await close();
});

// --- no word is forgotten ---

/** A table in which each key is marked. */
function marked() {
  const table = {};
  for (const { key, one } of [...collect().values()].flat()) table[key] = one === undefined ? `⟦${key}⟧` : { one: `⟦${key}⟧`, other: `⟦${key}⟧` };
  for (const code of Object.keys(tableOf('errors'))) table[code] = `⟦${code}⟧`;
  return { ...table, '{1} or {2}': '{1}⟦or⟧{2}' };
}

/** What the page says that is no word of it: what people and models write, names, code. */
const FOREIGN = '[translate=no], .bubble, .prose, .list-title, code, kbd, bdi, time, .card-detail, .pick > span:first-child, script, style, noscript, svg, title';

/** In the page: visible texts and spoken attributes without a mark. */
function unmarked([foreign, spoken]) {
  const found = new Set();
  const see = (text) => { if (/\p{L}{2}/u.test(text) && !text.includes('⟦')) found.add(text.trim()); };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
    (node) => (node.matches?.(foreign) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.nodeType === Node.TEXT_NODE) see(node.data);
    else for (const name of spoken) see(node.getAttribute(name) ?? '');
  }
  return [...found];
}

/** Names of models and of their files, in their buttons and rows. */
const NAME = /^(?:(?:Qwen|talker|text)[\w.-]*|Apache-2\.0|JavaScript)$/;

/** Opens the page in a language of marks. @returns {Promise<object>} left: what is said without a mark */
async function openMarked(settings) {
  const visit = await here.open('icons/icon.svg', { locale: 'de-DE', init: (stored) => localStorage.setItem('quern:settings', stored), initArgument: JSON.stringify(settings) });
  const { page } = visit;
  await page.context().route('**/late/de.json', (route) => route.fulfill({ json: marked() }));
  await page.goto(here.url);
  await ready(page);
  const left = async (state) => {
    const found = await page.evaluate(unmarked, [FOREIGN, SPOKEN]);
    assert.deepEqual(found.filter((text) => !NAME.test(text)), [], state);
  };
  return { page, chat: new ChatPage(page), left, close: () => visit.close() };
}

test('in a language of marks no English word is left', async () => {
  const { page, chat, left, close } = await openMarked({ temperature: 0 });
  for await (const state of states(page, chat)) await left(state);
  await page.locator('.list-actions .danger').click();
  await chat.notice.waitFor();
  await left('a conversation is deleted');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+/');
  await page.locator('#shortcuts-dialog').waitFor();
  await left('the shortcuts');
  await page.keyboard.press('Escape');
  await chat.loadFile('text.gguf', 'This is no model, but a text that is long enough to be recognised as one.');
  await chat.error.waitFor();
  await left('an error');
  await close();
});

test('in a language of marks no English word is left where few visits lead', async () => {
  const { page, chat, left, close } = await openMarked({ seed: 1 });
  const attach = async (name, mimeType, content) => {
    const chosen = page.waitForEvent('filechooser');
    await page.locator('#attach').click();
    await (await chosen).setFiles({ name, mimeType, buffer: Buffer.from(content) });
  };
  await attach('text.txt', 'text/plain', 'word '.repeat(1100));
  await page.locator('#attached .cost').getByText('⟦').waitFor();
  await attach('text.png', 'image/png', 'no image');
  await attach('text.docx', '', 'PK\x03\x04 and nothing else');
  await eventually(async () => await chat.notice.count() === 3, 'a text that is too long, no vision, a damaged document');
  await left('files of a message');
  await page.locator('#attached .tool').click();
  await page.locator('#settings').click();
  await page.locator('#set-temperature').fill('9');
  await page.locator('#set-topK').fill('7.5');
  await page.locator('#set-topP').fill('0.5');
  await page.locator('#set-topP').press('Tab');
  await page.locator('.preset-row button').click();
  await left('problems of settings, and a preset that gets a name');
  await page.locator('#preset-name').fill('text');
  await page.keyboard.press('Enter');
  await page.locator('#settings-reset').click();
  await left('a preset, and a reset');
  await page.locator('#settings-dialog [data-close]').click();
  await chat.loadFile('talker.gguf', talkativeModel());
  await chat.name.getByText('talker', { exact: true }).waitFor();
  await chat.send('Hello!');
  await page.locator('html[data-state=working]').waitFor();
  await chat.send('And then?');
  await page.locator('#queued li').waitFor();
  await left('a reply that is written, and a question that waits');
  await page.getByTestId('stop').click();
  await chat.ended();
  await chat.reply.locator('.tool').nth(2).click();
  await left('a reply that was stopped, and is edited');
  await page.locator('#edit-cancel').click();
  await page.locator('#queued li').waitFor({ state: 'hidden' });
  await chat.reply.locator('.tool').nth(1).click();
  await eventually(async () => await chat.reply.locator('.branches').count() === 1, 'there are two versions');
  await left('two versions');
  await close();
});
