// SPDX-License-Identifier: MIT
// The page in each of its states, on a phone and (in long tests) on a desktop: axe finds no problem, in light and dark
// (complaints() looks at both). And all of it works by keyboard alone. QUERN_SHOTS=docs/screens writes a sheet of the
// states for each device and scheme.
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { LONG } from '../fixtures/lengths.mjs';
import { complaints, eventually, station } from './browser.mjs';
import { ChatPage, openChat, storeSettings, talkativeModel } from './chat-page.mjs';

const here = station();

const WINDOWS = {
  desktop: { viewport: { width: 1180, height: 760 } },
  phone: { viewport: { width: 390, height: 760 }, isMobile: true, hasTouch: true },
};

/** A host of a model that stops in the middle. */
let host;
before(async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Access-Control-Allow-Origin': '*', 'Content-Length': talkativeModel().length }).write(talkativeModel().subarray(0, 3_000_000));
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  host = { url: `http://localhost:${server.address().port}`, server };
});
after(() => {
  host.server.closeAllConnections();
  host.server.close();
});

const openList = async (page) => {
  await page.getByTestId('list-button').click();
  await page.locator('#list-rows li').first().waitFor();
};

/** Holds a file of text above the page ('dragover'), or lets go of it there ('drop'). */
const handText = (page, kind) => page.evaluate((name) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File(['Some notes.'], 'notes.txt'));
  document.body.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer }));
}, kind);

/** A reply with what has styles of its own. */
const RICH = [
  '# Heading', 'A [link](https://example.com/), `code`, **bold**, a formula $a^2$ and a note.[^1]', '- [x] done\n- [ ] to do', '> A quote.', '| a | b |\n| --- | ---: |\n| 1 | 2 |',
  '```html\n<p class="a">// text</p> <!-- comment -->\n```', '```js\nconst a = "text" + 1;  // comment\n```', '[^1]: The note.',
].join('\n\n');
const RICH_FILE = JSON.stringify({ quern: 1, conversations: [{ id: 'rich', title: 'Rich', messages: [{ id: 'q', role: 'user', content: 'q' }, { id: 'r', parent: 'q', role: 'assistant', content: RICH }] }] });

/** Name -> the steps to this state from the one before. */
const STATES = {
  'a first visit': () => {},
  'a reply': async ({ page, chat }) => {
    for (const question of ['What is the capital of Kenya?', 'What is 27 + 45?', 'Tell me a short story about an owl.']) {
      await page.getByTestId('new-chat').click();
      await chat.ask(question);
    }
    await chat.ask('Hello!');
    await chat.reply.hover();
  },
  'a version of a reply': async ({ page, chat }) => {
    await chat.reply.getByRole('button', { name: 'Write this reply again' }).click();
    await page.getByRole('group', { name: 'Version 2 of 2' }).waitFor();
    await chat.ended();
  },
  thought: async ({ page, chat }) => {
    await page.getByRole('switch').click();
    await chat.ask('What is the capital of France?');
    await chat.reply.locator('summary').click();
    await page.getByRole('switch').click();
  },
  editing: async ({ page }) => page.getByTestId('message-user').last().getByRole('button', { name: 'Edit and send again' }).click(),
  'the list': async ({ page, chat }) => {
    await chat.input.press('Escape');
    await openList(page);
    await page.getByRole('button', { name: /^More about/ }).first().click();
  },
  'a name in the list': async ({ page }) => page.getByRole('button', { name: 'Rename' }).click(),
  'nothing found': async ({ page }) => {
    await page.getByLabel('Name of the conversation').press('Escape');
    await page.locator('#list-search').fill('no such words');
    await page.getByText('Nothing found.').waitFor();
  },
  'deleted, with undo': async ({ page }) => {
    await page.locator('#list-search').fill('');
    await page.getByRole('button', { name: /^More about What is 27/ }).click();
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('is deleted.').first().waitFor();
    await page.locator('#list-close').click();
  },
  'code, a table and a formula': async ({ page, chat }) => {
    await openList(page);
    await chat.addFile(RICH_FILE);
    await page.locator('#list-rows li[data-id=rich] .list-open').click();
    if (await page.getByTestId('list').isVisible()) await page.locator('#list-close').click();
    await chat.reply.locator('math').first().waitFor();
    await chat.reply.locator('.sh-keyword').first().waitFor();
  },
  'a preview': async ({ page, chat }) => {
    await chat.reply.getByRole('button', { name: /^Preview/ }).click();
    await page.locator('.preview iframe').waitFor();
  },
  'places that were found': async ({ page }) => {
    await page.keyboard.press('Escape');
    await page.locator('.preview').waitFor({ state: 'detached' });
    await openList(page);
    await page.locator('#list-search').fill('formula');
    await page.locator('.list-found mark').waitFor();
  },
  'the shortcuts': async ({ page }) => {
    await page.locator('#list-search').fill('');
    await page.locator('#list-close').click();
    await page.evaluate(() => document.getElementById('shortcuts').click());
    await page.locator('dialog .keys').waitFor();
  },
  'a text that is attached': async ({ page }) => {
    await page.keyboard.press('Escape');
    await page.getByTestId('new-chat').click();
    await handText(page, 'drop');
    await page.locator('#attached').getByText('notes.txt').waitFor();
  },
  'files above the page': async ({ page }) => {
    await handText(page, 'dragover');
    await page.locator('#drop').waitFor();
  },
  'the model dialog': async ({ page }) => {
    await page.evaluate(() => document.body.dispatchEvent(new DragEvent('dragleave', { bubbles: true })));
    await page.getByRole('button', { name: 'Remove notes.txt' }).click();
    await page.locator('#model-button').click();
    await page.locator('#shelf li').first().waitFor();
  },
  'no address': async ({ page }) => {
    await page.getByTestId('model-url').fill('qwen');
    await page.keyboard.press('Enter');
  },
  downloading: async ({ page, chat }) => {
    await page.locator('#model-dialog [data-close]').click();
    await chat.loadUrl(`${host.url}/Qwen3-0.6B-Q8_0.gguf`);
    await page.getByTestId('pause-load').waitFor();
    await eventually(async () => /MB of/.test(await page.getByTestId('progress').innerText()), 'bytes have come');
  },
  paused: async ({ page }) => {
    await page.getByTestId('pause-load').click();
    await page.getByTestId('resume-load').waitFor();
  },
  'deleting a model': async ({ page }) => {
    await page.getByTestId('progress').getByRole('button', { name: 'Cancel' }).click();
    await page.locator('#model-button').click();
    await page.getByRole('button', { name: /^Delete Qwen3/ }).click();
  },
  settings: async ({ page }) => {
    await page.locator('#model-dialog [data-close]').click();
    await page.locator('#settings').click();
    await page.locator('#set-topK').fill('0');
    await page.keyboard.press('Tab');
    await page.getByText('A whole number from 1 to 1,000').waitFor();
  },
  'a failure': async ({ page, chat }) => {
    await page.getByRole('button', { name: 'Reset all' }).click();
    await page.locator('#settings-dialog [data-close]').click();
    await chat.send('word '.repeat(5000));
    await chat.error.waitFor();
  },
  'a reply that is written': async ({ chat, page }) => {
    await page.getByTestId('new-chat').click();
    await chat.loadFile('talkative.gguf', talkativeModel());
    await chat.modelName('talkative');
    await chat.send('Talk.');
    await eventually(async () => (await chat.text()).length > 50, 'text comes');
  },
  'a model in the middle of a reply': async ({ chat }) => {
    await chat.loadFile('tiny.gguf', talkativeModel());
    await chat.notice.getByText('A reply is being written').waitFor();
  },
  'replies elsewhere': async ({ page, chat }) => {
    await chat.notice.getByRole('button', { name: 'Not now' }).click();
    await page.getByTestId('new-chat').click();
    await chat.send('Talk of something else.');
    await chat.reply.waitFor();
    await page.getByTestId('new-chat').click();
    await page.getByRole('button', { name: 'Conversations, 2 being written' }).waitFor();
    await openList(page);
    await page.locator('[data-state=writing]').first().waitFor();
  },
};

/** The states to show in the documentation. */
const SHOWN = ['a first visit', 'a reply', 'thought', 'the list', 'the model dialog', 'settings', 'a failure', 'replies elsewhere'];

/** Writes images side by side into one file. */
async function writeSheet(name, images, { width, height }) {
  const page = await here.browser.newPage({ viewport: { width: 4 * (width / 2 + 16) + 16, height: Math.ceil(images.length / 4) * (height / 2 + 48) + 16 } });
  const figures = images.map(([title, png]) => `<figure><img src="data:image/png;base64,${png.toString('base64')}" width="${width / 2}" alt=""><figcaption>${title}</figcaption></figure>`);
  await page.setContent(`<style>body{display:flex;flex-wrap:wrap;gap:16px;margin:16px;font:14px sans-serif;background:#8883}figure{margin:0}</style>${figures.join('')}`);
  await mkdir(process.env.QUERN_SHOTS, { recursive: true });
  await writeFile(join(process.env.QUERN_SHOTS, `${name}.png`), await page.screenshot());
  await page.close();
}

const BOTH = ['light', 'dark'];
const SCHEMES = process.env.QUERN_SHOTS ? { desktop: BOTH, phone: BOTH } : { desktop: LONG ? ['light'] : [], phone: ['dark'] };

for (const [device, window] of Object.entries(WINDOWS)) {
  for (const colorScheme of SCHEMES[device]) {
    test(`every state, ${device}, ${colorScheme}`, { timeout: 240_000 }, async () => {
      // What a visit runs first fails in the sandbox of a preview.
      const options = { origins: [host.url], expected: /allow-same-origin/, init: storeSettings, initArgument: { temperature: 0 } };
      const visit = await openChat(here, { ...window, colorScheme, ...options });
      const images = [];
      for (const [name, lead] of Object.entries(STATES)) {
        await lead(visit);
        assert.deepEqual(await complaints(visit), [], name);
        if (process.env.QUERN_SHOTS && SHOWN.includes(name)) images.push([name, await visit.page.screenshot()]);
      }
      if (images.length) await writeSheet(`${device}-${colorScheme}`, images, window.viewport);
      await visit.close();
    });
  }
}

if (process.env.QUERN_SHOTS)
  for (const [device, window] of Object.entries(WINDOWS))
    test(`right to left, ${device}`, async () => {
      const visit = await here.open('', { ...window, locale: 'ar', init: storeSettings, initArgument: { temperature: 0 } });
      const { page } = visit;
      const images = [];
      const show = async (name) => { images.push([name, await page.screenshot()]); };
      await page.getByTestId('status').getByText('جاهز', { exact: true }).waitFor();
      await show('empty');
      await new ChatPage(page).send('hello');
      await page.getByTestId('message-assistant').last().locator('.tools button').first().waitFor();
      await show('reply');
      await page.locator('#settings').click();
      await show('settings');
      await page.keyboard.press('Escape');
      await openList(page);
      await show('list');
      await writeSheet(`${device}-arabic`, images, window.viewport);
      await visit.close();
    });

test('all of it by the keyboard alone', { timeout: 120_000 }, async () => {
  const { page, chat, close } = await openChat(here, { ...WINDOWS.desktop, init: storeSettings, initArgument: { temperature: 0 } });
  const look = () => page.evaluate(() => {
    const node = document.activeElement;
    const { outlineStyle, boxShadow } = getComputedStyle(node);
    return {
      name: node.ariaLabel ?? node.labels?.[0]?.textContent ?? node.textContent.trim(),
      shows: outlineStyle !== 'none' || boxShadow !== 'none' || node.matches('textarea'),
    };
  });
  const focused = async () => (await look()).name;
  /** Presses Tab until an element with this name has the focus, which must be visible. */
  const reach = async (name, key = 'Tab') => {
    for (let i = 0; i < 60; i++) {
      const seen = await look();
      if (seen.name.startsWith(name)) return assert.ok(seen.shows, `${name} shows its focus`);
      await page.keyboard.press(key);
    }
    return assert.fail(`no way to ${name}`);
  };
  const press = async (name) => {
    await reach(name);
    await page.keyboard.press('Enter');
  };
  for (const question of ['What is the capital of Kenya?', 'What is 27 + 45?']) {
    await press('New chat');
    await reach('Message');
    await page.keyboard.type(question);
    await page.keyboard.press('Enter');
    await chat.replies.first().waitFor();
    await chat.ended();
  }
  await press('Write this reply again');
  await page.getByText('2/2').waitFor();
  await reach('Earlier version');
  await chat.ended();
  assert.equal(await focused(), 'Earlier version', 'the end of a reply takes no focus');
  await press('Earlier version');
  await page.getByText('1/2').waitFor();
  assert.equal(await focused(), 'Later version', 'where there is none earlier, its neighbour');
  await press('Edit and send again');
  assert.equal(await chat.input.inputValue(), 'What is 27 + 45?');
  await page.keyboard.press('Escape');
  await press('Conversations');
  await reach('Search');
  await page.keyboard.type('Nairobi');
  await eventually(async () => await page.locator('#list-rows li[data-id]').count() === 1, 'one is found');
  await press('What is the capital of Kenya?');
  await page.getByTestId('message-user').getByText('What is the capital of Kenya?').waitFor();
  await press('More about What is the capital');
  await press('Pin');
  await eventually(async () => (await page.locator('.list-title').first().innerText()).startsWith('★'), 'pinned');
  await press('More about What is the capital');
  await press('Rename');
  await page.getByLabel('Name of the conversation').waitFor();
  await page.keyboard.type('Africa');
  await page.keyboard.press('Enter');
  await page.locator('.list-title', { hasText: 'Africa' }).waitFor();
  await press('More about Africa');
  await press('Delete');
  await press('Undo');
  await page.locator('.list-title', { hasText: 'Africa' }).waitFor();
  await press('Close the list');
  await press('Settings');
  await reach('Temperature');
  await page.keyboard.press('Escape');
  assert.equal(await focused(), 'Settings');
  await press('Model');
  await reach('Address of a GGUF file');
  await page.keyboard.press('Escape');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'model-button');
  await close();
});
