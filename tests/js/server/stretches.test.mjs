// SPDX-License-Identifier: MIT
// Nothing that a request says holds a thread of `quern serve` for long: neither the one that answers HTTP nor the engine's, whose silence of 30
// seconds would end it (docs/stretches.md lists what runs there in one piece, and what bounds it). Each request of hostile.mjs is sent alone, then
// all of them together; the time that each thread's event loop was held is at most 250 ms. Slow once proves nothing, slow each time does.
//
//   QUERN_HOSTILE=schemas         only requests whose name has this in it

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { eachHostile } from '../../fixtures/hostile.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { SMALL, folderOf, makeSeeing, metric, send, serving, watch } from './guests-host.mjs';

const MOST_MS = 250;
const TRIES = 3;

/** How long an answer is waited for; what holds a thread does so before. */
const PATIENCE_MS = length(3000, 30_000);

/** The threads that other people's requests share. The others (of the side workers) hold nobody up. */
const THREADS = { 0: 'the HTTP thread', 1: "the engine's worker" };

const folder = folderOf('stretches');
const wanted = process.env.QUERN_HOSTILE ?? '';

let files;
before(() => { files = makeSeeing(folder, SMALL); });

const NOTHING = { method: 'POST', path: '/tokenize', body: Buffer.from('{"content":"a"}') };

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

async function opened(t) {
  const probe = join(folder, `probe ${Math.random()}`);
  const server = await serving(t, files, { probe, flags: ['--context', '2048', '--kv-positions', '8192'] });
  return { ...server, longest: watch(probe) };
}

/** How long threads were held while something was done, until both have answered again. */
async function heldBy({ port, longest }, act) {
  longest();
  await act();
  const { ms } = await send(port, NOTHING, { most: 120_000 });
  await sleep(30);
  const held = longest();
  return { ...Object.fromEntries(Object.keys(THREADS).map((thread) => [thread, held[thread] ?? 0])), answer: Math.round(ms) };
}

const tooLong = (held) => Object.keys(THREADS).filter((thread) => held[thread] > MOST_MS);

/** @returns {Promise<{problem: string, best: Record<string, number>}>} problem: what held which thread too long each time; best: how long each was held the best time */
async function tried(server, name, act) {
  let all = [];
  let slow = Object.keys(THREADS);
  for (let i = 0; i < TRIES && slow.length; i++) {
    const held = await heldBy(server, act);
    all = [...all, held];
    slow = slow.filter((thread) => tooLong(held).includes(thread));
  }
  const best = Object.fromEntries(Object.keys(THREADS).map((thread) => [thread, Math.min(...all.map((held) => held[thread]))]));
  return { best, problem: slow.map((thread) => `${name} held ${THREADS[thread]} for ${all.map((held) => held[thread]).join(', ')} ms`).join('; ') };
}

async function check(server, problems) {
  const restarts = await metric(server.port, 'engine_restarts_total');
  if (restarts > 0) problems.push(`the engine was lost ${restarts} times: ${server.got.err.split('\n').slice(1).join(' ')}`);
  assert.deepEqual(problems.filter(Boolean), []);
}

test('no request alone holds a thread', { timeout: length(900_000, 5_400_000) }, async (t) => {
  const server = await opened(t);
  const problems = [];
  for (const request of eachHostile()) {
    if (!request.which.includes(wanted)) continue;
    const { problem, best } = await tried(server, request.which, () => send(server.port, request, { most: PATIENCE_MS }));
    t.diagnostic(problem || `${request.which}: ${Object.entries(best).map(([thread, ms]) => `${THREADS[thread]} ${ms}`).join(', ')} ms`);
    problems.push(problem);
  }
  await check(server, problems);
});

test('nor do all of them together', { timeout: length(300_000, 1_800_000), skip: wanted !== '' }, async (t) => {
  const server = await opened(t);
  const all = [...eachHostile()];
  const act = () => Promise.all(all.map(async (request, i) => {
    await sleep(20 * i);
    return send(server.port, request, { most: length(10_000, 60_000) });
  }));
  const { problem, best } = await tried(server, 'all together', act);
  t.diagnostic(JSON.stringify(best));
  await check(server, [problem]);
});
