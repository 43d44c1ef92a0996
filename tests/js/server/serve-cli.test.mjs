// SPDX-License-Identifier: MIT
// `quern serve` as a process: what it says, what it refuses to start with, what it never writes, and how it ends.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DEMO, until } from '../support/helper.mjs';
import { quern, start } from '../support/program.mjs';
import { ask, dataOf } from '../support/serve-host.mjs';

const SECRET = 'a-prompt-that-nobody-should-see';

/** The process, once it is ready, while it is used. */
async function serving(t, args, use, options) {
  const { child, got, ended } = start(['serve', DEMO, '--port', '0', '--threads', '1', ...args], options);
  t.after(() => child.kill('SIGKILL'));
  await until(() => /^quern: \S+ is served at http/m.test(got.err) || child.exitCode !== null);
  const [, name, url] = /^quern: (\S+) is served at (http:\S+)$/m.exec(got.err) ?? assert.fail(got.err);
  return use({ child, got, ended, name, url, port: Number(new URL(url).port) });
}

/** A reply whose headers have come, so that it has begun. */
const post = (url, body) => fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

const endless = { messages: [{ role: 'user', content: `${SECRET}. Tell me a story.` }], temperature: 1, logit_bias: {}, stream: true, max_tokens: 3000 };

test('it answers, and ends by a signal when the replies under way have ended', { timeout: 60_000 }, async (t) => {
  await serving(t, ['--grace', '60', '--slots', '--parallel', '3', '--kv-positions', '2048'], async ({ child, got, ended, name, url, port }) => {
    assert.deepEqual([name, url], ['demo-q8_0', `http://127.0.0.1:${port}/v1`]);
    const { status, body } = await ask(port, 'POST', '/v1/chat/completions', { body: { messages: [{ role: 'user', content: 'What is the capital of Kenya?' }], temperature: 0 } });
    assert.equal(status, 200);
    const { choices, model, system_fingerprint: fingerprint } = JSON.parse(body);
    assert.match(choices[0].message.content, /Nairobi/);
    assert.equal(model, 'demo-q8_0');
    assert.match(fingerprint, /^quern-\d+\.\d+\.\d+-[0-9a-f]{8}$/);
    const props = JSON.parse((await ask(port, 'GET', '/props')).body);
    assert.ok(props.chat_template.includes('<|im_start|>') && props.model_path === 'demo-q8_0.gguf');
    assert.deepEqual([props.total_slots, JSON.parse((await ask(port, 'GET', '/slots')).body).length], [3, 3]);
    const asked = { prompt: SECRET, max_tokens: 100, ignore_eos: true, stream: true, stream_options: { include_usage: true } };
    const reply = await post(`${url}/completions`, asked);
    child.kill('SIGTERM');
    const events = dataOf(await reply.text());
    assert.deepEqual([events.at(-1), events.at(-2).usage.completion_tokens], ['[DONE]', 100]);
    const { code, out, err } = await ended;
    assert.deepEqual([code, out], [0, '']);
    assert.ok(!err.includes(SECRET) && err.split('\n').length === 2, err);
  });
});

test('replies that take longer than the grace end with what they have', { timeout: 60_000 }, async (t) => {
  await serving(t, ['--grace', '0', '--variant', 'scalar'], async ({ child, ended, url }) => {
    const many = await Promise.all([0, 1, 2].map((seed) => post(`${url}/chat/completions`, { ...endless, seed, ignore_eos: true })));
    child.kill('SIGINT');
    for (const body of await Promise.all(many.map((reply) => reply.text()))) {
      assert.ok(['length', 'stop'].includes(dataOf(body).at(-2)?.choices?.[0].finish_reason) || dataOf(body).at(-1).error, body.slice(-300));
    }
    assert.equal((await ended).code, 0);
  });
});

test('a second signal ends it at once', { timeout: 60_000 }, async (t) => {
  await serving(t, ['--grace', '3600', '--variant', 'scalar'], async ({ child, ended, port, url }) => {
    const bias = Object.fromEntries(Array.from({ length: 4 }, (_, id) => [id, -100]));
    const reply = await post(`${url}/completions`, { prompt: 'x', max_tokens: 3000, ignore_eos: true, logit_bias: bias, stream: true });
    child.kill('SIGTERM');
    while ((await ask(port, 'GET', '/health')).status) await new Promise((done) => { setTimeout(done, 10); });     // nobody is let in any more
    assert.equal(child.exitCode, null);
    const again = setInterval(() => child.kill('SIGTERM'), 400);       // two that come sooner count as one
    assert.equal((await ended.finally(() => clearInterval(again))).code, 143);
    await reply.text().catch(() => {});
  });
});

test('keys, names and origins by flags and by the environment', { timeout: 60_000 }, async (t) => {
  const flags = ['--api-key', 'one', '--model-name', 'Mine', '--allow-host', 'box.example', '--cors-origin', 'https://page.example'];
  await serving(t, flags, async ({ port, name, got }) => {
    assert.equal(name, 'Mine');
    const status = async (headers, host) => (await ask(port, 'GET', '/v1/models', { headers, host })).status;
    assert.deepEqual(await Promise.all([
      status({}), status({ 'X-Api-Key': 'one' }), status({ Authorization: 'Bearer two' }), status({ 'X-Api-Key': 'one' }, 'box.example'), status({ 'X-Api-Key': 'one' }, 'evil.example'),
      status({ 'X-Api-Key': 'one', Origin: 'https://page.example' }), status({ 'X-Api-Key': 'one', Origin: 'https://evil.example' }),
    ]), [401, 200, 200, 200, 403, 200, 403]);
    const other = await ask(port, 'POST', '/v1/completions', { headers: { 'X-Api-Key': 'one' }, body: { model: 'x', prompt: 'x' } });
    assert.equal(other.status, 404);
    assert.ok(!got.err.includes('two'));
  }, { env: { QUERN_API_KEY: 'two' } });
});

test('what cannot be served safely or at all is refused before anything is loaded', async (t) => {
  const taken = createServer();
  await new Promise((done) => { taken.listen(0, '127.0.0.1', done); });
  t.after(() => taken.close());
  await Promise.all([
    [['--host', '0.0.0.0'], /^quern: use\/param: --host 0\.0\.0\.0 lets other machines in, so it needs a key/], [['--host', '192.168.7.7'], /needs a key/], [['--host', '::'], /needs a key/],
    [['--port', '70000'], /--port must be a whole number from 0 to 65535/], [['--port', String(taken.address().port)], /--port \d+ cannot be listened on \(EADDRINUSE\)/],
    [['--cors-origin', '*'], /--cors-origin must be an origin/], [['--cors-origin', 'https://page.example/'], /--cors-origin must be an origin/], [['--grace=-1'], /--grace must be/],
    [['--api-key', ''], /--api-key must be/], [['--api-key', 'a b'], /--api-key must be/], [['--context', '0'], /--context must be/], [['--queue=-1'], /--queue must be/], [['--queue', '8193'], /--queue must be a whole number from 0 to 8192/], [['--parallel', '17'], /--parallel must be a whole number from 1 to 16/], [['--kv-positions', 'x'], /--kv-positions must be a number/],
  ].map(async ([args, words]) => {
    const { code, out, err } = await quern(['serve', DEMO, ...args.includes('--port') ? [] : ['--port', '0'], ...args]);
    assert.deepEqual([code, out], [1, ''], args.join(' '));
    assert.match(err, words);
    assert.equal(err.split('\n').length, 2);
  }));
  const { code, err } = await quern(['serve', '/nowhere/model.gguf', '--port', '0']);
  assert.equal(code, 1);
  assert.match(err, /^quern: use\/param: .*\n$/);
});

/** Runs a module that has the package and the API's client at hand. @returns {Promise<string>} what it prints */
const runModule = (code) => new Promise((resolve, reject) => {
  const options = { cwd: fileURLToPath(new URL('../../..', import.meta.url)), timeout: 60_000 };
  execFile(process.execPath, ['--input-type=module', '-e', code], options, (error, stdout) => (error ? reject(error) : resolve(stdout)));
});

test('the programs of the recipe do as they say', { timeout: 120_000 }, async (t) => {
  const text = await readFile(new URL('../../../docs/recipes/server.md', import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^```js.*\n([\s\S]*?)^```$/gm)].map(([, code]) => code);
  const programs = blocks.filter((code) => /from '(?:openai|quern\/remote)'/.test(code) && code.includes('/v1'));       // what asks a server
  assert.equal(programs.length, 3);
  await serving(t, [], async ({ url }) => {
    const at = (code) => code.replaceAll('http://127.0.0.1:8080/v1', url);
    const said = await Promise.all(programs.map((code) => runModule(at(code))));
    assert.ok(said.every((words) => words.length > 3), said.join('\n'));
    assert.equal(said.filter((words) => /Nairobi/.test(words)).length, 2);
  });
});

test('its help says what it is safe from', async () => {
  const { out } = await quern(['help', 'serve']);
  assert.match(out, /^usage: quern serve MODEL \[options\]/);
  for (const name of ['host', 'port', 'api-key', 'allow-host', 'cors-origin', 'model-name', 'parallel', 'queue', 'kv-positions', 'snapshots', 'slots', 'grace', 'context', 'threads']) assert.match(out, new RegExp(`^ {2}--${name} `, 'm'));
  assert.ok(out.split('\n').every((line) => line.length < 160));
});
