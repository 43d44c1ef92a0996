// SPDX-License-Identifier: MIT
// The command line as a process: what it prints, and how it fails.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLI, DEMO, NANO, until } from './helper.mjs';

function quern(args, { input = '' } = {}) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [CLI, ...args]);
    const got = { out: '', err: '' };
    child.stdout.on('data', (data) => { got.out += data; });
    child.stderr.on('data', (data) => { got.err += data; });
    child.on('close', (code) => resolve({ ...got, code }));
    child.stdin.end(input);
  });
}

test('run', async () => {
  const args = ['run', DEMO, 'Hello', '--temperature', '0', '--max-tokens', '8'];
  const plain = await quern(args);
  const json = JSON.parse((await quern([...args, '--json', '--threads', '1', '--variant', 'scalar'])).out);
  assert.equal(plain.code, 0);
  assert.equal(plain.out, `${json.text}\n`);
  assert.equal(json.usage.completionTokens, 8);
});

test('chat reads lines and answers each', async () => {
  const { out, code } = await quern(['chat', DEMO, '--temperature', '0', '--max-tokens', '60'], { input: 'What is the capital of France?\n\nHi!\n' });
  assert.equal(code, 0);
  assert.match(out, /Paris/);
  assert.ok(out.trim().split('\n').length >= 2);
});

test('tokenize', async () => {
  const text = 'Hello <|im_end|> world';
  const ids = (await quern(['tokenize', DEMO, '--ids'], { input: text })).out;
  assert.match(ids, /^\d+( \d+)*\n$/);
  assert.equal((await quern(['tokenize', DEMO, '--nul'], { input: `${text}\0a\0${text}` })).out.split('\n').length, 4);
  const lines = (await quern(['tokenize', DEMO], { input: text })).out.trim().split('\n');
  assert.equal(lines.map((line) => JSON.parse(line.split('\t')[1])).join(''), text);
});

test('logits', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quern-'));
  const file = join(folder, 'out.f32');
  const { code, err } = await quern(['logits', NANO, '--tokens', '1 2 3', '--out', file, '--kv', 'f32', '--chunk', '1']);
  assert.deepEqual([code, err], [0, '']);
  const bytes = await readFile(file);
  assert.equal(bytes.length, 3 * 320 * 4);
  await rm(folder, { recursive: true });
});

test('bench and info', async () => {
  const figures = JSON.parse((await quern(['bench', NANO, '--json', '--prompt', '20', '--generate', '4', '--threads', '2', '--variant', 'simd'])).out);
  assert.deepEqual(Object.keys(figures), ['prefill_tps', 'decode_tps', 'load_ms', 'peak_bytes', 'variant', 'threads']);
  assert.ok(figures.prefill_tps > 0 && figures.decode_tps > 0 && figures.load_ms > 0 && figures.peak_bytes > 0);
  assert.deepEqual([figures.variant, figures.threads], ['simd', 2]);
  const info = JSON.parse((await quern(['info', NANO, '--json', '--context', '100'])).out);
  assert.deepEqual([info.architecture, info.contextSize], ['qwen3', 100]);
});

test('bench --profile', async () => {
  const args = ['bench', NANO, '--prompt', '20', '--generate', '4', '--threads', '2', '--profile'];
  const { out, code } = await quern(args);
  assert.equal(code, 0);
  assert.match(out, /^prefill of 20 tokens: [\d.]+ of [\d.]+ ms in operations, [\d.]+ barriers per token, [\d.]+ us each when empty$/m);
  assert.match(out, /^decode of 3 tokens: /m);
  assert.match(out, /^matmul Q8_0 \[\d+, \d+\] +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+$/m);
  assert.equal(out.match(/^ms per layer: [\d. ]+; outside: [\d.]+$/gm).length, 2);
  const { profile, prefill_tps: tps } = JSON.parse((await quern([...args, '--json'])).out);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  for (const [phase, tokens] of [['prefill', 20], ['decode', 3]]) {
    const { operations, ...all } = profile[phase];
    assert.equal(all.tokens, tokens);
    for (const key of ['calls', 'macs', 'bytes', 'barriers']) assert.equal(all[key], sum(operations.map((operation) => operation[key])));
    for (const { ms, layerMs, outsideMs } of operations) assert.ok(Math.abs(ms - sum(layerMs) - outsideMs) < 1e-6);
    assert.equal(operations.find(({ name }) => name === 'attention').calls % operations[0].calls, 0);
  }
  assert.ok(profile.prefill.ms < 20_000 / tps);
  assert.ok(profile.barrierUs > 0);
});

test('failures are one line on stderr', async () => {
  for (const [args, line] of [
    [['sing', NANO], /^quern: use\/param: 'sing' is not a command; .*\n$/],
    [['info'], /^quern: use\/param: 'quern info' takes MODEL.*\n$/],
    [['run', NANO], /^quern: use\/param: .*MODEL and PROMPT, but 1 word was given \(quern help\)\.\n$/],
    [['run', NANO, 'Once', 'upon'], /^quern: use\/param: .*3 words were given; put what has spaces into quotes \(quern help\)\.\n$/],
    [['info', NANO, '--colour'], /^quern: use\/param: Unknown option '--colour'.*\n$/],
    [['info', NANO, '--threads', 'many'], /^quern: use\/param: --threads must be a number.*\n$/],
    [['info', NANO, '--threads', '0'], /^quern: use\/param: options\.threads .*\n$/],
    [['info', NANO, '--variant', 'fast'], /^quern: use\/param: options\.variant .*\n$/],
    [['info', '/no/such/file'], /^quern: use\/param: .*no such file.*\n$/],
    [['info', CLI], /^quern: model\/format: .*\n$/],
    [['info', 'https://'], /^quern: use\/param: source is not an address: 'https:\/\/'\.\n$/],
    [['info', 'ftp://example.com/a.gguf'], /^quern: use\/param: .*https:\/\/.*ftp:.*\n$/],
    [['logits', NANO, '--tokens', '1', '--out', '/no/such/folder/x'], /^quern: use\/param: --out cannot be written \(ENOENT\)\.\n$/],
    [['logits', NANO, '--tokens', '1'], /^quern: use\/param: --out is missing\.\n$/],
    [['logits', NANO, '--tokens', '1 x', '--out', 'x'], /^quern: use\/param: tokens\[1\] .*\n$/],
  ]) {
    const { code, out, err } = await quern(args);
    assert.deepEqual([code, out], [1, ''], args.join(' '));
    assert.match(err, line);
  }
});

test('help', async () => {
  const { code, out } = await quern(['--help']);
  assert.equal(code, 0);
  assert.match(out, /quern bench MODEL/);
  for (const args of [[], ['help'], ['-h'], ['run', '--help'], ['info', NANO, '-h']]) assert.deepEqual(await quern(args), { out, err: '', code: 0 });
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url)));
  assert.equal((await quern(['--version'])).out, `${version}\n`);
});

test('Ctrl-C stops the reply, a second one the program', { timeout: 60_000 }, async (t) => {
  const child = spawn(process.execPath, [CLI, 'chat', DEMO, '--variant', 'scalar', '--threads', '1']);
  t.after(() => child.kill('SIGKILL'));   // one that is left would keep the runner waiting
  let out = '';
  let heard = 0;
  child.stdout.on('data', (data) => {
    out += data;
    heard = Date.now();
  });
  const closed = new Promise((resolve) => { child.on('close', (code, signal) => resolve([code, signal])); });
  child.stdin.write('Tell me a long story about an owl.\n');
  await until(() => out.length > 0);
  child.kill('SIGINT');
  await until(() => out.endsWith('\n'));
  child.stdin.write('What is the capital of France?\n');
  const before = out.length;
  await until(() => out.length > before + 1 && out.endsWith('\n') && Date.now() - heard > 1500);   // thinking ends with a new line too
  child.kill('SIGINT');
  assert.deepEqual(await closed, [0, null]);
});
