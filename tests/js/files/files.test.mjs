// SPDX-License-Identifier: MIT
// The catalogue of broken model files (groups G, M, V of tests/fixtures/bad-gguf.mjs) through the library: each
// gets its typed error, each odd but valid one loads; and a file's own chat template cannot hurt anything (M24). A file that changes
// while it is read is refused (G35); in OPFS see O05 in store.test.mjs.

import assert from 'node:assert/strict';
import { appendFileSync, openAsBlob, openSync, closeSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { Engine } from '../../../js/engine/engine.js';
import { instantiate } from '../../../js/engine/instance.js';
import { badFiles, goodFiles } from '../../fixtures/bad-gguf.mjs';
import { tinyFolder } from '../../fixtures/folder.mjs';
import { length, some } from '../../fixtures/lengths.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { compile, glue } from '../support/engine-host.mjs';
import { rejectsWith } from '../support/helper.mjs';
import { soon, timed } from '../support/soon.mjs';

const AT_ONCE = 4;

/** Runs `check` on all files, a few at a time, and returns what went wrong. */
async function forAll(files, check) {
  const problems = [];
  const queue = files.values();
  const worker = async () => {
    for (const file of queue) await check(file).catch((error) => problems.push(`${file.id} ${file.what}: ${error.message}`));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return problems;
}

const BROKEN = badFiles();

/** @param {(bytes: Uint8Array) => Promise<Error | undefined>} refusal */
const refuses = (refusal) => async ({ bytes, codes, rules }) => {
  const error = await refusal(bytes);
  assert.ok(error, 'was loaded');
  assert.ok(codes.includes(error.code), `${error.code} instead of ${codes}: ${error.message}`);
  assert.ok(rules.includes(error.detail.rule), `rule ${error.detail.rule} instead of ${rules}: ${error.message}`);
  assert.ok(error.message.length <= 200 && !/[\x00-\x1f\x7f]/.test(error.message), JSON.stringify(error.message));
};

test('every broken file gets its error from the engine', { timeout: 300_000 }, async () => {
  let instance;
  const problems = [];
  for (const [i, file] of BROKEN.entries()) {
    if (i % 50 === 0) instance = await instantiate(glue[32], await compile('simd'), 1, 32);      // what has been refused stays in its memory
    await refuses(async (bytes) => {
      const engine = new Engine(instance, { threads: 1, memoryLimit: instance.maximum, fileSize: bytes.length });
      try {
        engine.feed(bytes);
        engine.finish();
      } catch (error) {
        return error;
      }
      return undefined;
    })(file).catch((error) => problems.push(`${file.id} ${file.what}: ${error.message}`));
  }
  assert.deepEqual(problems, []);
});

test('a broken file for each rule gets its error from a load', { timeout: 300_000 }, async () => {
  const files = new Map(BROKEN.map((file) => [file.rules.concat(file.codes).join(), file]));
  assert.ok(files.size > 50);
  assert.deepEqual(await forAll(some([...files.values()], 2), refuses((bytes) => load(new Blob([bytes]), { threads: 1 }).then((model) => model.dispose(), (error) => error))), []);
});

test('every odd file loads, and replies or says why not', { timeout: 120_000 }, async () => {
  assert.deepEqual(await forAll(some(goodFiles(), 3), async ({ bytes, code }) => {
    const model = await load(new Blob([bytes]), { threads: 1 });
    const use = model.info.contextSize > 2 ? model.complete('the', { maxTokens: 2 }).result : model.logits([0]);
    const found = await use.then(() => undefined, (error) => error.code).finally(() => model.dispose());
    assert.equal(found, code);
  }), []);
});

const withTemplate = (template) => load(new Blob([tinyModel({ template })]), { threads: 1 });

test('a template that never ends costs 2 s and no more', { timeout: 60_000 }, async () => {
  const loop = '{% for i in range(90000) %}';
  const model = await withTemplate(`${loop.repeat(4)}{% endfor %}{% endfor %}{% endfor %}{% endfor %}`);
  for (let i = 0; i < length(1, 2); i++) {
    await soon(3500, () => timed(async () => {
      const error = await rejectsWith(model.chat('x').result, 'model/format', /template/);
      assert.equal(error.detail.rule, 'template');
    }));
  }
  assert.equal((await model.complete('the', { maxTokens: 1, temperature: 0 }).result).usage.completionTokens, 1, 'the engine is usable');
  await model.dispose();
});

test('a template that eats memory is ended', { timeout: 20_000 }, async () => {
  const model = await withTemplate('{% set n = namespace(a=[1,2,3,4]) %}{% for i in range(60) %}{% set n.a = n.a + n.a %}{% endfor %}');
  await rejectsWith(model.chat('x').result, 'model/format', /template/);
  assert.equal((await model.complete('the', { maxTokens: 1, temperature: 0 }).result).usage.completionTokens, 1);
  await model.dispose();
});

test('templates that are wrong, and one that always thinks', async () => {
  for (const [template, code, words] of [
    ['{% if %}', 'model/format', /template/], ['{{ nothing() }}', 'model/format', /template/],
    ['{{ raise_exception("No user query found in messages.") }}', 'use/param', /^messages do not suit the model's chat template: No user query found in messages\.$/],
  ]) {
    const model = await withTemplate(template);
    await rejectsWith(model.chat('x').result, code, words);
    await rejectsWith(model.countTokens([{ role: 'system', content: 'x' }]), code, words);
    await model.dispose();
  }
  const model = await withTemplate('{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n<think>\n');
  const { text, thinking, usage } = await model.chat('x', { maxTokens: 8, seed: 1 }).result;
  assert.deepEqual([text, thinking.length > 0 || usage.completionTokens === 0], ['', true]);
  await model.dispose();
});

/** Calls `use` with a new folder, which is gone afterwards. */
async function inFolder(use) {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  await use(folder).finally(() => rm(folder, { recursive: true }));
}

function overwrite(path) {
  const file = openSync(path, 'r+');
  writeSync(file, Buffer.alloc(1), 0, 1, statSync(path).size - 1);
  closeSync(file);
}

const CHANGES = {
  grows: (path) => appendFileSync(path, Buffer.alloc(65536)),
  shrinks: (path) => truncateSync(path, statSync(path).size - 1),
  'is written over': overwrite,
};

for (const [name, change] of Object.entries(CHANGES)) {
  test(`G35: a file that ${name} while it is read`, { timeout: 20_000 }, () => inFolder(async (folder) => {
    const path = join(folder, 'model.gguf');
    writeFileSync(path, tinyModel());
    truncateSync(path, 3e8);
    const timer = setInterval(change, 1, path);
    const error = await rejectsWith(load(path, { threads: 1 }), 'model/integrity', /model\.gguf' was changed while it was read/).finally(() => clearInterval(timer));
    assert.equal(error.phase, 'load');
    const model = await load(path, { threads: 1 });
    await model.dispose();
    const blob = await openAsBlob(path);
    change(path);
    await rejectsWith(load(blob, { threads: 1 }), 'use/param', /cannot be read any more.*choose it again/);
  }));
}

test('S11: a tokenizer.json of 500 MB is read no further than the most that a header may have', { timeout: 20_000 }, () => inFolder(async (folder) => {
  const names = ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors'];
  await Promise.all(tinyFolder().map((bytes, i) => writeFile(join(folder, names[i]), bytes)));
  const path = join(folder, 'tokenizer.json');
  await truncate(path, 5e8);
  const events = [];
  const error = await rejectsWith(load(folder, { threads: 1, onProgress: (event) => events.push(event) }), 'model/format', /longer than 64 MiB/);
  assert.equal(error.detail.rule, 'header-size');
  assert.ok(events.every(({ loaded }) => loaded < 1e8));
  const mebibyte = new Blob([new Uint8Array(2 ** 20)]);
  const files = tinyFolder().map((bytes, i) => new File(names[i] === 'tokenizer.json' ? ['{"model":', ...Array(500).fill(mebibyte)] : [bytes], names[i]));
  await rejectsWith(load(files, { threads: 1 }), 'model/format', /longer than 64 MiB/);
}));
