// SPDX-License-Identifier: MIT
// A browser extension (Manifest V3) in Chromium: a page of it in a tab, in the side panel, and in an offscreen document; and what
// becomes of it without the manifest's keys that it needs.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { howToStart } from '../web/browser.mjs';
import { MODEL, chromiumVersion, judge, openHost, outcomeOf } from './visit.mjs';
import { installUnbundled } from './workshop.mjs';

export const title = 'Browser extension';

const CSP = 'content_security_policy';
const ISOLATION = ['cross_origin_embedder_policy', 'cross_origin_opener_policy'];

export const about = `The manifest must allow WebAssembly: \`"content_security_policy": { "extension_pages": "script-src 'self'
'wasm-unsafe-eval'; object-src 'self'" }\`. For threads it needs \`"cross_origin_embedder_policy": { "value": "require-corp" }\` and
\`"cross_origin_opener_policy": { "value": "same-origin" }\`. The package's files are in the extension and are imported by their path.`;

async function open(t) {
  return { folder: installUnbundled('Extension', ['homes', 'extension']), model: await openHost(t) + MODEL };
}

/** Chromium with the extension, less some keys of its manifest. @returns {Promise<object>} its context, and its background's worker */
async function start(folder, without, t) {
  const place = mkdtempSync(join(tmpdir(), 'quern-extension-'));
  const extension = join(place, 'extension');
  cpSync(folder, extension, { recursive: true, filter: (path) => !path.includes('node_modules') });
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json')));
  for (const key of without) delete manifest[key];
  writeFileSync(join(extension, 'manifest.json'), JSON.stringify(manifest));
  const { executablePath, args } = howToStart([], true);
  const context = await chromium.launchPersistentContext(join(place, 'profile'), {
    executablePath, args: [...args, `--disable-extensions-except=${extension}`, `--load-extension=${extension}`], ignoreDefaultArgs: ['--disable-extensions'],
  });
  t.after(async () => {
    await context.close();
    rmSync(place, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  return { context, background: context.serviceWorkers()[0] ?? await context.waitForEvent('serviceworker') };
}

const SHOWN = {
  async tab({ page, address }) {
    await page.goto(address);
  },
  async panel({ page, address }) {
    await page.goto(address.replace('page.html', 'opener.html'));
    await page.getByRole('button').click();
  },
  async offscreen({ background, address }) {
    await background.evaluate((url) => globalThis.chrome.offscreen.createDocument({ url, reasons: ['WORKERS'], justification: 'A language model.' }), address);
  },
};

const shown = (how, { without = [], threads = 2, refused } = {}) => async ({ folder, model }, t) => {
  const { context, background } = await start(folder, without, t);
  const address = `${background.url().replace('background.js', 'page.html')}#${new URLSearchParams({ model })}`;
  await SHOWN[how]({ page: await context.newPage(), background, address });
  const outcome = await outcomeOf(() => background.evaluate(() => globalThis.outcome));
  if (!refused) return judge(outcome, { threads });
  assert.match(outcome.error ?? 'no error', refused);
  return { note: `refused: ${outcome.error.split(': ')[0]}` };
};

export const places = [{
  name: 'Extension', version: 'Manifest V3', by: chromiumVersion, open,
  cases: {
    page: shown('tab'),
    'side panel': shown('panel'),
    'offscreen document': shown('offscreen'),
    'page, without the keys for isolation': shown('tab', { without: ISOLATION, threads: 1 }),
    'page, without the key for WebAssembly': shown('tab', { without: [CSP], refused: /^env\/csp: / }),
  },
}];
