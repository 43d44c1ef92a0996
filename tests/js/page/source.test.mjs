// SPDX-License-Identifier: MIT
// What callers may say a model is, and what the worker is told to open (N19, U07): addresses, repositories, split files, paths.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import { load } from '../../../dist/node.js';
import { locate, namesOf } from '../../../js/page/source.js';
import { filesOfType } from '../../../js/store/typed.js';
import { NANO, rejectsWith } from '../support/helper.mjs';

const web = (text) => ({ url: new URL(text, 'https://page.example/app/').href });
const disk = (text) => (/^https?:/.test(text) ? { url: text } : { path: text });
const named = (name, text = 'x') => new File([text], name);

function refused(source, param, words, resolve = web) {
  assert.throws(() => locate(source, resolve), (error) => {
    assert.deepEqual([error.code, error.detail.param], ['use/param', param], error.stack);
    assert.ok(error.message.startsWith(param), error.message);
    assert.match(error.message, words);
    return true;
  });
}

test('addresses', () => {
  for (const [source, url] of [
    ['m.gguf', 'https://page.example/app/m.gguf'], [new URL('http://a.example/m.gguf#x'), 'http://a.example/m.gguf'],
    ['https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/blob/main/Qwen3-0.6B-Q8_0.gguf', 'https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf'],
    ['https://hf-mirror.com/a/b/blob/refs%2Fpr%2F1/c/d.gguf', 'https://hf-mirror.com/a/b/resolve/refs%2Fpr%2F1/c/d.gguf'],
    ['https://github.com/a/b/blob/main/m.gguf', 'https://github.com/a/b/blob/main/m.gguf'],
    ['https://huggingface.co/a/b/resolve/main/blob/m.gguf?download=true', 'https://huggingface.co/a/b/resolve/main/blob/m.gguf'], ['https://a.example/q?download=true', 'https://a.example/q?download=true'],
    ['hf:a/b/c/d.gguf', 'https://huggingface.co/a/b/resolve/main/c/d.gguf'], ['HF:a/b/d.gguf@refs/pr/1', 'https://huggingface.co/a/b/resolve/refs%2Fpr%2F1/d.gguf'],
    ['blob:https://a.example/5', 'blob:https://a.example/5'], ['data:,x', 'data:,x'],
  ]) assert.deepEqual(locate(source, web), { kind: 'urls', urls: [url] });
  for (const [source, folder] of [
    ['m/', 'https://page.example/app/m/'], ['https://a.example/q/?token=t&v=2#x', 'https://a.example/q/?token=t&v=2'],
    ['hf:a/b', 'https://huggingface.co/a/b/resolve/main/'], ['hf:a/b@v1', 'https://huggingface.co/a/b/resolve/v1/'],
    ...['Qwen/Qwen3-0.6B', 'Qwen/Qwen3-0.6B/', 'Qwen/Qwen3-0.6B/tree/main', 'Qwen/Qwen3-0.6B/tree/main/', 'Qwen/Qwen3-0.6B/resolve/main/'].map((path) => (
      [`https://huggingface.co/${path}`, 'https://huggingface.co/Qwen/Qwen3-0.6B/resolve/main/'])),
    ['https://hf.co/a/b/tree/refs%2Fpr%2F1/c', 'https://hf.co/a/b/resolve/refs%2Fpr%2F1/c/'],
    [{ repo: 'a/b' }, 'https://huggingface.co/a/b/resolve/main/'], [{ repo: 'a/b', file: undefined, revision: 'v1', endpoint: 'https://hub.example/x/' }, 'https://hub.example/x/a/b/resolve/v1/'],
  ]) assert.deepEqual(locate(source, web), { kind: 'urls', urls: [], folder });
  for (const [short, param] of [['hf:', 'source'], ['hf:a', 'source'], ['hf:a/', 'source'], ['hf:/b', 'source'], ['hf:https://a.example/m.gguf', 'source'], ['hf:a/b/../c.gguf', 'source.file'],
    ['hf:a/b@', 'source.revision'], ['hf:a/b/c.gguf@..', 'source.revision'], ['hf:a b/c', 'source.repo'], ['hf:a/b:', 'source.type'], ['hf:a/b:-x', 'source.type'], ['hf:a/b:Q8_0/c.gguf', 'source.type']]) refused(short, param, /must be/);
  refused('https://me:secret@a.example/m/', 'source', /Authorization/);
  refused('', 'source', /empty/);
  refused('https://me:secret@a.example/m.gguf', 'source', /Authorization/);
});

test('one type of a repository\'s files', () => {
  const folder = 'https://huggingface.co/a/b/resolve/main/';
  assert.deepEqual(locate('hf:a/b:Q4_K_M', web), { kind: 'urls', urls: [], folder, type: 'Q4_K_M', list: 'https://huggingface.co/api/models/a/b/revision/main' });
  assert.deepEqual(locate('hf:a/b:q8_0@v1', web), locate({ repo: 'a/b', type: 'q8_0', revision: 'v1' }, web));
  assert.equal(locate({ repo: 'a/b', type: 'Q8_0', endpoint: 'https://hub.example/x/' }, web).list, 'https://hub.example/x/api/models/a/b/revision/main');
  const paths = ['README.md', 'mmproj-Q8_0.gguf', 'M-Q8_0.gguf', 'M-UD-Q8_0.gguf', 'M-Q4_K_M.gguf', 'M-Q4_K_S.gguf', 'M.F16.gguf', 'BF16/M-BF16-00002-of-00002.gguf', 'BF16/M-BF16-00001-of-00002.gguf', 'M-IQ4_XS.gguf', 'Q4_K/x.txt',
    'mtp-M-Q5_0.gguf', 'MTP/MTP-M-Q5_0.gguf', 'mmproj-Q5_0.gguf', 'M-MTP-Q6_K.gguf'];
  for (const [type, files] of [
    ['Q8_0', ['M-Q8_0.gguf']], ['q4_k_m', ['M-Q4_K_M.gguf']], ['Q4_K', []], ['UD-Q8_0', ['M-UD-Q8_0.gguf']], ['f16', ['M.F16.gguf']], ['Q4_XS', []], ['M.F16', ['M.F16.gguf']], ['MxF16', []],
    ['Q5_0', []], ['Q6_K', ['M-MTP-Q6_K.gguf']],
    ['BF16', ['BF16/M-BF16-00001-of-00002.gguf', 'BF16/M-BF16-00002-of-00002.gguf']],
  ]) assert.deepEqual(filesOfType(paths, type), files, type);
});

test('a list of files as a page has it', () => {
  const files = [new File(['x'], 'm-00002-of-00002.gguf'), new File(['x'], 'm-00001-of-00002.gguf')];
  const list = { 0: files[0], 1: files[1], length: 2, item: (i) => files[i] ?? null, [Symbol.iterator]: () => files.values() };
  assert.deepEqual(locate(list, web).blobs.map(({ name }) => name), ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']);
  assert.deepEqual(namesOf(list), ['m-00002-of-00002.gguf', 'm-00001-of-00002.gguf']);
});

test('repositories', () => {
  const at = (source) => locate(source, web).urls[0];
  assert.equal(at({ repo: 'Qwen/Qwen3-0.6B-GGUF', file: 'Qwen3-0.6B-Q8_0.gguf' }), 'https://huggingface.co/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf');
  assert.equal(at({ repo: 'a/b', file: 'c d/e#1?.gguf', revision: 'refs/pr/1', endpoint: 'https://hub.example/x/' }), 'https://hub.example/x/a/b/resolve/refs%2Fpr%2F1/c%20d/e%231%3F.gguf');
  assert.deepEqual(locate({ repo: 'a/b', file: 'm-00001-of-00002.gguf' }, web).urls.map((url) => url.slice(-21)), ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']);
  for (const [field, values] of Object.entries({
    repo: ['', 5, null, 'a/b/c', '../x', 'a b/c', 'https://huggingface.co/a/b'], file: ['', 7, '/etc', 'a//b', '../m.gguf', 'a/./b', 'x\n'],
    revision: ['', ' ', 5, 'a\0', '.', '..', 'a/../b', 'refs//1'], endpoint: ['', 'huggingface.co', 'ftp://a', 5, null, 'https://a.example/?x=', 'https://a.example/#x', 'https://a.example/?'],
  })) for (const value of values) refused({ repo: 'a/b', file: 'c.gguf', [field]: value }, `source.${field}`, /must be/);
  refused({ repo: 'a/b', file: 'c.gguf', branch: 'x' }, 'source.branch', /not a field/);
  refused({ repo: 'a/b', file: 'm-00002-of-00003.gguf' }, 'source.file', /00001-of-00003/);
});

test('split files by the first part', () => {
  const three = ['1', '2', '3'].map((no) => `https://a.example/q/m-0000${no}-of-00003.gguf?file=x`);
  assert.deepEqual(locate(three[0], web), { kind: 'urls', urls: three });
  assert.deepEqual(locate('/data/m-00001-of-00002.GGUF', disk), { kind: 'paths', paths: ['/data/m-00001-of-00002.GGUF', '/data/m-00002-of-00002.GGUF'] });
  assert.deepEqual(locate('m-00001-of-00001.gguf', disk).paths, ['m-00001-of-00001.gguf']);
  for (const name of ['m-0001-of-0002.gguf', 'm-00001-of-00002.gguf.part', 'm-00001-of-00002']) assert.deepEqual(locate(name, disk).paths, [name]);
  refused(three[1], 'source', /part 2 of 3.*m-00001-of-00003/);
  for (const name of ['m-00000-of-00002.gguf', 'm-00003-of-00002.gguf', 'm-00001-of-00000.gguf', 'm-00001-of-99999.gguf']) refused(name, 'source', /impossible part/, disk);
});

test('picked files', () => {
  const [one, two, three] = [1, 2, 3].map((no) => named(`m-0000${no}-of-00003.gguf`));
  for (const order of [[one, two, three], [three, one, two], [two, three, one]]) assert.deepEqual(locate(order, web).blobs, [one, two, three]);
  const plain = named('m.gguf');
  const [a, b] = [new Blob(['a']), new Blob(['b'])];
  for (const source of [plain, [plain]]) assert.deepEqual(locate(source, web), { kind: 'blobs', blobs: [plain] });
  assert.deepEqual(locate([b, a], web).blobs, [b, a]);
  refused([one, three], 'source', /lacks part 2 of 3/);
  refused(one, 'source', /lacks part 2 of 3/);
  refused([two], 'source', /lacks part 1/);
  refused([one, two, two, three], 'source', /part 2 of 3 2 times/);
  refused([one, two, three, named('m-00004-of-00003.gguf')], 'source', /4 parts of a model of 3/);
  refused([one, two, named('n-00003-of-00003.gguf')], 'source', /different models/);
  refused([one, two, named('m-00003-of-00004.gguf')], 'source', /different models/);
  refused([one, plain, two], 'source[1]', /not a part/);
  refused([plain, named('n.gguf')], 'source', /not parts of one/);
  refused([one, 'm.gguf'], 'source[1]', /File or a Blob/);
});

test('what is no source', () => {
  for (const source of [undefined, null, 5, 1n, true, {}, [], Symbol('s'), () => {}, { file: 'x' }, new Map()]) refused(source, 'source', /must be a URL/);
});

test('N19 paths and pipes in Node', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  try {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await rejectsWith(load(join(folder, 'pipe')), 'use/param', /not a file/);
    await rejectsWith(load(folder), 'use/param', /folder without a model/);
    await rejectsWith(load(pathToFileURL(join(folder, 'none.gguf'))), 'use/param', /no such file/);
    await rejectsWith(load(join(folder, 'm-00001-of-00002.gguf')), 'use/param', /m-0000[12]-of-00002.gguf' cannot be read: there is no such file/);
    if (process.getuid() !== 0) {
      await writeFile(join(folder, 'closed'), 'x');
      await chmod(join(folder, 'closed'), 0);
      await rejectsWith(load(join(folder, 'closed')), 'use/param', /may not be read/);
    }
    const bytes = await readFile(NANO);
    await (await load([new Blob([bytes])])).dispose();
  } finally {
    await rm(folder, { recursive: true });
  }
});
