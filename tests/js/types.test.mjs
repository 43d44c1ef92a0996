// SPDX-License-Identifier: MIT
// The hand-written types against a file that must compile and lines in it that must not; and against what is really exported.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import * as node from '../../dist/node.js';
import * as page from '../../dist/index.js';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** What the compiler says. */
function compile(file, target, lib) {
  const args = [
    path('../../node_modules/typescript/bin/tsc'), '--noEmit', '--strict', '--target', target, '--module', 'nodenext', '--lib', lib,
    '--types', '', '--moduleDetection', 'force', '--skipLibCheck', 'false', path(file),
  ];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: path('../../') }, (error, stdout) => resolve(error ? stdout || String(error) : ''));
  });
}

test('index.d.ts', async () => {
  assert.equal(await compile('types.ts', 'esnext', 'esnext,dom,dom.asynciterable'), '');
});

test('index.d.ts in a project of 2022', async () => {
  assert.equal(await compile('../../dist/index.d.ts', 'es2022', 'es2022,dom'), '');
});

test('what is exported is what is declared, in a page and in Node', async () => {
  const types = await readFile(path('../../dist/index.d.ts'), 'utf8');
  const declared = [...types.matchAll(/^export (?:declare )?(?:function|class|const) (\w+)/gm)].map(([, name]) => name).sort();
  assert.deepEqual(Object.keys(node).sort(), declared);
  assert.deepEqual(Object.keys(page).sort(), declared);
});

test('the entry for pages can be imported anywhere and changes nothing', async () => {
  const before = Object.getOwnPropertyNames(globalThis).sort();
  await import(`../../dist/index.js?again=${Date.now()}`);
  assert.deepEqual(Object.getOwnPropertyNames(globalThis).sort(), before);
  const source = await readFile(path('../../dist/index.js'), 'utf8');
  assert.ok(!/["']node:/.test(source) && source.includes('new Worker(new URL("./worker.js",import.meta.url)'));
});
