// SPDX-License-Identifier: MIT
// Folders by their address: what is asked for, what is kept, what is refused, and what faults on the way do. Over sockets with the
// package, and with a played clock where time matters.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { load, models } from '../../../dist/node.js';
import { tinyFolder } from '../../fixtures/folder.mjs';
import { PROJECT } from '../../fixtures/golden.mjs';
import { SOURCES } from '../../fixtures/hf/sources.mjs';
import { some } from '../../fixtures/lengths.mjs';
import { LyingServer } from '../../fixtures/lying-server.mjs';
import { Disk } from '../../fixtures/memory-store.mjs';
import { noise } from '../../fixtures/noise.mjs';
import { CHUNK, PIECE, Site, session } from '../../fixtures/sessions.mjs';
import { CLI, rejectsWith } from '../support/helper.mjs';

const IDS = [1, 2, 3, 40, 280, 100];
const cache = mkdtempSync(join(tmpdir(), 'quern-folders-'));
after(() => rmSync(cache, { recursive: true }));

/** name -> bytes of a folder of tests/fixtures/hf. */
function fixture(name) {
  const folder = join(PROJECT, 'tests/fixtures/hf', name);
  return Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file))]));
}

const NAMES = ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors'];
const tiny = (changes) => Object.fromEntries(tinyFolder(changes).map((bytes, i) => [NAMES[i], bytes]));

/** A server's file at an address, of folders below `/org/model`, whatever the revision. */
const filesOf = (files) => (url) => {
  const [, name] = /\/org\/model\/(?:resolve\/\w+\/)?([^?]+)(?:\?.*)?$/.exec(url) ?? [];
  return Object.hasOwn(files, name) ? { bytes: files[name] } : null;
};

async function serving(files, use, script) {
  const server = await new LyingServer(filesOf(files), script).start();
  try {
    return await use(`${server.base}/org/model/`, server);
  } finally {
    await server.close();
  }
}

async function logitsOf(source, options = { store: false }) {
  const model = await load(source, { threads: 1, ...options });
  const logits = await model.logits(IDS);
  await model.dispose();
  return logits;
}

const SIGNED = 'sv=2024&se=2026&sr=c&sig=SECRET';

test('a folder by its address: the bits of its twin, one entry in the store, and no request the second time', { timeout: 60_000 }, async () => {
  const files = fixture('moe');
  const total = Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0);
  await serving(files, async (url, server) => {
    const twin = await logitsOf(new Blob([SOURCES.moe()]));
    const events = [];
    assert.deepEqual(await logitsOf(`${url}?${SIGNED}`, { store: cache, onProgress: (event) => events.push(event) }), twin);
    assert.deepEqual(events.at(-1), { phase: 'load', loaded: total, total, cached: false });
    assert.ok(server.requests.every((request) => request.url.endsWith(`?${SIGNED}`)));
    const { length } = server.requests;
    assert.deepEqual(await logitsOf(url, { store: cache }), twin);
    assert.equal(server.requests.length, length);
    const [{ lastUsed: _, ...entry }, ...others] = await models.list({ store: cache });
    assert.deepEqual([entry, others], [{ id: url, name: 'model', url, files: Object.keys(files).length, size: total, loaded: total, complete: true }, []]);
    assert.ok(readdirSync(cache).every((name) => !readFileSync(join(cache, name)).includes('SECRET')));
    assert.equal(await models.has(url, { store: cache }), true);
    await models.remove(url, { store: cache });
    assert.deepEqual([await models.list({ store: cache }), readdirSync(cache).filter((name) => /^[0-9a-f]{32}\./.test(name))], [[], []]);
  });
});

test('a repository without a file is a folder; optional files may be absent, or not be shown', async () => {
  const { 'generation_config.json': _, 'tokenizer_config.json': __, ...files } = fixture('bf16');
  const twin = await logitsOf(new Blob([SOURCES.bf16()]));
  const hide = ({ url }) => (Object.keys(files).some((name) => url.endsWith(`/${name}`)) ? {} : { status: 403 });
  for (const script of [undefined, hide]) {
    await serving(files, async (url, server) => {
      const source = { repo: 'org/model', revision: 'v2', endpoint: server.base };
      assert.deepEqual(await logitsOf(source, { store: cache }), twin);
      assert.ok(server.requests.every((request) => /^\/org\/model\/(?:resolve|raw)\/v2\//.test(request.url)));
      await models.remove(source, { store: cache });
    }, script);
  }
});

test('models.download keeps a folder, and the command line runs it from the store', { timeout: 60_000 }, async () => {
  await serving(fixture('f16'), async (url, server) => {
    assert.equal((await models.download(url)).files, 5);
    const { length } = server.requests;
    await promisify(execFile)(process.execPath, [CLI, 'run', url, 'the', '--max-tokens', '2', '--threads', '1']);
    assert.equal(server.requests.length, length);
    await models.remove(url);
  });
});

/** What transformers 5 and sentence-transformers write beside a model. */
const SAVED = {
  'chat_template.jinja': Buffer.from('{{ messages[0].content }}'), 'additional_chat_templates/tool_use.jinja': Buffer.from('{{ messages[0].content }}{{ tools[0].function.name }}'),
  'modules.json': Buffer.from('[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"}]'), '1_Pooling/config.json': Buffer.from('{"pooling_mode_lasttoken":true}'),
  'sentence_bert_config.json': Buffer.from('{"max_seq_length":512,"do_lower_case":false}'),
};

test('templates in files of their own, and what is in folders below: asked for where they can be, kept, and read from the store', { timeout: 60_000 }, async () => {
  const files = { ...tiny(), 'tokenizer_config.json': Buffer.from('{"backend":"tokenizers"}'), ...SAVED };
  const promptOf = async (url, tools) => {
    const model = await load(url, { store: cache, threads: 1 });
    const { usage } = await model.chat('the', { maxTokens: 1, temperature: 0, tools }).result;
    const [plain, name] = [await model.tokenize('the'), await model.tokenize('adds')];
    await model.dispose();
    assert.equal(usage.promptTokens, plain.length + (tools ? name.length : 0));
  };
  await serving(files, async (url, server) => {
    await promptOf(url);
    const { length } = server.requests;
    for (const tools of [undefined, [{ name: 'adds' }]]) await promptOf(url, tools);
    assert.equal(server.requests.length, length);
    const [{ files: n, complete }] = await models.list({ store: cache });
    assert.deepEqual([n, complete], [Object.keys(files).length, true]);
    await models.remove(url, { store: cache });
  });
  await serving(tiny(), async (url, server) => {
    await logitsOf(url);
    const asked = server.requests.map((request) => request.url.split('/org/model/')[1]);
    assert.ok(asked.includes('chat_template.jinja') && asked.includes('modules.json'));
    assert.ok(!asked.some((name) => /additional|1_Pooling|sentence|processor|chat_template.json/.test(name)), String(asked));
  });
});

test('a server that answers with its page where it has nothing', { timeout: 60_000 }, async () => {
  const files = tiny();
  const page = Buffer.from('<!doctype html><html><title>App</title></html>');
  const either = (url) => filesOf(files)(url) ?? (/\/(chat_template\.jinja|additional_chat_templates\/tool_use\.jinja|modules\.json)$/.test(url) ? { bytes: page } : null);
  const server = await new LyingServer(either).start();
  try {
    const model = await load(`${server.base}/org/model/`, { store: false, threads: 1 });
    assert.equal(model.info.chatTemplate, false);
    await model.dispose();
  } finally {
    await server.close();
  }
});

test('folders of other programs are named', { timeout: 60_000 }, async () => {
  const { 'config.json': config, 'tokenizer.json': tokenizer, 'model.safetensors': weights } = tiny();
  for (const [files, rule] of [
    [{ 'adapter_config.json': config }, 'lora'], [{ 'mlc-chat-config.json': config }, 'mlc'], [{ 'config.json': config, 'tokenizer.json': tokenizer, 'openvino_model.xml': weights }, 'openvino'],
    [{ 'config.json': config, 'tokenizer.json': tokenizer, 'onnx/model.onnx': weights }, 'onnx'], [{ 'config.json': config, 'vocab.json': tokenizer, 'model.safetensors': weights }, 'vocabulary'],
    [{ 'config.json': config, 'qwen.tiktoken': tokenizer }, 'vocabulary'], [{ 'config.json': config, 'tokenizer.json': tokenizer, 'model.bin': weights }, 'ctranslate2'],
  ]) {
    await serving(files, async (url) => {
      assert.equal((await rejectsWith(load(url, { store: cache, threads: 1 }), 'model/unsupported', /^This is a/)).detail.rule, rule);
    });
  }
});

test('what is missing is named', async () => {
  const whole = fixture('f32');
  const without = (...names) => Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name)));
  const weights = Object.keys(whole).filter((name) => name.startsWith('model'));
  for (const [files, file] of [
    [{}, 'config.json'], [without('config.json'), 'config.json'], [without('tokenizer.json'), 'tokenizer.json'], [without(...weights), 'model.safetensors'],
    [without(weights[1]), weights[1]],
  ]) {
    await serving(files, async (url) => {
      const { detail } = await rejectsWith(load(url, { store: cache, threads: 1 }), 'model/format', new RegExp(`There is no ${file} in the folder on 127`));
      assert.deepEqual([detail.rule, detail.file], ['missing', file]);
    });
  }
  for (const pickle of ['pytorch_model.bin', 'pytorch_model.bin.index.json']) {
    await serving({ ...without(...weights), [pickle]: Buffer.from('x') }, async (url) => {
      assert.equal((await rejectsWith(load(url, { store: cache, threads: 1 }), 'model/unsupported', /pickled/)).detail.rule, 'pickle');
    });
  }
  await serving(whole, async (url) => {
    assert.equal((await rejectsWith(load(url, { store: cache, threads: 1 }), 'net/http', /Authorization/)).detail.status, 401);
  }, () => ({ status: 401 }));
  assert.deepEqual(await models.list({ store: cache }), []);
});

test('an index that lies', async () => {
  const files = fixture('f32');
  const index = JSON.parse(files['model.safetensors.index.json']);
  const [first, second] = [...new Set(Object.values(index.weight_map))].sort();
  const told = (weight_map) => Buffer.from(JSON.stringify({ ...index, weight_map }));
  const moved = Object.fromEntries(Object.entries(index.weight_map).map(([name, file], i) => [name, i === 0 ? (file === first ? second : first) : file]));
  const outside = some(['../x.safetensors', 'a/b.safetensors', 'https://evil.example/x.safetensors', '\\x.safetensors', '.safetensors', 'x.gguf', '', 5, null, ['a.safetensors']], 3);
  const cases = [
    ...outside.map((file) => [told({ ...index.weight_map, x: file }), 'model/inconsistent', /beside it/]),
    [Buffer.from('{'), 'model/inconsistent', /not JSON/], [Buffer.from('<!doctype html>'), 'model/inconsistent', /not JSON/], [Buffer.from('null'), 'model/inconsistent', /not JSON/],
    [Buffer.from('{}'), 'model/inconsistent', /has 0 files/],
    [told(Object.fromEntries(Array.from({ length: 901 }, (_, i) => [i, `${i}.safetensors`]))), 'model/inconsistent', /901 files/],
    [told({ ...index.weight_map, x: 'absent.safetensors' }), 'model/format', /no absent\.safetensors/],
    [told({ a: { toString: 1 }, b: 'model.safetensors' }), 'model/inconsistent', /beside it/],
    [told(moved), 'model/inconsistent', /does not hold the tensors/], [told({ ...index.weight_map, x: first }), 'model/inconsistent', /does not hold the tensors/],
    [told(Object.fromEntries(Object.keys(index.weight_map).map((name) => [name, first]))), 'model/inconsistent', /does not hold the tensors/],
  ];
  for (const [text, code, words] of cases) {
    await serving({ ...files, 'model.safetensors.index.json': text }, async (url, server) => {
      await rejectsWith(load(url, { store: cache, threads: 1 }), code, words);
      assert.ok(server.requests.every((request) => request.url.startsWith('/org/model/')), 'nothing else is asked for');
    });
  }
  assert.deepEqual(await models.list({ store: cache }), []);
});

test('what does not fit is refused before its weights come', { timeout: 60_000 }, async () => {
  const files = tiny({ spec: { hidden: 512, ffn: 4096, layers: 2 } });
  await serving(files, async (url, server) => {
    await rejectsWith(load(url, { store: false, threads: 1, memoryLimit: 32 << 20 }), 'mem/plan', /can be used here; a file of/);
    assert.ok(server.sent < files['model.safetensors'].length / 2, `${server.sent} of ${files['model.safetensors'].length} bytes were sent`);
  });
});

// --- a played clock: files are only bytes here ---

const FOLDER = 'https://models.example/org/model/';
const SOURCE = { kind: 'urls', urls: [], id: FOLDER, folder: FOLDER };
const SHARDS = ['a.safetensors', 'b.safetensors'];
const BYTES = {
  'config.json': noise(300, 1), 'tokenizer.json': noise(2500, 2), 'model.safetensors.index.json': Buffer.from(JSON.stringify({ weight_map: { x: SHARDS[0], y: SHARDS[1], z: SHARDS[0] } })),
  'a.safetensors': noise(3 * CHUNK + 20, 3), 'b.safetensors': noise(2 * CHUNK, 4),
};
const ALL = Buffer.concat(Object.values(BYTES));

const site = (script = () => ({ chunk: PIECE }), files = BYTES) => new Site(filesOf(files), script);
const run = (where, disk, options) => session(where, disk, { source: SOURCE, ...options });

test('each file is resumed, retried and repaired by itself', async () => {
  const faults = new Map([['tokenizer.json', { status: 503 }], ['a.safetensors', { dropAt: 1500 }], ['model.safetensors.index.json', { dropAt: 10 }], ['generation_config.json', { status: 500 }]]);
  const trouble = ({ url }) => {
    const name = url.split('/').at(-1);
    const fault = faults.get(name);
    faults.delete(name);
    return { chunk: PIECE, ...fault };
  };
  const disk = new Disk();
  const first = await run(site(trouble), disk);
  assert.deepEqual([first.code, faults.size, Buffer.compare(first.bytes, ALL)], [null, 0, 0]);
  const warm = site();
  const second = await run(warm, disk);
  assert.deepEqual([second.code, warm.requests, Buffer.compare(second.bytes, ALL), second.opened.cached], [null, [], 0, true]);
  const name = disk.data.find((file) => disk.files.get(file).length === BYTES['a.safetensors'].length);
  disk.files.get(name)[CHUNK + 5] ^= 1;
  const repaired = site();
  const third = await run(repaired, disk);
  assert.deepEqual([third.code, Buffer.compare(third.bytes, ALL)], [null, 0]);
  assert.ok(repaired.requests.includes(`bytes=${CHUNK}-${2 * CHUNK - 1}`), String(repaired.requests));
});

test('a load that broke off goes on where it was, another version is not mixed with it', async () => {
  const broken = { url: `${FOLDER}b.safetensors` };
  const disk = new Disk();
  const down = ({ url }) => (url === broken.url && broken.seen++ ? { status: 404 } : { chunk: PIECE });
  broken.seen = 0;
  const first = await run(site(down), disk);
  assert.equal(first.code, 'net/http');
  const again = site();
  const second = await run(again, disk);
  assert.deepEqual([second.code, Buffer.compare(second.bytes, ALL)], [null, 0]);
  const a = BYTES['a.safetensors'].length;
  assert.ok(again.sent < ALL.length - a + 10 * PIECE, `${again.sent} bytes`);
  const changed = { ...BYTES, 'b.safetensors': noise(2 * CHUNK + 1, 5) };
  const half = new Disk();
  broken.seen = 0;
  await run(site(down), half);
  const third = await run(site(undefined, changed), half);
  assert.deepEqual([third.code, Buffer.compare(third.bytes, Buffer.concat(Object.values(changed)))], [null, 0]);
});

test('offline, and a store that fails', async () => {
  const nothing = site(() => ({ dropAt: -1 }));
  assert.equal((await run(nothing, new Disk())).code, 'net/unreachable');
  const error = Object.assign(new Error('The operation is insecure.'), { name: 'SecurityError' });
  const { bytes, notices } = await run(site(), new Disk(), { faults: { at: () => ({ error }) } });
  assert.deepEqual([Buffer.compare(bytes, ALL), notices.map(({ code }) => code)], [0, ['storage/unavailable']]);
});

test('a file of a repository by its type: the repository is asked, then nobody; the model is the one that its file\'s name has', { timeout: 60_000 }, async () => {
  const bytes = readFileSync(join(PROJECT, 'tests/fixtures/golden/nano.Q8_0.gguf'));
  const other = readFileSync(join(PROJECT, 'web/models/demo-q8_0.gguf'));
  const files = { 'M-Q8_0.gguf': bytes, 'M-Q4_0.gguf': other, 'mmproj-Q8_0.gguf': other, 'mtp-M-Q8_0.gguf': other };
  const list = Buffer.from(JSON.stringify({ siblings: [...Object.keys(files), 'README.md'].map((rfilename) => ({ rfilename })) }));
  const server = await new LyingServer((url) => (/\/api\/models\/org\/model\/revision\/main$/.test(url) ? { bytes: list } : filesOf(files)(url))).start();
  const store = join(cache, 'typed');
  const source = { repo: 'org/model', type: 'q8_0', endpoint: server.base };
  const whole = { repo: 'org/model', file: 'M-Q8_0.gguf', endpoint: server.base };
  try {
    assert.equal(await models.has(source, { store }), false);
    await models.remove(source, { store });
    const kept = await models.download(source, { store });
    assert.deepEqual([kept.name, kept.complete, kept.id], ['M-Q8_0.gguf', true, `${server.base}/org/model/resolve/main/M-Q8_0.gguf`]);
    const error = await rejectsWith(load({ ...source, type: 'Q6_K' }, { store }), 'use/param');
    assert.match(error.message, /no GGUF file of the type Q6_K; it has M-Q8_0\.gguf, M-Q4_0\.gguf\.$/);
  } finally {
    await server.close();
  }
  assert.deepEqual([await models.has(source, { store }), await models.has(whole, { store })], [true, true]);
  const logits = await logitsOf(source, { store });
  assert.deepEqual(logits, await logitsOf(whole, { store }));
  await models.remove(source, { store });
  assert.deepEqual(await models.list({ store }), []);
});

test('a name that is a repository\'s is told how to be one', async () => {
  for (const source of ['Qwen/Qwen3-0.6B-GGUF', 'Qwen/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q8_0.gguf', 'Qwen/Qwen3-0.6B-GGUF:Q8_0']) {
    const { message } = await rejectsWith(load(source), 'use/param');
    assert.match(message, new RegExp(`write 'hf:${source}'`));
  }
  for (const source of ['models/x.gguf', './Qwen/Qwen3', '/Qwen/Qwen3', 'x']) assert.doesNotMatch((await rejectsWith(load(source), 'use/param')).message, /hf:/);
});
