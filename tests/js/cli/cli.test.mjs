// SPDX-License-Identifier: MIT
// The command line as a process: what it prints, and how it fails.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { load } from '../../../dist/node.js';
import { COMMANDS, OPTIONS } from '../../../js/cli/cli-syntax.js';
import { bytesOf } from '../../../js/cli/cli-values.js';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CLI, DEMO, NANO, until } from '../support/helper.mjs';
import { oneProcess, quern } from '../support/program.mjs';

const folder = await mkdtemp(join(tmpdir(), 'quern-'));
after(() => rm(folder, { recursive: true }));

/** Where what is said matters, and not the process that says it. */
const many = oneProcess();
after(many.end);

test('run', async () => {
  const args = ['run', DEMO, 'Once upon a time', '--temperature', '0', '--max-tokens', '8'];
  const plain = await quern(args);
  const json = JSON.parse((await quern([...args, '--json', '--threads', '1', '--variant', 'scalar'])).out);
  assert.equal(plain.code, 0);
  assert.equal(plain.out, `${json.text}\n`);
  assert.equal(json.usage.completionTokens, 8);
});

test('run takes its prompt from the standard input, or whatever comes behind --', async () => {
  const flags = ['--temperature', '0', '--max-tokens', '8'];
  const { out } = await quern(['run', DEMO, 'Once upon', ...flags]);
  for (const input of ['Once upon', 'Once upon\n', 'Once upon\r\n']) assert.deepEqual(await quern(['run', DEMO, '-', ...flags], { input }), { out, err: '', code: 0 });
  const model = await load(DEMO, { threads: 1 });
  const { text } = await model.complete('--help', { temperature: 0, maxTokens: 8 }).result;
  await model.dispose();
  assert.deepEqual(await quern(['run', DEMO, ...flags, '--', '--help']), { out: `${text}\n`, err: '', code: 0 });
});

test('chat reads lines and answers each', async () => {
  const { out, code } = await quern(['chat', DEMO, '--temperature', '0', '--max-tokens', '60'], { input: 'What is the capital of France?\n\nHi!\n' });
  assert.equal(code, 0);
  assert.match(out, /Paris/);
  assert.ok(out.trim().split('\n').length >= 2);
});

test('chat with a prompt gives one answer', async () => {
  const question = 'What is the capital of France?';
  const flags = ['--temperature', '0', '--max-tokens', '60', '--threads', '1'];
  const model = await load(DEMO, { threads: 1 });
  const said = async (messages, options) => (await model.chat(messages, { temperature: 0, maxTokens: 60, ...options }).result);
  const plain = await said(question);
  const thought = await said(question, { thinking: true });
  const told = await said([{ role: 'system', content: 'You are a pirate.' }, { role: 'user', content: question }]);
  const stopped = await said(question, { stop: ['cap', 'xyz'] });
  await model.dispose();
  assert.match(plain.text, /Paris/);
  assert.notEqual(thought.thinking, '');
  assert.ok(stopped.text.length < plain.text.length);
  for (const args of [[question], [question, '--no-think'], ['-']]) {
    assert.deepEqual(await many.quern(['chat', DEMO, ...args, ...flags], { input: `${question}\n` }), { out: `${plain.text}\n`, err: '', code: 0 });
  }
  assert.equal((await many.quern(['chat', DEMO, question, '--think', ...flags])).out, `${thought.thinking}\n\n${thought.text}\n`);
  assert.equal((await many.quern(['chat', DEMO, question, '--system', 'You are a pirate.', ...flags])).out, `${told.text}\n`);
  assert.equal((await many.quern(['chat', DEMO, question, '--stop', 'cap', '--stop', 'xyz', ...flags])).out, `${stopped.text}\n`);
  assert.equal((await many.quern(['chat', DEMO, '--system', 'You are a pirate.', ...flags], { input: `${question}\n` })).out, `${told.text}\n`);
  const seeded = ['chat', DEMO, question, '--seed', '5', '--temperature', '1.5', '--top-p', '1', '--top-k', '0', '--max-tokens', '20'];
  const [one, two] = [await many.quern(seeded), await many.quern([...seeded, '--min-p', '0.5'])];
  assert.deepEqual(await many.quern(seeded), one);
  assert.notEqual(one.out, two.out);
});

test('a turn that fails is left out of the talk, which goes on', async () => {
  const input = `${'What is it? '.repeat(60)}\nWhat is the capital of France?\n`;
  const { out, err, code } = await many.quern(['chat', DEMO, '--temperature', '0', '--context', '100'], { input });
  assert.match(err, /^quern: use\/context: The prompt has (at least )?\d+ tokens, but the context holds 100, the reply included\. This turn is left out\.\n$/);
  assert.match(out, /Paris/);
  assert.equal(code, 0);
});

test('tokenize', async () => {
  const text = 'Hello <|im_end|> world';
  const ids = (await many.quern(['tokenize', DEMO, '--ids'], { input: text })).out;
  assert.match(ids, /^\d+( \d+)*\n$/);
  assert.equal((await many.quern(['tokenize', DEMO, '--nul'], { input: `${text}\0a\0${text}` })).out.split('\n').length, 4);
  const lines = (await many.quern(['tokenize', DEMO], { input: text })).out.trim().split('\n');
  assert.equal(lines.map((line) => JSON.parse(line.split('\t')[1])).join(''), text);
});

test('logits', async () => {
  const file = join(folder, 'out.f32');
  const { code, err } = await many.quern(['logits', NANO, '--tokens', '1 2 3', '--out', file, '--kv', 'f32', '--chunk', '1']);
  assert.deepEqual([code, err], [0, '']);
  const bytes = await readFile(file);
  assert.equal(bytes.length, 3 * 320 * 4);
  for (const tokens of ['1,2,3', ' 1, 2 ,3 ', '01 2\t3']) {
    assert.equal((await many.quern(['logits', NANO, '--tokens', tokens, '--out', file, '--kv', 'f32'])).code, 0, tokens);
    assert.deepEqual(await readFile(file), bytes);
  }
});

test('bench and info', async () => {
  const figures = JSON.parse((await many.quern(['bench', NANO, '--json', '--prompt', '20', '--generate', '4', '--threads', '2', '--variant', 'simd'])).out);
  assert.deepEqual(Object.keys(figures), ['prefill_tps', 'decode_tps', 'load_ms', 'peak_bytes', 'variant', 'threads']);
  assert.ok(figures.prefill_tps > 0 && figures.decode_tps > 0 && figures.load_ms > 0 && figures.peak_bytes > 0);
  assert.deepEqual([figures.variant, figures.threads], ['simd', 2]);
  const info = JSON.parse((await many.quern(['info', NANO, '--json', '--context', '100'])).out);
  assert.deepEqual([info.architecture, info.contextSize], ['qwen3', 100]);
});

test('bench --profile', async () => {
  const args = ['bench', NANO, '--prompt', '20', '--generate', '4', '--threads', '2', '--profile'];
  const { out, code } = await many.quern(args);
  assert.equal(code, 0);
  assert.match(out, /^prefill of 20 tokens: [\d.]+ of [\d.]+ ms in operations, [\d.]+ barriers per token, [\d.]+ us each when empty; [12] threads in the end$/m);
  assert.match(out, /^decode of 3 tokens: /m);
  assert.match(out, /^matmul Q8_0 \[\d+, \d+\] +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +\d+$/m);
  assert.equal(out.match(/^ms per layer: [\d. ]+; outside: [\d.]+$/gm).length, 2);
  const { profile, prefill_tps: tps } = JSON.parse((await many.quern([...args, '--json'])).out);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  for (const [phase, tokens] of [['prefill', 20], ['decode', 3]]) {
    const { operations, ...all } = profile[phase];
    assert.equal(all.tokens, tokens);
    for (const key of ['calls', 'macs', 'bytes', 'barriers']) assert.equal(all[key], sum(operations.map((operation) => operation[key])));
    for (const { ms, layerMs, outsideMs } of operations) assert.ok(Math.abs(ms - sum(layerMs) - outsideMs) < 1e-6);
    assert.equal(operations.find(({ name }) => name === 'attention').calls % operations[0].calls, 0);
  }
  assert.ok(profile.prefill.ms < 20_000 / tps);
  assert.ok([1, 2].includes(profile.threads));
  assert.equal(profile.barrierUs > 0, profile.threads > 1);
});

test('bench writes exactly what it is told, although the reply would end', async () => {
  const prompt = Array.from({ length: 5 }, (_, i) => (i * 7919 + 13) % 288);
  const plain = new Blob([tinyModel()]);
  const model = await load(plain, { threads: 1 });
  const scores = [...(await model.logits(prompt)).slice(-288)];
  await model.dispose();
  const file = join(folder, 'ends.gguf');
  await writeFile(file, tinyModel({}, { kv: { 'tokenizer.ggml.eos_token_id': ['u32', scores.indexOf(Math.max(...scores))] } }));
  const { out } = await many.quern(['bench', file, '--prompt', '5', '--generate', '10', '--profile', '--json', '--threads', '1']);
  const { decode_tps: tps, profile } = JSON.parse(out);
  assert.equal(profile.decode.tokens, 9);
  assert.ok(tps > 0);
});

test('failures are one line on stderr', async () => {
  const long = join(folder, 'long.gguf');
  await writeFile(long, tinyModel({ layers: 8, headDim: 64, context: 100_000 }));
  for (const [args, line] of [
    [['sing', NANO], /^quern: use\/param: 'sing' is not a command; .* \(quern help\)\.\n$/],
    [['help', 'sing'], /^quern: use\/param: 'sing' is not a command; .*\n$/],
    [['info'], /^quern: use\/param: 'quern info' takes MODEL.*\n$/],
    [['list', NANO], /^quern: use\/param: 'quern list' takes no words, but 1 word was given \(quern help list\)\.\n$/],
    [['run', NANO], /^quern: use\/param: .*MODEL and PROMPT, but 1 word was given \(quern help run\)\.\n$/],
    [['run', NANO, 'Once', 'upon'], /^quern: use\/param: .*3 words were given; put what has spaces into quotes \(quern help run\)\.\n$/],
    [['chat', NANO, 'Hi', 'there'], /^quern: use\/param: 'quern chat' takes MODEL and perhaps PROMPT, but 3 words were given; put .*\n$/],
    [['chat'], /^quern: use\/param: 'quern chat' takes MODEL and perhaps PROMPT, but 0 words were given \(quern help chat\)\.\n$/],
    [['chat', NANO, 'Hi', '--think', '--no-think'], /^quern: use\/param: --think and --no-think exclude each other\.\n$/],
    [['chat', NANO, '--top-p', '2'], /^quern: use\/param: --top-p must be a number above 0 and up to 1\.\n$/],
    [['chat', NANO, 'Hi', '--context', '8'], /^quern: use\/context: The prompt has .*\n$/],
    [['info', NANO, '--quantize', 'q5'], /^quern: use\/param: --quantize must be none, q8, q4 or auto, or two of the first three .*, not 'q5'\.\n$/],
    [['info', NANO, '--colour'], /^quern: use\/param: Unknown option '--colour' \(quern help info\)\.\n$/],
    [['info', NANO, '--kv'], /^quern: use\/param: Option '--kv <value>' argument missing \(quern help info\)\.\n$/],
    [['info', NANO, '--threads', 'many'], /^quern: use\/param: --threads must be a number.*\n$/],
    [['info', NANO, '--threads', '0x2'], /^quern: use\/param: --threads must be a number.*\n$/],
    [['info', NANO, '--threads', '0'], /^quern: use\/param: --threads must be a whole number .*\n$/],
    [['info', NANO, '--variant', 'fast'], /^quern: use\/param: --variant must be one of .*\n$/],
    [['info', NANO, '--context', '1.5'], /^quern: use\/param: --context must be a whole number .*\n$/],
    [['run', NANO, 'a', '--max-tokens', '1.5'], /^quern: use\/param: --max-tokens must be a whole number .*\n$/],
    [['info', NANO, '--memory', '4 apples'], /^quern: use\/param: --memory must be a number of bytes such as 4GB, .*\n$/],
    [['info', NANO, '--memory', '0'], /^quern: use\/param: --memory must be .*\n$/],
    [['info', NANO, '--store', ''], /^quern: use\/param: --store must name a folder\.\n$/],
    [['info', NANO, '--store', 'x', '--no-store'], /^quern: use\/param: --store and --no-store exclude each other\.\n$/],
    [['chat', long, '--memory', '16MB', '--context', '100000'], /^quern: mem\/plan: .*; --context \d+ would fit\.\n$/],
    [['info', '/no/such/file'], /^quern: use\/param: .*no such file.*\n$/],
    [['info', '/no/such/\x1b[31m\nfile\u202e'], /^quern: use\/param: '\/no\/such\/\uFFFD\[31m file\uFFFD' .*\n$/],
    [['info', CLI], /^quern: model\/format: .*\n$/],
    [['info', 'https://'], /^quern: use\/param: MODEL is not an address: 'https:\/\/'\.\n$/],
    [['info', 'ftp://example.com/a.gguf'], /^quern: use\/param: .*https:\/\/.*ftp:.*\n$/],
    [['info', 'https://a:b@example.com/a.gguf'], /^quern: use\/param: MODEL must not have .*; pass --header 'Authorization: .*\n$/],
    [['logits', NANO, '--tokens', '1', '--out', '/no/such/folder/x'], /^quern: use\/param: --out cannot be written \(ENOENT\)\.\n$/],
    [['logits', NANO, '--tokens', '1'], /^quern: use\/param: --out is missing\.\n$/],
    [['logits', NANO, '--out', 'x'], /^quern: use\/param: --tokens is missing\.\n$/],
    [['logits', NANO, '--tokens', '1 400', '--out', 'x'], /^quern: use\/param: --tokens\[1\] must be a token id .*\n$/],
    ...['', ' ', ',5', '5,', '5,,6', '0x10', '1e1', '1.0', '-1', '1 x', '１'].map((tokens) => (
      [['logits', NANO, `--tokens=${tokens}`, '--out', 'x'], /^quern: use\/param: --tokens must be token ids, decimal numbers .*\n$/])),
    ...[['--prompt', '1.5'], ['--prompt', '0'], ['--generate=-1'], ['--generate', '1e9'], ['--prompt', '99999999999999999999']].map((flags) => (
      [['bench', NANO, ...flags], /^quern: use\/param: --(prompt|generate) must be a whole number from [01] to 16777216, .*\n$/])),
    [['bench', NANO, '--prompt', '400', '--generate', '200'], /^quern: use\/param: --prompt and --generate are 600 tokens together, but the context holds 512; .*--context\.\n$/],
  ]) {
    const { code, out, err } = await many.quern(args);
    assert.deepEqual([code, out], [1, ''], args.join(' '));
    assert.match(err, line);
  }
});

test('help', async () => {
  const { code, out } = await quern(['--help']);
  assert.equal(code, 0);
  assert.match(out, /quern bench MODEL/);
  assert.match(out, /hf:OWNER\/REPO/);
  for (const args of [[], ['help'], ['-h'], ['help', '--help']]) assert.deepEqual(await quern(args), { out, err: '', code: 0 });
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url)));
  assert.equal((await quern(['--version'])).out, `${version}\n`);
});

test('help for each command tells all its options', async () => {
  for (const [name, { options }] of Object.entries(COMMANDS)) {
    const { code, out } = await quern(['help', name]);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`^usage: quern ${name} `));
    for (const option of options) assert.match(out, new RegExp(`^  --${option}( [A-Z']|  )`, 'm'));
    assert.equal((out.match(/^  --/gm) ?? []).length, options.length);
  }
  const { out } = await quern(['help', 'run']);
  for (const args of [['run', '--help'], ['run', NANO, '-h', '--', 'x']]) assert.deepEqual(await quern(args), { out, err: '', code: 0 });
  assert.deepEqual(Object.keys(OPTIONS).filter((name) => !Object.values(COMMANDS).some(({ options }) => options.includes(name))), []);
});

test('--memory', () => {
  for (const [text, bytes] of [['4GB', 4e9], ['4GiB', 2 ** 32], ['512MB', 512e6], ['1.5gib', 1.5 * 2 ** 30], ['13000000', 13e6], ['2 kB', 2000], ['7B', 7]]) assert.equal(bytesOf(text, '--memory'), bytes);
  for (const text of ['', 'GB', '4G', '4XB', '-4GB', '4GBB', '0x10', '1e9', '4,5GB']) assert.throws(() => bytesOf(text, '--memory'), { code: 'use/param' });
});

test('what cannot be written is said, but not to a reader that has gone', { skip: !existsSync('/dev/full') }, async () => {
  for (const args of [['info', NANO], ['--help'], ['tokenize', NANO], ['run', NANO, 'the', '--max-tokens', '2']]) {
    const { status, stderr } = spawnSync(process.execPath, [CLI, ...args], { stdio: ['pipe', openSync('/dev/full', 'w'), 'pipe'], input: 'the', encoding: 'utf8' });
    assert.deepEqual([status, stderr], [1, 'quern: use/param: the output cannot be written (ENOSPC).\n'], args[0]);
    const line = `"$@" < '${DEMO}' | head -c 1 > /dev/null; echo "\${PIPESTATUS[0]}"`;
    const gone = spawnSync('bash', ['-c', line, 'bash', process.execPath, CLI, ...args], { encoding: 'utf8' });
    assert.deepEqual([gone.stdout, gone.stderr], ['0\n', ''], args[0]);
  }
});

test('Ctrl-C stops the reply, a second one the program', { timeout: 60_000 }, async (t) => {
  const child = spawn(process.execPath, [CLI, 'chat', DEMO, '--variant', 'scalar', '--threads', '1']);
  t.after(() => child.kill('SIGKILL'));   // one that is left would keep the runner waiting
  let out = '';
  child.stdout.on('data', (data) => { out += data; });
  const closed = new Promise((resolve) => { child.on('close', (code, signal) => resolve([code, signal])); });
  child.stdin.write('Tell me a long story about an owl.\n');
  await until(() => out.length > 0);
  child.kill('SIGINT');
  await until(() => out.endsWith('\n'));
  child.stdin.write('What is the capital of France?\n');
  const before = out.length;
  await until(() => /Paris[^]*\n$/.test(out.slice(before)));
  const again = setInterval(() => child.kill('SIGINT'), 400);      // one that comes with the reply's last letter still belongs to it
  assert.deepEqual(await closed.finally(() => clearInterval(again)), [130, null]);
});
