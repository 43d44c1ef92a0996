// SPDX-License-Identifier: MIT
// The page's end of the line with a worker that the test plays: nothing waits for ever, whatever happens to it (W03, W07, W09, U02, U04).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { QuernError } from '../../../js/shared/errors.js';
import { Rpc } from '../../../js/page/rpc.js';
import { rejectsWith, rejectsWithAbort } from '../support/helper.mjs';

/** The watchdog never looks. */
const quiet = { clock: { visible: () => true, after: () => () => {} } };

function fakePort() {
  const port = { sent: [], alive: [], terminated: 0 };
  return Object.assign(port, {
    post: (message) => port.sent.push(message),
    onMessage: (receive) => { port.receive = receive; },
    onError: (fail) => { port.fail = fail; },
    keepAlive: (needed) => port.alive.push(needed),
    terminate: () => { port.terminated++; },
  });
}

test('answers find their requests', async () => {
  const port = fakePort();
  const rpc = new Rpc(port, quiet);
  const events = [];
  const first = rpc.call('a', { x: 1 }, { onEvent: (event) => events.push(event) });
  const second = rpc.call('b', {});
  assert.deepEqual(port.sent, [{ type: 'a', id: 1, x: 1 }, { type: 'b', id: 2 }]);
  port.receive({ type: 'done', id: 2, value: 'two' });
  port.receive({ type: 'events', events: [[1, 'e']] });
  port.receive({ type: 'error', id: 1, error: { code: 'use/context', message: 'm', detail: { limit: 5 } } });
  assert.equal(await second.promise, 'two');
  const error = await rejectsWith(first.promise, 'use/context');
  assert.equal(error.detail.limit, 5);
  assert.ok(error.hint.length > 0);
  assert.deepEqual(events, ['e']);
  assert.deepEqual(port.alive, [true, true, false]);
});

test('W11: foreign and late messages are ignored', async () => {
  const port = fakePort();
  const rpc = new Rpc(port, quiet);
  for (const message of [null, 5, 'x', {}, { type: 'done', id: 99 }, { type: 'events', events: [[99, 'e']] }, { type: 'events' }, { type: '__proto__' }]) port.receive(message);
  const { promise } = rpc.call('a', {});
  port.receive({ type: 'done', id: 1, value: 1 });
  port.receive({ type: 'done', id: 1, value: 2 });
  assert.equal(await promise, 1);
});

test('the end of the worker rejects everything, now and later', async () => {
  for (const end of [
    (port) => port.fail(new QuernError('engine/lost', 'gone')),
    (port) => port.receive({ type: 'fatal', error: { code: 'engine/trap', message: 'trap' } }),
  ]) {
    const port = fakePort();
    const rpc = new Rpc(port, quiet);
    const pending = [rpc.call('a', {}), rpc.call('b', {})];
    end(port);
    for (const { promise } of [...pending, rpc.call('c', {})]) await assert.rejects(promise, /^QuernError/);
    await assert.rejects(rpc.ready(), /^QuernError/);
    assert.equal(port.terminated, 1);
    await rpc.close(new QuernError('engine/disposed', 'd'));
    assert.equal(port.terminated, 1);
  }
});

test('every close waits until the worker is gone', async () => {
  const port = fakePort();
  let gone;
  port.terminate = () => new Promise((resolve) => { gone = resolve; });
  const rpc = new Rpc(port, quiet);
  port.receive({ type: 'fatal', error: { code: 'engine/trap', message: 'trap' } });
  let closed = 0;
  const closing = [1, 2].map(() => rpc.close(new QuernError('engine/disposed', 'd')).then(() => { closed++; }));
  await new Promise(setImmediate);
  assert.equal(closed, 0);
  gone();
  await Promise.all(closing);
});

test('a signal rejects at once and tells the worker', async () => {
  const port = fakePort();
  const rpc = new Rpc(port, quiet);
  const abort = new AbortController();
  const { promise } = rpc.call('a', {}, { signal: abort.signal });
  abort.abort();
  await rejectsWithAbort(promise);
  assert.deepEqual(port.sent.at(-1), { type: 'stop', target: 1 });
  port.receive({ type: 'done', id: 1, value: 'late' });
});

test('an aborted signal sends nothing; a custom reason is kept', async () => {
  const port = fakePort();
  const { promise } = new Rpc(port, quiet).call('a', {}, { signal: AbortSignal.abort('my reason') });
  assert.equal(await promise.catch((reason) => reason), 'my reason');
  assert.deepEqual(port.sent, []);
});

test('stop after the end does nothing', async () => {
  const port = fakePort();
  const { promise, stop } = new Rpc(port, quiet).call('a', {});
  port.receive({ type: 'done', id: 1 });
  await promise;
  stop();
  assert.equal(port.sent.length, 1);
});

test('a listener that throws ends its own request only, though others have events in the same message', async () => {
  const port = fakePort();
  const rpc = new Rpc(port, quiet);
  const seen = [];
  const bad = rpc.call('a', {}, { onEvent() { throw new Error('mine'); } });
  const good = rpc.call('b', {}, { onEvent: (event) => seen.push(event) });
  port.receive({ type: 'events', events: [[2, 'e'], [1, 'f'], [2, 'g'], [1, 'h']] });
  await assert.rejects(bad.promise, /mine/);
  assert.deepEqual(port.sent.filter(({ type }) => type === 'stop'), [{ type: 'stop', target: 1 }]);
  port.receive({ type: 'done', id: 2, value: 'fine' });
  assert.equal(await good.promise, 'fine');
  assert.deepEqual(seen, ['e', 'g']);
});

test('an async listener that fails is reported, and nothing else happens', async (t) => {
  const told = t.mock.method(console, 'error', () => {});
  const port = fakePort();
  const rpc = new Rpc(port, quiet);
  const { promise } = rpc.call('a', {}, { async onEvent() { throw new Error('mine'); } });
  port.receive({ type: 'events', events: [[1, 'e']] });
  port.receive({ type: 'done', id: 1, value: 'fine' });
  assert.equal(await promise, 'fine');
  assert.deepEqual(told.mock.calls.map(({ arguments: [words, error] }) => [words, error.message]), [['quern: a callback has failed:', 'mine']]);
});

test('arguments that cannot be sent are the caller\'s error', async () => {
  const port = fakePort();
  port.post = () => { throw new DOMException('no', 'DataCloneError'); };
  await rejectsWith(new Rpc(port, quiet).call('a', {}).promise, 'use/param');
});
