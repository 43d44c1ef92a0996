// SPDX-License-Identifier: MIT
// A reply without an engine: how it is read, ended and failed (U05, U14).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reply } from '../../../js/page/reply.js';
import { QuernError } from '../../../js/shared/errors.js';
import { collect } from '../support/helper.mjs';

/** A reply whose events the test sends; `stop` ends it as the worker would, a little later. */
function fakeReply() {
  const fake = { stops: 0 };
  fake.reply = new Reply((push) => {
    fake.push = (text, type = 'text') => push({ type, text });
    const promise = new Promise((resolve, reject) => Object.assign(fake, { resolve, reject }));
    return { promise, stop: () => { fake.stops++; setTimeout(fake.resolve, 5, { finishReason: 'aborted' }); } };
  });
  return fake;
}

test('yields plain strings and is not thenable', async () => {
  const fake = fakeReply();
  assert.equal(fake.reply.then, undefined);
  const reading = collect(fake.reply);
  fake.push('a');
  fake.push('hm', 'thinking');
  await null;
  fake.push('b');
  fake.resolve({ text: 'ab' });
  assert.equal((await reading).join(''), 'ab');
  assert.deepEqual(await fake.reply.result, { text: 'ab' });
});

test('events keep thinking apart and in order', async () => {
  const fake = fakeReply();
  fake.push('x', 'thinking');
  fake.push('y', 'thinking');
  fake.push('z');
  fake.resolve({});
  assert.deepEqual(await collect(fake.reply.events), [{ type: 'thinking', text: 'xy' }, { type: 'text', text: 'z' }]);
});

test('what waits to be read is joined, so nothing piles up', async () => {
  const fake = fakeReply();
  for (let i = 0; i < 10_000; i++) fake.push('ab');
  fake.resolve({});
  assert.deepEqual(await collect(fake.reply), ['ab'.repeat(10_000)]);
});

test('pieces of different calls are not joined', async () => {
  let push;
  const reply = new Reply((given) => { push = given; return { promise: Promise.resolve({}), stop() {} }; });
  for (const [index, delta] of [[0, 'a'], [0, 'b'], [1, 'c'], [1, 'd']]) push({ type: 'tool-call-delta', index, delta });
  for (const index of [0, 1]) push({ type: 'tool-call', index, id: `${index}` });
  assert.deepEqual(await collect(reply.events), [
    { type: 'tool-call-delta', text: '', index: 0, delta: 'ab' }, { type: 'tool-call-delta', text: '', index: 1, delta: 'cd' },
    { type: 'tool-call', text: '', index: 0, id: '0' }, { type: 'tool-call', text: '', index: 1, id: '1' },
  ]);
});

test('break, return and throw stop the work', async () => {
  for (const leave of [
    async (reply) => { for await (const _ of reply) break; },
    async (reply) => { await (async () => { for await (const _ of reply) return; })(); },
    async (reply) => { await assert.rejects(async () => { for await (const _ of reply) throw new Error('mine'); }, /mine/); },
    async (reply) => { for await (const _ of reply.events) break; },
  ]) {
    const fake = fakeReply();
    fake.push('a');
    await leave(fake.reply);
    assert.equal(fake.stops, 1);
    assert.equal((await fake.reply.result).finishReason, 'aborted');
  }
});

test('return() ends a next() that is waiting', async () => {
  const iterator = fakeReply().reply[Symbol.asyncIterator]();
  const waiting = iterator.next();
  await iterator.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
});

test('stop() lets the reader finish what has come', async () => {
  const fake = fakeReply();
  fake.push('a');
  fake.reply.stop();
  assert.deepEqual(await collect(fake.reply), ['a']);
});

test('an error reaches the reader after the text before it, and the result', async () => {
  const fake = fakeReply();
  fake.push('a');
  fake.reject(new Error('broken'));
  const seen = [];
  await assert.rejects(async () => { for await (const text of fake.reply) seen.push(text); }, /broken/);
  assert.deepEqual(seen, ['a']);
  await assert.rejects(fake.reply.result, /broken/);
});

test('an error that nobody looks at is no unhandled rejection', async () => {
  let unhandled = 0;
  const count = () => { unhandled++; };
  process.on('unhandledRejection', count);
  fakeReply().reject(new Error('unseen'));
  await new Promise((done) => { setTimeout(done, 20); });
  process.off('unhandledRejection', count);
  assert.equal(unhandled, 0);
});

test('a reply is read once', async () => {
  const { reply } = fakeReply();
  reply[Symbol.asyncIterator]();
  assert.throws(() => reply[Symbol.asyncIterator](), { code: 'use/busy' });
  assert.throws(() => reply.events[Symbol.asyncIterator](), { code: 'use/busy' });
});

test('as a stream of bytes, which a Response takes', async () => {
  const fake = fakeReply();
  for (const [text, type] of [['Grü', 'text'], ['hm', 'thinking'], ['ße 👩‍🌾', 'text']]) fake.push(text, type);
  const body = new Response(fake.reply.toReadableStream()).text();
  fake.push('!');
  fake.resolve({});
  assert.equal(await body, 'Grüße 👩‍🌾!');
  const failing = fakeReply();
  const read = new Response(failing.reply.toReadableStream()).text();
  failing.reject(new QuernError('engine/trap', 'Over.'));
  await assert.rejects(read, { code: 'engine/trap' });
  const left = fakeReply();
  const reader = left.reply.toReadableStream().getReader();
  left.push('a');
  await reader.read();
  await reader.cancel();
  assert.equal(left.stops, 1);
  assert.throws(() => left.reply.toReadableStream(), { code: 'use/busy' });
});
