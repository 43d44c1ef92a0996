// SPDX-License-Identifier: MIT
// The command line in Node and the native one: the same flags give the same text, the same refusals in the same words, the same help.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { COMMANDS, OPTIONS } from '../../../js/cli/cli-syntax.js';
import { GOLDEN, PROJECT } from '../../fixtures/golden.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { CLI, DEMO, NANO } from '../support/helper.mjs';
import { oneProcess, quern as start } from '../support/program.mjs';

const NATIVE = join(PROJECT, 'build/release/quern');
const FLOATS = join(PROJECT, GOLDEN, 'nano.F32.gguf');

const folder = mkdtempSync(join(tmpdir(), 'quern-both-'));
after(() => rmSync(folder, { recursive: true }));

const { quern, end } = oneProcess();
after(end);

/** A file's path. */
function write(name, text) {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

/** @returns {Promise<{out: string, err: string, code: number}>} */
function native(args, { input = '' } = {}) {
  const child = spawn(NATIVE, args);
  const got = { out: '', err: '' };
  for (const [name, stream] of [['out', child.stdout], ['err', child.stderr]]) stream.setEncoding('utf8').on('data', (text) => { got[name] += text; });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  return new Promise((resolve) => { child.on('close', (code) => resolve({ ...got, code })); });
}

/** What both say, which must be the same. */
async function both(args, options, ours = quern) {
  const [one, two] = await Promise.all([ours(args, options), native(args, options)]);
  assert.deepEqual(two, one, args.join(' '));
  return one;
}

const PROMPT = 'What is the capital of';

test('the same text by the same flags', { timeout: 120_000 }, async () => {
  const run = ['run', DEMO, PROMPT, '--max-tokens', '24', '--threads', '1'];
  const greedy = (await both([...run, '--temperature', '0'])).out;
  const seen = new Set([greedy]);
  for (const flags of [
    ['--seed', '1'], ['--seed', '9007199254740991'], ['--seed=7', '--temperature', '1.5'], ['--seed', '7', '--temperature', '1.5', '--top-k', '0'],
    ['--seed', '7', '--temperature', '1.5', '--top-k', '0', '--top-p', '1'], ['--seed', '7', '--temperature', '1.5', '--top-k', '0', '--top-p', '1', '--min-p', '.2'],
    ['--temperature', '0', '--repeat-penalty', '1.8'], ['--temperature', '0', '--kv', 'q8'], ['--temperature', '0', '--variant', 'scalar', '--chunk', '3'],
    ['--seed', '3', '--temperature', '2', '--top-k', '3', '--stop', 'the', '--stop', 'of'],
    ['--seed', '5', '--regex', '[a-f]{3,9}(, [0-9]{1,3}){0,2}'], ['--seed', '5', '--schema', write('enum.json', '{"enum":["a",{"b":1}]}')],
    ['--seed', '5', '--grammar', write('cities.gbnf', 'root ::= city ("," ws city){0,2} "!" # some of them\ncity ::= "Oslo" | "Bergen" | [A-Z] [a-z]{2,5}\nws ::= [ \\n]?\n')],
  ]) {
    const { out, err, code } = await both([...run, ...flags]);
    assert.deepEqual([err, code], ['', 0]);
    seen.add(out);
  }
  assert.ok(seen.size > 6, 'flags make a difference');
});

test('what a model advises is what both begin with, and flags come before it', async () => {
  const kv = Object.entries({ temp: 1.9, top_k: 5, top_p: 0.97, min_p: 0.0625, penalty_repeat: 1.3 })
    .map(([key, value]) => [`general.sampling.${key}`, key === 'top_k' ? 'i32' : 'f32', value]);
  const plain = write('plain.gguf', tinyModel());
  const advised = write('advised.gguf', tinyModel({}, { addKv: kv }));
  const sees = join(PROJECT, 'tests/fixtures/vision/models/dense');
  /** What both say, as JSON: of bytes that are no text each shows what it likes. */
  const run = async (model, ...flags) => {
    const args = ['run', model, 'the', '--seed', '3', '--max-tokens', '24', '--threads', '1', '--json', ...flags];
    const [one, two] = (await Promise.all([quern(args), native(args)])).map(({ out }) => JSON.parse(out).text);
    assert.equal(two, one, args.join(' '));
    return one;
  };
  const all = ['--temperature', '1.9', '--top-k', '5', '--top-p', '0.97', '--min-p', '0.0625', '--repeat-penalty', '1.3'];
  const text = await run(advised);
  assert.equal(await run(plain, ...all), text);
  assert.notEqual(await run(plain), text);
  assert.equal(await run(advised, '--temperature', '0', '--repeat-penalty', '1'), await run(plain, '--temperature', '0'));
  for (const model of [join(sees, 'f16/model.gguf'), join(sees, 'hf')]) await run(model);
});

test('JSON of any form', async () => {
  const values = [];
  for (const seed of ['1', '2', '3']) {
    const { out, code } = await both(['run', DEMO, 'JSON:', '--seed', seed, '--temperature', '3', '--top-p', '1', '--top-k', '0', '--threads', '1', '--json-reply']);
    assert.equal(code, 0, out);
    values.push(JSON.parse(out));
  }
  assert.ok(values.some((value) => Array.isArray(value) || Object(value) !== value), JSON.stringify(values));
});

test('a limited reply that is cut off is no success', async () => {
  const file = write('long.json', '{"type":"string","minLength":100}');
  const run = ['run', DEMO, PROMPT, '--seed', '5', '--threads', '1'];
  for (const [flags, limit] of [
    [['--max-tokens', '9', '--schema', file], '--max-tokens'], [['--max-tokens', '9', '--regex', '[a-z]{99}'], '--max-tokens'], [['--context', '20', '--regex', '[a-z]{99}'], '--context'],
    [['--max-tokens', '0', '--json-reply'], '--max-tokens'],
  ]) {
    const { out, err, code } = await both([...run, ...flags]);
    assert.deepEqual([out.endsWith('\n'), err.includes(limit), err.startsWith('quern: use/schema: The reply ended before it was whole'), code], [true, true, true, 1], err);
  }
  const json = ['--max-tokens', '9', '--schema', file, '--json'];
  for (const { out, code } of await Promise.all([quern([...run, ...json]), native([...run, ...json])])) assert.deepEqual([JSON.parse(out).finishReason, code], ['length', 1]);
});

test('a file that cannot be read is named', async () => {
  for (const [flag, path] of [['--schema', 'no/such/file.json'], ['--grammar', 'no/such.gbnf'], ['--schema', tmpdir()]]) {
    for (const { out, err, code } of await Promise.all([quern, native].map((say) => say(['run', NANO, 'a', flag, path])))) {
      assert.deepEqual([out, code, err.startsWith(`quern: use/param: ${flag} cannot be read: ${path}`)], ['', 1, true], err);
    }
  }
  const { err } = await both(['run', NANO, 'a', '--schema', write('large.json', ' '.repeat(2 ** 20 + 1))]);
  assert.match(err, /use\/schema: .*more than 1 MB/);
});

test('stop texts end the reply, without them', async () => {
  const run = ['run', DEMO, 'Once upon a time', '--max-tokens', '30', '--temperature', '0', '--threads', '1'];
  const text = (await both(run)).out.slice(0, -1);
  assert.ok(text.length > 20);
  const cut = (from, n) => text.slice(from, from + n);
  for (const stops of [[cut(12, 4)], [cut(5, 1)], [cut(3, 9), cut(6, 2)], [cut(6, 2), cut(6, 5)], [`${cut(4, 6)}\u2603`], [cut(0, 1)], ['\u00e9', cut(8, 3)]]) {
    const ends = stops.map((stop) => [text.indexOf(stop), stop]).filter(([at]) => at >= 0).map(([at, stop]) => [at + stop.length, at]).sort(([a, c], [b, d]) => a - b || c - d);
    const { out } = await both([...run, ...stops.flatMap((stop) => ['--stop', stop])]);
    assert.equal(out, `${ends.length ? text.slice(0, ends[0][1]) : text}\n`, JSON.stringify(stops));
  }
});

test('the same result as JSON, but for the time it took', async () => {
  for (const flags of [['--max-tokens', '6'], ['--max-tokens', '0'], ['--stop', ' '], ['--context', '40']]) {
    const args = ['run', DEMO, PROMPT, '--temperature', '0', '--threads', '1', '--json', ...flags];
    const [one, two] = (await Promise.all([quern(args), native(args)])).map(({ out }) => JSON.parse(out));
    assert.deepEqual(Object.keys(two.timings), Object.keys(one.timings));
    assert.deepEqual({ ...two, timings: null }, { ...one, timings: null }, flags.join(' '));
    assert.ok(two.timings.prefillMs > 0);
  }
});

test('the same prompts from the standard input', async () => {
  const flags = ['--temperature', '0', '--max-tokens', '8', '--threads', '1'];
  const { out } = await both(['run', DEMO, 'Once upon', ...flags]);
  for (const input of ['Once upon', 'Once upon\n', 'Once upon\r\n']) assert.equal((await both(['run', DEMO, '-', ...flags], { input })).out, out);
  await both(['run', DEMO, ...flags, '--', '--help']);
});

test('weights that are made smaller: the same text, and the same plan', async () => {
  const types = ['none', 'q8', 'q4', 'auto', 'q4/none', 'none/q4', 'q4/q8'];
  const plans = new Set();
  for (const type of types) {
    await both(['run', FLOATS, 'the', '--quantize', type, '--temperature', '0', '--max-tokens', '12', '--threads', '1']);
    const [one, two] = (await Promise.all([quern, native].map((say) => say(['info', FLOATS, '--json', '--quantize', type])))).map(({ out }) => JSON.parse(out));
    assert.deepEqual(two.quantize, one.quantize, type);
    assert.ok(Math.abs(two.plan.weights - one.plan.weights) < 0.01 * one.plan.weights, type);   // addresses have other sizes
    plans.add(one.plan.weights);
  }
  assert.equal(plans.size, types.length - 1, 'auto is none here');
});

test('the same refusals', async () => {
  const run = ['run', NANO, 'a'];
  const long = 'x'.repeat(1001);
  for (const args of [
    [...run, '--temperature', '\x1b[31mhot\x9b\u202e\r\n\tor not'], [...run, '--temperature', '101'], [...run, '--temperature=-1'], [...run, '--temperature', 'hot'], [...run, '--temperature', '0x1'], [...run, '--temperature', '1e999'],
    [...run, '--temperature', 'inf'], [...run, '--temperature', ''], [...run, '--temperature', '.'], [...run, '--temperature', '1e'], [...run, '--temperature', ' 1'],
    [...run, '--top-p', '0'], [...run, '--top-p', '1.5'], [...run, '--top-k', '1.5'], [...run, '--top-k=-1'], [...run, '--top-k', '1e16'], [...run, '--min-p', '1.1'],
    [...run, '--repeat-penalty', '0'], [...run, '--repeat-penalty', '10.5'], [...run, '--seed', '9007199254740993'], [...run, '--seed=-1'], [...run, '--seed', '1.5'],
    [...run, '--max-tokens', '1.5'], [...run, '--max-tokens', 'many'], [...run, '--stop', ''], [...run, '--stop', long],
    [...run, '--threads', '0'], [...run, '--threads', '65'], [...run, '--context', '0'], [...run, '--context', '16777217'], [...run, '--chunk', '1025'],
    [...run, '--kv', 'q4'], [...run, '--memory', '4 apples'], [...run, '--memory', '0'], [...run, '--quantize', 'q6'], [...run, '--quantize', 'q4/auto'], [...run, '--quantize', 'q4/'],
    [...run, '--quantize', 'q4/q8/q8'], ['run', NANO, 'xyz xyz', '--context', '2', '--threads', '1'], ['run', NANO, '', '--threads', '1'],
    ['run', NANO], ['run', NANO, 'Once', 'upon'], ['run', NANO, 'a', '--colour'], ['run', NANO, 'a', '--colour=red'], ['run', NANO, 'a', '-x'], ['run', NANO, 'a', '--kv'],
    ['run', NANO, 'a', '--kv', '--json'], ['run', NANO, 'a', '--json=yes'], ['run', NANO, 'a', '--system', 'x'], ['run', NANO, 'a', '--think'], ['info'],
    ['bench', NANO, '--prompt', '0'], ['bench', NANO, '--generate', '1e9'], ['bench', NANO, '--prompt', '1.5'], ['logits', NANO, '--tokens', '1'], ['logits', NANO, '--out', 'x'],
    ...['', 'x', '1,,2', '1,', ',1', '1 x', '1.5', '-1'].map((ids) => ['logits', NANO, `--tokens=${ids}`, '--out', 'x']),
    ['quantize', NANO, 'x.gguf'], ['quantize', NANO], ['quantize', 'hf:OWNER/REPO/FILE.gguf', 'x.gguf', '--type', 'q8_0'], ['quantize', 'https://example.org/x.gguf', 'x.gguf', '--type', 'q8_0'],
  ]) {
    const { out, err, code } = await both(args);
    assert.deepEqual([out, code], ['', 1], args.join(' '));
    assert.match(err, /^quern: use\/(param|context|empty): .*\.\n$/, args.join(' '));
  }
});

test('a folder is no input', () => {
  for (const [program, ...before] of [[NATIVE], [process.execPath, CLI]]) {
    for (const args of [['tokenize', NANO], ['run', NANO, '-']]) {
      const { status, stdout, stderr } = spawnSync(program, [...before, ...args], { stdio: [openSync(PROJECT, 'r'), 'pipe', 'pipe'], encoding: 'utf8' });
      assert.deepEqual([status, stdout, stderr], [1, '', 'quern: use/param: the input is a folder.\n'], program);
    }
  }
});

test('natively too what cannot be written is said, but not to a reader that has gone', { skip: !existsSync('/dev/full') }, () => {
  for (const args of [['info', NANO], ['--help'], ['tokenize', NANO], ['run', NANO, 'the', '--max-tokens', '2'], ['bench', NANO, '--prompt', '2', '--generate', '1']]) {
    const { status, stderr } = spawnSync(NATIVE, args, { stdio: ['pipe', openSync('/dev/full', 'w'), 'pipe'], input: 'the', encoding: 'utf8' });
    assert.deepEqual([status, stderr], [1, 'quern: use/param: the output cannot be written.\n'], args[0]);
    const gone = spawnSync('bash', ['-c', '"$@" < /dev/null | head -c 1 > /dev/null', 'bash', NATIVE, ...args], { encoding: 'utf8' });
    assert.equal(gone.stderr, '', args[0]);
  }
});

test('what each has alone is refused by the other with what to do', async () => {
  assert.match((await native(['chat', DEMO, 'Hi'])).err, /^quern: use\/param: 'chat' needs the model's chat template, .*npx quern chat.*\n$/);
  assert.match((await native(['run', DEMO, 'Hi', '--variant', 'relaxed'])).err, /^quern: use\/param: --variant must be one of 'scalar', 'simd'\.\n$/);
  for (const name of ['sing', 'list', '--colour']) assert.match((await native([name])).err, new RegExp(`^quern: use/param: '${name}' is not a command; these are: run, .* \\(quern help\\)\\.\n$`));
  assert.match((await quern(['run', DEMO, 'Hi', '--feed', '1'])).err, /^quern: use\/param: Unknown option '--feed' /);
});

/** The options of a help's lines: {name: what is said}. */
const linesOf = (help) => Object.fromEntries([...help.matchAll(/^ {2}--(\S+( \S+)?) {2,}(\S.*)$/gm)].map(([, name, , text]) => [name, text]));

/** What of a command needs decoders, chat templates and drafts, which the native program has not. */
const NODE_ALONE = { run: /^(?:draft|no-drafts)/, logits: /^(?:messages|vision|(?:min|max)-(?:video-)?pixels|max-frames)/ };

test('the same help', async () => {
  for (const name of ['run', 'info', 'quantize', 'bench', 'tokenize', 'logits']) {
    const [one, two] = (await Promise.all([start(['help', name]), native(['help', name])])).map(({ out }) => out);
    const [here, there] = [linesOf(one), linesOf(two)];
    const common = Object.keys(here).filter((option) => !/^(store|no-store|header|variant|backend|gpu)/.test(option) && !NODE_ALONE[name]?.test(option));
    assert.deepEqual(Object.keys(there).filter((option) => !/^(feed|variant)/.test(option)).sort(), common.sort(), name);
    for (const option of common) assert.equal(there[option], here[option], `${name} --${option}`);
    assert.equal(two.split('\n\n').slice(0, 2).join(), one.split('\n\n').slice(0, 2).join(), name);
    assert.deepEqual(await native([name, 'x', '-h']), { out: two, err: '', code: 0 });
  }
  const general = (await native([])).out;
  for (const args of [['help'], ['--help'], ['-h']]) assert.deepEqual(await native(args), { out: general, err: '', code: 0 });
  for (const name of ['run', 'info', 'bench']) assert.match(general, new RegExp(`^ {2}quern ${name} .* ${COMMANDS[name].text}$`, 'm'));
  for (const name of ['top-p', 'top-k', 'min-p', 'repeat-penalty', 'stop']) for (const command of ['chat', 'run']) assert.ok(COMMANDS[command].options.includes(name) && OPTIONS[name]);
});

test('the same version', async () => {
  const { version } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url)));
  assert.deepEqual(await both(['--version'], {}, start), { out: `${version}\n`, err: '', code: 0 });
});
