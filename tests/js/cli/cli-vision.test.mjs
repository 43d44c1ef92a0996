// SPDX-License-Identifier: MIT
// The command line with images: what it writes is what the package gives, with the words of the command line where it refuses.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { FOLDER, PAIR, assertLogits, goldenCases, goldenLook, imagePath } from '../../fixtures/vision/golden.mjs';
import { NANO } from '../support/helper.mjs';
import { oneProcess } from '../support/program.mjs';

const LIMITS = ['--min-pixels', '4096', '--max-pixels', '20480', '--min-video-pixels', '4096', '--max-video-pixels', '65536'];
const VISION = ['--vision', PAIR.options.vision];

let folder;
before(() => { folder = mkdtempSync(join(tmpdir(), 'quern-cli-vision-')); });
after(() => rmSync(folder, { recursive: true }));

const { quern: run, end } = oneProcess();
after(end);

const quern = async (...args) => {
  const { code, out, err } = await run(args);
  return { status: code, out, error: err };
};

const floatsIn = (path) => new Float32Array(new Uint8Array(readFileSync(path)).buffer);

test('logits of a conversation: with images and videos, of a pair and of a folder', async () => {
  const out = join(folder, 'logits.f32');
  const input = join(folder, 'messages.json');
  for (const [source, more] of [[PAIR.source, [...VISION, ...LIMITS]], [FOLDER.source, []]]) {
    for (const name of ['mixed', 'video']) {
      const one = goldenCases('dense').find((candidate) => candidate.name === name);
      writeFileSync(input, JSON.stringify({ messages: one.messages, numberImages: one.numberImages }));
      assert.deepEqual(await quern('logits', source, ...more, '--kv', 'f32', '--messages', input, '--out', out), { status: 0, out: '', error: '' });
      assertLogits('dense', one, floatsIn(out), [287, 288]);
    }
  }
});

test('what the encoder makes of an image', async () => {
  const out = join(folder, 'vision.f32');
  assert.deepEqual(await quern('vision', PAIR.source, ...VISION, ...LIMITS, '--image', imagePath('exact.png'), '--out', out), { status: 0, out: '', error: '' });
  const [golden, found] = [goldenLook('dense', 'exact', 64), floatsIn(out)];
  assert.equal(found.length, golden.length);
  assert.ok(golden.every((value, i) => Math.abs(value - found[i]) <= 2e-4));
});

test('a question about images and a video, and info', async () => {
  const { status, error } = await quern('chat', PAIR.source, 'Well?', ...VISION, ...LIMITS, '--image', imagePath('exact.png'), '--image', imagePath('tiny.png'),
    '--video', imagePath('five'), '--fps', '3', '--max-frames', '4', '--max-tokens', '3', '--temperature', '0');
  assert.deepEqual([status, error], [0, '']);
  const { out } = await quern('info', PAIR.source, ...VISION);
  assert.match(out, /^vision +4 blocks, 64 wide, 1 head, DeepStack after blocks 0, 2$/m);
  assert.equal(JSON.parse((await quern('info', FOLDER.source, '--json')).out).vision.layers, 4);
  assert.ok(!/^vision/m.test((await quern('info', NANO)).out));
});

test('what it refuses', async () => {
  const bad = join(folder, 'bad.json');
  const out = join(folder, 'none.f32');
  for (const [text, words] of [['{', /is no JSON/], ['{"messages": 5}', /list of messages/], ['{"messages": [], "numberPages": true}', /'numberPages'/]]) {
    writeFileSync(bad, text);
    assert.match((await quern('logits', PAIR.source, ...VISION, '--messages', bad, '--out', out)).error, words);
  }
  for (const [args, words] of [
    [['chat', NANO, 'x', '--image', imagePath('tiny.png')], /use\/param: This model has no vision: load it with its projector \(--vision\)\./],
    [['chat', NANO, 'x', '--vision', PAIR.options.vision], /model\/unsupported: /], [['chat', PAIR.source, 'x', ...VISION, '--image', 'nowhere.png'], /'nowhere\.png' cannot be read/],
    [['chat', PAIR.source, 'x', ...VISION, '--video', folder], /--video must be a folder of images; '.*' has none\./], [['chat', PAIR.source, 'x', '--max-pixels', '5'], /use\/param: --max-pixels must be/],
    [['vision', PAIR.source, ...VISION, '--out', out], /--image is missing/], [['logits', PAIR.source, '--out', out], /--tokens is missing/],
    [['logits', PAIR.source, '--tokens', '1', '--messages', bad, '--out', out], /--tokens and --messages exclude each other/],
    [['info', PAIR.options.vision], /model\/unsupported: This is the vision part of a model/],
  ]) {
    const { status, error } = await quern(...args);
    assert.deepEqual([status, words.test(error)], [1, true], `${args.slice(0, 1)}: ${error}`);
  }
});
