// SPDX-License-Identifier: MIT
// Firefox as Debian has it: the package, isolated and not, which nobody drives; and its chat page (tests/web/firefox-page.test.mjs).
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

/** All that `npm test` leaves out too. */
async function pageStories() {
  const file = fileURLToPath(new URL('../web/firefox-page.test.mjs', import.meta.url));
  const { NODE_TEST_CONTEXT: _, ...outside } = process.env;     // a runner within a runner runs nothing
  const env = { ...outside, QUERN_STORIES: 'all' };
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', file], { env })
    .catch(({ stdout: said }) => { throw new Error(said.slice(0, 4000)); });
  return { note: `${/^# pass (\d+)/m.exec(stdout)[1]} stories of what once went wrong` };
}

export const places = Object.entries(CONDITIONS).map(([name, condition]) => ({
  name: `Firefox, ${name}`, version: version(), by: () => 'Linux, x64',
  open: (t) => openUnbundled({ kind: 'Firefox', ...condition, open: openFirefox }, t),
  cases: { ...libraryCases(condition), ...(condition.isolate ? {} : { 'page stories': pageStories }) },
}));
