// SPDX-License-Identifier: MIT
// WebKit, Safari's engine, as Debian has it: the package and the chat page, isolated and not, with shared memory and as it comes.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { buildSite } from '../../tools/site.mjs';
import { load } from '../../dist/node.js';
import { GOLDEN, PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { LIMITS, PAIR } from '../fixtures/vision/golden.mjs';
import { storeSettings } from '../web/chat-page.mjs';
import { STORIES, hostModels, play } from '../web/stories.mjs';
import { MODEL, judge, openHost, outcomeOf, reference } from './visit.mjs';
import { QUESTION } from './projects/common/answer.js';
import { SHARED, WebKit } from './webdriver.mjs';
import { installUnbundled, outputOf } from './workshop.mjs';

export const title = 'WebKit';

export const about = `WebKitGTK hides SharedArrayBuffer even from isolated pages unless a variable of its JavaScript engine (JSC_useSharedArrayBuffer=1) says
otherwise; Safari does not. It has no synchronous access to stored files either, so models are kept in a store of the page's own here. The chat page isolates itself by its
service worker where no header does; what a thread's file imports WebKit may then ask of the network instead, and refuse it: the model runs on one thread.`;

const CONDITIONS = {
  'isolated, shared memory': { isolate: true, env: SHARED, threads: 2 },
  isolated: { isolate: true, env: {}, threads: 1 },
  'not isolated': { isolate: false, env: {}, threads: 1 },
  'not isolated, shared memory': { isolate: false, env: SHARED, threads: 1 },
};

const version = () => outputOf('dpkg-query', ['--show', '--showformat=${Version}', 'webkit2gtk-driver']).replace(/-.*/, '');

async function open({ isolate, env }, t) {
  const folder = installUnbundled('WebKit', ['unbundled']);
  copyFileSync(join(PROJECT, 'tests/fixtures/memory-store.mjs'), join(folder, 'memory-store.mjs'));
  const { url, close } = await serve({ root: folder, csp: false, isolate });
  t.after(close);
  return { folder, url, isolate, host: await openHost(t), open: (own) => WebKit.open(own, env) };
}

/** What comes of one of the page's tasks, on a page of its own. */
async function perform(site, task, given, webkit) {
  await webkit.open(`${site.url}?${given.name ?? ''}#${task}=${encodeURIComponent(JSON.stringify(given))}`);
  const outcome = await outcomeOf(() => webkit.evaluate(() => globalThis.outcome ?? null));
  if (outcome.error) throw new Error(outcome.error);
  return outcome;
}

const library = ({ threads }) => async (site, t) => judge(await perform(site, 'chat', { model: site.host + MODEL }, await site.open(t)), { threads });

const stop = () => async (site, t) => {
  const { finishReason, tokens: count, threads, first } = await perform(site, 'stop', { model: site.host + MODEL }, await site.open(t));
  assert.equal(finishReason, 'aborted');
  assert.ok(count < 100, `${count} tokens`);
  return { threads, first };
};

const golden = ({ threads }) => async ({ host, ...site }, t) => {
  const webkit = await site.open(t);
  const configurations = (threads === 1 ? [1] : [1, 2]).map((count) => ({ variant: 'simd', threads: count }));
  for (const name of names) {
    const given = { name, tokens, configurations, model: `${host}${GOLDEN}/${name}.gguf`, expected: host + nativeLogits(name, 'f16') };
    const { wrong } = await perform(site, 'golden', given, webkit);
    assert.deepEqual(wrong, [], name);
  }
  return { threads, note: `${names.length} files, the native bits` };
};

const store = ({ threads }) => async (site, t) => {
  const outcome = await perform(site, 'store', { model: site.host + MODEL }, await site.open(t));
  assert.deepEqual(outcome.cached, [false, true]);
  return { ...judge(outcome, { threads }), note: 'works, the second load from the store' };
};

/** Pictures that every decoder must see alike to the bit, and those that EXIF turns, whose pixels differ by some levels. */
const EQUAL = ['exact', 'odd', 'wide', 'tall', 'tiny', 'palette'].map((name) => `images/${name}.png`);
const NEAR = ['images/turned.jpg', ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `files/exif${n}.jpg`), 'files/exif8.png', 'files/exif6.webp'];

/** Of what is seen, in shares of all; a picture that is turned the wrong way is far above 1. */
const NEAR_ENOUGH = 0.35;

const distance = (one, other) => Math.sqrt(one.reduce((sum, value, i) => sum + (value - other[i]) ** 2, 0) / other.reduce((sum, value) => sum + value ** 2, 0));

/** The library's decoding: what it sees is what it sees in Node. */
const pictures = () => async ({ host, ...site }, t) => {
  const at = (path) => host + relative(PROJECT, path).replaceAll('\\', '/');
  const all = [...EQUAL, ...NEAR].map((name) => join(PROJECT, 'tests/fixtures/vision', name));
  const given = { model: at(PAIR.source), vision: at(PAIR.options.vision), visionOptions: LIMITS, pictures: all.map(at) };
  const { looks, threads } = await perform(site, 'look', given, await site.open(t));
  const model = await load(PAIR.source, { ...PAIR.options, threads: 1 });
  t.after(() => model.dispose());
  for (const [i, path] of all.entries()) {
    const { rows, columns, values } = await model.look(path);
    assert.deepEqual([looks[i].rows, looks[i].columns], [rows, columns], path);
    if (i < EQUAL.length) assert.deepEqual(looks[i].values, Array.from(values), path);
    const far = distance(looks[i].values, values);
    assert.ok(far <= NEAR_ENOUGH, `${path}: ${far}`);
  }
  return { threads, note: `${all.length} files, ${EQUAL.length} of them to the bit` };
};

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

const chatPage = () => async ({ open: openBrowser, ...place }, t) => {
  const { url, close } = await openPage(place, t);
  const webkit = await openBrowser(t);
  await webkit.open(`${url}app.js`);    // any file of the page's origin
  await webkit.evaluate(storeSettings, { temperature: 0, thinking: true });
  await webkit.open(url);
  const { isOnOneThread } = await ask(webkit);
  await outcomeOf(async () => (await webkit.evaluate(shown)).offline === 'ready');
  await close();
  await webkit.reload();
  await ask(webkit);
  return { threads: isOnOneThread ? 1 : '> 1', note: 'works, offline too' };
};

/** What once went wrong on the chat page. */
const pageStories = () => async ({ open: openBrowser, ...place }, t) => {
  const page = await openPage(place, t);
  const models = await hostModels();
  t.after(models.close);
  const webkit = await openBrowser(t);
  for (const name of Object.keys(STORIES)) {
    await play(name, webkit, page, models.url).catch((error) => { throw new Error(`${name}: ${error.message}`, { cause: error }); });
  }
  return { note: `${Object.keys(STORIES).length} stories of what once went wrong` };
};

const CASES = { library, stop, golden, store, pictures, 'chat page': chatPage, 'page stories': pageStories };

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `WebKitGTK, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => open(condition, t),
  cases: Object.fromEntries(Object.entries(CASES).map(([title, make]) => [title, make(condition)])),
}));
