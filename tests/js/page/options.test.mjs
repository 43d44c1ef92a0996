// SPDX-License-Identifier: MIT
// Arguments are checked before anything is sent, and an error names the argument as it was written (U07, U08, U10, W12).

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { checkMessages } from '../../../js/page/messages.js';
import { checkOptions, checkText, checkTokens, sampling } from '../../../js/page/options.js';
import { checkPart } from '../../../js/page/parts.js';
import { Reply } from '../../../js/page/reply.js';
import { DOWNLOADS, ENGINE, LOAD, REPLY, VISION } from '../../../js/shared/options.js';
import { SYNONYMS, oursFor } from '../../../js/shared/ours.js';
import { optionData } from '../../../tools/options.mjs';


/** Values that no option of any kind accepts, unless a table below says so. */
const HOSTILE = [NaN, Infinity, -Infinity, -1, 1.5, 2 ** 53, '1', 'x', '', {}, [], 1n, Symbol('s'), true, () => {}];

const fails = (act, path) => assert.throws(act, (error) => {
  assert.equal(error.code, 'use/param', String(error));
  assert.equal(error.detail.param, path);
  assert.ok(error.message.startsWith(path), error.message);
  return true;
});

const GOOD = {
  maxTokens: [0, 1, 2 ** 53 - 1], temperature: [0, -0, 1e-45, 0.7, 100], topP: [1e-9, 0.8, 1], topK: [0, 1, 1e9], minP: [0, 0.1, 1],
  repeatPenalty: [0.5, 1, 10], presencePenalty: [-2, 0, 2], frequencyPenalty: [-2, 0, 2], seed: [0, 2 ** 53 - 1],
  openObjects: [true, false], parallelToolCalls: [true, false],
  stop: ['a', ['a', 'b'], []], save: ['a', 'é'.repeat(128)], priority: ['normal', 'background'], cacheScope: [0, 1, 2 ** 32 - 1], logprobs: [0, 20], overflow: ['error', 'drop'], logitBias: [{}, { 5: 1 }, { 5: -Infinity }, { 0: -100, 1: 100 }], onPrefill: [() => {}],
};

const ACCEPTED_HOSTILE = {
  temperature: [1.5], topP: [], topK: [], repeatPenalty: [1.5], presencePenalty: [-1, 1.5], frequencyPenalty: [-1, 1.5],
  openObjects: [true, false], parallelToolCalls: [true, false], stop: ['1', 'x', []], save: ['1', 'x'], logitBias: [{}], onPrefill: [HOSTILE.at(-1)],
};

for (const [name, good] of Object.entries(GOOD)) {
  test(`options.${name}`, () => {
    for (const value of good) assert.equal(checkOptions('chat', { [name]: value })[name], value);
    const accepted = ACCEPTED_HOSTILE[name] ?? [];
    const isAccepted = (value) => accepted.some((one) => Object.is(one, value) || (typeof one === 'object' && typeof value === 'object' && JSON.stringify(one) === JSON.stringify(value)));
    for (const value of HOSTILE.filter((one) => !isAccepted(one))) fails(() => checkOptions('chat', { [name]: value }), `options.${name}`);
  });
}

test('what completions alone take', () => {
  const good = { promptLogprobs: [0, 20], suffix: ['', 'x'] };
  for (const [name, values] of Object.entries(good)) {
    for (const value of values) assert.deepEqual(checkOptions('complete', { [name]: value }), { [name]: value });
    for (const value of HOSTILE.filter((one) => one != null && !(name === 'suffix' && typeof one === 'string') && !values.includes(one) && one !== 1)) {
      fails(() => checkOptions('complete', { [name]: value }), `options.${name}`);
    }
    fails(() => checkOptions('chat', { [name]: values[1] }), `options.${name}`);
  }
});

/** Names of a table of options, in order of the alphabet, as a refusal knows them. */
const namesOf = (kind) => {
  try {
    return checkOptions(kind, { noneAtAll: 1 });
  } catch (error) {
    return error.detail.known.toSorted();
  }
};

test('the types name the options that there are, and no others', async () => {
  const types = await readFile(new URL('../../../js/index.d.ts', import.meta.url), 'utf8');
  const declared = (name) => {
    const [, body] = new RegExp(`^export interface ${name}(?: extends \\w+)? \\{\n([^]*?)^\\}`, 'm').exec(types);
    return [...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, field]) => field).sort();
  };
  assert.deepEqual(namesOf('load'), declared('LoadOptions'));
  assert.deepEqual(Object.keys(VISION).sort(), declared('VisionOptions'));
  assert.deepEqual(namesOf('load'), Object.keys(LOAD).sort());
  assert.deepEqual(namesOf('download'), declared('DownloadOptions').concat('store').sort());
  assert.deepEqual(namesOf('download'), Object.keys(DOWNLOADS).sort());
  for (const name of Object.keys(REPLY)) for (const kind of ['complete', 'chat']) assert.ok(namesOf(kind).includes(name), name);
});

test('what C has of the list of options is what the list says (node tools/options.mjs > src/option_data.h)', async () => {
  assert.equal(await readFile(new URL('../../../src/option_data.h', import.meta.url), 'utf8'), optionData());
  assert.equal(new Set(ENGINE).size, ENGINE.length);
});

test('load options', () => {
  for (const [name, bad] of Object.entries({
    threads: [0, -1, 1.5, NaN, 1000, '2'], contextSize: [0, -5, 1.5, Infinity, '4096'], chunk: [0, 1025], parallel: [0, 17, 1.5, '4'], kvPositions: [0, -1, 2 ** 24 + 1, '1'], snapshots: [-1, 65, 0.5, '3', Infinity], saveMaxBytes: [-1, 0.5, '1', Infinity], kv: ['q4', 'f64', 1], quantize: ['q6', 'f16', true, 8, '', [], ['q8']],
    variant: ['auto', 'SIMD'], gpu: ['slow', true], profile: [1, 'yes'], headers: ['x', { a: 1 }], signal: [{}, 'x'], onProgress: ['x', {}], workerUrl: [1, {}],
  })) {
    for (const value of bad) fails(() => checkOptions('load', { [name]: value }), `options.${name}`);
  }
  const options = { threads: 2, kv: 'f32', variant: 'scalar', headers: { Authorization: 'x' }, signal: new AbortController().signal };
  assert.deepEqual(checkOptions('load', { ...options, chunk: undefined, sha256: null }), options);
});

test('every type of keys and values', () => {
  for (const kv of ['f16', 'q8', 'f32']) assert.deepEqual(checkOptions('load', { kv }), { kv });
});

test('what weights become', () => {
  for (const quantize of ['none', 'q8', 'q4', 'auto', {}, { weights: 'q8' }, { weights: 'q4', embeddings: 'none' }, { weights: null, embeddings: undefined }]) {
    assert.deepEqual(checkOptions('load', { quantize }), { quantize });
  }
  for (const [quantize, path] of [[{ weights: 'auto' }, 'weights'], [{ embeddings: 8 }, 'embeddings'], [{ layers: 'q8' }, 'layers']]) {
    fails(() => checkOptions('load', { quantize }), `options.quantize.${path}`);
  }
  fails(() => checkOptions('load', { quantize: { get weights() { throw new Error('no'); } } }), 'options.quantize.weights');
});

test('unknown and unreadable options', () => {
  fails(() => checkOptions('chat', { maxToken: 5 }), 'options.maxToken');
  fails(() => checkOptions('chat', { toString: 5 }), 'options.toString');
  fails(() => checkOptions('complete', { thinking: true }), 'options.thinking');
  fails(() => checkOptions('chat', Object.defineProperty({}, 'seed', { get() { throw new Error('no'); }, enumerable: true })), 'options.seed');
  for (const bad of [5, 'x', []]) fails(() => checkOptions('chat', bad), 'options');
  for (const nothing of [undefined, null, { temperature: null, signal: null, seed: undefined }]) assert.deepEqual(checkOptions('chat', nothing), {});
  fails(() => checkOptions('chat', JSON.parse('{"__proto__": 1}')), 'options.__proto__');
});

test('stop texts have limits', () => {
  fails(() => checkOptions('chat', { stop: ['a', ''] }), 'options.stop');
  fails(() => checkOptions('chat', { stop: Array(65).fill('a') }), 'options.stop');
  fails(() => checkOptions('chat', { stop: 'a'.repeat(1001) }), 'options.stop');
});

test('logit bias', () => {
  for (const bad of [{ x: 1 }, { '-1': 1 }, { 1: NaN }, { 1: Infinity }, { 1: 101 }, { 1: '1' }]) fails(() => checkOptions('chat', { logitBias: bad }), 'options.logitBias');
  fails(() => sampling({ logitBias: { 10: 1 } }, 10), 'options.logitBias');
  fails(() => sampling({ logitBias: { 0: -Infinity, 1: -Infinity } }, 2), 'options.logitBias');
  assert.deepEqual(sampling({ logitBias: { 9: 1 }, stop: 'x', topK: 5, onPrefill() {} }, 10), { topK: 5, bias: [[9, 1]], stops: ['x'] });
});

test('objects whose fields say nothing are refused, not passed over', () => {
  const silent = [new Map([[5, -100]]), new Set([5]), new WeakMap(), new Date(), Promise.resolve({ 5: 1 }), /5/, new URLSearchParams('5=1'), new Int8Array(9)];
  class Own { temperature = 1; }
  for (const one of silent) {
    for (const kind of ['load', 'chat', 'complete', 'tokens', 'detokenize', 'call']) fails(() => checkOptions(kind, one), 'options');
    fails(() => checkOptions('chat', { logitBias: one }), 'options.logitBias');
    for (const name of ['quantize', 'visionOptions']) fails(() => checkOptions('load', { [name]: one }), `options.${name}`);
  }
  for (const headers of [new Date(), Promise.resolve({}), /x/]) fails(() => checkOptions('load', { headers }), 'options.headers');
  assert.deepEqual(checkOptions('load', { headers: new Map([['A', 'b']]) }), { headers: { A: 'b' } });
  for (const same of [new Own(), Object.assign(Object.create(null), { temperature: 1 })]) assert.deepEqual(checkOptions('chat', same), { temperature: 1 });
});

test('token ids', () => {
  for (const ids of [[1, 2], Int32Array.of(1, 2), Uint8Array.of(1, 2), { length: 2, 0: 1, 1: 2 }]) assert.deepEqual(checkTokens(ids, 9), Int32Array.of(1, 2));
  for (const bad of [undefined, null, 5, 'x', {}, new Map(), new Set([1]), Promise.resolve([1]), { length: '2' }, () => {}, new ArrayBuffer(8)]) fails(() => checkTokens(bad, 9), 'tokens');
  for (const bad of [[, 1], ['1'], [1n], [9], [-1], [0.5], [{}], { length: 1 }, BigInt64Array.of(1n), Float32Array.of(NaN)]) fails(() => checkTokens(bad, 9), 'tokens[0]');
  fails(() => checkTokens({ length: 1e9 }, 9), 'tokens');
  fails(() => checkTokens({ length: 2, get 0() { throw new Error('no'); } }, 9), 'tokens');
  for (const given of [Int32Array.of(1), Uint8Array.of(1), Float64Array.of(1)]) {
    structuredClone(given, { transfer: [given.buffer] });
    fails(() => checkTokens(given, 9, 'prompt'), 'prompt');
  }
  const bytes = Uint8Array.of(65);
  structuredClone(bytes, { transfer: [bytes.buffer] });
  fails(() => checkText(bytes), 'text');
});

test('messages', () => {
  assert.deepEqual(checkMessages('hi'), [{ role: 'user', content: 'hi' }]);
  assert.deepEqual(checkMessages([{ role: 'assistant', content: '', thinking: 't', id: 7 }]), [{ role: 'assistant', content: '', thinking: 't' }]);
  const good = { role: 'user', content: 'x' };
  const cyclic = { role: 'user' };
  cyclic.content = cyclic;
  for (const [bad, path] of [
    [null, 'messages'], [{}, 'messages'], [[], 'messages'], [5, 'messages'], [[good, null], 'messages[1]'], [[good, 'x'], 'messages[1]'],
    [[good, good, good, { role: 'boss', content: '' }], 'messages[3].role'], [[{ content: 'x' }], 'messages[0].role'],
    [[{ role: 'user' }], 'messages[0].content'], [[cyclic], 'messages[0].content'],
    [[{ ...good, thinking: 5 }], 'messages[0].thinking'], [[good, , good], 'messages[1]'],
    [[{ role: 'user', get content() { throw new Error('no'); } }], 'messages[0].content'],
  ]) fails(() => checkMessages(bad), path);
  assert.equal(checkMessages(Array(10_000).fill(good)).length, 10_000);
});

/** What somebody who passes this reads. */
const said = async (check) => (await new Reply(() => ({ promise: (async () => check())(), stop() {} })).result.catch((error) => error)).message;

test('names of other programs, and misspelt ones, are refused with ours', async () => {
  for (const [kind, ours, theirs] of [
    ['chat', 'maxTokens', 'max_tokens max_new_tokens max_completion_tokens maxOutputTokens num_predict n_predict max_gen_len maxtokens maxToken maxTokns'],
    ['chat', 'topP', 'top_p'], ['chat', 'topK', 'top_k'], ['chat', 'minP', 'min_p'], ['chat', 'stop', 'stop_sequences stopSequences stop_strings stops'],
    ['chat', 'repeatPenalty', 'repeat_penalty repetition_penalty repetitionPenalty'], ['chat', 'presencePenalty', 'presence_penalty'], ['chat', 'frequencyPenalty', 'frequency_penalty'],
    ['chat', 'logitBias', 'logit_bias'], ['chat', 'temperature', 'temp temprature do_sample'], ['chat', 'thinking', 'enable_thinking think reasoning_effort'],
    ['chat', 'schema', 'response_format responseFormat json_schema format responseConstraint'], ['chat', 'tools', 'functions'], ['chat', 'toolChoice', 'tool_choice function_call'],
    ['chat', 'signal', 'abortSignal abort_signal'], ['chat', 'logprobs', 'top_logprobs n_probs'], ['tokens', 'generationPrompt', 'add_generation_prompt'],
    ['load', 'contextSize', 'n_ctx num_ctx context_length context_window_size max_model_len'], ['load', 'threads', 'n_threads num_thread nThreads'], ['load', 'chunk', 'n_batch batch_size'],
    ['load', 'parallel', 'n_parallel n_seq_max'], ['load', 'onProgress', 'progress_callback progressCallback initProgressCallback'], ['load', 'quantize', 'dtype'],
    ['load', 'kv', 'cache_type_k'], ['load', 'store', 'cache useCache cache_dir'], ['load', 'kvPositions', 'cacheSize'], ['load', 'saveMaxBytes', 'keepBytes'], ['chat', 'cacheScope', 'space'], ['load', 'vision', 'mmproj'],
  ]) {
    for (const name of theirs.split(' ')) {
      const message = await said(() => checkOptions(kind, { [name]: 1 }));
      assert.match(message, new RegExp(`^options\\.${name} is not an option here: (?:it is|perhaps) ${ours}\\b`), name);
    }
  }
  for (const [kind, name, words] of [
    ['chat', 'system', /\{ role: 'system', content \}/], ['chat', 'stream', /for await/], ['chat', 'n', /side by side/], ['chat', 'messages', /first argument/], ['load', 'token', /headers/],
    ['load', 'revision', /source/], ['load', 'device', /processor/], ['load', 'n_gpu_layers', /processor/], ['chat', 'mirostat', /minP/], ['chat', 'qqqqqq', /here\.$/], ['chat', 'toString', /here\.$/],
  ]) assert.match(await said(() => checkOptions(kind, { [name]: 1 })), words, name);
  assert.match(await said(() => checkOptions('load', { quantize: { weight: 'q8' } })), /weights/);
  assert.match(oursFor('options.tools[0].function', ['name', 'parameters']), /without another object/);
  assert.throws(() => checkOptions('chat', { max_tokens: 1 }), ({ detail }) => detail.known.includes('maxTokens'));
});

test('the words are of options that there are', () => {
  const known = (kind) => { try { checkOptions(kind, { '': 1 }); } catch (error) { return error.detail.known; } return []; };
  const all = new Set([...['load', 'chat', 'tokens'].flatMap(known), 'dimensions', 'normalize', 'instruction', 'parameters']);
  assert.deepEqual(Object.keys(SYNONYMS).filter((name) => !all.has(name)), []);
  for (const [name, others] of Object.entries(SYNONYMS)) for (const other of others.split(' ')) assert.match(other, /^[a-z0-9]+$/, name);
});

test('what other programs say in messages is taken, or refused by name', async () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
  assert.deepEqual(checkMessages([
    { role: 'user', content: 'x', id: 5, createdAt: 7, refusal: null, audio: undefined, annotations: [], images: [], prefix: false },
    { role: 'assistant', content: null, tool_calls: [call], reasoning_content: 'hm' }, { role: 'tool', content: '1', tool_call_id: 'a', name: 'f' },
    { role: 'assistant', content: 'y', tool_calls: null },
  ]), [
    { role: 'user', content: 'x' }, { role: 'assistant', content: '', thinking: 'hm', toolCalls: [{ id: 'a', name: 'f', arguments: '{"x":1}' }] }, { role: 'tool', content: '1', toolCallId: 'a' },
    { role: 'assistant', content: 'y' },
  ]);
  for (const [name, words] of [
    ['images', /parts of the content/], ['image', /parts of the content/], ['image_url', /parts of the content/], ['attachments', /parts of the content/], ['experimental_attachments', /parts/], ['files', /parts/],
    ['videos', /videos/], ['audio', /no audio/], ['name', /put the name/], ['text', /content/], ['parts', /content/], ['prefix', /continue/], ['partial', /continue/], ['function_call', /toolCalls/],
    ['toolInvocations', /toolCalls/], ['tool_name', /toolCallId/], ['tool_responses', /toolCallId/], ['documents', /content/], ['refusal', /content/], ['reasoning_details', /field here/],
    ['reasoningContent', /it is reasoning_content/], ['toolcalls', /it is toolCalls/], ['toolCallID', /it is toolCallId/], ['Content', /it is content/], ['tool_call', /toolCalls/],
  ]) {
    const message = await said(() => checkMessages([{ role: 'user', content: 'x' }, { role: 'user', content: 'x', [name]: ['y'] }]));
    assert.ok(message.startsWith(`messages[1].${name} is not a field here`), message);
    assert.match(message, words);
  }
  fails(() => checkMessages([{ role: 'assistant', content: '', tool_calls: [{ id: 'a' }] }]), 'messages[0].tool_calls');
});

test('headers as pages have them', () => {
  for (const given of [new Headers({ Authorization: 'x' }), new Map([['authorization', 'x']])]) assert.deepEqual(checkOptions('load', { headers: given }), { headers: { authorization: 'x' } });
  fails(() => checkOptions('load', { headers: new Map([['a', 1]]) }), 'options.headers');
});

test('parts of messages', () => {
  const user = (...content) => [{ role: 'user', content }];
  const raw = { data: new Uint8Array(12), width: 2, height: 2 };
  const video = (video) => user({ type: 'video', video });
  assert.deepEqual(checkMessages(user({ type: 'text', text: 'a' }, { type: 'text', text: 'b' })), [{ role: 'user', content: 'ab' }]);
  assert.deepEqual(checkMessages([{ role: 'system', content: [] }]), [{ role: 'system', content: '' }]);
  const image = { type: 'image', image: raw, detail: 'low', maxPixels: 4096 };
  assert.deepEqual(checkMessages(user(image, { type: 'text', text: 'a' }), false, checkPart)[0].content, [image, { type: 'text', text: 'a' }]);
  assert.deepEqual(checkMessages(user({ type: 'image_url', image_url: { url: 'a.png', detail: 'high', more: 1 } }), false, checkPart)[0].content, [{ type: 'image', image: 'a.png', detail: 'high' }]);
  const frames = { type: 'video', video: { frames: [raw, 'b.png', new Blob()], fps: 4, sample: true }, fps: 1, maxFrames: 8 };
  assert.deepEqual(checkMessages(user(frames), false, checkPart)[0].content, [frames]);
  const at = (rest) => `messages[0].content[0]${rest}`;
  for (const [bad, path] of [
    [user('x'), at('')], [user(null), at('')], [user({ type: 'audio' }), at('.type')], [user({ type: 'toString' }), at('.type')], [user({}), at('.type')],
    [user({ type: 'text' }), at('.text')], [user({ type: 'text', text: 5 }), at('.text')], [user({ type: 'image' }), at('.image')],
    [user({ type: 'image', image: '' }), at('.image')], [user({ type: 'image', image: 5 }), at('.image')], [user({ type: 'image', image: {} }), at('.image')],
    [user({ type: 'image', image: { ...raw, width: 3 } }), at('.image')], [user({ type: 'image', image: { ...raw, data: [1] } }), at('.image')],
    [user({ type: 'image', image: { ...raw, width: 0 } }), at('.image')], [user({ type: 'image', image: raw, size: 1 }), at('.size')],
    [user({ ...image, detail: 'most' }), at('.detail')], [user({ ...image, maxPixels: 5 }), at('.maxPixels')],
    [user({ type: 'image_url', image_url: {} }), at('.image_url')], [user({ type: 'image_url' }), at('.image_url')],
    [user({ type: 'image', get image() { throw new Error('no'); } }), at('.image')], [video(5), at('.video')], [video({}), at('.video')],
    [video({ frames: [] }), at('.video.frames')], [video({ frames: [5] }), at('.video.frames[0]')], [video({ frames: [raw], fps: 0 }), at('.video.fps')],
    [video({ frames: [raw], timestamps: [] }), at('.video.timestamps')],
    [video({ frames: [raw, raw], timestamps: [1, 0.5] }), at('.video.timestamps')], [video({ frames: [raw], rate: 5 }), at('.video.rate')],
    [[{ role: 'system', content: [image] }], at('')], [[{ role: 'assistant', content: [frames] }], at('')],
  ]) fails(() => checkMessages(bad, false, checkPart), path);
  for (const many of [video({ frames: Array(769).fill('x') }), user(...Array(65).fill(image))]) {
    assert.throws(() => checkMessages(many, false, checkPart), { code: 'image/size', message: /769|65/ });
  }
  assert.throws(() => checkMessages(user(image)), /^QuernError: This model has no vision/);
  fails(() => checkMessages(user({ type: 'audio' })), at('.type'));
});

test('token ids', () => {
  assert.deepEqual(checkTokens([0, 9], 10), Int32Array.of(0, 9));
  assert.deepEqual(checkTokens(Uint8Array.of(3), 10), Int32Array.of(3));
  for (const [bad, path] of [['12', 'tokens'], [null, 'tokens'], [5, 'tokens'], [[10], 'tokens[0]'], [[0, -1], 'tokens[1]'], [[1.5], 'tokens[0]'], [['1'], 'tokens[0]'], [[NaN], 'tokens[0]']]) {
    fails(() => checkTokens(bad, 10), path);
  }
});
