// SPDX-License-Identifier: MIT
// 64-bit addresses in Firefox, with threads. Nobody drives this Firefox: as soon as it has a WebDriver session (version 153), a worker
// that starts workers of its own may hang in `new Worker`, in one case of ten with three of them; without a session in none of 680.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { findFirefox } from '../bench/firefox.mjs';
import { CONFIGURATIONS_64, GOLDEN, PROJECT, nativeLogits, tokens } from '../fixtures/golden.mjs';

const NAME = 'nano.Q4_K_M';
const PATIENCE_MS = 90_000;

/** No first steps, no questions, nothing from the network. */
const PREFERENCES = { 'datareporting.policy.dataSubmissionEnabled': false, 'browser.shell.checkDefaultBrowser': false, 'app.update.disabledForTesting': true };

/** Opens an address in a Firefox with a new profile. @returns {Promise<() => Promise<void>>} ends it */
async function openFirefox(url) {
  const profile = await mkdtemp(join(tmpdir(), 'quern-firefox-'));
  await writeFile(join(profile, 'user.js'), Object.entries(PREFERENCES).map(([name, value]) => `user_pref("${name}", ${value});\n`).join(''));
  const firefox = spawn(findFirefox(), ['--headless', '--no-remote', '--profile', profile, url], { stdio: 'ignore' });
  const ended = new Promise((done) => { firefox.once('exit', done); });
  return async () => {
    firefox.kill();
    await ended;
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
}

/** The first text that somebody posts. */
async function openMailbox(t) {
  let post;
  const mail = new Promise((done) => { post = done; });
  const server = createServer(async (request, response) => {
    post(await text(request));
    response.end();
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => server.close());
  return { mail, url: `http://127.0.0.1:${server.address().port}/` };
}

test('64-bit addresses in Firefox: the native bits, and the text of 32-bit ones', { timeout: PATIENCE_MS }, async (t) => {
  const site = await serve({ root: PROJECT, csp: false });
  t.after(() => site.close());
  const { mail, url: report } = await openMailbox(t);
  const comparison = { source: `/${GOLDEN}/${NAME}.gguf`, expected: `/${nativeLogits(NAME, 'f16')}`, tokens, configurations: CONFIGURATIONS_64 };
  const request = encodeURIComponent(JSON.stringify({ report, comparison, chat: '/web/models/demo-q8_0.gguf' }));
  const close = await openFirefox(`${site.url}tests/web/report.html#${request}`);
  t.after(close);
  const { problem, support, configurations, results, texts } = JSON.parse(await mail);
  assert.equal(problem, undefined);
  if (support.maxMemory <= 2 ** 32) return t.skip('this Firefox has no 64-bit addresses');
  assert.deepEqual(results, configurations.map((configuration) => ({ ran: configuration, length: true, first: -1 })));
  const [[first, expected], [second, same]] = texts;
  assert.deepEqual([first, second, same], [32, 64, expected]);
  assert.match(expected, /Nairobi/);
  return undefined;
});
