// SPDX-License-Identifier: MIT
// The copy of a table in memory: a read that begins while another is under way misses nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Mirror } from '../../web/conversation/mirror.js';

test('a read beside another one has the rows that have changed before it', async () => {
  const table = new Map([['a', 'old']]);
  const waiting = [];
  const mirror = new Mirror(async () => new Map(table), (id) => new Promise((done) => { waiting.push(() => done(table.get(id))); }));
  await mirror.read();
  table.set('a', 'new');
  mirror.touch('a');
  const both = [mirror.read(), mirror.read()].map((reading) => reading.then((rows) => rows.get('a')));
  while (!waiting.length) await new Promise((done) => { setImmediate(done); });
  waiting[0]();
  assert.deepEqual(await Promise.all(both), ['new', 'new']);
});

test('a read that fails fails alone', async () => {
  let fails = true;
  const mirror = new Mirror(async () => new Map(), async () => { if (fails) throw new Error('no'); return 'row'; });
  await mirror.read();
  mirror.touch('a');
  await assert.rejects(mirror.read());
  fails = false;
  mirror.touch('a');
  assert.equal((await mirror.read()).get('a'), 'row');
});
