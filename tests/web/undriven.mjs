// SPDX-License-Identifier: MIT
// A Firefox without a driver, and the mailbox that receives its pages' reports. With a WebDriver session (version 153),
// a worker that starts workers of its own may hang in `new Worker`: in one case of ten with three of them, in one of 80
// with one after a reload of the page; without a session in none of 680 and none of 560.
import { spawn } from 'node:child_process';
import { on } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findFirefox } from '../bench/firefox.mjs';

/** Preferences: no first-run pages, no questions, nothing from the network. */
const PREFERENCES = { 'datareporting.policy.dataSubmissionEnabled': false, 'browser.shell.checkDefaultBrowser': false, 'app.update.disabledForTesting': true };

/**
 * Opens an address in a Firefox with a new profile.
 * @param {{preferences?: object, env?: object}} [more] preferences, and variables of the environment
 * @returns {Promise<number>} its process id
 */
export async function openFirefox(t, url, { preferences, env } = {}) {
  const profile = await mkdtemp(join(tmpdir(), 'quern-firefox-'));
  await writeFile(join(profile, 'user.js'), Object.entries({ ...PREFERENCES, ...preferences }).map(([name, value]) => `user_pref("${name}", ${value});\n`).join(''));
  const firefox = spawn(findFirefox(), ['--headless', '--no-remote', '--profile', profile, url], { stdio: 'ignore', env: { ...process.env, ...env } });
  const ended = new Promise((done) => { firefox.once('exit', done); });
  t.after(async () => {
    firefox.kill();
    await ended;
    await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  });
  return firefox.pid;
}

/** `next()` resolves with the next report of a page; the page waits until it is `read`. */
export async function openMailbox(t) {
  const server = createServer();
  const letters = on(server, 'request');
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  t.after(() => server.close());
  const next = async () => {
    const { value: [request, response] } = await letters.next();
    return { ...JSON.parse(await text(request)), read: () => response.writeHead(200, { 'Cross-Origin-Resource-Policy': 'cross-origin' }).end() };
  };
  return { next, url: `http://127.0.0.1:${server.address().port}/` };
}
