// SPDX-License-Identifier: MIT
// A device that is lost, and the processor that goes on: every event comes once, the result is the processor's, and whoever leaves meanwhile has left.
// The workers are played; tests/js/gpu/loss.test.mjs has real ones.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { startLate } from '../../../js/page/start-late.js';
import { QuernError } from '../../../js/shared/errors.js';
import { rejectsWith } from '../support/helper.mjs';

mock.method(console, 'warn', () => {});

const lost = () => new QuernError('gpu/lost', 'gone');
const GPU = { vendor: 'played', exact: true };

/** A worker: a request plays its payload's events, one each turn, until the test has it lose its device. */
class Worker {
  calls = [];
  closed = null;
  isLost = false;
  onEvent = () => {};      // called after each event

  constructor({ backend = 'cpu', quantize = 'none' }) {
    this.answer = { backend, gpu: backend === 'cpu' ? null : GPU, quantize, variant: backend === 'cpu' ? 'simd' : 'webgpu' };
  }

  get rpc() { return { call: (...given) => this.call(...given), close: async (reason) => { this.closed ??= reason; } }; }

  call(type, payload, { signal, onEvent }) {
    const one = { type, payload, isStopped: false };
    this.calls.push(one);
    return { promise: this.#play(one, signal, onEvent), stop: () => { one.isStopped = true; } };
  }

  async #play(one, signal, onEvent) {
    const { events = [], result = {} } = await one.payload.of?.(this.answer.backend, one) ?? one.payload;
    for (const event of events) {
      await turn();
      if (this.closed) throw this.closed;
      signal?.throwIfAborted();
      if (this.isLost) throw lost();
      if (one.isStopped) break;
      onEvent({ ...event });
      this.onEvent(event);
    }
    await turn();
    if (this.closed) throw this.closed;
    if (this.isLost) throw lost();
    return { value: { finishReason: one.isStopped ? 'aborted' : 'stop', ...structuredClone(result) }, memory: { used: 1 }, work: { steps: 2 } };
  }
}

/** Opens a model with `backend`; `loads` does more than nothing when the model is loaded again. */
async function open(options = {}, loads = async () => {}) {
  const workers = [];
  const start = async (platform, type, source, given) => {
    if (workers.length) await loads(given, workers);
    given.signal?.throwIfAborted();
    workers.push(new Worker(given));
    return { rpc: workers.at(-1).rpc, answer: workers.at(-1).answer, given };
  };
  const { rpc, answer } = await startLate(start, {}, 'load', 'a source', { backend: 'webgpu', ...options });
  return { rpc, answer, workers };
}

const texts = (text) => [...text].map((letter) => ({ type: 'text', text: letter }));

/** Asks, and loses the device after the event number `at`. */
function ask({ rpc, workers }, payload, at = Infinity, how = {}) {
  const told = [];
  let n = 0;
  workers[0].onEvent = () => { if (++n === at) workers[0].isLost = true; };
  const { promise, stop } = rpc.call('chat', payload, { ...how, onEvent: (event) => { told.push(event); how.onEvent?.(event); } });
  promise.catch(() => {});
  return { told, promise, stop };
}

test('a reply goes on where it was, and tells each event once', async () => {
  const events = texts('The mill stands on the river.');
  for (let at = 1; at < events.length; at++) {
    const opened = await open();
    const { told, promise } = ask(opened, { events, result: { text: 'T' } }, at);
    const { value, ...facts } = await promise;
    assert.deepEqual([told, value.text, value.finishReason], [events, 'T', 'stop']);
    assert.deepEqual([facts.backend, facts.variant, facts.gpu, facts.memory], ['cpu', 'simd', { ...GPU, lost: true }, { used: 1 }]);
    assert.equal(opened.workers.length, 2);
    assert.ok(opened.workers[0].closed && !opened.workers[1].closed);
  }
});

test('several that are under way all go on, and one new worker is enough', async () => {
  const opened = await open();
  const all = ['one', 'two', 'three'].map((text) => ask(opened, { events: texts(text) }, 4));
  await Promise.all(all.map(({ promise }) => promise));
  assert.deepEqual(all.map(({ told }) => told.map(({ text }) => text).join('')), ['one', 'two', 'three']);
  assert.equal(opened.workers.length, 2);
  assert.deepEqual(opened.workers[1].calls.map(({ payload }) => payload.events.length).sort(), [3, 3, 5]);
  const { promise } = opened.rpc.call('tokenize', { result: {} });
  assert.equal((await promise).backend, 'cpu');
});

test('a loss is noticed by what is asked next, and what waits for no events is asked again', async () => {
  const opened = await open();
  opened.workers[0].isLost = true;
  assert.equal((await opened.rpc.call('tokenize', { result: { n: 3 } }).promise).value.n, 3);
});

test('ids of tool calls are those that were told, and so is what the cache had', async () => {
  const of = (backend) => {
    const id = `call_${backend}`;
    return {
      events: [
        { type: 'prefill', phase: 'text', done: 10, total: 20, cached: 10 }, { type: 'prefill', phase: 'text', done: 20, total: 20, cached: backend === 'cpu' ? 0 : 10 },
        { type: 'tool-call-start', index: 0, id, name: 'f' }, { type: 'tool-call-delta', index: 0, delta: '{}' }, { type: 'tool-call', index: 0, id, name: 'f', arguments: {} },
      ],
      result: { toolCalls: [{ id, name: 'f' }], unfinishedCall: { id: '', name: '', text: '' }, usage: { cachedTokens: 0 } },
    };
  };
  for (const at of [1, 3, 4]) {
    const { told, promise } = ask(await open(), { of }, at);
    const { value } = await promise;
    const id = at >= 3 ? 'call_webgpu' : 'call_cpu';
    assert.deepEqual(told.map(({ type, done = 0 }) => `${type} ${done}`), ['prefill 10', 'prefill 20', 'tool-call-start 0', 'tool-call-delta 0', 'tool-call 0']);
    assert.deepEqual([told[1].cached, told[2].id, told[4].id, value.toolCalls[0].id, value.usage.cachedTokens], [10, id, id, id, 10]);
  }
});

test('what the processor says must be what was told', async () => {
  const of = (backend) => ({ events: texts(backend === 'cpu' ? 'one thing' : 'another') });
  const other = ask(await open(), { of }, 3);
  await rejectsWith(other.promise, 'gpu/lost', /something else/);
  assert.equal(other.told.length, 3);
  const short = ask(await open(), { of: (backend) => ({ events: texts(backend === 'cpu' ? 'on' : 'one') }) }, 3);
  await rejectsWith(short.promise, 'gpu/lost', /something else/);
});

test('a stop during the change ends the reply where it was', async () => {
  let isChanging;
  const changing = new Promise((resolve) => { isChanging = resolve; });
  const opened = await open({}, async () => { isChanging(); await turn(); });
  const reply = ask(opened, { events: texts('0123456789') }, 5);
  await changing;
  reply.stop();
  assert.equal((await reply.promise).value.finishReason, 'aborted');
  assert.deepEqual(reply.told, texts('01234'));
});

test('an abort during the change is at once, and the others go on', async () => {
  const controller = new AbortController();
  const opened = await open({}, async () => { controller.abort(new Error('enough')); await turn(); await turn(); });
  const reply = ask(opened, { events: texts('0123456789') }, 5, { signal: controller.signal });
  const beside = ask(opened, { events: texts('abc') }, 5);
  await assert.rejects(reply.promise, /enough/);
  assert.equal(opened.workers.length, 1, 'the other worker is still being loaded');
  await beside.promise;
  assert.deepEqual(beside.told, texts('abc'));
});

test('the end of the model during the change ends the load and what waits for it', async () => {
  const disposed = new QuernError('engine/disposed', 'over');
  let opened;
  let closing;
  opened = await open({}, async () => { closing = opened.rpc.close(disposed); await turn(); });
  const reply = ask(opened, { events: texts('0123456789') }, 5);
  await rejectsWith(reply.promise, 'engine/disposed');
  await closing;
  assert.equal(opened.workers.length, 1);
  await rejectsWith(opened.rpc.call('tokenize', {}).promise, 'engine/disposed');
});

test('a model whose source is gone ends with gpu/lost, which says why, now and later', async () => {
  const opened = await open({}, async () => { throw new QuernError('net/offline', 'There is no network.'); });
  const reply = ask(opened, { events: texts('0123456789') }, 5);
  await rejectsWith(reply.promise, 'gpu/lost', /loaded for the processor: There is no network\.$/);
  await rejectsWith(opened.rpc.call('tokenize', {}).promise, 'gpu/lost');
  await opened.rpc.close(new QuernError('engine/disposed', 'over'));
});

test('it is loaded for the processor with the weights that the device had', async () => {
  let again;
  const opened = await open({ onProgress() {}, threads: 2, quantize: 'auto' }, async (given) => { again = given; });
  opened.workers[0].isLost = true;
  await opened.rpc.call('tokenize', {}).promise;
  const { signal: _, ...given } = again;
  assert.deepEqual(given, { backend: 'cpu', onProgress: undefined, threads: 2, quantize: opened.answer.quantize });
});

test('a device that fails during the load leaves the load to the processor, if that may be', async () => {
  const cases = ['gpu/lost', 'env/gpu', 'mem/load', 'model/format'].flatMap((code) => ['auto', 'webgpu'].map((backend) => ({ backend, code })));
  for (const { backend, code } of cases) {
    const goesOn = backend === 'auto' && code !== 'model/format';
    const asked = [];
    const start = async (platform, type, source, given) => {
      asked.push(given.backend);
      if (given.backend !== 'cpu') throw new QuernError(code, 'no');
      return { rpc: new Worker(given).rpc, answer: { backend: 'cpu' } };
    };
    const found = await startLate(start, {}, 'load', 'a source', { backend }).catch((error) => error);
    assert.deepEqual([found.code, asked], goesOn ? [undefined, ['auto', 'cpu']] : [code, [backend]]);
  }
});
