// SPDX-License-Identifier: MIT
// Slices of work beside the model's steps (js/worker/turns.js), over a clock that the test plays: who comes first, how much of the time of steps
// is taken, and that nobody waits for ever, whoever else comes, stops or fails.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as task } from 'node:timers/promises';
import { Turns } from '../../../js/worker/turns.js';

const owner = (scope, guest = 0) => ({ scope, guest });

/** Turns over a clock that only work and steps move; `done` says who had a slice, in order. */
function played() {
  const clock = { now: 0 };
  const turns = new Turns(task, () => clock.now);
  const done = [];
  const slice = (name, who, ms) => turns.run(who, (most) => {
    done.push(name);
    clock.now += ms ?? most;
  });
  /** So many milliseconds of slices. */
  const long = async (name, who, ms) => {
    for (let left = ms; left > 0; left -= 5) await slice(name, who, Math.min(5, left));
  };
  /** So many steps, with what comes between them. */
  const steps = async (n, ms, owners) => {
    turns.begin();
    for (let i = 0; i < n; i++) {
      clock.now += ms;
      await turns.after(ms, owners);
    }
    turns.end();
  };
  return { clock, turns, done, slice, long, steps };
}

const count = (done, name) => done.filter((one) => one === name).length;

test('what a slice returns or throws goes to whom it belongs, also where it comes later', async () => {
  const { turns } = played();
  assert.equal(await turns.run(owner(0), (ms) => ms), 5);
  assert.equal(await turns.run(owner(0), async () => { await task(); return 'later'; }), 'later');
  await assert.rejects(turns.run(owner(0), () => { throw new Error('bad'); }), /bad/);
  await assert.rejects(turns.run(owner(0), () => Promise.reject(new Error('late'))), /late/);
  assert.equal(await turns.run(owner(0), () => 'on'), 'on');
});

test('who has used less comes first: two scopes share alike, however many jobs one of them has', async () => {
  const { done, long } = played();
  const many = Array.from({ length: 50 }, (_, i) => long('many', owner(1, i), 100));
  await task();
  await Promise.all([...many, long('one', owner(2), 100)]);
  const last = done.lastIndexOf('one');
  assert.equal(count(done, 'one'), 20);
  assert.ok(count(done.slice(0, last), 'many') <= 22, `${count(done.slice(0, last), 'many')} slices of the other's before its last`);
});

test('beside the replies of many, the slices of one take no more than his part', async () => {
  const taken = async (owners, waiting) => {
    const { clock, long, steps } = played();
    for (let i = 0; i < waiting; i++) long('slices', owner(i), 1e6);
    await task();
    await steps(20, 100, owners);
    return (clock.now - 2000) / 2000;
  };
  const share = async (owners, waiting) => Math.round(100 * await taken(owners, waiting)) / 100;
  assert.equal(await share(1, 1), 0.2);
  assert.equal(await share(8, 1), 0.03);
  assert.equal(await share(8, 4), 0.1);
  assert.equal(await share(2, 9), 0.2);
});

test('within a scope guests share alike', async () => {
  const { done, long } = played();
  const many = Array.from({ length: 50 }, () => long('many', owner(1, 1), 100));
  await Promise.all([...many, long('one', owner(1, 2), 100)]);
  assert.ok(count(done.slice(0, done.lastIndexOf('one')), 'many') <= 22);
});

test('what a guest has asked for comes in the order in which he has, until it has taken long', async () => {
  const { done, long } = played();
  await Promise.all([long('first', owner(1), 200), long('second', owner(1), 20)]);
  assert.ok(done.lastIndexOf('first') < done.indexOf('second'), done.join(' '));
  done.length = 0;
  await Promise.all([long('first', owner(1), 1000), long('second', owner(1), 20)]);
  assert.ok(done.indexOf('second') >= 250 / 5 && done.lastIndexOf('second') < done.lastIndexOf('first'), done.join(' '));
});

test('who has used much of late comes behind who has used little, until it is forgotten', async () => {
  const { clock, done, long, slice } = played();
  await long('much', owner(1), 1000);
  await Promise.all([slice('much', owner(1)), slice('little', owner(2))]);
  assert.deepEqual(done.slice(-2), ['little', 'much']);
  clock.now += 120_000;
  const waits = slice('first', owner(1));
  clock.now += 10;
  await Promise.all([waits, slice('second', owner(2))]);
  assert.deepEqual(done.slice(-2), ['first', 'second'], 'nothing is left of it but who came first');
});

test('nobody waits for ever for others who are always new', async () => {
  const { clock, done, long, slice } = played();
  await long('old', owner(0, 1), 200);
  const began = clock.now;
  const old = slice('old', owner(0, 1)).then(() => clock.now - began);
  for (let i = 2; i < 2000; i++) {
    slice('new', owner(0, i));
    await task();
  }
  assert.ok(await old < 1500, `it waited for ${await old} ms`);
  assert.ok(count(done, 'new') > 100);
});

test('while steps are made slices take a fifth of their time, but half a millisecond beside a short one', async () => {
  for (const [ms, wanted] of [[1, 0.5], [10, 0.2], [20, 0.2], [100, 0.2]]) {
    const { clock, turns, done, steps } = played();
    let longest = 0;
    let over = false;
    const busy = (async () => {
      while (!over) {
        await turns.run(owner(1), (most) => {
          done.push('work');
          longest = Math.max(longest, most);
          clock.now += most;
        });
      }
    })();
    const began = clock.now;
    await steps(500, ms);
    const share = (clock.now - began - 500 * ms) / (500 * ms);
    over = true;
    await busy;
    assert.ok(Math.abs(share - wanted) < 0.01, `${share} of steps of ${ms} ms`);
    assert.ok(longest <= 5 && done.length >= 500 * ms / 25);
  }
});

test('a slice that takes longer than it may is made up for before the next one', async () => {
  const { done, slice, steps } = played();
  const both = Promise.all([slice('long', owner(1), 100), slice('next', owner(2), 1)]);
  await steps(20, 20);
  assert.deepEqual(done, ['long']);
  await steps(10, 20);
  await both;
  assert.deepEqual(done, ['long', 'next']);
});

test('when no more steps are made what waits goes on', async () => {
  const { turns, done, slice } = played();
  turns.begin();
  const waits = slice('one', owner(1));
  await task();
  assert.deepEqual(done, []);
  turns.end();
  await waits;
  assert.deepEqual(done, ['one']);
});

test('messages come in between two slices', async () => {
  let looks = 0;
  const turns = new Turns(async () => { looks++; await task(); });
  const all = Array.from({ length: 20 }, (_, i) => turns.run(owner(i), () => looks));
  const seen = await Promise.all(all);
  assert.equal(new Set(seen).size, 20);
});

test('steps of some work are taken as long as there is time; their last result is the work\'s', async () => {
  const { clock, turns } = played();
  const times = [];
  function* work() {
    for (let i = 0; i < 20; i++) {
      clock.now += 1;
      times.push(clock.now);
      yield;
    }
    return 'all';
  }
  assert.equal(await turns.through(owner(1), work()), 'all');
  assert.equal(times.length, 20);
});

test('work that is stopped ends at its next turn, and its steps are ended', async () => {
  const { clock, turns } = played();
  const controller = new AbortController();
  let steps = 0;
  let ended = false;
  function* work() {
    try {
      for (;;) {
        clock.now += 2;
        if (++steps === 10) controller.abort(new Error('stopped'));
        yield;
      }
    } finally {
      ended = true;
    }
  }
  await assert.rejects(turns.through(owner(1), work(), controller.signal), /stopped/);
  assert.ok(ended);
  assert.ok(steps <= 13);
});

test('an owner that never comes back holds nobody up', async () => {
  const { done, slice, turns } = played();
  turns.run(owner(1), () => new Promise(() => {}));
  await slice('other', owner(2));
  assert.deepEqual(done, ['other']);
});

test('after a crash all that waits fails with it, and whatever comes later', async () => {
  const { turns, slice } = played();
  const waiting = [owner(1), owner(1, 1), owner(2)].map((who) => slice('never', who));
  const failed = Promise.allSettled(waiting);
  const error = new Error('trap');
  turns.crash(error);
  assert.deepEqual((await failed).map(({ reason }) => reason), [error, error, error]);
  await assert.rejects(slice('never', owner(3)), error);
});

test('accounts of those who have gone are forgotten', async () => {
  const { clock, turns } = played();
  for (let i = 0; i < 5000; i++) {
    await turns.run(owner(0, i), () => { clock.now += 100; });
  }
  assert.ok(turns.guests < 1500, `${turns.guests} accounts`);
});
