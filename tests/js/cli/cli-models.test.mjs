// SPDX-License-Identifier: MIT
// The commands about stored models, and what is sent with requests: headers that were given, and a token to Hugging Face alone.

import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { headersFor } from '../../../js/cli/cli-values.js';
import { DEMO, NANO, withServer } from '../support/helper.mjs';
import { oneProcess } from '../support/program.mjs';

const BYTES = readFileSync(NANO);
const folder = mkdtempSync(join(tmpdir(), 'quern-cli-'));
after(() => rmSync(folder, { recursive: true }));

const { quern, end } = oneProcess();
after(end);

/** A server of one model, and the headers that it was sent. */
const serving = (use) => {
  const seen = [];
  return withServer((request, response) => {
    seen.push(request.headers);
    response.writeHead(200, { 'content-length': BYTES.length, etag: '"1"' }).end(BYTES);
  }, (base) => use(base, seen));
};

test('talks that are kept: chat --save, kept, forget', async () => {
  const cache = ['--store', join(folder, 'talks')];
  const chat = ['chat', DEMO, 'Tell me about the mill. '.repeat(20), '--temperature', '0', '--max-tokens', '5', '--save', 'the\u001b mill', ...cache];
  const [first, again] = [await quern(chat), await quern(chat)];
  assert.deepEqual([first.code, first.err, again], [0, '', first]);
  const { out } = await quern(['saved', ...cache]);
  assert.match(out, /^ *size  tokens  used        name\n *\d+ KiB +1\d\d  \d{4}-\d\d-\d\d  the\ufffd mill\n$/);
  assert.deepEqual(JSON.parse((await quern(['saved', '--json', ...cache])).out).map(({ name }) => name), ['the\u001b mill']);
  assert.match((await quern(['forget', 'a mill', ...cache])).err, /^quern: use\/param: NAME is not a saved conversation \(quern saved\)\.\n$/);
  assert.match((await quern(['forget', 'all', ...cache])).out, /^forgot \d+ KiB  the\ufffd mill\n$/);
  assert.equal((await quern(['saved', ...cache])).out, 'size  tokens  used  name\n');
  assert.match((await quern([...chat.slice(0, 3), '--save', ''])).err, /--save must be a name/);
  assert.match((await quern([...chat.slice(0, 3), '--save', 'x', '--no-store'])).err, /--save and --no-store exclude each other/);
});

test('download, list, remove', async () => {
  const cache = ['--store', join(folder, 'cache')];
  await serving(async (base, seen) => {
    const [one, two] = ['one', 'two'].map((name) => `${base}/${name}.gguf`);
    assert.deepEqual(await quern(['list', ...cache]), { out: 'size  state  used  model\n', err: '', code: 0 });
    for (const url of [one, two]) assert.deepEqual(await quern(['download', url, ...cache]), { out: ` 503 KiB  ${url}\n`.trimStart(), err: '', code: 0 });
    assert.ok(readdirSync(cache[1]).length >= 4);
    const { out } = await quern(['list', ...cache]);
    const day = new Date().toISOString().slice(0, 10);
    assert.deepEqual(out.split('\n').slice(1, 3).sort(), [one, two].map((url) => `503 KiB  complete  ${day}  ${url}`));
    const all = JSON.parse((await quern(['list', '--json', ...cache])).out);
    assert.deepEqual(all.map(({ id, size, complete }) => [id, size, complete]).sort(), [one, two].map((url) => [url, BYTES.length, true]));
    const requests = seen.length;
    assert.equal((await quern(['run', one, 'the', '--max-tokens', '1', ...cache])).code, 0);
    assert.equal(seen.length, requests);
    assert.deepEqual(await quern(['remove', one, ...cache]), { out: `removed 503 KiB  ${one}\n`, err: '', code: 0 });
    const again = await quern(['remove', one, ...cache]);
    assert.deepEqual([again.code, again.err], [1, 'quern: use/param: MODEL is not a stored model (quern list).\n']);
    assert.equal((await quern(['remove', 'all', ...cache])).out, `removed 503 KiB  ${two}\n`);
    assert.deepEqual(JSON.parse((await quern(['list', '--json', ...cache])).out), []);
    const none = join(folder, 'none');
    assert.equal((await quern(['run', one, 'the', '--max-tokens', '1', '--no-store'], { env: { XDG_CACHE_HOME: none } })).code, 0);
    assert.equal(existsSync(none), false);
  });
  for (const words of [['download', NANO], ['remove', NANO], ['remove', DEMO]]) assert.match((await quern([...words, ...cache])).err, /^quern: use\/param: MODEL .*\n$/);
});

test('headers are sent and never shown; no token goes to other servers', async () => {
  const env = { HF_TOKEN: 'hf_secret', QUERN_TOKEN: 'quern_secret' };
  await serving(async (base, seen) => {
    const url = `${base}/headers.gguf`;
    const plain = await quern(['info', url], { env });
    assert.ok(seen.length > 0 && seen.every((headers) => headers.authorization === undefined));
    const given = await quern(['info', url, '--header', 'Authorization: Bearer given_secret', '--header', 'X-One:1', '--header', 'x-one:  2'], { env });
    assert.deepEqual([seen.at(-1).authorization, seen.at(-1)['x-one']], ['Bearer given_secret', '1, 2']);
    assert.deepEqual(given, plain);
    const stored = await quern(['download', url, '--header', 'Authorization: Bearer given_secret'], { env });
    assert.doesNotMatch(stored.out + stored.err, /secret/);
  });
  const cache = join(process.env.XDG_CACHE_HOME, 'quern');
  for (const name of readdirSync(cache)) assert.ok(!readFileSync(join(cache, name)).includes('secret'), name);
  for (const line of ['secret', ': secret', 'Na me: secret', 'Name: sec\nret', 'Name: secret\u{1f989}', 'N\u00e4me: secret']) {
    const { code, out, err } = await quern(['info', NANO, '--header', line]);
    assert.deepEqual([code, out, err], [1, '', "quern: use/param: --header must be 'Name: value', as requests have them.\n"]);
  }
});

test('what is refused for want of a token says how to give one', async () => {
  await withServer((request, response) => response.writeHead(401).end(), async (base) => {
    const { err } = await quern(['info', `${base}/x.gguf`]);
    assert.match(err, /^quern: net\/http: .* answered 401: .*--header 'Authorization: Bearer …'.*HF_TOKEN.*\n$/);
  });
});

test('a token goes to Hugging Face only, by https only, and what was given comes before it', () => {
  const env = { HF_TOKEN: 'b', QUERN_TOKEN: '' };
  const file = '/a/b/resolve/main/c.gguf';
  for (const base of ['https://huggingface.co', 'https://hf.co', 'https://cdn-lfs.huggingface.co', 'https://HuggingFace.co', 'https://a.b.hf.co:8443']) {
    assert.deepEqual(headersFor(base + file, [], env), { authorization: 'Bearer b' }, base);
  }
  assert.deepEqual(headersFor('https://huggingface.co/a/b', [], env), { authorization: 'Bearer b' });
  for (const base of [
    'http://huggingface.co', 'https://huggingface.co.evil.org', 'https://evilhuggingface.co', 'https://hf.co.', 'https://hf-mirror.com', 'https://evil.org/huggingface.co',
    'https://evil.org/?https://huggingface.co', 'https://evil.org#huggingface.co', 'http://localhost', 'data:,https://huggingface.co',
  ]) assert.equal(headersFor(base + (base.includes('?') || base.includes('#') ? '' : file), [], env), undefined, base);
  assert.equal(headersFor(NANO, [], env), undefined);
  const hub = `https://huggingface.co${file}`;
  assert.deepEqual(headersFor(hub, [], { HF_TOKEN: 'b', QUERN_TOKEN: ' c\n' }), { authorization: 'Bearer c' });
  assert.deepEqual(headersFor(hub, ['AUTHORIZATION: Basic x', 'A: y'], env), { a: 'y', authorization: 'Basic x' });
  assert.equal(headersFor(hub, [], {}), undefined);
  for (const token of ['a b', 'a\nb', 'ä', 'a\x00']) assert.throws(() => headersFor(hub, [], { HF_TOKEN: token }), { code: 'use/param', message: 'HF_TOKEN in the environment is no token.' });
});

test('copy: what a page loads, for bundlers that copy nothing', async () => {
  const to = join(folder, 'site/quern');
  const { out, err, code } = await quern(['copy', to]);
  assert.deepEqual([err, code], ['', 0]);
  const names = readdirSync(to).sort();
  assert.equal(out.replace(/[\d.]+ MiB/, 'N MiB'), `N MiB in ${names.length} files, of which a page loads few: ${to}\n`);
  const { exports } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
  const files = Object.values(exports).filter((path) => typeof path === 'string' && !/sw\.js|\.json$/.test(path));
  assert.deepEqual(names, files.map((path) => basename(path)).sort());
  for (const path of files) assert.ok(readFileSync(join(to, basename(path))).equals(readFileSync(new URL(`../../../${path}`, import.meta.url))), path);
  assert.equal((await quern(['copy', to])).code, 0, 'once more, over what is there');
  assert.deepEqual(readdirSync(to).sort(), names);
  for (const [where, words] of [[join(to, 'worker.js'), /cannot be written \(ENOTDIR\)/], [join(to, 'worker.js/x'), /cannot be made \(ENOTDIR\)/], ['/proc/nope', /cannot be made/], ['', /must name/]]) {
    const refused = await quern(['copy', where]);
    assert.equal(refused.code, 1);
    assert.match(refused.err, new RegExp(`^quern: use/param: DIR ${words.source}`), where);
  }
});
