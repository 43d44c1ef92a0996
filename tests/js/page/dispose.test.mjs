// SPDX-License-Identifier: MIT
// dispose() gives the engine's memory back, though somebody keeps the Model: a process has after several models what it had after one.
// In Chromium and Firefox: tests/web/dispose.test.mjs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { MODELS, heavyModel } from '../../fixtures/tiny.mjs';

const DIST = new URL('../../../dist/node.js', import.meta.url).href;

/** Prints the process's memory after each model, without what only waits to be collected. */
const script = (file) => `
  const { load } = await import(${JSON.stringify(DIST)});
  const kept = [];
  const sizes = [];
  for (let i = 0; i < ${MODELS}; i++) {
    const model = await load(${JSON.stringify(file)}, { threads: 2 });
    kept.push(model);
    await model.logits([1, 2, 3]);
    await model.dispose();
    gc();
    sizes.push(process.memoryUsage.rss());
  }
  console.log(JSON.stringify([sizes, kept.at(-1).info.memory.wasm]));`;

test('models one after the other', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'model.gguf');
  await writeFile(file, heavyModel());
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--input-type=module', '-e', script(file)], { timeout: 120_000 });
  const [sizes, wasm] = JSON.parse(stdout);
  t.diagnostic(`${sizes.map((bytes) => Math.round(bytes / 1e6)).join(', ')} MB`);
  assert.ok(sizes.at(-1) < sizes[0] + wasm / 4, `${sizes[0]} bytes, then ${sizes.at(-1)}; a model takes ${wasm}`);
});
