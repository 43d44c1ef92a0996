// SPDX-License-Identifier: MIT
// The main ways through the chat page and its former bugs, as stories that any browser can play. A driver needs open,
// reload, type, evaluate, settle, resize and tabs (WebKit of places/webdriver.mjs has them, FirefoxTab of
// places/firefox-page.mjs too). The tests of Chromium check more details.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { serve } from '../../tools/serve.mjs';
import { ALL_KINDS, readAll } from '../fixtures/documents.mjs';
import { tinyModel } from '../fixtures/tiny.mjs';
import { PAIR, imagePath } from '../fixtures/vision/golden.mjs';
import { eventually } from './browser.mjs';
import { talkativeModel } from './chat-page.mjs';
import { serveModels } from './model-host.mjs';

/** Keys by the names of W3C WebDriver. */
export const KEYS = { '\uE007': 'Enter', '\uE00C': 'Escape', '\uE004': 'Tab' };
const [ENTER, ESCAPE, TAB] = Object.keys(KEYS);

const INPUT = '[data-testid=input]';
const REPLY = '[data-testid=message-assistant]';
const BUSY = `${REPLY}[aria-busy=true]`;
const BUBBLE = '[data-testid=message-user] .bubble';

/** Serves the models that stories load. @returns {Promise<{url: string, close: () => void}>} */
export function hostModels() {
  const models = {
    '/talkative.gguf': talkativeModel(), '/q06.Q4_K_M.gguf': Buffer.from(tinyModel()), '/sees.gguf': readFileSync(PAIR.source), '/mmproj.gguf': readFileSync(PAIR.options.vision),
    '/odd.png': readFileSync(imagePath('odd.png')), '/turned.jpg': readFileSync(imagePath('turned.jpg')),
  };
  return serveModels(({ url }) => models[url]);
}

/** In any page of the origin: deletes everything, then stores the given items. */
async function startAnew(items) {
  await new Promise((done) => { Object.assign(indexedDB.deleteDatabase('quern'), { onsuccess: done, onerror: done, onblocked: done }); });
  localStorage.clear();
  sessionStorage.clear();
  for (const [name, value] of Object.entries(items)) localStorage.setItem(`quern:${name}`, JSON.stringify(value));
}

/** A conversation as earlier versions kept it: several screens high. */
const LONG_TALK = {
  version: 1,
  messages: Array.from({ length: 12 }, (_, i) => [{ role: 'user', content: `Question ${i}?` }, { role: 'assistant', content: 'A sentence of a reply.\n\n'.repeat(6) }]).flat(),
};

/** In the page: presses a button that opens a file chooser, and chooses these files. */
async function pickFiles(button, urls) {
  const chosen = new DataTransfer();
  for (const url of urls) chosen.items.add(new File([await (await fetch(url)).blob()], url.split('/').at(-1), { type: /gguf$/.test(url) ? '' : `image/${url.split('.').at(-1)}` }));
  const { click } = HTMLInputElement.prototype;
  HTMLInputElement.prototype.click = function pick() {
    this.files = chosen.files;
    this.dispatchEvent(new Event('change'));
  };
  document.querySelector(button).click();
  HTMLInputElement.prototype.click = click;
}

/**
 * In the page: attaches an image of noise with this many pixels a side, and stops the reply as soon as it reads the
 * image.
 * @returns {Promise<boolean>} whether it was stopped then
 */
async function stopLooking(side, count) {
  const data = Uint8ClampedArray.from({ length: 4 * side * side }, (_, i) => (i % 4 === 3 ? 255 : Math.imul(i, 2654435761) >>> 24));
  const canvas = Object.assign(document.createElement('canvas'), { width: side, height: side });
  canvas.getContext('2d').putImageData(new ImageData(data, side, side), 0, 0);
  const blob = await new Promise((done) => { canvas.toBlob(done); });
  const files = new DataTransfer();
  for (let i = 0; i < count; i++) files.items.add(new File([blob, String(i)], `noise${i}.png`, { type: 'image/png' }));
  document.getElementById('input').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: files }));
  return new Promise((done) => {
    const watch = new MutationObserver(() => {
      if (!/Looking/.test(document.querySelector('[data-testid=message-assistant]:last-child')?.textContent)) return;
      watch.disconnect();
      document.getElementById('stop').click();
      done(true);
    });
    watch.observe(document.getElementById('log') ?? document.body, { subtree: true, childList: true, characterData: true });
    document.getElementById('composer').requestSubmit();
    setTimeout(done, 20_000, false);
  });
}

/**
 * In the page: size of the largest file of a saved conversation, its date (at its end), and whether it is locked; null:
 * no store.
 */
async function keptTalk() {
  const folder = await navigator.storage?.getDirectory?.().then((root) => root.getDirectoryHandle('quern', { create: true })).catch(() => null);
  if (!folder) return null;
  const found = { bytes: 0, date: 0, isHeld: (await navigator.locks.query()).held.some(({ name }) => name.startsWith('quern:kv-')) };
  for await (const [name, handle] of folder) {
    const file = name.startsWith('kv-') && await handle.getFile().catch(() => null);    // the file may be deleted meanwhile
    if (!file || file.size <= found.bytes) continue;
    const end = await file.slice(-8).arrayBuffer().catch(() => new ArrayBuffer(8));
    Object.assign(found, { bytes: file.size, date: end.byteLength === 8 ? Number(new DataView(end).getBigUint64(0, true)) : 0 });
  }
  return found;
}

/** The chat page in one tab of a browser. */
class Page {
  constructor(tab, { url, root }, models) {
    Object.assign(this, { tab, site: url, root, models });
  }

  /** Makes a first visit. @param {object} [items] values that the browser has stored already */
  async visit(items = {}, path = '') {
    await this.tab.open(`${this.site}app.js`);    // any file of the page's origin
    await this.tab.settle(startAnew, { settings: { temperature: 0, threads: 1, ...items.settings }, ...(items.chat && { chat: items.chat }) });
    await this.tab.open(this.site + path);
    await this.ready();
  }

  async ready(name = '') {
    await eventually(async () => await this.text('[data-testid=status]') === 'Ready' && (await this.text('[data-testid=model-name]')).startsWith(name), () => this.instead(`${name} is ready`));
  }

  async reload() {
    await this.tab.reload();
    await this.ready();
  }

  count(selector) {
    return this.tab.evaluate((wanted) => document.querySelectorAll(wanted).length, selector);
  }

  async text(selector) {
    return (await this.texts(selector)).at(-1) ?? '';
  }

  texts(selector) {
    return this.tab.evaluate((wanted) => [...document.querySelectorAll(wanted)].map((node) => node.textContent), selector);
  }

  value(selector) {
    return this.tab.evaluate((wanted) => document.querySelector(wanted).value, selector);
  }

  /** Presses the first element that a selector finds. */
  async press(selector) {
    const press = (wanted) => {
      const node = document.querySelector(wanted);
      node?.click();
      return Boolean(node);
    };
    await eventually(() => this.tab.evaluate(press, selector), `there is ${selector} to press`);
  }

  /** Presses the last button whose name begins so. */
  async pressNamed(name) {
    const press = (wanted) => {
      const node = [...document.querySelectorAll('button')].findLast((one) => (one.ariaLabel ?? one.textContent).startsWith(wanted) && one.checkVisibility());
      node?.click();
      return Boolean(node);
    };
    await eventually(() => this.tab.evaluate(press, name), `there is a button ${name}`);
  }

  /** Fills a field at once, as a paste does. */
  fill(selector, text) {
    return this.tab.evaluate((wanted, value) => {
      const field = document.querySelector(wanted);
      field.focus();
      field.value = value;
      for (const type of ['input', 'change']) field.dispatchEvent(new Event(type, { bubbles: true }));
    }, selector, text);
  }

  send(text) {
    return this.tab.type(INPUT, text + ENTER);
  }

  async ask(text) {
    const before = await this.count(BUBBLE);
    await this.send(text);
    await eventually(async () => await this.count(BUBBLE) > before, () => this.instead('the question is there'));
    await this.ended();
  }

  async ended() {
    const isOver = async () => await this.count(BUSY) === 0 && await this.count('[data-testid=send]:not([hidden])') === 1;
    await eventually(isOver, () => this.instead('the reply ends'));
  }

  /** The sentence of a failure: what was expected, and what the page shows. */
  async instead(wanted) {
    const seen = this.tab.evaluate((busy) => JSON.stringify({
      status: document.querySelector('[data-testid=status]').textContent, busy: document.querySelectorAll(busy).length, page: document.visibilityState,
      says: document.body.innerText.slice(-1500),
    }), BUSY);
    return `${wanted}; instead: ${await seen.catch((error) => `no answer (${error.message})`)}`;
  }

  async load(name) {
    await this.press('#model-button');
    await this.fill('[data-testid=model-url]', `${this.models}/${name}.gguf`);
    await this.press('[data-testid=load-url]');
    await this.ready(name.split('.')[0]);
  }

  /** Chooses files that the models' server has. */
  pick(button, ...names) {
    return this.tab.settle(pickFiles, button, names.map((name) => `${this.models}/${name}`));
  }

  /** Starts a reply that goes on until it is stopped. */
  async talking() {
    await this.load('talkative');
    await this.send('Talk.');
    await eventually(async () => (await this.text(`${REPLY} .prose`)).length > 300, 'text comes');
  }

  /** Pixels between the visible part and the end. */
  missing() {
    return this.tab.evaluate(() => {
      const { scrollHeight, clientHeight, scrollTop } = document.getElementById('scroller');
      return scrollHeight - clientHeight - scrollTop;
    });
  }

  /**
   * Scrolls up until the page accepts it: for a moment after a jump it accepts only a wheel or a finger, and on a slow
   * machine that moment may be now.
   */
  async moveUp(by) {
    const move = (pixels) => {
      document.getElementById('scroller').scrollTop -= pixels;
      return new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
    };
    await eventually(async () => {
      await this.tab.settle(move, by);
      return this.count('#to-end:not([hidden])');
    }, () => this.instead('there is a way back'));
  }

  /** Opens the list, which in a narrow window lies over the page and closes when something is chosen. */
  async openList() {
    if (!await this.count('#list[open]')) await this.press('#list-button');
  }

  /** Waits until the conversation is saved completely, later than a given time. */
  async isKept(since) {
    const isWhole = ({ date, isHeld }) => !isHeld && date >= since && date < since + 1e9;
    await eventually(async () => isWhole(await this.tab.settle(keptTalk)), async () => this.instead(`it is kept since ${since}, ${JSON.stringify(await this.tab.settle(keptTalk))}`));
  }

  /** Opens another tab with the page. */
  async second() {
    const other = new Page(await this.tab.another(), { url: this.site, root: this.root }, this.models);
    await other.tab.open(this.site);
    await other.ready();
    return other;
  }
}

/** In the page: drops a file of text onto it. */
function dropText(name, content) {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([content], name, { type: 'text/plain' }));
  document.getElementById('input').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer }));
}

/** Name -> what a person does and sees. */
export const STORIES = {
  async 'a first visit: a question of the greeting, stop, edit, search, and all of it after a reload'(page) {
    await page.visit();
    assert.match(await page.text('#greeting'), /^Hello/);
    await page.press('#chips button');
    await eventually(() => page.count(BUBBLE), 'it is asked, or stands in the field');
    await page.ended();
    const [question, reply] = [await page.text(BUBBLE), await page.text(`${REPLY} .prose`)];
    assert.ok(question && reply, await page.instead('a question and its reply'));
    assert.equal(await page.count('#welcome:not([hidden])'), 0, 'the greeting has gone');
    await page.press('#new-chat');
    await page.talking();
    await page.press('[data-testid=stop]');
    await page.ended();
    assert.match(await page.text(REPLY), /Stopped\./);
    await page.pressNamed('Edit and send again');
    await page.fill(INPUT, 'Talk of owls.');
    await page.tab.type(INPUT, ENTER);
    await eventually(async () => await page.text(BUBBLE) === 'Talk of owls.', 'the edited question');
    await page.press('[data-testid=stop]:not([hidden])');
    await page.ended();
    await page.reload();
    assert.equal(await page.text(BUBBLE), 'Talk of owls.');
    assert.match(await page.text(REPLY), /Stopped\./);
    await page.openList();
    await page.fill('#list-search', question.split(' ').at(-1));
    await eventually(async () => await page.count('#list-rows li[data-id]') === 1 && await page.count('.list-found mark') === 1, () => page.instead('the first one is found, with its place'));
    await page.press('#list-rows .list-open');
    await eventually(async () => await page.text(BUBBLE) === question && await page.text(`${REPLY} .prose`) === reply, () => page.instead('the first one as it was'));
  },

  async 'a text is dropped, asked about, and there after a reload'(page) {
    await page.visit({ settings: { maxTokens: 20 } });
    await page.tab.evaluate(dropText, 'notes.txt', 'The mill opens at nine.');
    await eventually(async () => /notes\.txt.*\d+ tokens/.test((await page.text('#attached li')).replaceAll('\n', ' ')), () => page.instead('the text and its tokens'));
    await page.ask('When does the mill open?');
    assert.equal(await page.count('#attached li'), 0);
    await page.reload();
    assert.match(await page.text('[data-testid=message-user]'), /notes\.txt/);
    assert.ok(await page.text(`${REPLY} .prose`), await page.instead('its reply'));
  },

  async 'a reply comes into sight wherever it was sent from'(page) {
    await page.visit({ chat: LONG_TALK });
    for (let i = 0; i < 2; i++) {
      await page.moveUp(1e6);
      await page.ask('Hello!');
      await eventually(async () => await page.missing() <= 2, 'the reply is in sight');
    }
    await page.moveUp(1e6);
    await page.tab.evaluate((wanted) => {
      const input = document.querySelector(wanted);
      input.value = 'One line\n'.repeat(8);
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.form.requestSubmit();
    }, INPUT);
    await eventually(async () => await page.count(REPLY) === 15, 'there is a reply');
    await page.ended();
    await eventually(async () => await page.missing() <= 2, 'the last one too');
  },

  async 'who moves up while a reply is written is left alone'(page) {
    await page.visit();
    await page.talking();
    await page.moveUp(60);
    const place = () => page.tab.evaluate(() => document.getElementById('scroller').scrollTop);
    const [there, far] = [await place(), await page.missing()];
    await eventually(async () => await page.missing() > far + 60, 'the reply grows');
    assert.equal(await place(), there, 'and nothing moves');
    await page.press('#to-end');
    await eventually(async () => await page.missing() < 80, 'Latest leads back');
    await page.tab.type(INPUT, ESCAPE);
    await page.ended();
  },

  async 'nothing is wider than a small screen'(page) {
    const wide = `${'averyveryverylongword'.repeat(20)}\n\n| ${'a column | '.repeat(12)}\n| ${'--- | '.repeat(12)}\n\n\`\`\`\n${'code '.repeat(60)}\n\`\`\``;
    await page.visit({ chat: { version: 1, messages: [{ role: 'user', content: wide }, { role: 'assistant', content: wide }] } });
    for (const [width, height] of [[360, 740], [320, 568], [740, 360]]) {
      const inner = await page.tab.resize(width, height);
      const { across, outside } = await page.tab.evaluate(() => {
        document.getElementById('model-name').textContent = 'A-model-with-a-very-long-name-indeed-Q4_K_M';
        const seen = [...document.querySelectorAll('button, .bubble, .prose, .composer, .code, .table')].filter((node) => node.checkVisibility());
        const isOutside = ({ left, right }) => left < -0.5 || right > innerWidth + 0.5;
        return {
          across: [document.documentElement.scrollWidth, document.body.scrollWidth],
          outside: seen.filter((node) => isOutside(node.getBoundingClientRect())).map((node) => node.id || node.className),
        };
      });
      assert.deepEqual([across, outside], [[inner, inner], []], `${width} by ${height}`);
    }
  },

  async 'another language is there after a choice, mirrored if it is written so'(page) {
    await page.visit();
    const language = () => page.tab.evaluate(() => {
      const { lang, dir, dataset } = document.documentElement;
      const [greeting, list, settings] = ['greeting', 'list-button', 'settings'].map((id) => document.getElementById(id));
      // while the page is loaded again, there is nothing
      return settings && [lang, dir, dataset.state, greeting.textContent, list.getBoundingClientRect().x < settings.getBoundingClientRect().x].join('|');
    });
    const speaks = async (tag, dir, isLeft) => {
      await page.fill('#language', tag);
      const words = JSON.parse(readFileSync(new URL(`../../web/languages/${tag}.json`, import.meta.url), 'utf8'));
      const wanted = [tag, dir, 'ready', words['Hello. I run right here, in this tab.'], isLeft].join('|');
      await eventually(async () => await language() === wanted, async () => `${await language()} instead of ${wanted}`);
    };
    await speaks('ar', 'rtl', false);
    await speaks('ja', 'ltr', true);
    await page.fill('#language', 'en');
    await page.ready();
  },

  async 'a reload in the middle of a reply keeps it, and what it answers'(page) {
    await page.visit();
    await page.talking();
    const before = (await page.text(`${REPLY} .prose`)).length;
    await new Promise((done) => { setTimeout(done, 1000); });
    await page.reload();
    assert.deepEqual(await page.texts(BUBBLE), ['Talk.']);
    const kept = (await page.text(`${REPLY} .prose`)).length;
    assert.ok(kept >= before, `${kept} letters of ${before}`);
    assert.match(await page.text(REPLY), /Interrupted: the page was closed\./);
    await page.pressNamed('Continue this reply');
    await eventually(async () => !/Interrupted/.test(await page.text(REPLY)), 'it goes on');
    await page.tab.type(INPUT, ESCAPE);
    await page.ended();
  },

  async 'two tabs: neither takes away what the other has'(page) {
    await page.visit();
    await page.ask('Hello!');
    const other = await page.second();
    assert.deepEqual(await other.texts(BUBBLE), ['Hello!']);
    await other.ask('What is 27 + 45?');
    await other.press('#new-chat');
    await other.ask('What is the capital of Kenya?');
    await other.tab.close();
    await eventually(async () => (await page.count(BUBBLE)) === 2, 'the first tab has followed');
    assert.deepEqual(await page.texts(BUBBLE), ['Hello!', 'What is 27 + 45?']);
    await page.press('#list-button');
    await eventually(async () => await page.count('.list-title') === 2, 'both conversations are there');
  },

  async 'two conversations are written, and neither ends the other'(page) {
    await page.visit();
    await page.talking();
    await page.press('#new-chat');
    await eventually(async () => await page.count(BUBBLE) === 0, 'an empty page');
    await page.send('Talk of something else.');
    await eventually(() => page.count(BUSY), 'it is asked');
    await page.openList();
    await eventually(async () => (await page.texts('.list-state')).filter(Boolean).length === 2, 'two of the list are at work');
    await page.press('[data-state=writing]:not(:has([aria-current])) .list-open');
    await eventually(async () => await page.text(BUBBLE) === 'Talk.', 'the first one');
    await eventually(async () => (await page.text(`${REPLY} .prose`)).length > 300, 'is where it was');
    const before = (await page.text(`${REPLY} .prose`)).length;
    await eventually(async () => (await page.text(`${REPLY} .prose`)).length > before, 'and grows');
    await page.press('[data-testid=stop]');
    await page.ended();
    await page.openList();
    await eventually(async () => await page.text('[data-state=writing] .list-title') === 'Talk of something else.', 'the other one goes on');
    await page.press('[data-state=writing] .list-open');
    await eventually(async () => (await page.text(`${REPLY} .prose`)).length > 50, 'is there, too');
    await page.press('[data-testid=stop]');
    await page.ended();
    await page.reload();
    await page.openList();
    await eventually(async () => (await page.texts('.list-title')).join() === 'Talk of something else.,Talk.', 'both are there');
    assert.equal(await page.text(BUBBLE), 'Talk of something else.');
  },

  async 'documents are read, and the passages of a long text are found'(page) {
    await page.visit();
    assert.deepEqual(await page.tab.settle(readAll, ALL_KINDS), ALL_KINDS.map(({ said }) => said));
  },

  async 'a very long message outlives a reload'(page) {
    await page.visit();
    await page.ask('Hello!');
    await page.fill(INPUT, 'Lorem ipsum dolor. '.repeat(32_000));
    await page.tab.type(INPUT, ENTER);
    await eventually(() => page.count('[data-testid=error]'), 'it does not fit');
    await page.reload();
    assert.deepEqual((await page.texts(BUBBLE)).map((text) => text.length), [6, 19 * 32_000 - 1]);
  },

  async 'a new chat takes nothing away; what is deleted comes back'(page) {
    await page.visit();
    await page.ask('Hello!');
    await page.press('#new-chat');
    await eventually(async () => await page.count(BUBBLE) === 0, 'an empty page');
    await page.press('#list-button');
    await eventually(async () => await page.count('.list-title') === 1, 'the conversation is in the list');
    await page.pressNamed('More about');
    await page.pressNamed('Delete');
    await eventually(async () => await page.count('.list-title') === 0, 'deleted');
    await page.pressNamed('Undo');
    await eventually(async () => await page.count('.list-title') === 1, 'and back');
  },

  async 'what is no longer read is marked, after a reload too'(page) {
    await page.visit({ settings: { contextSize: 256, maxTokens: 20 } });
    for (let i = 0; i < 9; i++) await page.ask(`Tell me a short story about an owl and ${i} keys, please.`);
    const left = await page.count('.left-out');
    assert.ok(left > 0 && left < 18, `${left}`);
    await page.reload();
    await eventually(async () => await page.count('.left-out') === left && await page.count('.first-read') === 1, 'as before');
  },

  async 'editing ends with a new chat and with Escape, and gives the draft back'(page) {
    await page.visit();
    await page.ask('Hello!');
    await page.tab.type(INPUT, 'half a thought');
    await page.pressNamed('Edit and send again');
    assert.equal(await page.value(INPUT), 'Hello!');
    await page.tab.type(INPUT, ESCAPE);
    assert.equal(await page.value(INPUT), 'half a thought');
    await page.pressNamed('Edit and send again');
    await page.press('#new-chat');
    await eventually(async () => await page.count('#editing:not([hidden])') === 0, 'no longer editing');
    assert.equal(await page.value(INPUT), '');
  },

  async 'a setting that does not count says so'(page) {
    await page.visit();
    await page.press('#settings');
    await page.fill('#set-temperature', '');
    await page.tab.type('#set-temperature', `5${TAB}`);
    assert.match(await page.text('#settings-form [role=alert]'), /^A number from 0 to 2 is needed/);
    await page.fill('#set-temperature', '0.5');
    assert.equal(await page.count('#settings-form [role=alert]'), 0);
  },

  async 'a system prompt that is too long leads to the settings'(page) {
    await page.visit({ settings: { system: 'Be kind. '.repeat(1500) } });
    await page.send('Hello!');
    await eventually(() => page.count('[data-testid=error]'), 'it does not fit');
    await page.pressNamed('Shorten the system prompt');
    assert.equal(await page.tab.evaluate(() => document.activeElement.id), 'set-system');
  },

  async 'a conversation goes on at once after a reload and in another tab, and deleted it leaves no file'(page) {
    await page.visit({ settings: { maxTokens: 20 } });
    await page.load('talkative');
    const question = `${'Tell me about the mill. '.repeat(20)}What is quern?`;
    const asked = await page.tab.evaluate(() => Date.now());
    await page.ask(question);
    if (!await page.tab.settle(keptTalk)) return;      // WebKitGTK has no store
    await page.isKept(asked);
    assert.ok((await page.tab.settle(keptTalk)).bytes > 250_000);
    await page.tab.reload();
    const other = await page.second();
    for (const one of [page, other]) {
      await one.ready('talkative');
      const again = await one.tab.evaluate(() => Date.now());
      await one.ask('And what is it for?');
      const title = await one.tab.evaluate((wanted) => [...document.querySelectorAll(wanted)].at(-1).title, `${REPLY} .tools`);
      assert.ok(Number(/([\d,]+) of them known/.exec(title)?.[1].replaceAll(',', '') ?? 0) > 100, `${one === page ? 'after a reload' : 'in another tab'}: ${title}`);
      await one.isKept(again);      // a locked file cannot be read by others
    }
    await page.press('#list-button');
    await page.pressNamed('More about');
    await page.pressNamed('Delete');
    await eventually(async () => (await page.tab.settle(keptTalk)).bytes === 0, 'it is forgotten once it cannot be brought back');
    await other.tab.close();
  },

  async 'without storage for models the page says why, in words'(page) {
    const address = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
    assert.ok(address, 'this machine has an address of its own');
    const { url, close } = await serve({ root: page.root, host: address });
    try {
      const insecure = new Page(page.tab, { url, root: page.root }, page.models);
      await insecure.visit();
      await insecure.ask('Hello!');
      await insecure.press('#model-button');
      await eventually(async () => (await insecure.text('#storage-text')).includes('gives this page no storage; it must be served over https'), 'the reason');
    } finally {
      await close();
    }
  },

  async 'the dialog says what is in use, and what is no address'(page) {
    await page.visit();
    await page.press('#get-real');
    assert.match(await page.text('#model-facts'), /In use.*quern demo/);
    await eventually(async () => /\.gguf$/.test(await page.value('[data-testid=model-url]')), 'the offer is filled in');
    for (const [typed, says] of [['qwen', /^That is no address yet/], ['https://example.com/x.gguf', /^Load downloads it from example\.com/]]) {
      await page.fill('[data-testid=model-url]', typed);
      assert.match(await page.text('#url-note'), says);
    }
  },

  async 'a link fills the fields once'(page) {
    await page.visit({}, '?prompt=Hello');
    assert.equal(await page.value(INPUT), 'Hello');
    await page.fill(INPUT, '');
    await page.reload();
    assert.equal(await page.value(INPUT), '');
  },

  async 'images: attached, answered, stopped while they are looked at, known in the next turn, without a network'(page) {
    const { url, close } = await serve({ root: page.root, isolate: false });
    const own = new Page(page.tab, { url, root: page.root }, page.models);
    const known = async () => Number(/([\d,]+) of them known/.exec(await own.tab.evaluate((wanted) => [...document.querySelectorAll(wanted)].at(-1).title, `${REPLY} .tools`))?.[1].replaceAll(',', '') ?? 0);
    try {
      await own.visit({ settings: { maxTokens: 8 } });
      await own.pick('#file-input', 'sees.gguf', 'mmproj.gguf');
      await own.ready('sees');
      await own.pick('#attach', 'odd.png', 'turned.jpg');
      await eventually(async () => (await own.texts('#attached .cost')).filter((text) => /^\d+ tokens$/.test(text)).length === 2, 'both have a price');
      const [cost] = (await own.texts('#attached .cost')).map((text) => Number.parseInt(text, 10));
      await own.ask('What are they?');
      const drawn = () => own.tab.evaluate(() => [...document.querySelectorAll('.message.user img.thumb')].filter(({ naturalWidth }) => naturalWidth > 0).length);
      await eventually(async () => await drawn() === 2, 'both are shown');
      await own.reload();
      await eventually(async () => await drawn() === 2, 'and stored');
      await own.pick('#file-input', 'sees.gguf', 'mmproj.gguf');
      await own.ready('sees');
      await own.ask('And then?');
      assert.equal(await own.count('[data-testid=error]'), 0, await own.instead('a reply'));
      await close();
      await own.ask('And now?');
      assert.ok(cost > 32 && await known() > 2 * cost, await own.instead(`more than two of ${cost} are known`));
      assert.equal(await own.tab.settle(stopLooking, 512, 4), true);
      await own.ended();
      await eventually(async () => /Stopped\./.test(await own.text(REPLY)), 'it was stopped');
      await own.ask('Still there?');
      assert.equal(await own.count('[data-testid=error]'), 0);
    } finally {
      await close();
    }
  },

  async 'a model is called what its file is called'(page) {
    await page.visit();
    await page.load('q06.Q4_K_M');
    assert.equal(await page.text('[data-testid=model-name]'), 'q06.Q4_K_M');
    await page.press('#model-button');
    await eventually(() => page.text('#storage-text'), 'the list is made');
    if (/stores no models/.test(await page.text('#storage-text'))) return;    // WebKitGTK has no store for them
    await eventually(async () => (await page.texts('#stored-list li')).some((text) => /^q06 Q4_K_M/.test(text)), 'its name, and its type as a tag');
  },
};

/**
 * Plays one story in a tab.
 * @param {{url: string, root: string}} site address and folder of the page
 * @param {string} models address of `hostModels`
 */
export async function play(name, tab, site, models) {
  await STORIES[name](new Page(tab, site, models));
}
