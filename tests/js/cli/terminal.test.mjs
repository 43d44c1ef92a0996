// SPDX-License-Identifier: MIT
// The command line on a terminal, and what signals do to it.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { models } from '../../../dist/node.js';
import { PROJECT } from '../../fixtures/golden.mjs';
import { LONG } from '../../fixtures/lengths.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { DEMO, NANO, until, withServer } from '../support/helper.mjs';
import { canLend, quern, start, startOnTerminal } from '../support/program.mjs';

const BYTES = readFileSync(DEMO);
const NATIVE = join(PROJECT, 'build/release/quern');
const onTerminal = { skip: !canLend };
const withSignals = { skip: !existsSync('/proc/self/status') };

/** What a reply of random weights is made of: nearly every byte. */
const RANDOM = ['run', NANO, 'the', '--seed', '5', '--temperature', '2', '--max-tokens', '120', '--threads', '1'];

/** A model whose name would steer a terminal, by what JSON need not escape too. */
const NAMED = join(process.env.XDG_CACHE_HOME, 'named.gguf');
writeFileSync(NAMED, tinyModel({}, { kv: { 'general.name': ['string', 'a\x1b[31m\x9b1m\u202e\u2028b'] } }));

/** What may reach a terminal besides the codes of our own. */
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]/;

const later = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** A server that sends some bytes a time. @param {(base: string, sent: () => number) => Promise<void>} use */
const slowly = (use, pause = 40, count = { n: 0 }) => withServer(async (request, response) => {
  const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
  response.writeHead(206, { 'content-length': BYTES.length - from, 'content-range': `bytes ${from}-${BYTES.length - 1}/${BYTES.length}`, etag: '"1"' });
  for (let at = from; at < BYTES.length && !response.destroyed; at += 1 << 17) {
    response.write(BYTES.subarray(at, at + (1 << 17)));
    count.n += 1 << 17;
    await later(pause);
  }
  response.end();
}, (base) => use(base, () => count.n));

test('a model cannot steer the terminal; a pipe gets what it wrote', onTerminal, async () => {
  const { out } = await quern(RANDOM);
  assert.match(out, CONTROL);
  const expected = out.replaceAll('\r', '').replace(/(?!\n|\t)[\x00-\x1f\x7f-\x9f]/g, '\uFFFD');
  const one = (text) => text.replace(/\uFFFD+/g, '\uFFFD');     // natively each byte of a broken character is one
  for (const [program, same] of [[undefined, (text) => text], [[NATIVE], one]]) {
    const { out: shown, code } = await startOnTerminal(RANDOM, { program }).ended;
    assert.equal(code, 0);
    assert.equal(same(shown.replaceAll('\r\n', '\n')), same(expected));
  }
});

test('nor can it in JSON, of the native program either', onTerminal, async () => {
  for (const program of [undefined, [NATIVE]]) {
    for (const args of [[...RANDOM, '--json'], ['info', NAMED, '--json']]) {
      const { out, code } = await startOnTerminal(args, { program }).ended;
      assert.equal(code, 0);
      assert.doesNotMatch(out.replaceAll('\r\n', '\n'), CONTROL);
    }
  }
});

test('neither can a chat, a file, a path or a server', onTerminal, async () => {
  const talk = startOnTerminal(['chat', NANO, '--seed', '5', '--max-tokens', '60', '--threads', '1']);
  await until(() => talk.got.out.includes('> '));
  talk.child.stdin.write('the\r');
  await later(100);
  talk.child.stdin.write('\x04');
  const { out, code } = await talk.ended;
  assert.equal(code, 0);       // the end of the input came while the reply was made
  assert.doesNotMatch(out.replace(/\x1b\[\d*[GJm]/g, ''), CONTROL);
  await withServer((request, response) => response.writeHead(418, 'I am \x9b31m a pot').end(), async (base) => {
    const { err } = await quern(['info', `${base}/x.gguf`]);
    assert.match(err, /^quern: net\/http: .* answered 418: I am \uFFFD31m a pot\.\n$/);
  });
});

test('a download shows on a terminal how far it is, over itself, and nowhere else', onTerminal, async () => {
  await slowly(async (base) => {
    const { out, code } = await startOnTerminal(['run', `${base}/m.gguf`, 'the', '--max-tokens', '2', '--no-store']).ended;
    assert.equal(code, 0);
    const lines = out.split('\x1b[K');
    assert.ok(lines.length > 4, out);
    for (const line of lines.slice(1, -3)) assert.match(line, /^\r[\d.]+ (KiB|MiB) of 2\.85 MiB \(\d+ %\), [\d.]+ (KiB|MiB)\/s, \d+ s left$/);
    assert.equal(lines.at(-2), '\r');
    const piped = await quern(['run', `${base}/m.gguf`, 'the', '--max-tokens', '2', '--no-store']);
    assert.deepEqual([piped.err, piped.code], ['', 0]);
  });
});

// --- signals ---

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Whether a program hears signals: SIGHUP is the last it asks for, and one that Node itself leaves alone. */
const hears = ({ pid }) => Boolean(Number(`0x${/SigCgt:\s*\w*(\w)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]}`) & 1);

/** Ends a program by a signal once it has come that far. @param {(got: object) => boolean | Promise<boolean>} ready */
async function interrupt(args, signal, ready) {
  const { child, got, ended } = start(args);
  await until(() => hears(child));
  while (!await ready(got)) await later(20);
  child.kill(signal);
  return ended;
}

test('a program ends by every signal, with its code, whether it starts or waits for its input', withSignals, async () => {
  for (const [i, [signal, expected]] of Object.entries(SIGNALS).entries()) {
    for (const [k, args] of [['run', NANO, '-'], ['tokenize', NANO], ['chat', NANO]].entries()) {
      for (const ms of LONG ? [0, 1000] : [1000 * ((i + k) % 2)]) {
        const end = performance.now() + ms;
        assert.deepEqual(await interrupt(args, signal, () => performance.now() > end), { out: '', err: '', code: expected }, `${args[0]} ${signal} ${ms}`);
      }
    }
  }
});

test('a reply that is stopped shows as far as it came', withSignals, async () => {
  const endless = join(process.env.XDG_CACHE_HOME, 'endless.gguf');      // says the same all the time
  writeFileSync(endless, tinyModel({ context: 100_000 }));
  const args = ['run', endless, 'the', '--context', '100000', '--variant', 'scalar', '--threads', '1', '--temperature', '0'];
  const plain = await interrupt(args, 'SIGINT', ({ out }) => out.length > 20);
  assert.deepEqual([plain.out.endsWith('\n'), plain.err, plain.code], [true, '', 130]);
  const end = performance.now() + 2000;
  const { out, err, code } = await interrupt([...args, '--json'], 'SIGTERM', () => performance.now() > end);
  if (out) assert.equal(JSON.parse(out).finishReason, 'aborted');
  assert.deepEqual([err, code], ['', 143]);
});

test('a download that is stopped keeps what has come, and says so', withSignals, async () => {
  await slowly(async (base, sent) => {
    const url = `${base}/stopped.gguf`;
    const more = (from = sent()) => () => sent() > from;
    const kept = async () => (await models.list()).some(({ id, loaded }) => id === url && loaded > 0);
    for (const signal of Object.keys(SIGNALS)) {
      const { err, code } = await interrupt(['download', url], signal, signal === 'SIGINT' ? kept : more());
      assert.match(err, /^quern: use\/aborted: The download was stopped; the next one continues from the stored bytes\.\n$/);
      assert.equal(code, SIGNALS[signal]);
    }
    assert.match((await quern(['list'])).out, / [1-9]\d? % +never +http:.*stopped\.gguf\n/);
    assert.deepEqual(await interrupt(['run', url, 'the'], 'SIGINT', more()), { out: '', err: '', code: 130 });
  }, 100);
});

test('nor does a reader that does not read hold a program up', async () => {
  const { child, ended } = start(['tokenize', NANO]);
  child.stdout.pause();
  child.stdin.write('the mill '.repeat(200_000));
  await until(() => child.stdout.readableLength > 0);
  await later(500);
  child.kill('SIGTERM');
  await until(() => child.exitCode !== null);
  child.stdout.resume();
  assert.equal((await ended).code, 143);
});

test('Ctrl-C by way of npx comes twice and counts once', async () => {
  const { child, got, ended } = start(['chat', DEMO, '--variant', 'scalar', '--threads', '1', '--seed', '3']);
  child.stdin.write('Tell me a long story about an owl.\n');
  await until(() => got.out.length > 0);
  child.kill('SIGINT');
  await later(20);
  child.kill('SIGINT');
  await until(() => got.out.endsWith('\n'));
  await later(400);
  assert.equal(child.exitCode, null);      // the reply is stopped, the talk is not
  child.kill('SIGINT');
  assert.equal((await ended).code, 130);
});

test('a second Ctrl-C ends what does not end by itself', async () => {
  const code = `import { interrupted, listen } from './js/cli/cli-signals.js';
    listen();
    interrupted.addEventListener('abort', () => console.log('heard'));
    setInterval(() => {}, 1000);
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: PROJECT, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (data) => { out += data; });
  await until(() => out === 'ready\n');
  child.kill('SIGINT');
  await until(() => out === 'ready\nheard\n');
  await later(300);
  assert.equal(child.exitCode, null);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [130, null]);
});
