// SPDX-License-Identifier: MIT
// WebKit, Safari's engine: the package and the chat page, isolated and not, with shared memory and as it comes. WebKitGTK hides
// SharedArrayBuffer even from isolated pages unless a variable of its JavaScript engine says otherwise; Safari does not. It also
// has no synchronous access to stored files, so models can be kept in a store of the page's own only.
import assert from 'node:assert/strict';
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { buildSite } from '../../tools/site.mjs';
import { GOLDEN, PROJECT, names, nativeLogits, tokens } from '../fixtures/golden.mjs';
import { storeSettings } from '../web/chat-page.mjs';
import { MODEL, judge, openHost, outcomeOf, reference } from './visit.mjs';
import { QUESTION } from './projects/common/answer.js';
import { WebKit } from './webdriver.mjs';
import { install, outputOf } from './workshop.mjs';

const SHARED = { JSC_useSharedArrayBuffer: '1' };

const CONDITIONS = {
  'isolated, shared memory': { isolate: true, env: SHARED, threads: 2 },
  isolated: { isolate: true, env: {}, threads: 1 },
  'not isolated': { isolate: false, env: {}, threads: 1 },
  'not isolated, shared memory': { isolate: false, env: SHARED, threads: 1 },
};

const version = () => outputOf('dpkg-query', ['--show', '--showformat=${Version}', 'webkit2gtk-driver']).replace(/-.*/, '');

async function open({ isolate, env }, t) {
  const folder = install('WebKit', ['unbundled']);
  cpSync(join(folder, 'node_modules/quern/dist'), join(folder, 'quern'), { recursive: true });
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

const golden = ({ threads }) => async (site, t) => {
  const webkit = await site.open(t);
  const counts = threads === 1 ? [1] : [1, 2];
  for (const name of names) {
    const given = { name, tokens, configurations: counts.map((count) => ({ variant: 'simd', threads: count })), model: `${site.host}${GOLDEN}/${name}.gguf`, expected: site.host + nativeLogits(name, 'f16') };
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

const ENTER = '\uE007';

/** Waits until the chat page has a model, asks, and waits for the reply. */
async function ask(webkit) {
  const state = () => webkit.evaluate(() => {
    const text = (name) => globalThis.document.querySelector(`[data-testid=${name}]`)?.innerText;
    return { status: text('status'), error: text('error'), reply: globalThis.document.querySelector('[data-testid=message-assistant][aria-busy=false] .prose')?.innerText };
  });
  const until = async (name) => outcomeOf(async () => {
    const { error, ...found } = await state();
    if (error) throw new Error(error.split('\n').filter(Boolean).join(' '));
    return (name === 'status' ? found.status === 'Ready' : found.reply) ? found : null;
  });
  await until('status');
  await webkit.type('[data-testid=input]', QUESTION + ENTER);
  const { reply } = await until('reply');
  assert.equal(reply.trim(), reference().replaceAll('**', ''));
}

const chatPage = () => async ({ folder, isolate, open: openBrowser }, t) => {
  const out = join(folder, 'site');
  await buildSite({ dist: join(folder, 'quern'), out });
  const { url, close } = await serve({ root: out, isolate });
  t.after(close);
  const webkit = await openBrowser(t);
  await webkit.open(`${url}app.js`);    // any file of the page's origin
  await webkit.evaluate(storeSettings, { temperature: 0, thinking: true });
  await webkit.open(url);
  await ask(webkit);
  await outcomeOf(() => webkit.evaluate(() => globalThis.document.documentElement.dataset.offline === 'ready'));
  await close();
  await webkit.reload();
  await ask(webkit);
  return { note: 'works, offline too' };
};

const CASES = { library, stop, golden, store, 'chat page': chatPage };

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `WebKitGTK, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => open(condition, t),
  cases: Object.fromEntries(Object.entries(CASES).map(([title, make]) => [title, make(condition)])),
}));
