// SPDX-License-Identifier: MIT
// `quern embed` and `quern rank`: what they print is what the package gives.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { byteChars, withSpecials } from '../../fixtures/qwen-vocab.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { removeFolder, temporaryFolder } from '../support/pack.mjs';
import { oneProcess } from '../support/program.mjs';

const folder = temporaryFolder();
after(() => removeFolder(folder));

const { quern, end } = oneProcess();
after(end);

const MERGES = ['y e', 'ye s', 'n o'];
const { tokens, types } = withSpecials({ tokens: [...byteChars(), ...MERGES.map((merge) => merge.replace(' ', ''))], merges: MERGES });
const kv = { 'tokenizer.ggml.tokens': ['string[]', tokens], 'tokenizer.ggml.token_type': ['i32[]', types], 'tokenizer.ggml.merges': ['string[]', MERGES] };
const MODEL = join(folder, 'model.gguf');
writeFileSync(MODEL, tinyModel({ type: 'F32', context: 600 }, { kv }));
const FILE = join(folder, 'texts.txt');
const TEXTS = ['one', '', 'the third'];
writeFileSync(FILE, `${TEXTS.join('\r\n')}\n`);

test('a line for each vector, JSON, and the best first', async () => {
  const model = await load(MODEL);
  const { vectors } = await model.embed(TEXTS, { instruction: 'find it', dimensions: 8 });
  const ranks = await model.rank('q', TEXTS);
  await model.dispose();
  const options = ['--instruction', 'find it', '--dimensions', '8'];
  const plain = await quern(['embed', MODEL, FILE, ...options]);
  assert.deepEqual([plain.code, plain.err, plain.out], [0, '', vectors.map((vector) => `${vector.join(' ')}\n`).join('')]);
  const json = await quern(['embed', MODEL, '-', '--json', ...options], { input: TEXTS.join('\n') });
  assert.deepEqual(JSON.parse(json.out).vectors, vectors.map((vector) => Array.from(vector)));
  const ranked = await quern(['rank', MODEL, 'q', FILE]);
  assert.equal(ranked.out, ranks.map(({ index, score }) => `${score.toFixed(6)}\t${TEXTS[index]}\n`).join(''));
  for (const [args, words] of [
    [['embed', MODEL, '/nowhere'], /use\/param: FILE cannot be read \(ENOENT\)/], [['embed', MODEL, FILE, '--dimensions', '33'], /use\/param: --dimensions is 33, but the model's vectors have 32/],
    [['embed', MODEL, FILE, '--dimensions', 'x'], /--dimensions must be a number/], [['embed', MODEL, '/dev/null'], /use\/empty/], [['rank', MODEL], /takes MODEL and QUERY/],
  ]) {
    const { code, err } = await quern(args);
    assert.equal(code, 1);
    assert.match(err, words);
  }
});
