// SPDX-License-Identifier: MIT
// Where the time of keeping a conversation goes, and what it costs somebody who writes beside it: the worker's own parts over an engine that is fed
// here. The conversation is one that is kept already, whose ids its file tells; anywhere, but with one thread beside the engine's.
import { Engine } from '../../js/engine/engine.js';
import { instantiate } from '../../js/engine/instance.js';
import { QuernError } from '../../js/shared/errors.js';
import { Saving } from '../../js/worker/saving.js';
import { Runner } from '../../js/worker/runner.js';

const [HEADER, DATE, PAGE] = [4096, 8, 32];
const ENOUGH = new QuernError('use/param', 'The reply itself is of no interest.');

/** Adds what calls of some methods take to `sums`, by a name. */
function clocked(thing, names, sums) {
  for (const [method, nameOf] of Object.entries(names)) {
    const real = thing[method].bind(thing);
    thing[method] = (...args) => {
      const name = typeof nameOf === 'function' ? nameOf(...args) : nameOf;
      const start = performance.now();
      const add = (value) => {
        sums[name] = (sums[name] ?? 0) + performance.now() - start;
        return value;
      };
      const value = real(...args);
      return typeof value?.then === 'function' ? value.then(add) : add(value);
    };
  }
  return thing;
}

/** The ids of the conversation that a store keeps, and one more. */
async function keptIds(store) {
  const name = (await store.list()).find((one) => one.startsWith('kv-'));
  const file = await store.open(name, { write: false });
  const take = async (at, bytes) => {
    const got = await file.read(at, bytes);
    return typeof got === 'number' ? bytes : got;
  };
  const header = await take(0, new Uint8Array(HEADER));
  const record = Number(new DataView(header.buffer, header.byteOffset).getBigUint64(32, true));
  const size = await file.size();
  const ids = [];
  for (let at = HEADER; at + record + DATE <= size; at += record) {
    const head = await take(at, new Uint8Array(8 * PAGE));
    ids.push(...Array.from(new BigUint64Array(head.slice().buffer), Number));
  }
  await file.close();
  return Int32Array.from([...ids, 1]);
}

/** Ends when it is its turn. */
const silent = (ids) => ({
  ids, media: [], place: {}, hold: (sequence) => sequence.set(ids, 'held'), begin() { throw ENOUGH; }, stop: () => ({}),
});

/** Writes one token until it is stopped, and remembers when. */
const writing = (ids, token, times) => ({
  place: {},
  hold: (sequence) => sequence.set(ids, 'held'),
  begin: (sequence) => sequence.begin({
    temperature: 0, topK: 0, topP: 1, minP: 0, repeatPenalty: 1, presencePenalty: 0, frequencyPenalty: 0, seed: 1, bias: [[token, 1000]], silent: [],
    maxTokens: 1e6,
  }),
  take({ type }) {
    if (type === 'token') times.push(performance.now());
    return type === 'end' ? {} : null;
  },
  stop: () => ({}),
});

const lone = () => ({ stopped: false, onStop() {} });

/** Longest gap and 99th percentile, ms, of what was written between two times. */
function gapsOf(times, from, to) {
  const within = times.filter((time) => time >= from && time <= to);
  const gaps = [from, ...within].slice(1).map((time, i) => time - [from, ...within][i]).sort((a, b) => a - b);
  return { n: gaps.length, longest: gaps.at(-1) ?? to - from, p99: gaps[Math.floor(0.99 * gaps.length)] ?? to - from };
}

/**
 * @param {object} where
 * @param {Function} where.glue
 * @param {WebAssembly.Module} where.module
 * @param {() => AsyncIterable<Uint8Array>} where.chunks of the model
 * @param {object} where.store with one conversation
 * @param {() => Promise<void>} where.rest
 * @param {number} where.token the one that is written
 * @param {boolean} beside whether somebody writes
 */
async function restored({ glue, module, chunks, store, rest, token }, beside) {
  const instance = await instantiate(glue, module, 2, 32);
  const engine = new Engine(instance, { threads: 2, memoryLimit: instance.maximum, contextSize: 2560, kvPositions: 5120, parallel: 2 });
  for await (const chunk of chunks()) engine.feed(chunk);
  engine.finish();
  const ids = await keptIds(store);
  const sums = {};
  const begin = engine.sequence.bind(engine);
  let first;
  let last;
  engine.sequence = (place) => {
    const sequence = clocked(begin(place), { take: 'takeMs' }, sums);
    const { give } = sequence;
    sequence.give = (record, meanwhile = () => {}) => {
      const start = performance.now();
      let read = 0;
      const found = give.call(sequence, record, () => {
        const between = performance.now();
        meanwhile();
        read = performance.now() - between;
      });
      last = performance.now();
      sums.giveMs = (sums.giveMs ?? 0) + last - start - read;
      return found;
    };
    return sequence;
  };
  clocked(engine, { identify: 'fingerprintMs' }, sums);
  const measured = {
    list: () => store.list(), usage: () => store.usage(), remove: (name) => store.remove(name), lock: (...args) => store.lock(...args),
    async open(name, options) {
      first ??= performance.now();
      const file = await store.open(name, options);
      return file && clocked({
        size: () => file.size(), read: (...args) => file.read(...args), write: (...args) => file.write(...args),
        truncate: (size) => file.truncate(size), flush: () => file.flush(), close: () => file.close(),
      }, { read: (_, target) => (target.length > HEADER ? 'readMs' : 'headsMs'), write: 'writeMs', truncate: 'endMs', flush: 'endMs', close: 'endMs' }, sums);
    },
  };
  clocked(measured, { open: 'openMs' }, sums);
  const runner = new Runner(engine, rest);
  const fail = (error) => { throw error; };
  const saving = new Saving(engine, runner, { store: measured, tell: fail, fail });
  const times = [];
  const job = lone();
  const writer = beside && runner.add(writing(Int32Array.from([5, 6, 7]), token, times), job);
  const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
  const phases = {};
  const phase = async (name, work) => {
    const start = performance.now();
    await work();
    phases[name] = { ms: performance.now() - start, ...(beside && gapsOf(times, start, performance.now())) };
  };
  if (beside) await phase('alone', () => pause(4000));
  if (beside) await phase('fingerprint', () => saving.expect());
  await phase('restore', () => saving.run('talk', silent(ids), lone()).catch((error) => { if (error !== ENOUGH) throw error; }));
  const restoreMs = last - first;
  const parts = { ...sums, openToLastGiveMs: restoreMs - (beside ? 0 : sums.fingerprintMs ?? 0) };
  if (beside) {
    await phase('append', async () => {
      const work = silent(ids);
      work.begin = () => { };
      work.look = () => ({});
      await saving.run('another', work, lone());
      await saving.saved();
    });
    await saving.forget('another');
    job.stopped = true;
    job.onStop();
    await writer;
  }
  engine.close();
  return { ...parts, phases };
}

export const parts = (where) => restored(where, false);
export const gaps = async (where) => (await restored(where, true)).phases;
