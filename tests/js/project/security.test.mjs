// SPDX-License-Identifier: MIT
// SECURITY.md names a test for each of its promises, and docs/stretches.md the source of each bound: all of them are there.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const textOf = (path) => readFileSync(root + path, 'utf8');

/** What stands between backticks and may be a file or a folder. */
const pathsIn = (text) => [...text.matchAll(/`((?:[\w-]+\/)*[\w.-]+)`/g)].map(([, path]) => path).filter((path) => /\/|\.(?:m?js|c)$/.test(path));

test('each promise names tests that there are', () => {
  const rows = textOf('SECURITY.md').split('\n').filter((line) => /^\| .* \|$/.test(line) && !line.includes('---')).slice(1);
  assert.ok(rows.length > 25);
  for (const row of rows) {
    const paths = pathsIn(row.split('|').at(-2));
    assert.ok(paths.length > 0, `no test is named: ${row.slice(0, 150)}`);
    let folder = '';        // a name alone stands behind another file of its folder
    for (const path of paths) {
      const place = path.includes('/') ? path : `${folder}/${path}`;
      assert.ok(existsSync(root + place), `there is no ${place}: ${row.slice(0, 100)}`);
      folder = dirname(place);
    }
  }
});

test('each stretch names where its bound stands', () => {
  const rows = textOf('docs/stretches.md').split('\n').filter((line) => /^\| .* \|$/.test(line) && !line.includes('---'));
  const bounds = rows.filter((row) => !row.startsWith('| what '));
  assert.ok(bounds.length > 20);
  for (const row of bounds) {
    const paths = pathsIn(row.split('|').at(-2));
    assert.ok(paths.length > 0, `no source is named: ${row.slice(0, 150)}`);
    for (const path of paths) assert.ok(existsSync(root + path), `there is no ${path}: ${row.slice(0, 100)}`);
  }
});
