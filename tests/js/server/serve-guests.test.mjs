// SPDX-License-Identifier: MIT
// `quern serve` among guests who take what they can: those who read a little or nothing, and those who ask much at once. Others are answered meanwhile
// as if they were alone, or nearly.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { Outboxes } from '../../../js/cli/serve-outbox.js';
import { Queue } from '../../../js/cli/serve-queue.js';
import { until } from '../support/helper.mjs';
import { ask, endless, loadDemo, parsed, playedModel, request, result, startServer } from '../support/serve-host.mjs';

const CHAT = '/v1/chat/completions';
const HI = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 };
const LETTERS = ' a'.repeat(2 ** 19 - 50);

async function withOne(options, use) {
  const one = await startServer(options);
  const sockets = [];
  const open = (bytes) => {
    const socket = connect(one.port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    socket.write(bytes);
    return socket;
  };
  try {
    return await use({ ...one, open });
  } finally {
    for (const socket of sockets) socket.destroy();
    await one.end();
  }
}

const lettingGo = (metrics, why) => Number(new RegExp(`^quern_clients_let_go_total\\{why="${why}"\\} (\\d+)$`, 'm').exec(metrics.text([], {}))?.[1] ?? 0);
const median = (times) => times.toSorted((a, b) => a - b)[times.length >> 1];

async function timed(work) {
  const began = performance.now();
  const answer = await work();
  return { ms: performance.now() - began, answer };
}

// --- who reads a little ---

test('a hundred who ask for a million pieces and read three kilobytes now and then are let go, and hold little until then', { timeout: 300_000 }, async (t) => {
  const model = playedModel(() => {}, { tokenize: async () => Array(2 ** 20).fill(7), detokenize: async (ids, options) => (options?.bytes ? ids.map(() => Uint8Array.of(97)) : 'a') });
  await withOne({ model, limits: { slowMs: 5000, checkMs: 50 } }, async ({ port, metrics, open }) => {
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let answered = 0;
    let most = 0;
    const looks = setInterval(() => { most = Math.max(most, process.memoryUsage().rss - before); }, 20);
    const deaf = Array.from({ length: 100 }, () => open(request('POST', '/tokenize', { body: { content: 'x'.repeat(1000), with_pieces: true } })));
    for (const socket of deaf) socket.pause();
    const sips = setInterval(() => { for (const socket of deaf) socket.read(3072); }, 1000);
    while (lettingGo(metrics, 'slow') + lettingGo(metrics, 'full') < 20) {
      const honest = fetch(`http://127.0.0.1:${port}/tokenize`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"content": "b"}' });
      const answer = await honest.then(async (one) => ({ status: one.status, size: (await one.text()).length })).catch(() => ({ status: 0 }));    // may be let go in the crowd
      assert.ok([0, 429].includes(answer.status) || (answer.status === 200 && answer.size > 2 ** 20), `status ${answer.status}`);
      answered += Number(answer.status === 200);
    }
    clearInterval(sips);
    clearInterval(looks);
    assert.ok(answered > 0, 'others are answered meanwhile');
    t.diagnostic(`${Math.round(most / 2 ** 20)} MiB more at most, ${lettingGo(metrics, 'slow')} let go as slow, ${lettingGo(metrics, 'full')} for what was held`);
    assert.ok(most < 900 * 2 ** 20, `${most} bytes`);
  });
});

test('a client that reads slowly, but above the lowest rate, has all of its answer; one of a stream too', { timeout: 120_000 }, async () => {
  const model = playedModel((push, call) => endless(push, call, 'x'.repeat(50_000)), { tokenize: async () => Array(4_000_000).fill(100) });
  await withOne({ model, limits: { slowMs: 5000, checkMs: 50, rate: 200_000 } }, async ({ open, metrics }) => {
    for (const bytes of [request('POST', '/tokenize', { body: { content: 'x' }, headers: { Connection: 'close' } }), request('POST', CHAT, { body: { ...HI, stream: true } })]) {
      const socket = open(bytes);
      let size = 0;
      const sips = setInterval(() => { for (let piece; (piece = socket.read(2 ** 18) ?? socket.read());) { size += piece.length; if (piece.length === 2 ** 18) break; } }, 40);
      await until(() => size > 15_000_000, 60_000);
      clearInterval(sips);
      socket.destroy();
    }
    assert.equal(lettingGo(metrics, 'slow'), 0);
  });
});

test('where all hold too much who has stopped reading goes, else there is no room for more, and nobody else', () => {
  let now = 0;
  const gone = [];
  const all = new Outboxes({ unsentOfAll: 1000, slowMs: 1000, rate: 10 }, { letGo: (why) => gone.push(why), now: () => now });
  const client = () => {
    const socket = { destroyed: false, destroy() { this.destroyed = true; } };
    const writes = [];
    const outbox = all.of({ req: { socket }, socket, once() {}, write: (bytes, done) => { writes.push(done); } });
    return { socket, outbox, take: () => writes.splice(0).forEach((done) => done()) };
  };
  const [a, b, c] = [client(), client(), client()];
  const areGone = () => [a, b, c].map(({ socket }) => socket.destroyed);
  a.outbox.write('x'.repeat(400));
  b.outbox.hold(500);
  assert.deepEqual([gone, all.bytes], [[], 900]);
  assert.throws(() => c.outbox.hold(200), ({ status, headers }) => status === 429 && headers['Retry-After'] === '1');
  assert.deepEqual([gone, all.bytes, areGone()], [[], 900, [false, false, false]]);
  now = 2000;
  c.outbox.hold(200);
  assert.deepEqual([gone, all.bytes, areGone()], [['full'], 700, [true, false, false]]);
  c.outbox.end();
  b.outbox.end();
  assert.equal(all.bytes, 0);
});

test('the rate is of what waits: no answer behind another one, and no pause between two, counts', () => {
  let now = 0;
  const gone = [];
  const all = new Outboxes({ unsentOfAll: 1e9, slowMs: 1000, rate: 10 }, { letGo: (why) => gone.push(why), now: () => now });
  const writes = [];
  const socket = { destroyed: false, destroy() { this.destroyed = true; } };
  const response = { req: { socket }, socket: null, once() {}, write: (bytes, done) => { writes.push(done); } };
  const outbox = all.of(response);
  const pass = (ms) => { now += ms; all.look(); };
  outbox.write('behind another');
  pass(5000);
  pass(5000);
  response.socket = socket;
  pass(900);
  writes.splice(0).forEach((done) => done());
  pass(5000);
  outbox.write('x'.repeat(12));
  for (let i = 0; i < 9; i++) {
    outbox.write('x'.repeat(12));
    pass(500);
    writes.shift()();
    pass(500);
  }
  assert.deepEqual(gone, [], 'twelve letters a second');
  pass(900);
  assert.deepEqual(gone, []);
  pass(2500);
  assert.deepEqual([gone, socket.destroyed], [['slow'], true]);
});

test('a stream that is not read is made no further than there is room, and who reads again has all of it', { timeout: 60_000 }, async () => {
  const pieces = 2000;
  const model = playedModel((push, { options }) => {
    options.onPrefill?.({ done: 1, total: 1, cached: 0 });
    for (let i = 0; i < pieces; i++) push({ type: i % 2 ? 'text' : 'thinking', text: 'x'.repeat(10_000) });
    return { promise: Promise.resolve(result('x')) };
  });
  await withOne({ model }, async ({ open }) => {
    const socket = open(request('POST', CHAT, { body: { ...HI, stream: true }, headers: { Connection: 'close' } }));
    socket.pause();
    await new Promise((done) => { setTimeout(done, 500); });
    let text = '';
    socket.on('data', (piece) => { text += piece; });
    socket.resume();
    await new Promise((done) => { socket.on('close', done); });
    const { status, body } = parsed(text);
    assert.deepEqual([status, body.match(/x{10000}/g).length, body.includes('[DONE]')], [200, pieces, true]);
  });
});

// --- who asks much ---

/** How long "Hi" takes, alone and while something else is done over and over: medians of as many, in turn. */
async function besides({ port }, { hi, begin }) {
  const one = async () => {
    const { ms, answer } = await timed(() => ask(port, 'POST', CHAT, { body: HI, headers: hi }));
    assert.equal(answer.status, 200, answer.body);
    return ms;
  };
  await one();
  const alone = [];
  for (let i = 0; i < 5; i++) alone.push(await one());
  const end = begin();
  await new Promise((done) => { setTimeout(done, 300); });
  const among = [];
  for (let i = 0; i < 5; i++) among.push(await one());
  end();
  return { alone: median(alone), among: median(among) };
}

/** Requests on so many connections, each again when it has been answered. */
function storm(port, connections, bytes) {
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    socket.write(bytes);
    socket.on('data', (piece) => { if (/HTTP\/1.1 \d/.test(piece)) socket.write(bytes); });
    return socket;
  });
  return () => sockets.forEach((socket) => socket.destroy());
}

const FIELDS = `{"messages":[{"role":"user","content":"x"}],"temperature":9,"x":[${Array(60_000).fill('{}')}]}`;

for (const [what, path, body] of [['bodies that are refused', CHAT, FIELDS], ['texts to tokenize', '/tokenize', { content: LETTERS.slice(0, 2 ** 17) }]]) {
  for (const keyed of [true, false]) {
    test(`150 ${what}, of ${keyed ? 'another key' : 'one other connection'}, and "Hi" is answered soon`, { timeout: 300_000 }, async (t) => {
      const rules = keyed ? { keys: ['one', 'two'] } : {};
      const model = await loadDemo({ parallel: 8, contextSize: 512 });
      await withOne({ model, rules }, async ({ port }) => {
        const key = (name) => (keyed ? { Authorization: `Bearer ${name}` } : {});
        const bytes = request('POST', path, { body, headers: key('one') });
        const [connections, each] = keyed ? [150, bytes] : [1, bytes.repeat(60)];
        const { alone, among } = await besides({ port }, { hi: key('two'), begin: () => storm(port, connections, each) });
        t.diagnostic(`${alone.toFixed(0)} ms alone, ${among.toFixed(0)} ms among them`);
        assert.ok(among < 8 * alone + 1000, `${alone} and ${among} ms`);
      });
    });
  }
}

test('where the queue is full who has the most waiting gives one up to who has none', async () => {
  const queue = new Queue({ most: 6, parallel: () => 1 });
  const sockets = Array.from({ length: 3 }, () => ({}));
  const told = [];
  const enter = (name, key, socket) => {
    const place = queue.enter({ key, socket });
    place.turn?.then(() => told.push(name), ({ status }) => told.push(`${name} ${status}`));
    return place;
  };
  const held = [enter('a0', 1, sockets[0]), enter('a1', 1, sockets[0])];
  for (let i = 2; i < 8; i++) enter(`a${i}`, 1, sockets[i % 2]);
  assert.equal(queue.size, 6);
  assert.throws(() => enter('a8', 1, sockets[0]), ({ status, headers }) => status === 429 && Number(headers['Retry-After']) > 0);
  enter('b', 2, sockets[2]);
  await Promise.resolve();
  assert.deepEqual([told, queue.size], [['a7 429'], 6]);
  held[0].leave();
  await Promise.resolve();
  assert.deepEqual(told, ['a7 429', 'b']);
});

test('nobody has all places with what the model has not begun with, and heavy requests count for more', async () => {
  const queue = new Queue({ parallel: () => 8 });
  const enter = (key, bytes) => queue.enter({ key, socket: {}, bytes });
  const light = Array.from({ length: 9 }, () => enter(1, 100));
  assert.deepEqual(light.map(({ turn }) => turn === null), [true, true, true, true, true, false, false, false, false]);
  light[0].begin();
  await Promise.resolve();
  assert.equal(queue.size, 4 - 1);
  const heavy = Array.from({ length: 3 }, () => enter(2, 1e6));
  assert.deepEqual(heavy.map(({ turn }) => turn === null), [true, true, false]);
  assert.equal(enter(3, 10).turn, null, 'who has none is let in');
  heavy[1].begin();
  await Promise.resolve();
  assert.equal(queue.size, 3 + 1 - 1);
});

test('responses in the background wait for a place like others, and end where they are cancelled before', async () => {
  const ends = [];
  const model = playedModel((push, { options }) => {
    options.onPrefill?.({ done: 1, total: 1, cached: 0 });
    let end;
    const promise = new Promise((resolve) => { end = (finishReason = 'stop') => resolve(result('done', { finishReason })); });
    ends.push(end);
    return { promise, stop: () => end('aborted') };
  });
  await withOne({ model }, async ({ port, served, base }) => {
    const begin = async (input) => JSON.parse((await ask(port, 'POST', '/v1/responses', { body: { input, background: true } })).body);
    const all = [];
    for (let i = 0; i < 8; i++) all.push(await begin('x'));
    assert.deepEqual([ends.length, served.queue.size], [5, 3]);
    assert.ok(all.every(({ status }) => status === 'queued'));
    const status = async ({ id }) => (await (await fetch(`${base}/v1/responses/${id}`)).json()).status;
    const { body } = await ask(port, 'POST', `/v1/responses/${all[7].id}/cancel`);
    assert.equal(JSON.parse(body).status, 'cancelled');
    assert.deepEqual([served.queue.size, ends.length], [2, 5]);
    ends.forEach((end) => end());
    await until(() => ends.length === 7);
    ends.forEach((end) => end());
    await until(() => served.jobs.length === 0);
    assert.deepEqual(await Promise.all(all.map(status)), [...Array(7).fill('completed'), 'cancelled']);
  });
});
