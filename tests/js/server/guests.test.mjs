// SPDX-License-Identifier: MIT
// `quern serve` with eight honest clients and one guest who sends all that is hostile (hostile.mjs), each by a key of his own. Stretches with and
// without the guest take turns, and each pair is compared: first tokens come within twice the time, the next ones within 1.5 times, in the middle
// and of twenty the worst (in the short form, which runs beside other tests, much more than that is let pass); nobody but the guest is refused anything, the engine is not lost, and memory has a
// bound.
//
//   QUERN_LONG=1                  ten minutes, with a model of Qwen3-0.6B's size; else about a minute, with a small one
//   QUERN_GUESTS=schemas,readers  a test of each of these kinds alone; `each`: of every kind

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { processMemory } from '../../bench/machine.mjs';
import { KINDS } from '../../fixtures/hostile.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { LARGE, SMALL, folderOf, makeSeeing, metric, serving } from './guests-host.mjs';
import { honest } from './honest.mjs';

const CLIENTS = 8;

/** Stretches with the guest and without, and how long each is. */
const PAIRS = length(5, 12);
const STRETCH_MS = length(5000, 25_000);

/** How long the guest is there before it counts. */
const RAMP_MS = 1500;

/** Times as long at most. Beside the other tests of a commit a minute says less. */
const MOST_FIRST = length(30, 2);
const MOST_GAP = length(12, 1.5);
const MOST_MEMORY = 1.5e9;      // beside what the model was planned to take

/** Until nothing that the guest has asked for goes on. */
const SETTLE_MS = 30_000;
const MOST_SETTLE_MS = 120_000;

const KEYS = Array.from({ length: CLIENTS + 1 }, (_, i) => `key-${i}`);
const GUEST = KEYS.at(-1);

const wanted = process.env.QUERN_GUESTS;
const alone = !wanted ? [] : wanted === 'each' ? Object.keys(KINDS) : wanted.split(',');

let files;
before(() => { files = makeSeeing(folderOf('guests'), length(SMALL, LARGE)); });

const sleep = (ms) => new Promise((done) => { setTimeout(done, ms); });

const quantile = (values, q) => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(q * values.length))];
const median = (values) => quantile(values, 0.5);

/** A server, and the guest's process, which waits. */
async function open(t) {
  const { child, got, port } = await serving(t, files, { keys: KEYS, flags: ['--context', '2048', '--kv-positions', '16384', '--parallel', '16'] });
  const guest = fork(fileURLToPath(new URL('guest.mjs', import.meta.url)));
  t.after(() => guest.kill('SIGKILL'));
  await once(guest, 'message');
  const memory = { most: 0 };
  const timer = setInterval(() => { memory.most = Math.max(memory.most, child.exitCode === null ? processMemory(child.pid).now : 0); }, 100);
  t.after(() => clearInterval(timer));
  return { child, got, guest, port, memory };
}

/** Waits until nothing is asked for any more. @returns {Promise<number>} ms */
async function settled(port) {
  const begun = performance.now();
  for (; ; await sleep(100)) {
    if (await metric(port, 'requests_running', GUEST) + await metric(port, 'requests_waiting', GUEST) === 0) return performance.now() - begun;
    if (performance.now() - begun > MOST_SETTLE_MS) return Infinity;
  }
}

/** What honest clients meet in a stretch. */
async function stretch(port, seed) {
  const end = performance.now() + STRETCH_MS;
  const each = await Promise.all(Array.from({ length: CLIENTS }, (_, i) => honest({ port, key: KEYS[i], seed: 100 * seed + i, sees: true, until: end })));
  const all = each.flat();
  const [firsts, gaps] = [all.map(({ first }) => first).filter((first) => first > 0), all.flatMap((one) => one.gaps)];
  return {
    n: all.length, errors: all.filter(({ status, error }) => status !== 200 || error).map(({ status, error }) => `${status} ${error}`),
    first: median(firsts) ?? NaN, firstWorst: quantile(firsts, 0.95) ?? NaN, gap: median(gaps) ?? NaN, gapWorst: quantile(gaps, 0.95) ?? NaN,
  };
}

async function withGuest({ guest, port }, kinds, seed) {
  guest.send({ begin: { port, key: GUEST, kinds, seed } });
  await sleep(RAMP_MS);
  const met = await stretch(port, seed);
  guest.send({ end: true });
  const [{ ended }] = await once(guest, 'message');
  return { ...met, guest: ended, settle: await settled(port) };
}

const shown = (stretched) => Object.fromEntries(['n', 'first', 'firstWorst', 'gap', 'gapWorst'].map((name) => [name, Math.round(stretched[name] * 10) / 10]));

/** Says what of it was too much. */
function judge(pairs, { restarts, memory }) {
  const ratio = (name) => median(pairs.map(([without, along]) => along[name] / without[name]));
  const ratios = Object.fromEntries(['first', 'firstWorst', 'gap', 'gapWorst'].map((name) => [name, Math.round(100 * ratio(name)) / 100]));
  const errors = pairs.flatMap(([without, along]) => [...without.errors.map((error) => `${error} (alone)`), ...along.errors]);
  const settle = Math.max(...pairs.map(([, along]) => along.settle));
  const problems = [
    ...['first', 'firstWorst'].filter((name) => !(ratios[name] <= MOST_FIRST)).map((name) => `${name} ${ratios[name]} times (${MOST_FIRST})`),
    ...['gap', 'gapWorst'].filter((name) => !(ratios[name] <= MOST_GAP)).map((name) => `${name} ${ratios[name]} times (${MOST_GAP})`),
    errors.length > 0 && `${errors.length} honest requests failed, such as: ${errors[0]}`,
    restarts !== 0 && `the engine was loaded again ${restarts} times`,
    !(memory <= MOST_MEMORY) && `${Math.round(memory / 1e6)} MB beside the model`,
    settle > SETTLE_MS && `work of the guest went on for ${Math.round(settle / 1000)} s after it had gone`,
  ].filter(Boolean);
  return { ratios, problems };
}

/** Plays pairs. The one without the guest comes first in every other one. */
async function play(t, kinds) {
  const server = await open(t);
  const { port } = server;
  await stretch(port, 1);      // what is met for the first time is known
  const pairs = [];
  for (let i = 0; i < PAIRS; i++) {
    const parts = [() => stretch(port, 2 + 2 * i), () => withGuest(server, kinds, 3 + 2 * i)];      // nobody asks again what is known already
    const [one, other] = i % 2 ? [1, 0] : [0, 1];
    const met = [];
    met[one] = await parts[one]();
    met[other] = await parts[other]();
    pairs.push(met);
    t.diagnostic(`${JSON.stringify(shown(met[0]))} alone; ${JSON.stringify(shown(met[1]))} with the guest, ${met[1].errors.length} failed; ${Math.round(server.memory.most / 1e6)} MB; then ${Math.round(met[1].settle)} ms`);
  }
  const answers = {};
  for (const [, { guest }] of pairs) for (const [name, n] of Object.entries(guest)) answers[name] = (answers[name] ?? 0) + n;
  t.diagnostic(`the guest's answers: ${JSON.stringify(answers)}`);
  const restarts = await metric(port, 'engine_restarts_total', GUEST);
  const planned = await metric(port, 'memory_bytes{kind="planned"}', GUEST);
  const { ratios, problems } = judge(pairs, { restarts, memory: server.memory.most - planned });
  t.diagnostic(`${kinds.length > 1 ? 'all kinds' : kinds[0]}: ${JSON.stringify(ratios)} ${JSON.stringify({ restarts, MB: Math.round(server.memory.most / 1e6) })}`);
  assert.deepEqual(problems, [], `${kinds}: ${problems.join('; ')}${server.got.err.split('\n').slice(1).join(' ')}`);
}

const timeout = 120_000 + PAIRS * (2 * STRETCH_MS + MOST_SETTLE_MS + 90_000);

if (alone.length === 0) test('eight honest clients and a guest who sends everything', { timeout }, (t) => play(t, Object.keys(KINDS)));
for (const kind of alone) test(`eight honest clients and a guest: ${kind}`, { timeout }, (t) => play(t, [kind]));
