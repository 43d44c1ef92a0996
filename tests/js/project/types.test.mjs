// SPDX-License-Identifier: MIT
// The hand-written types against a file that must compile and lines in it that must not; and against what is really exported. And the
// contracts between our own files that have a type.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import * as node from '../../../dist/node.js';
import * as page from '../../../dist/index.js';
import { LONG } from '../../fixtures/lengths.mjs';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** What the compiler says of files. */
function tsc(files, lib, ...options) {
  const args = [
    path('../../../node_modules/typescript/bin/tsc'), '--noEmit', '--module', 'nodenext', '--lib', lib, '--moduleDetection', 'force', ...options, ...files.map(path),
  ];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: path('../../../') }, (error, stdout) => resolve(error ? stdout || String(error) : ''));
  });
}

const compile = (files, target, lib, ...more) => tsc(files, lib, '--strict', '--target', target, '--types', '', '--skipLibCheck', 'false', ...more);

/** What the compiler says about these JavaScript files, and not about others that they import: only types between files are checked. */
async function check(files, lib, types) {
  const said = await tsc(['glue.d.ts', ...files], lib, '--allowJs', '--checkJs', '--strict', 'false', '--target', 'esnext', '--types', types, '--skipLibCheck');
  const names = files.map((file) => file.split('/').at(-1));
  return said.split('\n').filter((line) => names.some((name) => line.split('(')[0].endsWith(name)));
}

test('index.d.ts', async () => {
  for (const exact of [[], ['--exactOptionalPropertyTypes']]) assert.equal(await compile(['types.ts'], 'esnext', 'esnext,dom,dom.asynciterable', ...exact), '', exact.join(' '));
});

test('index.d.ts and those of other entries in a project of 2022', async () => {
  const entries = ['index', 'remote', 'run', 'openai', 'ai-sdk', 'prompt-api', 'testing', 'sw'].map((name) => `../../../dist/${name}.d.ts`);
  for (const files of LONG ? entries.map((entry) => [entry]) : [entries]) assert.equal(await compile(files, 'es2022', 'es2022,dom'), '');
});

test('the hosts of an engine\'s worker are what it needs: in a browser, in Node, in tests', async () => {
  assert.deepEqual(await check(['../../../js/worker/worker.js', '../../../js/worker/start.js', '../../../js/worker/service.js', '../../../js/worker/intake.js', 'hosts.ts'], 'esnext,webworker', ''), []);
  assert.deepEqual(await check(['../../../js/worker/worker-node.js', '../../../js/worker/host-node.js', '../support/engine-host.mjs'], 'esnext,dom', 'node'), []);
});

test('the facade of the OpenAI API, the remote model and the server fit what they use of a model, and each other', async () => {
  const facade = ['openai', 'openai-request', 'openai-error', 'remote', 'remote-request', 'remote-answer', 'run', 'sse', 'openai-api', 'openai-client', 'ai-sdk', 'ai-sdk-request', 'prompt-api', 'prompt-input', 'prompt-options', 'prompt-events', 'testing', 'testing-reply'].map((name) => `../../../js/facades/${name}.js`);
  const server = ['serve-http', 'serve-routes', 'serve-model', 'serve-guard', 'serve-events', 'serve-metrics', 'serve-body', 'serve-refusal'].map((name) => `../../../js/cli/${name}.js`);
  assert.deepEqual(await check([...facade, ...server, 'facades.ts'], 'esnext,dom,dom.asynciterable', 'node'), []);
});

test('what is exported is what is declared, in a page and in Node', async () => {
  const types = await readFile(path('../../../dist/index.d.ts'), 'utf8');
  const declared = [...types.matchAll(/^export (?:declare )?(?:function|class|const) (\w+)/gm)].map(([, name]) => name).sort();
  assert.deepEqual(Object.keys(node).sort(), declared);
  assert.deepEqual(Object.keys(page).sort(), declared);
  assert.deepEqual(Object.keys(await import('quern/remote')).sort(), ['QuernError', 'remote']);
  assert.deepEqual(Object.keys(await import('quern/run')).sort(), ['QuernError', 'run', 'tool']);
  assert.deepEqual(Object.keys(await import('quern/openai')).sort(), ['APIError', 'QuernError', 'openai', 'openaiFetch']);
  assert.deepEqual(Object.keys(await import('quern/ai-sdk')).sort(), ['QuernError', 'quern']);
  assert.deepEqual(Object.keys(await import('quern/prompt-api')).sort(), ['QuernError', 'languageModel']);
  assert.deepEqual(Object.keys(await import('quern/testing')).sort(), ['QuernError', 'fakeModel']);
});

test('the entry for pages can be imported anywhere and changes nothing', async () => {
  const before = Object.getOwnPropertyNames(globalThis).sort();
  await import(`../../../dist/index.js?again=${Date.now()}`);
  assert.deepEqual(Object.getOwnPropertyNames(globalThis).sort(), before);
  const source = await readFile(path('../../../dist/index.js'), 'utf8');
  assert.ok(!/["']node:/.test(source) && source.includes('new Worker(new URL("./worker.js",import.meta.url)'));
});
