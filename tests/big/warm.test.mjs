// SPDX-License-Identifier: MIT
// A warm start reads a stored model into wasm memory, every byte checked, nearly as fast as a loop that only reads it: one
// thread reads while others hash. From the disk, which the reading waits for, and from the system's cache, where it takes less time than
// one thread's hashing. Medians and bests of rounds in turn, since a machine is never quite quiet.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { FirefoxTab } from '../bench/firefox.mjs';
import { PROJECT, bigModel } from '../bench/fixtures.mjs';
import { median } from '../bench/report.mjs';
import { Tab } from '../bench/tab.mjs';
import { record } from './results.mjs';

const ROUNDS = 40;
const ROUNDS_DISK = 9;

/** Checked over plain reading, with threads: of the medians from the disk, and of the bests from the cache. */
const MAX_RATIO = { disk: 1.3, cache: 1.7 };

const numbersOf = (times) => ({ median: median(times), best: Math.min(...times) });

/** The file of that size in a browser's profile. */
function storedFile(profile, size) {
  const files = readdirSync(profile, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.path, entry.name));
  return files.find((file) => statSync(file, { throwIfNoEntry: false })?.size === size);
}

/** Has the system forget what it keeps of a file. */
function drop(file) {
  execFileSync('sync', [file]);
  execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' });
}

/** Milliseconds of each round, by how it was read. */
async function measure(tab, url, { rounds, hows, before = () => {} }) {
  const times = Object.fromEntries(hows.map((how) => [how, []]));
  for (let round = 0; round < rounds; round++) {
    for (const how of hows) {
      before();
      times[how].push(await tab.call('read', { url, how }));
    }
  }
  return Object.fromEntries(hows.map((how) => [how, numbersOf(times[how])]));
}

describe('a stored model is read and checked', () => {
  const found = [];
  const profiles = [];
  let server;
  let version;

  before(async () => {
    server = await serve({ root: PROJECT, csp: false });
  });

  after(async () => {
    await server.close();
    for (const profile of profiles) rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    record('warm', found, version);
  });

  for (const [name, Browser] of Object.entries({ Chromium: Tab, Firefox: FirefoxTab })) {
    test(`in ${name} within ${MAX_RATIO.disk} of a plain read from the disk`, async () => {
      const path = bigModel('q4_0');
      const { size: fileBytes } = statSync(join(PROJECT, path));
      const url = server.url + path;
      profiles.push(mkdtempSync(join(tmpdir(), 'quern-warm-')));
      const tab = await Browser.open(server.url, 'tests/big/warm.js', profiles.at(-1));
      try {
        version ??= tab.version;
        await tab.call('store', { url });
        const file = storedFile(profiles.at(-1), fileBytes);
        const disk = await measure(tab, url, { rounds: ROUNDS_DISK, hows: ['plain', 'threads'], before: () => drop(file) });
        const cache = await measure(tab, url, { rounds: ROUNDS, hows: ['plain', 'threads', 'alone'] });
        found.push({ browser: tab.version, fileBytes, disk, ...cache });
        console.log(JSON.stringify(found.at(-1)));
        assert.ok(disk.threads.median / disk.plain.median < MAX_RATIO.disk, `${disk.threads.median} ms, a plain read ${disk.plain.median} ms`);
        assert.ok(cache.threads.best / cache.plain.best < MAX_RATIO.cache, `${cache.threads.best} ms, a plain read ${cache.plain.best} ms`);
      } finally {
        await tab.close();
      }
    });
  }
});
