// SPDX-License-Identifier: MIT
// Side workers: what takes long holds nobody but those who asked for it, and each job has an outcome, whatever its worker does.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { load } from '../../../dist/node.js';
import { Grammars } from '../../../js/engine/grammar.js';
import { sharedWord } from '../../../js/shared/shared-word.js';
import { COMPILE } from '../../../js/worker/side-kinds.js';
import { Pace } from '../../../js/worker/side-pace.js';
import { SideWorkers } from '../../../js/worker/side-workers.js';
import { BYTES } from '../../fixtures/byte-tokens.mjs';
import { DEMO, rejectsWith } from '../support/helper.mjs';
import { soon } from '../support/soon.mjs';

const module = new WebAssembly.Module(readFileSync(new URL('../../../dist/grammar.wasm', import.meta.url)));
const setup = () => ({ module });

/** A pattern of nearly a megabyte, each number another one, that takes a second or so. */
const large = (number) => `${'w1|'.repeat(300_000)}${number}`;

const asked = (pattern) => ({ kind: 'regex', bytes: new TextEncoder().encode(pattern), flags: 0 });
const by = (scope, guest = 0) => ({ setup, owner: { scope, guest }, job: { stopped: false, onStop() {} } });

/** A host whose side workers are the package's own; `started` are its workers. */
function host(more = {}) {
  const [started, ready] = [[], []];
  after(() => Promise.all(started.map((worker) => worker.terminate())));
  const aside = () => {
    const worker = new Worker(new URL('../../../dist/worker.node.mjs', import.meta.url), { workerData: 'quern-aside' });
    started.push(worker);
    return {
      post: (message, transfer) => worker.postMessage(message, transfer),
      listen: (receive, fail) => worker.on('message', (message) => { if (message.ready) ready.push(worker); }).on('message', receive).on('error', fail).on('exit', () => fail(new Error('gone'))),
      end: () => worker.terminate(),
    };
  };
  return { started, ready, aside, busy: sharedWord(), rest: () => new Promise((resolve) => { setImmediate(resolve); }), ...more };
}

let model;
before(async () => { model = await load(DEMO, { threads: 1 }); });
after(() => model.dispose());

test('24 large patterns hold neither other requests nor a reply that is being made', async () => {
  await model.chat('Yes?', { regex: 'yes|no'.padEnd(20_000, '|maybe') }).result;
  await soon(250, async () => {
    const stream = model.chat('Tell me a story.', { maxTokens: 2000 });
    const others = Array.from({ length: 24 }, (_, i) => model.chat('Yes?', { regex: large(`${Math.random()}${i}`), maxTokens: 1 }));
    const results = [stream, ...others].map(({ result }) => result.catch((error) => error));
    let longest = 0;
    for (const end = performance.now() + 3000; performance.now() < end; await sleep(5)) {
      const began = performance.now();
      await model.tokenize('a');
      longest = Math.max(longest, performance.now() - began);
    }
    for (const reply of [stream, ...others]) reply.stop();
    assert.ok((await Promise.all(results)).every(({ finishReason }) => finishReason));
    return longest;
  });
});

test('a small schema does not wait for large ones', async () => {
  const ones = [1, 2, 3].map((i) => model.chat('Yes?', { regex: large(`small${i}`), maxTokens: 1 }));
  const results = ones.map(({ result }) => result);
  await sleep(100);
  let done = 0;
  for (const result of results) result.then(() => { done++; });
  assert.equal((await model.chat('Yes?', { choices: ['one', 'two'], seed: 1 }).result).finishReason, 'stop');
  assert.equal(done, 0);
  for (const reply of ones) reply.stop();
  for (const result of results) assert.equal((await result).finishReason, 'aborted');
});

test('a reply that is stopped while its pattern is compiled ends at once, and lets the next one in', async () => {
  const reply = model.chat('Yes?', { regex: large('stopped'), maxTokens: 1 });
  await sleep(200);
  await soon(300, async () => {
    const began = performance.now();
    reply.stop();
    assert.equal((await reply.result).finishReason, 'aborted');
    return performance.now() - began;
  });
  await rejectsWith(model.chat('Yes?', { regex: '(a', maxTokens: 1 }).result, 'use/schema');
});

test('what a worker gives up for a longer job is done in a second one, and those who wait come by what they have used', async () => {
  const one = host();
  const sides = new SideWorkers(one);
  const order = [];
  const run = (name, pattern, who) => sides.run(COMPILE, asked(pattern), who).then((block) => { order.push(name); return block; });
  const all = [run('large', large(1), by(1)), run('larger', large(2), by(1)), run('other', large(3), by(2)), run('small', 'a+', by(3))];
  const blocks = await Promise.all(all);
  assert.ok(blocks.every((block) => block.length > 1000));
  assert.deepEqual(order, ['small', 'large', 'other', 'larger']);
  assert.equal(one.started.length, 2);
});

test('a worker that ends costs its own job alone', async () => {
  const one = host();
  const sides = new SideWorkers(one);
  one.busy[0] = 1;        // so that it takes its time
  const lost = sides.run(COMPILE, asked(large(1)), by(1));
  const waits = sides.run(COMPILE, asked(large(2)), by(2));
  lost.catch(() => {});
  while (one.ready.length < 2) await sleep(5);
  await one.started[1].terminate();
  one.busy[0] = 0;
  await assert.rejects(lost, /gone/);
  assert.ok((await waits).length > 1000);
  assert.ok((await sides.run(COMPILE, asked('b'), by(1))).length > 1000);
});

test('where no worker can be started the work is done here', async () => {
  const never = () => { throw new Error('no workers here'); };
  for (const aside of [never, null]) {
    const sides = new SideWorkers(host({ aside }));
    const blocks = await Promise.all(['a', 'b'].map((pattern) => sides.run(COMPILE, asked(pattern), by(1))));
    assert.ok(blocks.every((block) => block.length > 1000));
    await rejectsWith(sides.run(COMPILE, asked('(a'), by(1)), 'use/schema');
  }
  const silent = host({ aside: () => ({ post() {}, end() {}, listen: (_, fail) => setTimeout(fail, 20, new Error('not found')) }) });
  assert.ok((await new SideWorkers(silent).run(COMPILE, asked('a'), by(1))).length > 1000);
});

test('a job that is stopped has no result, whether it waits or runs, and one that is late neither', async () => {
  const sides = new SideWorkers(host());
  const [runs, waits] = [by(1), by(2)];
  const both = [sides.run(COMPILE, asked(large(1)), runs), sides.run(COMPILE, asked(large(2)), waits)];
  await sleep(300);
  for (const { job } of [runs, waits]) job.onStop();
  for (const one of both) await assert.rejects(one, { isStopped: true });
  await assert.rejects(sides.run(COMPILE, asked(large(3)), { ...by(3), most: 60 }), { isLate: true });
  assert.ok((await sides.run(COMPILE, asked('c'), by(1))).length > 1000);
});

test('while replies are made it pauses three quarters of the time', () => {
  const [busy, stop] = [sharedWord(), sharedWord()];
  const took = () => {
    const pace = new Pace({ id: 1, most: 1e6, words: { busy, stop } });
    const began = performance.now();
    while (pace.spent < 40) {
      for (const end = performance.now() + 3; performance.now() < end;);
      pace.look();
    }
    return performance.now() - began;
  };
  busy[0] = 1;
  assert.ok(took() >= 3 * 40);
  stop[0] = 1;
  assert.equal(new Pace({ id: 1, most: 1e6, words: { busy, stop } }).look(), true);
  assert.equal(new Pace({ id: 2, most: 1e6, words: { busy, stop } }).look(), false);
});

test('what was compiled is remembered for the scope that asked for it, and no scope pushes out what another one has', async () => {
  const compiled = [];
  const grammars = await Grammars.open(module, /** @type {any} */ (BYTES), {
    compile: async ({ kind, bytes, flags }, { owner }) => {
      compiled.push(`${owner.scope} ${new TextDecoder().decode(bytes).split('|')[0]}`);
      return (await COMPILE.open({ module })({ kind, bytes, flags })).value;
    },
  });
  const use = async (name, scope) => { (await grammars.compile('regex', `${name}|${'x'.repeat(20_000)}`, 0, by(scope))).users--; };
  for (const scope of [1, 2, 1, 2]) await use('a', scope);
  assert.deepEqual(compiled.splice(0), ['1 a', '2 a']);
  await Promise.all([use('b', 1), use('b', 1)]);
  assert.deepEqual(compiled.splice(0), ['1 b'], 'what is being compiled is waited for');
  for (let i = 0; i < 30; i++) await use(`c${i}`, 3);
  compiled.splice(0);
  for (const scope of [1, 2]) await use('a', scope);
  assert.deepEqual(compiled, []);
});

test('what takes a moment is compiled here, and what takes longer is not, however short it is', async () => {
  const elsewhere = [];
  const grammars = await Grammars.open(module, /** @type {any} */ (BYTES), {
    compile: async (asked) => {
      elsewhere.push(new TextDecoder().decode(asked.bytes).slice(0, 9));
      return (await COMPILE.open({ module })(asked)).value;
    },
  });
  const schema = { type: 'object', properties: { city: { type: 'string', maxLength: 40 }, day: { format: 'date' } }, required: ['city'] };
  const small = await grammars.compile('schema', JSON.stringify(schema));
  await rejectsWith(grammars.compile('schema', '{"type":"text"}'), 'use/schema');
  assert.deepEqual(elsewhere, []);
  assert.ok(small.mask(small.start)[0x7b >>> 5] >>> (0x7b & 31) & 1, 'it begins with a brace');
  const allOf = Array.from('abcdefghijklmn', (letter) => ({ pattern: `${letter}.*${letter}` }));
  const slow = await grammars.compile('schema', JSON.stringify({ type: 'string', allOf })).catch((error) => error);
  assert.ok(slow.handle || slow.code === 'use/schema', slow.message);
  assert.deepEqual(elsewhere, ['{"type":"']);
});
