// SPDX-License-Identifier: MIT
// `quern tokenize` with texts of any length: cut where it makes no difference, in little memory, in seconds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { TokenStream, cutOf } from '../../../js/cli/token-stream.js';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { modelSpec } from '../../fixtures/make-model.mjs';
import { random } from '../../fixtures/random.mjs';
import { tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { engineOver } from '../support/engine-host.mjs';
import { DEMO } from '../support/helper.mjs';
import { quern } from '../support/program.mjs';
import { soon } from '../support/soon.mjs';

const encode = (text) => Buffer.from(text);

/** An engine that knows a header's vocabulary. @param {(wasm: object) => void} [use] what is done before */
async function tokenizerOf(bytes, use = () => {}) {
  const engine = await engineOver(bytes, { inspect: true, use: ({ wasm }) => use(wasm) });
  engine.finish();
  return engine;
}

/** All ids that a stream gives for pieces of a text. */
function streamed(stream, pieces) {
  return [...pieces.flatMap((piece) => [...stream.push(piece)]), ...stream.end()];
}

test('places to cut', () => {
  for (const [text, cut] of [
    ['', 0], ['a', 0], ['one\ntwo', 4], ['one two', 3], ['one  two', 3], ['one\n two', 0], ['one \n\ntwo', 6], ['one\r\n你', 5], ['one\r\ntwo  ', 8],
    ['one\n\u3000', 0], ['one\n\u00a0', 0], ['one\u00a0two', 0], ['你 好', 0], ['onetwothree', 0], ['a1b', 2], ['a1\n', 2], ['one\n\ttwo', 0], ['\n', 0], [' a', 0], ['a ', 1],
  ]) assert.equal(cutOf(encode(text)), cut, JSON.stringify(text));
});

test('texts in parts have the tokens of the whole, with Qwen\'s vocabulary', async () => {
  const engine = await tokenizerOf(writeHeader(modelSpec({ preset: 'qwen3-0.6b', type: 'q8_0' })).header);
  const letters = ['a', "it's", "'S", "'re", '7', '12', '!', '(', ' ', '  ', '\n', '\r\n', '\t', '\u00a0', '\u3000', '你', 'é', '🦉', '<think>', '</think>', '<|im_end|>', '<tool_call', 'the', ' mill', '\u2028']
    .map(encode).concat([Buffer.of(0x80), Buffer.of(0xe3), Buffer.of(0xc2)]);
  const next = random(3);
  const below = (n) => Math.floor(n * next());
  const stream = new TokenStream(engine, 16);
  for (let round = 0; round < 4000; round++) {
    const text = Buffer.concat(Array.from({ length: below(60) }, () => letters[below(letters.length)]));
    const pieces = [];
    for (let at = 0, n; at < text.length; at += n) pieces.push(text.subarray(at, at + (n = 1 + below(24))));
    assert.deepEqual(streamed(stream, pieces), [...engine.tokenize(text)], JSON.stringify(String(text)));
  }
});

test('a text is not cut where a special token may lie across, nor where tokens have scores', async () => {
  const pieces = Array.from({ length: 40 }, () => encode('one two <a b> <a\n12>'));
  const [,, tokens] = tinySpec().kv.find(([key]) => key === 'tokenizer.ggml.tokens');
  for (const special of ['<a b>', '<a\n12>', '12>']) {
    const names = tokens.map((token) => (token === '<think>' ? special : token));
    const engine = await tokenizerOf(tinyModel({}, { kv: { 'tokenizer.ggml.tokens': ['string[]', names] } }));
    const ids = streamed(new TokenStream(engine, 16), pieces);
    assert.deepEqual(ids, [...engine.tokenize(Buffer.concat(pieces))]);
    assert.equal(ids.filter((id) => id === names.indexOf(special)).length, 40);
  }
});

/** Prints the most memory that a process had, in MB, on stderr. */
const PEAK = ['--import', 'data:text/javascript,process.on("exit",()=>console.error(Math.round(process.resourceUsage().maxRSS/1000)))'];

const MANY = length(6, 12);
const paragraph = 'The quick brown fox, isn\'t it? 你好。\n\n    return x + 12;\n\tEnd of it.\n';

test('megabytes take seconds and little memory, and have the tokens of the whole', async () => {
  const text = paragraph.repeat(1e6 / encode(paragraph).length);
  const model = await load(DEMO, { threads: 1 });
  const ids = await model.tokenize(text);
  const words = await Promise.all([...new Set(ids)].map(async (id) => [id, JSON.stringify(await model.detokenize([id]))]));
  await model.dispose();
  const lines = new Map(words.map(([id, word]) => [id, `${id}\t${word}\n`]));
  const { err: little } = await quern(['tokenize', DEMO, '--ids'], { input: 'a', flags: PEAK });
  await soon(10_000, async () => {
    const start = performance.now();
    const { out, err } = await quern(['tokenize', DEMO], { input: text, flags: PEAK });
    assert.ok(out === ids.map((id) => lines.get(id)).join(''));
    assert.ok(Number(err) < Number(little) + 100, `${err} MB, for a letter ${little}`);
    return performance.now() - start;
  });
  const long = await quern(['tokenize', DEMO, '--ids'], { input: text.repeat(MANY), flags: PEAK });
  assert.ok(Number(long.err) < Number(little) + 100, `${long.err} MB, for a letter ${little}`);
  assert.equal(long.out.match(/\d+/g).length, MANY * ids.length);
});

test('NUL bytes part texts of any length', async () => {
  const texts = ['', paragraph, paragraph.repeat(5000), 'a', ''];
  const { out } = await quern(['tokenize', DEMO, '--nul'], { input: texts.join('\0') });
  const model = await load(DEMO, { threads: 1 });
  const expected = await Promise.all(texts.map(async (text) => `${(await model.tokenize(text)).join(' ')}\n`));
  await model.dispose();
  assert.ok(out === expected.join(''));
});

test('a text that cannot be cut and does not fit is refused with a sentence, and the next one is not', async () => {
  const engine = await tokenizerOf(tinyModel(), (wasm) => assert.ok(wasm._wasm_alloc(3.8 * 2 ** 30)));
  const stream = new TokenStream(engine);
  const huge = encode('a'.repeat(8 << 20));
  for (let at = 0; at < huge.length; at += 65536) stream.push(huge.subarray(at, at + 65536));
  assert.throws(() => stream.end(), { code: 'mem/load', message: 'There is not enough memory for this text.' });
  assert.equal(engine.detokenize(streamed(new TokenStream(engine), [encode('the mill')])), 'the mill');
});
