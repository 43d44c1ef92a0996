// SPDX-License-Identifier: MIT
// Firefox as Debian has it: the package, isolated and not, which nobody drives; and its chat page (firefox-page.mjs) and its store
// (tests/web/store.test.mjs).
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findFirefox } from '../bench/firefox.mjs';
import { openFirefox } from '../web/undriven.mjs';
import { libraryCases, openUnbundled } from './unbundled.mjs';
import { outputOf } from './workshop.mjs';

export const title = 'Firefox';

const CONDITIONS = { isolated: { isolate: true, threads: 2 }, 'not isolated': { isolate: false, threads: 1 } };

const version = () => /[\d.]+/.exec(outputOf(findFirefox(), ['--version']))[0];

/** Runs a file of tests, whole. @returns {Promise<number>} how many passed */
async function passing(path) {
  const { NODE_TEST_CONTEXT: _, ...outside } = process.env;     // a runner within a runner runs nothing
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', fileURLToPath(new URL(path, import.meta.url))], { env: { ...outside, QUERN_LONG: '1' } })
    .catch(({ stdout: said }) => { throw new Error(said.slice(0, 4000)); });
  return Number(/^# pass (\d+)/m.exec(stdout)[1]);
}

const pageStories = async () => ({ note: `${await passing('firefox-page.mjs')} stories of what once went wrong` });

/** Beside Chromium's, with the same tests. */
const storeTests = async () => ({ note: `${await passing('../web/store.test.mjs')} with Chromium's` });

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `Firefox, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => openUnbundled({ kind: 'Firefox', ...condition, open: openFirefox }, t),
  cases: { ...libraryCases(condition), ...(condition.isolate ? {} : { 'page stories': pageStories, 'the tests of stores': storeTests }) },
}));
