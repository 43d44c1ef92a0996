// SPDX-License-Identifier: MIT
// Who waits for `quern serve`: bursts of clients as they are by default, whose turn it is, what is held for those who wait, and who is told to come again.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import OpenAI from 'openai';
import { Queue } from '../../../js/cli/serve-queue.js';
import { LIMITS } from '../../../js/cli/serve-http.js';
import { QuernError } from '../../../js/shared/errors.js';
import { length } from '../../fixtures/lengths.mjs';
import { random as seeded } from '../../fixtures/random.mjs';
import { collect, until } from '../support/helper.mjs';
import { ask, dataOf, loadDemo, parsed, playedModel, request, result, startServer } from '../support/serve-host.mjs';

const CHAT = '/v1/chat/completions';
const saying = (content, more) => ({ model: 'x', messages: [{ role: 'user', content }], ...more });

/** A model whose replies end when the test says so, and the contents of those that it was asked for, in order. */
function gated() {
  const begun = [];
  const ends = [];
  const named = new Map();
  const model = playedModel((push, { input, options }) => {
    const content = typeof input === 'string' ? input : input[0].content;
    begun.push(content);
    options.onPrefill?.({ done: 1, total: 1, cached: 0 });
    let end;
    const promise = new Promise((resolve) => { end = (finishReason = 'stop') => resolve(result(content, { finishReason })); });
    ends.push(end);
    named.set(content, end);
    return { promise, stop: () => end('aborted') };
  });
  return { model, begun, ends, end: (content) => named.get(content)?.() };
}

async function withGate(options, use) {
  const gate = gated();
  const one = await startServer({ model: gate.model, ...options });
  try {
    return await use({ ...one, ...gate, post: (content, more = {}, headers = {}) => ask(one.port, 'POST', CHAT, { body: saying(content, more), headers }) });
  } finally {
    for (const content of gate.begun) gate.end(content);
    await one.end();
  }
}

/** Places of a played model, which makes four replies side by side. */
const PLACES = 5;

test('200 clients at once, as they are by default, all have their answer', { timeout: 120_000 }, async () => {
  const model = await loadDemo({ parallel: 8, contextSize: 256 });
  const one = await startServer({ model });
  const answers = await Promise.all(Array.from({ length: 200 }, async (_, i) => {
    const client = new OpenAI({ baseURL: one.url, apiKey: 'none', maxRetries: 0 });
    const body = saying(`Say ${i % 10}.`, { max_tokens: 8, seed: i % 10, stream: i % 2 === 1 });
    const answer = await client.chat.completions.create(body);
    return i % 2 ? (await collect(answer)).map(({ choices: [{ delta }] }) => delta.content ?? '').join('') : answer.choices[0].message.content;
  }));
  assert.ok(answers.every((text, i) => text.length > 0 && text === answers[i % 10]), 'the same seed, the same text');
  await one.end();
});

test('who comes beyond the queue is told when to come again, by what waits', async () => {
  await withGate({ queue: { most: 3 } }, async ({ port, begun, served, post, end, metrics }) => {
    const all = Array.from({ length: PLACES + 3 }, (_, i) => post(`${i}`));
    await until(() => served.queue.size === 3);
    assert.deepEqual(begun.length, PLACES);
    const { status, error, headers } = await post('more');
    assert.deepEqual([status, error.type, error.code], [429, 'rate_limit_error', 'rate_limit_exceeded']);
    assert.match(error.message, /3 requests are waiting/);
    assert.ok(Number(headers['retry-after']) >= 1 && Number(headers['retry-after']) <= 60);
    assert.match((await ask(port, 'GET', '/metrics')).body, /^quern_requests_waiting 3$/m);
    const ending = setInterval(() => begun.forEach(end), 2);
    const answers = await Promise.all(all);
    clearInterval(ending);
    assert.deepEqual(answers.map((answer) => answer.status), Array(PLACES + 3).fill(200));
    assert.equal(served.queue.size, 0);
    assert.match(metrics.text([], {}), /^quern_queue_seconds_count 8$/m);
  });
});

test('Retry-After grows with what waits and with how long it takes, a minute at most', () => {
  let now = 0;
  const queue = new Queue({ most: 1000, parallel: () => 4, now: () => now });
  const who = (n) => ({ key: 0, socket: {}, n });
  const held = Array.from({ length: PLACES }, () => queue.enter(who()));
  now = 10_000;
  for (const place of held) place.leave();      // each took ten seconds
  const times = [];
  for (let i = 0; i < 200; i++) {
    queue.enter(who()).turn?.catch(() => {});
    times.push(queue.retryAfter());
  }
  assert.deepEqual([times[PLACES], times[PLACES + 4], times[PLACES + 9], times[199]], [2, 10, 20, 60]);
  assert.ok(times.every((seconds, i) => i === 0 || seconds >= times[i - 1]));
});

test('a key leaves a quarter of the places to others, once there are some', () => {
  let now = 0;
  const queue = new Queue({ parallel: () => 4, now: () => now });
  const enter = (key, n) => Array.from({ length: n }, () => {
    const place = queue.enter({ key, socket: {} });
    if (!place.turn) place.begin();
    return place;
  });
  const leave = (places) => { for (const place of places.toReversed()) place.leave(); };
  const had = (places) => places.filter(({ turn }) => !turn).length;
  const alone = enter(1, 9);
  assert.equal(had(alone), PLACES);
  leave([...alone, ...enter(2, 1)]);
  now = 10_000;
  const beside = enter(1, 9);
  assert.equal(had(beside), 3);
  const other = enter(2, 1);
  assert.equal(other[0].turn, null, 'the newcomer does not wait');
  leave([...beside, ...other]);
  now = 120_000;
  assert.equal(had(enter(1, 9)), PLACES, 'nobody else has asked for long');
});

test('where others are busy, a key has its share of the places', () => {
  let now = 0;
  const queue = new Queue({ parallel: () => 16, now: () => now });
  const enter = (key, n) => Array.from({ length: n }, () => {
    const place = queue.enter({ key, socket: {} });
    if (!place.turn) place.begin();
    return place;
  });
  const had = (places) => places.filter(({ turn }) => !turn).length;
  const others = [2, 3, 4, 5, 6, 7, 8].flatMap((key) => enter(key, 1));
  const one = enter(1, 20);
  assert.equal(had(others), 7);
  assert.equal(had(one), 3, '20 places for 8 keys');
  for (const place of [...one.toReversed(), ...others]) place.leave();
  now = 1500;
  const again = enter(1, 20);
  assert.equal(had(again), 3, 'who has just asked asks again');
  for (const place of again.toReversed()) place.leave();
  now = 5000;
  assert.equal(had(enter(1, 20)), 12, 'who has not for some seconds leaves but a quarter free');
});

test('keys have places in turn, and so have connections of one key', async () => {
  const rules = { keys: ['one', 'two'] };
  await withGate({ rules }, async ({ begun, served, post, end }) => {
    const key = (name) => ({ Authorization: `Bearer ${name}` });
    const all = Array.from({ length: 20 }, (_, i) => post(`a${i}`, {}, key('one')));
    await until(() => served.queue.size === 20 - PLACES);
    all.push(...Array.from({ length: 6 }, (_, i) => post(`b${i}`, {}, key('two'))));
    await until(() => served.queue.size === 26 - PLACES);
    for (let ended = 0; ended < 10; ended++) {
      end(begun[ended]);
      await until(() => begun.length === PLACES + ended + 1);
    }
    const next = begun.slice(PLACES);
    assert.ok(next.slice(0, 2).every((content) => content.startsWith('b')), `who has none comes first: ${next}`);
    assert.ok(next.slice(0, 6).filter((content) => content.startsWith('b')).length >= 3, `${next}`);
    assert.ok(next.filter((content) => content.startsWith('a')).length >= 4, `${next}`);
    const ending = setInterval(() => begun.forEach(end), 2);
    await Promise.all(all);
    clearInterval(ending);
  });
  await withGate({}, async ({ port, begun, served, post, end }) => {
    const many = connect(port, '127.0.0.1').on('error', () => {});
    many.write(Array.from({ length: 20 }, (_, i) => request('POST', CHAT, { body: saying(`a${i}`) })).join(''));
    await until(() => served.queue.size === 20 - PLACES);
    const other = post('b');
    await until(() => served.queue.size === 21 - PLACES);
    end('a0');
    await until(() => begun.length === PLACES + 1);
    assert.equal(begun.at(-1), 'b', 'nineteen that came before it are of one connection');
    end('b');
    assert.equal((await other).status, 200);
    many.destroy();
    await until(() => served.queue.size === 0 && served.jobs.length === 0);
  });
});

test('who leaves while he waits is not made anything, and his place in the queue is free at once', async () => {
  await withGate({ queue: { most: 2 } }, async ({ port, begun, served, post, end }) => {
    const all = Array.from({ length: PLACES }, (_, i) => post(`${i}`));
    await until(() => begun.length === PLACES);
    for (const stream of [false, true]) {
      const gone = [0, 1].map(() => connect(port, '127.0.0.1').on('error', () => {}));
      for (const socket of gone) socket.write(request('POST', CHAT, { body: saying('gone', { stream }) }));
      await until(() => served.queue.size === 2);
      assert.equal((await post('beyond')).status, 429);
      for (const socket of gone) socket.destroy();
      await until(() => served.queue.size === 0);
    }
    const last = post('last');
    await until(() => served.queue.size === 1);
    begun.forEach(end);
    await until(() => begun.includes('last'));
    end('last');
    assert.deepEqual((await Promise.all([...all, last])).map(({ status }) => status), Array(PLACES + 1).fill(200));
    assert.ok(!begun.includes('gone') && !begun.includes('beyond'));
  });
});

test('what is wrong with a request is said before it waits; a stream that waits has its headers and comments', async () => {
  await withGate({ limits: { acceptMs: 20, pingMs: 10 } }, async ({ port, begun, served, post, end }) => {
    const all = Array.from({ length: PLACES }, (_, i) => post(`${i}`));
    await until(() => begun.length === PLACES);
    for (const stream of [false, true]) {
      const { status, error } = await post('wrong', { top_p: 7, stream });
      assert.deepEqual([status, error.param], [400, 'top_p']);
    }
    const socket = connect(port, '127.0.0.1');
    socket.write(request('POST', CHAT, { body: saying('late', { stream: true }), headers: { Connection: 'close' } }));
    let text = '';
    socket.on('data', (data) => { text += data; });
    await until(() => (text.match(/^: ping$/gm) ?? []).length > 2);
    assert.ok(text.includes(': waiting') && !begun.includes('late') && served.queue.size === 1);
    const over = new Promise((resolve) => { socket.on('close', resolve); });
    end('0');
    await until(() => begun.includes('late'));
    end('late');
    await over;
    assert.equal(parsed(text).status, 200);
    assert.equal(dataOf(parsed(text).body.replace(/^[0-9a-f]+\r\n/gm, '')).at(-1), '[DONE]');
    begun.forEach(end);
    await Promise.all(all);
  });
});

test('the bodies of all that is under way are bounded, and so is what is held of one that waits', async () => {
  assert.ok(LIMITS.bodies >= 64 * 2 ** 20 && LIMITS.bodies <= 256 * 2 ** 20);
  await withGate({ limits: { bodies: 5000 } }, async ({ begun, post, end }) => {
    const first = post('x'.repeat(4000));
    await until(() => begun.length === 1);
    const { status, error, headers } = await post('y'.repeat(2000));
    assert.deepEqual([status, error.code], [429, 'rate_limit_exceeded']);
    assert.ok(Number(headers['retry-after']) >= 1);
    assert.match(error.message, /bodies/);
    begun.forEach(end);
    assert.equal((await first).status, 200);
    const again = post('z'.repeat(4000));
    await until(() => begun.length === 2);
    begun.forEach(end);
    assert.equal((await again).status, 200, 'there is room when it has ended');
  });
});

test('work of several replies waits until there is room for all of them, and nobody overtakes it', async () => {
  const queue = new Queue({ parallel: () => 2 });
  const begun = [];
  const enter = (name, more) => {
    const place = queue.enter({ key: 0, socket: {}, ...more });
    if (place.turn) place.turn.then(() => begun.push(name), () => {});
    else begun.push(name);
    return place;
  };
  const lists = [0, 1, 2].map((i) => enter(`list ${i}`, { kind: 'behind' }));
  const heavy = enter('heavy', { weight: 1000 });
  enter('list 3', { kind: 'behind' });
  enter('reply');
  assert.deepEqual([begun, queue.size], [['list 0', 'list 1', 'list 2'], 3], 'with lists it would be one too many');
  lists[0].leave();
  await Promise.resolve();
  assert.deepEqual([begun.slice(3), queue.size], [['heavy'], 2]);
  heavy.leave();
  await Promise.resolve();
  assert.deepEqual([begun.slice(4), queue.size], [['reply', 'list 3'], 0]);
});

test('at the end who waits is told to come again', async () => {
  await withGate({}, async ({ begun, served, http, post, end }) => {
    const all = Array.from({ length: PLACES + 2 }, (_, i) => post(`${i}`));
    await until(() => served.queue.size === 2);
    http.drain();
    const drained = served.drain(2000);
    begun.forEach(end);
    await drained;
    const statuses = (await Promise.all(all)).map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array(PLACES).fill(200), 503, 503]);
  });
});

test('when the engine fails who waits is told to come again, and has it again later', async () => {
  const fails = [];
  const one = await startServer({ reloadMs: 200, opened: async () => playedModel(() => ({ promise: new Promise((_, reject) => { fails.push(reject); }) })) });
  const all = Array.from({ length: PLACES + 2 }, () => ask(one.port, 'POST', CHAT, { body: saying('x') }));
  await until(() => one.served.queue.size === 2);
  for (const fail of fails) fail(new QuernError('engine/trap', 'Over.'));
  assert.deepEqual((await Promise.all(all)).map(({ status }) => status).sort(), [...Array(PLACES).fill(500), 503, 503]);
  await until(() => one.served.obstacle === null);
  const again = ask(one.port, 'POST', CHAT, { body: saying('x') });
  await until(() => fails.length === PLACES + 1);
  fails.at(-1)(new QuernError('use/param', 'No.'));
  assert.equal((await again).status, 400);
  assert.equal(one.served.queue.size, 0);
  await one.end();
});

test('whoever comes and goes, in any order: no more than the engine takes, nobody for ever, and nothing stays', async () => {
  const random = seeded(37);
  const pick = (list) => list[Math.floor(random() * list.length)];
  for (const parallel of [1, 2, 8, 16]) {
    const queue = new Queue({ most: 40, parallel: () => parallel });
    const sockets = Array.from({ length: 6 }, () => ({}));
    const held = new Set();       // begun
    const waiting = new Map();    // place -> when it came
    let events = 0;
    let longest = 0;
    const begin = (place, asked) => { longest = Math.max(longest, events - (waiting.get(place) ?? events)); waiting.delete(place); held.add({ place, ...asked }); };
    for (; events < length(2000, 100_000) || waiting.size || held.size; events++) {
      const comes = events < length(2000, 100_000);
      const dice = comes ? random() : 0.9;
      if (dice < 0.5) {
        const asked = { key: Math.floor(random() ** 3 * 4), socket: pick(sockets), kind: random() < 0.3 ? 'behind' : 'reply', weight: random() < 0.1 ? 1 + Math.floor(random() * 80) : 1 };
        let place;
        try {
          place = queue.enter(asked);
        } catch ({ status }) {
          assert.equal(status, 429);
          assert.equal(queue.size, 40);
          continue;
        }
        const weight = Math.min(asked.weight, asked.kind === 'behind' ? 2 * parallel : 64);
        if (!place.turn) begin(place, { ...asked, weight });
        else {
          waiting.set(place, events);
          place.turn.then(() => begin(place, { ...asked, weight }), () => waiting.delete(place));
        }
      } else if (dice < 0.6 && waiting.size) pick([...waiting.keys()]).leave();
      else if (held.size) {
        const one = pick([...held]);
        held.delete(one);
        one.place.leave();
        one.place.leave();      // once more changes nothing
      }
      await Promise.resolve();
      const sum = (isBehind) => [...held].filter((one) => (one.kind === 'behind') === isBehind).reduce((all, { weight }) => all + weight, 0);
      assert.ok(sum(false) + sum(true) <= parallel + 64 && sum(true) <= parallel + 32, `${sum(false)} and ${sum(true)} of ${parallel}`);
      assert.equal(queue.size, waiting.size);
      assert.ok(waiting.size === 0 || sum(false) + sum(true) > 0, 'who waits, waits for somebody');
    }
    assert.deepEqual([queue.size, queue.retryAfter()], [0, 1]);
    assert.ok(longest < 2500, `${longest} events`);
  }
});

test('work that waits is sent as the work that it becomes: every path, whole and in pieces', async () => {
  const user = [{ role: 'user', content: 'x' }];
  const bodies = {
    '/v1/chat/completions': { messages: user }, '/v1/completions': { prompt: 'x' }, '/v1/responses': { input: 'x' }, '/v1/messages': { messages: user, max_tokens: 9 },
    '/completion': { prompt: 'x' }, '/api/chat': { messages: user }, '/api/generate': { prompt: 'x' },
  };
  await withGate({ limits: { acceptMs: 20, pingMs: 10 } }, async ({ base, begun, ends, served, post }) => {
    for (const [path, body] of Object.entries(bodies)) {
      for (const stream of [true, false]) {
        const once = async () => {
          const response = await fetch(`${base}${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ ...body, stream }) });
          const text = await response.text();
          return [response.status, response.headers.get('content-type'), text.replace(/^: \w+\n\n|[\da-f]{12,}|[\dTZ:.-]{15,}|\d+/gm, '')];
        };
        const alone = once();
        await until(() => begun.length === 1);
        await new Promise((done) => { setTimeout(done, 40); });
        ends.forEach((end) => end());
        begun.length = 0;
        ends.length = 0;
        const held = Array.from({ length: PLACES }, (_, i) => post(`${i}`));
        await until(() => begun.length === PLACES);
        const late = once();
        await until(() => served.queue.size === 1);
        await new Promise((done) => { setTimeout(done, 60); });
        ends.splice(0).forEach((end) => end());
        await until(() => begun.length === PLACES + 1);
        ends.splice(0).forEach((end) => end());
        await Promise.all(held);
        begun.length = 0;
        assert.deepEqual(await late, await alone, `${path} ${stream}`);
      }
    }
  });
});
