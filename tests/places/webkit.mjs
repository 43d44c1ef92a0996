// SPDX-License-Identifier: MIT
// WebKit, Safari's engine, as Debian has it: the package and the chat page, isolated and not, with shared memory and as it comes.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { buildSite } from '../../tools/site.mjs';
import { storeSettings } from '../web/chat-page.mjs';
import { STORIES, hostModels, play } from '../web/stories.mjs';
import { outcomeOf, reference } from './visit.mjs';
import { QUESTION } from './projects/common/answer.js';
import { libraryCases, openUnbundled } from './unbundled.mjs';
import { SHARED, WebKit } from './webdriver.mjs';
import { outputOf } from './workshop.mjs';

export const title = 'WebKit';

export const about = `WebKitGTK hides SharedArrayBuffer even from isolated pages, unless a variable of its JavaScript engine is set (JSC_useSharedArrayBuffer=1);
Safari does not hide it. WebKitGTK also has no synchronous access to stored files, so here the page stores models in its own store. Without headers, the chat page isolates itself with its
service worker. WebKit may then request the imports of a thread's file from the network, and refuse them: the model runs on one thread.`;

const CONDITIONS = {
  'isolated, shared memory': { isolate: true, env: SHARED, threads: 2 },
  isolated: { isolate: true, env: {}, threads: 1 },
  'not isolated': { isolate: false, env: {}, threads: 1 },
  'not isolated, shared memory': { isolate: false, env: SHARED, threads: 1 },
};

const version = () => outputOf('dpkg-query', ['--show', '--showformat=${Version}', 'webkit2gtk-driver']).replace(/-.*/, '');

const open = (condition, t) => openUnbundled({ kind: 'WebKit', ...condition, open: async (own, url) => (await WebKit.open(own, condition.env)).open(url) }, t);

const ENTER = '\uE007';

/** What the chat page shows. Runs there. */
function shown() {
  const text = (selector) => globalThis.document.querySelector(selector)?.innerText.trim();
  return {
    status: text('[data-testid=status]'), error: text('[data-testid=error]'),
    reply: text('[data-testid=message-assistant][aria-busy=false] .prose'), offline: globalThis.document.documentElement.dataset.offline,
    isOnOneThread: globalThis.document.body.innerText.includes('Running on one thread'),
  };
}

/** Waits until the chat page has a model, asks, and waits for the reply. @returns {Promise<object>} what is shown then */
async function ask(webkit) {
  const until = (isThere) => outcomeOf(async () => {
    const page = await webkit.evaluate(shown);
    if (page.error) throw new Error(page.error.replaceAll(/\s+/g, ' '));
    return isThere(page) ? page : null;
  });
  await until(({ status }) => status === 'Ready');
  await webkit.type('[data-testid=input]', QUESTION + ENTER);
  const page = await until(({ reply }) => reply);
  assert.equal(page.reply, reference().replaceAll('**', ''));
  return page;
}

/** The chat page with the package under test. */
async function openPage({ folder, isolate }, t) {
  const root = join(folder, 'site');
  await buildSite({ dist: join(folder, 'quern'), out: root });
  const { url, close } = await serve({ root, isolate });
  t.after(close);
  return { url, root, close };
}

async function chatPage(place, t) {
  const { url, close } = await openPage(place, t);
  const webkit = await WebKit.open(t, place.env);
  await webkit.open(`${url}app.js`);    // any file of the page's origin
  await webkit.evaluate(storeSettings, { temperature: 0, thinking: true });
  await webkit.open(url);
  const { isOnOneThread } = await ask(webkit);
  await outcomeOf(async () => (await webkit.evaluate(shown)).offline === 'ready');
  await close();
  await webkit.reload();
  await ask(webkit);
  return { threads: isOnOneThread ? 1 : '> 1', note: 'works, offline too' };
}

/** What once went wrong on the chat page. */
async function pageStories(place, t) {
  const page = await openPage(place, t);
  const models = await hostModels();
  t.after(models.close);
  const webkit = await WebKit.open(t, place.env);
  for (const name of Object.keys(STORIES)) {
    await play(name, webkit, page, models.url).catch((error) => { throw new Error(`${name}: ${error.message}`, { cause: error }); });
  }
  return { note: `${Object.keys(STORIES).length} stories of what once went wrong` };
}

const PAGE = { 'chat page': chatPage, 'page stories': pageStories };

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `WebKitGTK, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => open(condition, t),
  cases: { ...libraryCases(condition), ...PAGE },
}));
