// SPDX-License-Identifier: MIT
// `quern serve` as a process under 8 clients that ask anything and go away at any moment, for seconds or, before a release, for an hour, in a
// pool that is too small for them. Its memory stays flat, no page and no reply is left over, and a question that is asked again and again
// among all that always gets the answer it gets alone.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { processMemory } from '../../bench/machine.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { random as seeded } from '../../fixtures/random.mjs';
import { DEMO, until } from '../support/helper.mjs';
import { start } from '../support/program.mjs';
import { ask, request } from '../support/serve-host.mjs';

const MINUTES = length(0.1, 60);
const CLIENTS = 8;
const SAMPLES = 60;

/** Bytes by which the most that the process has in the second half may be above that of the first: V8 sweeps now and then, by some 50 MB. */
const GROWTH = 24e6;

/** From so many minutes on the process no longer grows because it has just begun, and everything has happened that can. */
const LONG = 10;

const CHAT = '/v1/chat/completions';
const KEYS = ['one', 'two'];
const FLAGS = ['--threads', '1', '--context', '512', '--kv-positions', '1024', '--parallel', '4', ...KEYS.flatMap((key) => ['--api-key', key])];

const QUESTION = { messages: [{ role: 'user', content: 'What is the capital of Kenya?' }], temperature: 0, max_tokens: 40 };

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Anything: short and long, chats and texts, whole and streamed, several choices, with beginnings that others have too. */
function anything(random, i) {
  const pick = (n) => Math.floor(random() * n);
  const text = `Story ${pick(5)}: ${'once upon a time there was an owl. '.repeat(1 + pick(30))}${i}`;
  const common = { stream: random() < 0.7, n: 1 + pick(3), seed: i, max_tokens: 1 + pick(200), ...(random() < 0.1 && { priority: 'background' }) };
  if (random() < 0.3) return ['/v1/completions', { prompt: text, ignore_eos: random() < 0.5, ...common }];
  return [CHAT, { messages: [{ role: 'system', content: 'You are an owl.' }, { role: 'user', content: text }], ...common }];
}

/** Asks and goes away, sooner or later or in the middle of asking. */
async function giveUp(port, headers, random, i) {
  const [path, body] = anything(random, i);
  const text = request('POST', path, { body, headers });
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  socket.write(random() < 0.1 ? text.slice(0, Math.floor(random() * text.length)) : text);
  await sleep(random() * random() * 1000);
  socket[random() < 0.5 ? 'destroy' : 'resetAndDestroy']();
}

const answerTo = async (port, headers) => JSON.parse((await ask(port, 'POST', CHAT, { body: QUESTION, headers })).body).choices?.[0].message.content;

/** One client until the end: what it did, in numbers. */
async function client(port, number, { end, expected, counts }) {
  const random = seeded(100 + number);
  const headers = { 'X-Api-Key': KEYS[number % KEYS.length] };
  for (let i = 0; performance.now() < end; i++) {
    const kind = random();
    if (kind < 0.5) {
      await giveUp(port, headers, random, i);
      counts.left++;
    } else if (kind < 0.9) {
      const [path, body] = anything(random, i);
      const { status } = await ask(port, 'POST', path, { body, headers });
      assert.equal(status, 200);
      counts.read++;
    } else {
      assert.equal(await answerTo(port, headers), expected);
      counts.same++;
    }
  }
}

/** What the server counts. */
async function metricsOf(port) {
  const { body } = await ask(port, 'GET', '/metrics', { headers: { 'X-Api-Key': KEYS[0] } });
  return (name) => Number(new RegExp(`^quern_${name} (\\S+)$`, 'm').exec(body)?.[1]);
}

const idle = async (port) => {
  for (const end = performance.now() + 60_000; ; await sleep(50)) {
    const value = await metricsOf(port);
    if (value('requests_running') + value('requests_waiting') + value('pages{state="used"}') === 0) return value;
    assert.ok(performance.now() < end, 'replies or pages are left over');
  }
};

test(`${CLIENTS} clients that come and go leave nothing behind`, { timeout: 120_000 + 60_000 * MINUTES }, async (t) => {
  const { child, got, ended } = start(['serve', DEMO, '--port', '0', ...FLAGS]);
  t.after(() => child.kill('SIGKILL'));
  await until(() => /is served at http/.test(got.err) || child.exitCode !== null);
  const port = Number(/is served at http:\/\/127\.0\.0\.1:(\d+)/.exec(got.err)?.[1]);
  const expected = await answerTo(port, { 'X-Api-Key': KEYS[0] });
  assert.match(expected, /Nairobi/);
  const before = (await idle(port))('memory_bytes{kind="used"}');

  const counts = { left: 0, read: 0, same: 0 };
  const begun = performance.now();
  const end = begun + 60_000 * MINUTES;
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(port, number, { end, expected, counts })));
  clients.catch(() => {});
  const rss = [];
  while (performance.now() < end) {
    await Promise.race([clients, sleep((60_000 * MINUTES) / SAMPLES)]);
    rss.push(processMemory(child.pid).now);
    if (rss.length % (SAMPLES / 6) === 0) {
      const value = await metricsOf(port);
      t.diagnostic(`${((performance.now() - begun) / 60_000).toFixed(2)} min: ${(rss.at(-1) / 1e6).toFixed(1)} MB, ${JSON.stringify(counts)}, ${value('let_go_total')} times let go, ${value('completion_tokens_total')} tokens`);
    }
  }
  await clients;

  const value = await idle(port);
  const most = [rss.slice(0, rss.length / 2), rss.slice(rss.length / 2)].map((half) => Math.max(...half));
  t.diagnostic(`most memory of the process in each half: ${most.map((bytes) => (bytes / 1e6).toFixed(1)).join(', ')} MB, at the end ${(rss.at(-1) / 1e6).toFixed(1)} MB; of the engine ${before} bytes before, ${value('memory_bytes{kind="used"}')} after`);
  assert.equal(value('memory_bytes{kind="used"}'), before);
  assert.equal(value('engine_restarts_total'), 0);
  assert.ok(counts.left && counts.read && counts.same, JSON.stringify(counts));
  if (MINUTES >= LONG) assert.ok(value('let_go_total') > 0 && most[1] - most[0] < GROWTH, 'the memory grows');
  assert.equal(await answerTo(port, { 'X-Api-Key': KEYS[1] }), expected);
  child.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});
