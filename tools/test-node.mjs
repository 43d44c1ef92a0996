// SPDX-License-Identifier: MIT
// Runs test files, three at a time and the longest first: node tools/test-node.mjs FILE... When the machine stops for
// seconds, a test that waits for something just then fails. So a file that fails beside others runs once more, alone,
// and only that run counts; the output names the file. If many files fail, or one fails twice, the code is at fault.

import { run } from 'node:test';
import { tap } from 'node:test/reporters';
import { relative, resolve } from 'node:path';
import { length } from '../tests/fixtures/lengths.mjs';

const MOST_AGAIN = 6;

/** Ends a test file that failed tests have left hanging. */
const TIMEOUT_MS = length(600_000, 7_200_000);

/** What begins last must not be what takes longest. */
const LONG = [
  'web/store',
  'web/firefox',
  'js/store/stopped',
  'web/examples',
  'web/states',
  'web/languages',
  'web/golden',
  'js/page/engine-end',
  'web/many',
  'web/blocking',
  'web/conversations',
  'js/engine/golden',
  'js/cli/quantize-faults',
  'web/dispose',
  'web/engine-end',
  'js/cli/both',
  'js/cli/cli',
  'js/store/bad-stores',
  'js/files/folder',
  'web/scroll',
].map((name) => `tests/${name}.test.mjs`);

const placeOf = (file) => LONG.indexOf(relative('.', file)) + 1 || LONG.length + 1;

/** @returns {Promise<Set<string>>} the files with a test that failed */
async function play(files, concurrency) {
  const failed = new Set();
  const events = run({ files, concurrency, timeout: TIMEOUT_MS });
  events.on('test:fail', ({ file, name, details, todo }) => {
    if (todo === undefined && details.error?.failureType !== 'subtestsFailed') failed.add(file ?? name);
  });
  for await (const text of events.compose(tap)) process.stdout.write(text);
  return failed;
}

const say = (text, files) => console.log(`# ${text}: ${[...files].map((file) => relative('.', file)).join(' ')}`);

let failed = await play(process.argv.slice(2).map((file) => resolve(file)).sort((a, b) => placeOf(a) - placeOf(b)), 3);
if (failed.size > 0 && failed.size <= MOST_AGAIN) {
  say('failed beside others, runs again alone', failed);
  failed = await play([...failed], 1);
}
if (failed.size > 0) say('failed', failed);
process.exitCode = failed.size > 0 ? 1 : 0;
