// SPDX-License-Identifier: MIT
// What every failure keeps: no text from elsewhere in its message steers whatever shows it, and it names what it runs on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QuernError as Published, support } from '../../../dist/node.js';
import { QuernError, asQuernError, fromWire, harmless } from '../../../js/shared/errors.js';
import { rejectsWith } from '../support/helper.mjs';

test('text from elsewhere only shows', () => {
  const bad = [...Array.from({ length: 32 }, (_, i) => i), 0x7f, ...Array.from({ length: 32 }, (_, i) => 0x80 + i), 0x61c, 0x200e, 0x200f,
    0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x2028, 0x2029].filter((point) => ![9, 10, 13].includes(point));
  for (const point of bad) assert.equal(harmless(`a${String.fromCodePoint(point)}b`), 'a\uFFFDb', point.toString(16));
  assert.equal(harmless('a\r\nb\tc\rd'), 'a\nb\tcd');
  const good = 'Grüße, 你好, \u05e9\u05dc\u05d5\u05dd 👩\u200d🌾 ❤\ufe0f नमस्\u200cते \u{1f3f4}\u{e0067}\u{e007f}';
  assert.equal(harmless(good), good);
});

test('in any pieces it is the same', () => {
  const text = 'a\x1b]0;title\x07b\r\n\x9b31m\u202ec\u2028d👩\u200d🌾';
  const letters = [...text];
  for (let i = 0; i <= letters.length; i++) {
    assert.equal(harmless(letters.slice(0, i).join('')) + harmless(letters.slice(i).join('')), harmless(text));
  }
});

test('messages are harmless from the start', () => {
  const error = new QuernError('net/http', 'it said \x1b[2J\x9b1m\u202e.');
  assert.equal(error.message, 'it said \uFFFD[2J\uFFFD1m\uFFFD.');
  assert.doesNotMatch(error.stack, /[\x1b\x9b\u202e]/);
  assert.equal(fromWire({ code: 'net/http', message: 'a\x07' }).message, 'a\uFFFD');
  assert.equal(asQuernError(new Error('\x1bc'), 'call').message, 'The engine crashed (Error: \uFFFDc).');
});

test('in Node they speak of this machine, and every one has its hint', async () => {
  assert.equal(asQuernError(new RangeError('Array buffer allocation failed'), 'load').message, 'There is not enough memory in this machine (RangeError: Array buffer allocation failed).');
  assert.ok(support().ok);
  for (const code of ['mem/load', 'engine/lost', 'env/simd', 'storage/busy', 'net/offline', 'storage/unavailable']) {
    const { hint } = new Published(code, 'It failed.');
    assert.ok(hint.length > 10, code);
    assert.doesNotMatch(hint, /browser|tab|page|Chrome/, code);
  }
  const { load } = await import('../../../dist/node.js');
  const error = await rejectsWith(load(new Blob(['x'.repeat(100)])), 'model/format');   // thrown in the worker, which has no hints
  assert.match(error.hint, /GGUF/);
});

test('the stack is that of the call, wherever the error was made', async () => {
  const { load, models } = await import('../../../dist/node.js');
  const model = await load(new URL('../../../web/models/demo-q8_0.gguf', import.meta.url), { threads: 1 });
  const long = 'x '.repeat(5000);
  for (const [name, act] of Object.entries({
    load: () => load(new Blob(['x'.repeat(100)])), path: () => load('/nowhere.gguf'), server: () => load('http://127.0.0.1:1/x.gguf', { store: false }), models: () => models.remove('x.gguf'),
    chat: () => model.chat(long).result, events: async () => { for await (const one of model.chat(long).events) assert.fail(one); }, text: async () => { for await (const one of model.chat(long)) assert.fail(one); },
    option: () => model.chat('x', { topP: 5 }).result, unknown: () => model.chat('x', { top_p: 5 }).result, tools: () => model.chat('x', { tools: [{ name: 'a b' }] }).result,
    tokens: () => model.tokenize([{ role: 'user', content: 'x' }], { tools: [5] }), vectors: () => model.embed([5]), forget: () => model.forget(5),
  })) {
    const error = await (async function thisCall() { await act(); })().then(() => assert.fail(name), (one) => one);
    const [first, ...frames] = error.stack.split('\n');
    assert.equal(first, `QuernError: ${error.message}`, name);
    assert.ok(frames.some((frame) => frame.includes('errors.test.mjs')), `${name}: ${error.stack}`);
  }
  await model.dispose();
  const { stack } = await rejectsWith(model.tokenize('x'), 'engine/disposed');
  assert.match(stack, /errors\.test\.mjs/);
});

test('as JSON an error says all that it knows', () => {
  const cause = new TypeError('no');
  const error = new Published('net/http', 'It said 404.', { detail: { status: 404 }, cause });
  assert.deepEqual(JSON.parse(JSON.stringify({ error })), { error: {
    name: 'QuernError', code: 'net/http', message: 'It said 404.', phase: 'call', retryable: false, detail: { status: 404 }, hint: error.hint, cause: 'TypeError: no',
  } });
  assert.ok(!('cause' in new Published('use/busy', 'x').toJSON()));
});

test('a hint fits the case: the server\'s status, what the message says itself, and where it runs', async () => {
  const hintOf = (status) => new Published('net/http', 'x', { detail: { status } }).hint;
  for (const [status, words] of [[401, /Authorization/], [403, /Authorization/], [404, /^Check the address\.$/], [410, /^Check the address\.$/], [429, /later/], [503, /later/], [418, /signing in/]]) assert.match(hintOf(status), words);
  const { load } = await import('../../../dist/node.js');
  const other = await rejectsWith(load([new File(['x'], 'adapter_model.safetensors'), new File(['{}'], 'adapter_config.json')]), 'model/unsupported');
  assert.match(other.message, /merge it into its model/);
  assert.equal(other.hint, '');
  for (const code of ['net/unreachable', 'env/version', 'env/worker']) assert.doesNotMatch(new Published(code, 'x').hint, /CORS|page|served/);
});
