// SPDX-License-Identifier: MIT
// The projector as one more file of a model: downloaded, kept, hashed and counted with it, changed without the model, refused with a sentence.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { load, models } from '../../../dist/node.js';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { FOLDER, PAIR, Q8, goldenCases } from '../../fixtures/vision/golden.mjs';
import { NANO, rejectsWith } from '../support/helper.mjs';

const [MODEL, VISION, OTHER] = [PAIR.source, PAIR.options.vision, Q8.options.vision].map((path) => readFileSync(path));
const { messages } = goldenCases('dense').find(({ name }) => name === 'exact');
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const small = { threads: 1, contextSize: 256, visionOptions: PAIR.options.visionOptions };

const FILES = new Map(Object.entries({ 'model.gguf': MODEL, 'mmproj.gguf': VISION, 'other.gguf': OTHER }));

/** While it is set, nobody must need the model's bytes: they are zeros. */
let spoiled = false;

function fileAt(url) {
  const [, name] = /^\/m\/([\w.]+)/.exec(url);
  return { bytes: spoiled && name === 'model.gguf' ? new Uint8Array(MODEL.length) : FILES.get(name), etag: `"${name}"` };
}

let folder;
let server;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'quern-vision-'));
  server = await new LyingServer(fileAt).start();
});
after(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** The address of a file, with a signature that is no part of its name. */
const at = (name) => `${server.base}/m/${name}?X-Amz-Signature=a&X-Amz-Credential=b`;

/** What a load asks the server for, and what the model sees then. */
async function asked(vision, options) {
  const before = server.requests.length;
  const events = [];
  const model = await load(at('model.gguf'), { ...small, vision, onProgress: (event) => events.push(event), ...options });
  const tokens = model.info.vision ? (await model.chat(messages, { maxTokens: 1 }).result).usage.imageTokens : null;
  await model.dispose();
  const names = server.requests.slice(before).map(({ url }) => /\/m\/(\w+)/.exec(url)[1]);
  return { names: [...new Set(names)], tokens, last: events.at(-1) };
}

test('it is kept with its model, and neither is asked for again; a model without it, and another one, cost no second download of the model', async () => {
  const cache = mkdtempSync(join(folder, 'cache-'));
  const both = MODEL.length + VISION.length;
  assert.deepEqual(await asked(undefined, { store: cache }), { names: ['model'], tokens: null, last: { phase: 'load', loaded: MODEL.length, total: MODEL.length, cached: false } });
  const has = (vision) => models.has(at('model.gguf'), { store: cache, vision });
  assert.deepEqual([await has(), await has(at('mmproj.gguf'))], [true, false]);
  spoiled = true;
  const first = await asked(at('mmproj.gguf'), { store: cache, sha256: [sha256(MODEL), sha256(VISION)] });
  assert.deepEqual([first.tokens, first.last.loaded, first.last.total], [12, both, both]);
  assert.deepEqual(await asked(at('mmproj.gguf'), { store: cache }), { names: [], tokens: 12, last: { phase: 'load', loaded: both, total: both, cached: true } });
  assert.deepEqual(await asked(undefined, { store: cache }), { names: [], tokens: null, last: { phase: 'load', loaded: MODEL.length, total: MODEL.length, cached: true } });
  const [stored, ...more] = await models.list({ store: cache });
  assert.deepEqual([stored.files, stored.size, stored.complete, stored.vision, more], [2, both, true, `${server.base}/m/mmproj.gguf`, []]);
  assert.deepEqual([await has(), await has(at('mmproj.gguf')), await has(at('other.gguf'))], [true, true, false]);
  assert.deepEqual((await asked(at('other.gguf'), { store: cache })).tokens, 12);
  assert.deepEqual([await has(), await has(at('mmproj.gguf')), await has(at('other.gguf'))], [true, false, true]);
  assert.deepEqual((await asked(at('other.gguf'), { store: cache })).names, []);
  spoiled = false;
});

test('models.download() gets both; a hash that is wrong keeps neither', async () => {
  const cache = mkdtempSync(join(folder, 'cache-'));
  const vision = at('mmproj.gguf');
  const { files, complete } = await models.download(at('model.gguf'), { store: cache, vision });
  assert.deepEqual([files, complete, (await asked(vision, { store: cache })).names], [2, true, []]);
  await models.remove(at('model.gguf'), { store: cache });
  await rejectsWith(load(at('model.gguf'), { ...small, vision, store: cache, sha256: [sha256(MODEL), sha256(MODEL)] }), 'model/integrity');
  assert.deepEqual(await models.list({ store: cache }), []);
});

test('from elsewhere than its model: picked, at a path', async () => {
  for (const [source, vision] of [
    [PAIR.source, new Blob([VISION])], [new Blob([MODEL]), PAIR.options.vision], [new Blob([MODEL]), new Blob([VISION])], [at('model.gguf'), PAIR.options.vision],
    [FOLDER.source, true],
  ]) {
    const model = await load(source, { ...small, vision, store: false });
    assert.equal((await model.chat(messages, { maxTokens: 1 }).result).usage.imageTokens, 12);
    await model.dispose();
  }
  const closed = await load(FOLDER.source, { ...small, vision: false });
  assert.equal(closed.info.vision, null);
  await closed.dispose();
});

test('what is no projector of this model', async () => {
  for (const [source, vision, code, rule] of [
    [PAIR.options.vision, undefined, 'model/unsupported', 'projector'], [PAIR.source, PAIR.source, 'model/unsupported', 'projector'],
    [NANO, PAIR.options.vision, 'model/unsupported', 'no-vision'], [PAIR.source, new Blob([VISION.subarray(0, 5000)]), 'model/format'],
    [PAIR.source, true, 'use/param'], [PAIR.source, '', 'use/param'], [PAIR.source, 5, 'use/param'], [PAIR.source, [new Blob([VISION]), new Blob([VISION])], 'use/param'],
    [PAIR.source, 'nowhere.gguf', 'use/param'], [PAIR.source, FOLDER.source, 'use/param'],
  ]) {
    const error = await rejectsWith(load(source, { ...small, vision }), code);
    if (rule) assert.equal(error.detail.rule, rule);
    if (code === 'use/param' && vision !== 'nowhere.gguf') assert.match(error.detail.param, /^options\.vision/);
  }
});
