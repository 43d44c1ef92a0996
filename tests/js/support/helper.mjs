// SPDX-License-Identifier: MIT
// Shared by the library's tests: paths of models, a server for them, small assertions.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { begin } from '../../../js/template/render.js';
import { add as addRare } from '../../../js/template/template-rare.js';

export const DEMO = fileURLToPath(new URL('../../../web/models/demo-q8_0.gguf', import.meta.url));
export const NANO = fileURLToPath(new URL('../../fixtures/golden/nano.Q8_0.gguf', import.meta.url));
export const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));
export const TEMPLATE = await readFile(new URL('../../fixtures/vocab/qwen3.chat_template.jinja', import.meta.url), 'utf8');

// Models that tests download are not stored on this machine, nor shared between test files.
process.env.XDG_CACHE_HOME = mkdtempSync(join(tmpdir(), 'quern-cache-'));
process.on('exit', () => rmSync(process.env.XDG_CACHE_HOME, { recursive: true, force: true }));

/** Renders a template. @param {object | string} variables or their JSON */
export function render(template, variables) {
  addRare();
  const machine = begin(template, typeof variables === 'string' ? variables : JSON.stringify(variables));
  while (!machine.run(1e6));
  return machine.out;
}

/** Fails unless the promise rejects with this code; returns the error. */
export async function rejectsWith(promise, code, words = /./) {
  const error = await promise.then(() => assert.fail(`did not fail; expected ${code}`), (reason) => reason);
  assert.equal(error.code, code, `${error.stack}`);
  assert.equal(error.name, 'QuernError');
  assert.match(error.message, words);
  return error;
}

export async function rejectsWithAbort(promise) {
  await assert.rejects(promise, { name: 'AbortError' });
}

/** Serves with `answer(request, response)` while `use(base)` runs. */
export async function withServer(answer, use) {
  const server = createServer(answer);
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  try {
    return await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => { server.close(done); });
  }
}

/** All texts of a reply. */
export async function collect(iterable) {
  const parts = [];
  for await (const part of iterable) parts.push(part);
  return parts;
}

/** Waits until a condition holds. */
export async function until(condition, ms = 30_000) {
  const end = performance.now() + ms;
  while (!condition()) {
    assert.ok(performance.now() < end, 'waited too long');
    await new Promise((done) => { setTimeout(done, 2); });
  }
}
