// SPDX-License-Identifier: MIT
// The network's faults, row by row (N01 to N19 of the catalogue), against a server that lies over real sockets and a clock
// that the test plays. Many at a time, at random: schedules.test.mjs.

import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { ask } from '../../../js/net/answer.js';
import { openRemote } from '../../../js/net/download.js';
import { Runs } from '../../../js/net/runs.js';
import { systemClock } from '../../../js/shared/clock.js';
import { LyingServer, lyingFetch } from '../../fixtures/lying-server.mjs';
import { random } from '../../fixtures/random.mjs';
import { VirtualClock } from '../../fixtures/virtual-clock.mjs';
import { rejectsWith, rejectsWithAbort } from '../support/helper.mjs';
import { soon } from '../support/soon.mjs';

const CHUNK = 1000;
const draw = random(1);
const BYTES = Uint8Array.from({ length: 20_300 }, () => 256 * draw());
const FILE = { bytes: BYTES };

const servers = [];
const resources = () => process.getActiveResourcesInfo().filter((name) => name !== 'Immediate').length;
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** A remote file whose server follows a script, and everything needed to look on. */
async function serve(script = [], { file = FILE, path = '/m.gguf', ...options } = {}) {
  const server = await new LyingServer(file, script).start();
  servers.push(server);
  const clock = new VirtualClock();
  const url = server.base + path;
  const open = (more) => openRemote(url, { clock, chunkSize: CHUNK, parallel: 1, ...options, ...more });
  const play = (promise) => clock.run(promise, () => server.quiet);
  return { server, clock, url, open, play };
}

/** Neighbours among ascending indices make a run; a number: all from there on. */
function runsOf(which) {
  if (typeof which === 'number') return Runs.from(which);
  const runs = [];
  for (const index of which) {
    if (runs.at(-1)?.to === index) runs.at(-1).to++;
    else runs.push({ from: index, to: index + 1 });
  }
  return new Runs(runs);
}

async function collect(remote, which) {
  const chunks = [];
  for await (const { index, bytes } of remote.chunks(which === undefined ? which : runsOf(which))) chunks.push([index, Buffer.from(bytes)]);
  return chunks;
}

const joined = (chunks) => Buffer.concat(chunks.map(([, bytes]) => bytes));

/** Opens and reads all; checks that what came is the file, nothing twice, and that nothing is left running. */
async function download(script, options) {
  const session = await serve(script, options);
  const before = session.clock.pending;
  let counted = 0;
  const work = (async () => {
    const remote = await session.open();
    remote.onBytes = (n) => { counted += n; };
    const chunks = await collect(remote);
    return { ...session, remote, chunks };
  })();
  const all = await session.play(work);
  assert.ok(joined(all.chunks).equals((options?.file ?? FILE).bytes), 'other bytes than the file\'s');
  assert.equal(counted, all.remote.size);
  assert.equal(session.clock.pending, before);
  return all;
}

/** Opens and reads all, which must fail. */
async function fails(script, code, words, options) {
  const { open, play, server, clock } = await serve(script, options);
  const error = await rejectsWith(play(open().then((remote) => collect(remote))), code, words);
  assert.equal(clock.pending, 0);
  return Object.assign(error, { requests: server.requests.length, clock });
}

/** With sockets a busy machine lets a tick or two pass. */
const between = (ms, least) => ms >= least && ms < least + 10_000;

const ranges = ({ server }) => server.requests.map(({ headers }) => headers.range);

test('one request brings a whole file, and says what it is', async () => {
  const all = await download([]);
  assert.deepEqual(ranges(all), ['bytes=0-']);
  const { size, etag, lastModified, name, ranges: parts, sha256, count } = all.remote;
  assert.deepEqual({ size, etag, lastModified, name, parts, sha256, count },
    { size: 20_300, etag: '"one"', lastModified: 'Mon, 01 Dec 2025 10:00:00 GMT', name: 'm.gguf', parts: true, sha256: null, count: 21 });
  assert.deepEqual(all.chunks.map(([index, bytes]) => [index, bytes.length]), Array.from({ length: 21 }, (_, i) => [i, i < 20 ? 1000 : 300]));
});

test('the chunks that are wanted, and no others', async () => {
  for (const [which, asked] of [
    [[0, 1, 5, 6, 20], ['bytes=0-', 'bytes=5000-6999', 'bytes=20000-']], [[3], ['bytes=0-', 'bytes=3000-3999']], [18, ['bytes=0-', 'bytes=18000-']],
    [[], ['bytes=0-']], [[21, 400], ['bytes=0-']], [[2, 20, 21], ['bytes=0-', 'bytes=2000-2999', 'bytes=20000-']],
  ]) {
    const { open, play, server } = await serve();
    const chunks = await play(open().then((remote) => collect(remote, which)));
    const wanted = Array.isArray(which) ? which.filter((i) => i < 21) : [18, 19, 20];
    assert.deepEqual(chunks.map(([index]) => index), wanted);
    for (const [index, bytes] of chunks) assert.ok(bytes.equals(BYTES.subarray(index * CHUNK, (index + 1) * CHUNK)), String(index));
    assert.deepEqual(server.requests.map(({ headers }) => headers.range), asked);
  }
});

test('what the consumer gives away is not used again', async () => {
  const { open, play } = await serve();
  const gone = [];
  await play((async () => {
    for await (const { bytes } of (await open()).chunks()) gone.push(structuredClone(bytes, { transfer: [bytes.buffer] }));
  })());
  assert.ok(Buffer.concat(gone).equals(BYTES));
});

test('N01 offline before the start and during it, a name that is none', async () => {
  const unreachable = await rejectsWith(openRemote('http://127.0.0.1:1/x.gguf'), 'net/unreachable', /127\.0\.0\.1:1 could not be reached \((?:ECONNREFUSED|bad port)\)/);
  assert.deepEqual([unreachable.retryable, unreachable.phase], [true, 'load']);
  const clock = new VirtualClock();
  clock.isOnline = false;
  await rejectsWith(clock.run(openRemote('http://127.0.0.1:1/x.gguf', { clock }), () => true), 'net/offline');
  const session = await serve([{ dropAt: 5000 }]);
  const remote = await session.play(session.open());
  session.clock.isOnline = false;
  session.clock.after(100_000, () => { session.clock.isOnline = true; });
  assert.ok(joined(await session.play(collect(remote))).equals(BYTES));
  const forever = await serve([{ dropAt: 5000 }]);
  const other = await forever.play(forever.open());
  forever.clock.isOnline = false;
  await rejectsWith(forever.play(collect(other)), 'net/offline');
  assert.equal(forever.clock.pending, 0);
});

test('N02 drops at every place, twenty in one download, and in the same place', async () => {
  for (const at of [0, 1, 999, 1000, 1001, 7777, 20_299]) {
    const all = await download([{ dropAt: at }]);
    assert.deepEqual(ranges(all), ['bytes=0-', `bytes=${at}-`]);
  }
  await download([{ dropAt: 20_300 }]);
  const twenty = await download(Array.from({ length: 20 }, () => ({ dropAt: 700 })));
  assert.deepEqual(ranges(twenty), Array.from({ length: 21 }, (_, i) => `bytes=${700 * i}-`));
  const error = await fails((_, n) => ({ dropAt: n ? 0 : 3000 }), 'net/truncated', /after 3000 (bytes|of 20300)/);
  assert.deepEqual([error.requests, error.retryable, error.hint !== ''], [4, true, true]);
});

test('N02 the waits between attempts: doubled each time up to 30 s, with jitter, and anew once bytes come', async () => {
  for (const [script, jitter, seconds] of [
    [(_, n) => ({ dropAt: n ? 0 : 3000 }), 0.5, 0.75 * (1 + 2 + 4)], [(_, n) => ({ dropAt: n ? 0 : 3000 }), 0, 0.5 * (1 + 2 + 4)],
    [(_, n) => (n ? { dropAt: -1 } : { dropAt: 3000 }), 0.5, 0.75 * (1 + 2 + 4 + 8 + 16 + 30 + 30)],
    [(_, n) => ({ dropAt: n < 4 ? 10 * n + 10 : 0 }), 0.5, 0.75 * (1 + 1 + 1 + 1 + 2 + 4)],
  ]) {
    const clock = new VirtualClock(() => jitter);
    const start = clock.now();
    const fetch = lyingFetch(FILE, script, clock);
    await assert.rejects(clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: CHUNK, parallel: 1 }).then((remote) => collect(remote))), /^QuernError/);
    assert.equal((clock.now() - start) / 1000, seconds);
  }
});

test('what is waited for is told: for how long, and after what', async () => {
  await soon(1, async () => {      // played time passes too while this machine is stopped
    const told = [];
    const script = [{ status: 429, headers: { 'Retry-After': '8' } }, { dropAt: 3000 }, { status: 503 }];
    const { play, open, clock } = await serve(script, { onWait: (waiting) => told.push(waiting) });
    const start = clock.now();
    await play(open().then((remote) => collect(remote)));
    assert.deepEqual(told.map(({ code }) => code), ['net/http', 'net/truncated', 'net/http']);
    assert.equal(told[0].ms, 8000);
    assert.match(told[0].message, /answered 429: too many requests; it asks to wait 8 s/);
    return Math.abs(clock.now() - start - told.reduce((all, { ms }) => all + ms, 0));      // all of the time, and no more
  });
});

test('N03 the whole file instead of a part: retried once, then skipped up to where it goes on', async () => {
  const once = await download([{ dropAt: 5500 }, { ignoreRange: true }]);
  assert.deepEqual([ranges(once), once.remote.ranges], [['bytes=0-', 'bytes=5500-', 'bytes=5500-'], true]);
  const always = await download((_, n) => ({ dropAt: n % 2 ? undefined : 5500 * (n / 2 + 1), ignoreRange: n > 0 }));
  assert.equal(always.remote.ranges, false);
  const never = await download((_, n) => ({ ignoreRange: true, dropAt: [3000, 9000, undefined][n] }));
  assert.deepEqual([never.remote.ranges, never.server.requests.length], [false, 3]);
  const { open, play, server } = await serve(() => ({ ignoreRange: true }));
  const chunks = await play(open().then((remote) => collect(remote, [2, 9])));
  assert.deepEqual([chunks.map(([index]) => index), server.requests.length], [[2, 9], 1]);
  assert.ok(joined(chunks).equals(Buffer.concat([BYTES.subarray(2000, 3000), BYTES.subarray(9000, 10_000)])));
});

test('N04 answers with another part: one more try, then net/range', async () => {
  const lies = [
    { wrongRange: 5 }, { headers: { 'Content-Range': null } }, { headers: { 'Content-Range': 'bytes */20300' } }, { headers: { 'Content-Range': 'bytes 0-99999/500' } },
    { headers: { 'Content-Range': null, 'Content-Type': 'multipart/byteranges; boundary=x' } }, { headers: { 'Content-Range': 'bytes 5-2/20300' } }, { status: 416 }, { encoding: 'gzip' },
  ];
  for (const lie of lies) {
    await download([{ dropAt: 500 }, lie]);
    assert.equal((await fails((_, n) => (n ? lie : { dropAt: 500 }), 'net/range')).requests, 3);
    assert.equal((await fails(() => lie, 'net/range', /127\.0\.0\.1/)).requests, 2);
  }
  await download([{ less: 5000 }, { less: 300 }]);   // a shorter part that says so is no lie
});

test('N04 a compressed part is told by its header, where a browser hides it by what the server says of the whole file', async () => {
  await fails(() => ({ encoding: 'gzip' }), 'net/range', /compressed, Content-Encoding: gzip/);
  const askWith = (head, error = new TypeError('Failed to fetch')) => {
    const asked = [];
    const fetch = async (_, { method }) => {
      asked.push(method);
      if (method !== 'HEAD') throw error;
      return head();
    };
    const server = { url: 'https://models.example/m.gguf', headers: new Headers(), forwardHeaders: false, fetch, clock: systemClock };
    return ask(server, 0, null, new AbortController().signal).then(() => assert.fail(), ({ code, message }) => ({ code, message, asked: asked.length }));
  };
  const answer = (encoding) => () => new Response(null, { headers: encoding ? { 'Content-Encoding': encoding } : {} });
  const found = await askWith(answer('br'));
  assert.deepEqual([found.code, found.asked], ['net/range', 2]);
  assert.match(found.message, /Content-Encoding: br/);
  for (const head of [answer(), answer('identity'), () => new Response(null, { status: 404, headers: { 'Content-Encoding': 'gzip' } }), () => { throw new TypeError('Failed to fetch'); }]) {
    assert.deepEqual(await askWith(head), { ...await askWith(head), code: 'net/unreachable', asked: 2 });
  }
  assert.equal((await askWith(answer('gzip'), new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') }))).asked, 1, 'Node says why');
});

test('N05 416: the file has become shorter, is empty, or the server is confused', async () => {
  assert.equal((await fails((_, n) => (n ? { status: 416, headers: { 'Content-Range': 'bytes */400' } } : { dropAt: 5000 }), 'net/changed', /shorter/)).requests, 3);
  const empty = await download([], { file: { bytes: new Uint8Array(0) } });
  assert.deepEqual([empty.remote.size, empty.chunks], [0, []]);
});

test('N06 another version in the middle: one more try, then net/changed; weak and missing tags', async () => {
  for (const lie of [{ etag: '"two"' }, { total: 20_301 }, { etag: null, modified: 'Tue, 02 Dec 2025 10:00:00 GMT' }]) {
    await download([{ dropAt: 5000 }, lie]);
    const error = await fails((_, n) => (n ? lie : { dropAt: 5000 }), 'net/changed', /has changed/);
    assert.deepEqual([error.requests, error.retryable], [3, true]);
  }
  await download([{ dropAt: 5000 }, { etag: 'W/"one"', dropAt: 5000 }, { etag: null, dropAt: 3000 }, { modified: 'Tue, 02 Dec 2025 10:00:00 GMT' }]);
});

test('N07 no length at all: the size is known at the end', async () => {
  for (const drops of [[], [3000], [2000, 15_500]]) {
    const all = await download((_, n) => ({ ignoreRange: true, sized: false, dropAt: drops[n] }));
    assert.deepEqual([all.remote.size, all.remote.ranges, all.server.requests.length], [20_300, false, drops.length + 1]);
  }
  const whole = await download((_) => ({ ignoreRange: true, sized: false }), { file: { bytes: BYTES.subarray(0, 3000) } });
  assert.deepEqual([whole.remote.size, whole.remote.count], [3000, 3]);
  const { open, play } = await serve(() => ({ ignoreRange: true, sized: false }));
  const remote = await play(open());
  assert.deepEqual([remote.size, remote.count], [null, Infinity]);
  assert.deepEqual((await play(collect(remote, 19))).map(([index]) => index), [19, 20]);
  await download(() => ({ headers: { 'Content-Range': 'bytes 0-20299/*' } }));
});

test('N08 bodies longer and shorter than they say', async () => {
  await download([{ short: 4000 }]);
  await download([{ extra: 5000 }]);
  await download([{ ignoreRange: true, extra: 100, headers: { 'Content-Length': '20300' } }]).catch(() => {});   // Node's server may refuse to play it
  const error = await fails(() => ({ short: 20_300 }), 'net/truncated', /ended early, after 0 of 20300 bytes/);
  assert.equal(error.requests, 4);
});

test('N09 gzip on a whole answer: what counts is what comes out', async () => {
  const all = await download(() => ({ ignoreRange: true, encoding: 'gzip' }));
  assert.equal(all.remote.size, 20_300);
});

test('N10 redirects: followed anew each time, so that a signed address may run out; loops', async () => {
  let signed = 0;
  const all = await download(({ url }) => {
    if (url === '/m.gguf') return { redirect: `/signed/${++signed}` };
    return url === `/signed/${signed}` && signed < 3 ? { dropAt: 5000 } : url === `/signed/${signed}` ? {} : { status: 403 };
  });
  assert.deepEqual(all.server.requests.map(({ url }) => url), ['/m.gguf', '/signed/1', '/m.gguf', '/signed/2', '/m.gguf', '/signed/3']);
  await download([{ dropAt: 5000 }, { status: 403 }]);
  assert.equal((await fails([{ dropAt: 5000 }, { status: 403 }, { status: 403 }], 'net/http', /403/)).requests, 3);
  await fails(() => ({ redirect: '/m.gguf' }), 'net/unreachable');
});

test('N11 statuses: what is final, what is waited for, and what to do', async () => {
  for (const [status, words] of [[401, /answered 401.*Authorization/], [403, /403.*Authorization/], [404, /404.*no such file/], [410, /410.*removed/], [418, /418/], [204, /204/]]) {
    const error = await fails(() => ({ status }), 'net/http', words);
    assert.deepEqual([error.requests, error.detail.status, error.retryable], [1, status, false]);
  }
  for (const status of [429, 500, 502, 503, 504]) {
    await download([{ status }, { status }, { dropAt: 5000 }, { status }, { status }, { status }, { status }]);
    const error = await fails(() => ({ status }), 'net/http', new RegExp(status));
    assert.deepEqual([error.requests, error.retryable], [5, true]);
  }
  const later = (seconds) => ({ status: 429, headers: { 'Retry-After': String(seconds) } });
  const told = await download([later(90)]);
  assert.ok(between(told.clock.now() - Date.UTC(2026, 0, 1), 90_000));
  const dated = await download([{ status: 503, headers: { 'Retry-After': new Date(Date.UTC(2026, 0, 1) + 60_000).toUTCString() } }]);
  assert.ok(between(dated.clock.now() - Date.UTC(2026, 0, 1), 60_000));
  assert.equal((await fails(() => later(3600), 'net/http', /429.*wait 3600 s/)).requests, 1);
  const gated = await download(() => ({}), { headers: { Authorization: 'Bearer t', range: 'bytes=5-6' } });
  assert.deepEqual(gated.server.requests.map(({ headers }) => [headers.authorization, headers.range]), [['Bearer t', 'bytes=0-']]);
  await rejectsWith(openRemote('http://127.0.0.1:1/', { headers: { 'a b': 'c' } }), 'use/param', /options\.headers/);
});

// N12 (CORS, COEP, mixed content, blockers): a browser tells none of them apart from a dead server, so they are N01's
// net/unreachable, whose hint lists them; policies, which it does tell, are in tests/web/policy.test.mjs. Here: what another
// site's answer hides.
test('N12 headers that another site\'s server does not show', async () => {
  const hidden = (lie = {}) => ({ headers: { 'Content-Range': null, ETag: null }, ...lie });
  const clock = new VirtualClock();
  for (const [type, script, code] of [
    ['cors', [hidden({ dropAt: 5000 }), hidden()]], ['basic', () => hidden(), 'net/range'],
    ['cors', [hidden({ dropAt: 5000 }), hidden({ modified: 'Tue, 02 Dec 2025 10:00:00 GMT' }), hidden({ modified: 'Tue, 02 Dec 2025 10:00:00 GMT' })], 'net/changed'],
    ['cors', [hidden({ dropAt: 5000 }), hidden({ less: 1 }), hidden({ less: 1 })], 'net/changed'],
  ]) {
    const honest = lyingFetch(FILE, script, clock);
    const fetch = async (...args) => Object.defineProperty(await honest(...args), 'type', { value: type });
    const work = clock.run(openRemote('https://example.org/m.gguf', { clock, fetch, chunkSize: CHUNK, parallel: 1 }).then((remote) => collect(remote)));
    if (code) await rejectsWith(work, code);
    else assert.ok(joined(await work).equals(BYTES));
    assert.deepEqual([clock.pending, honest.open], [0, 0]);
  }
});

test('N13 silence: given up after 30 s and resumed, at last net/stalled; a slow link lives', async () => {
  for (const at of [-1, 0, 1, 5500]) {
    const all = await download([{}, { stallAt: at }].slice(at === -1 ? 1 : 0), {}).catch((error) => { throw error; });
    assert.ok(all.clock.now() - Date.UTC(2026, 0, 1) < 40_000);
  }
  const middle = await download([{ stallAt: 5500 }, { stallAt: -1 }, { stallAt: 0 }]);
  assert.deepEqual(ranges(middle), ['bytes=0-', 'bytes=5500-', 'bytes=5500-', 'bytes=5500-']);
  const error = await fails(() => ({ stallAt: -1 }), 'net/stalled', /sent nothing for 30 s/);
  assert.deepEqual([error.requests, error.retryable, error.hint !== ''], [3, true, true]);
  assert.ok(error.clock.now() - Date.UTC(2026, 0, 1) < 120_000);
  assert.equal((await fails(() => ({ stallAt: 1 }), 'net/stalled')).requests, 6);   // a byte in half a minute is no progress
  const clock = new VirtualClock();
  const fetch = lyingFetch(FILE, () => ({ chunk: 200, perByteMs: 140 }), clock);
  const slow = await clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: CHUNK, parallel: 1 }).then((remote) => collect(remote)));
  assert.ok(joined(slow).equals(BYTES));
  assert.deepEqual([fetch.requests.length, fetch.open, clock.pending], [1, 0, 0]);
});

test('N14 an abort at any byte ends everything at once; starting again works', async () => {
  const idle = resources();
  for (const when of [-1, 0, 1, 7, 20]) {
    const abort = new AbortController();
    const { open, play, clock, server } = await serve(when === -1 ? [{ stallAt: -1 }] : [{ stallAt: 20_000 }]);
    const work = open({ signal: abort.signal }).then(async (remote) => {
      if (when === 0) abort.abort();
      for await (const { index } of remote.chunks()) if (index === when) abort.abort();
    });
    const silent = when === -1 || when === 20;   // time stands still: the abort alone ends the waiting
    if (silent) setTimeout(() => abort.abort(), 60);
    await rejectsWithAbort(silent ? work : play(work));
    assert.equal(clock.pending, 0);
    const again = await play(open().then((remote) => collect(remote)));
    assert.ok(joined(again).equals(BYTES));
    await server.close();
    servers.splice(servers.indexOf(server), 1);
  }
  await rejectsWithAbort(openRemote('http://127.0.0.1:1/', { signal: AbortSignal.abort() }));
  const reason = new Error('mine');
  await assert.rejects(openRemote('http://127.0.0.1:1/', { signal: AbortSignal.abort(reason) }), reason);
  const { open, play, clock, server } = await serve([{}, { status: 503, headers: { 'Retry-After': '100' } }]);
  await play((async () => { for await (const { index } of (await open()).chunks()) if (index === 3) break; })());
  assert.equal(clock.pending, 0);
  const abort = new AbortController();
  const waiting = open({ signal: abort.signal });
  setTimeout(() => abort.abort(), 50);
  await rejectsWithAbort(waiting);
  assert.equal(clock.pending, 0);
  await server.close();
  servers.splice(0);
  for (let i = 0; i < 100 && resources() > idle; i++) await new Promise((done) => { setTimeout(done, 20); });
  assert.ok(resources() <= idle, process.getActiveResourcesInfo().join());
});

test('what a listener throws is no fault of the network', async () => {
  const { open, play, server, clock } = await serve();
  const mine = new Error('mine');
  const remote = await play(open());
  remote.onBytes = () => { throw mine; };
  await assert.rejects(play(collect(remote)), mine);
  assert.deepEqual([server.requests.length, clock.pending], [1, 0]);
});

test('N15 a machine that slept for hours has not stalled', async () => {
  const { open, play, clock, server } = await serve([{ stallAt: 4000 }]);
  const remote = await play(open());
  const work = collect(remote);
  for (let i = 0; i < 14; i++) {
    do await new Promise((done) => { setTimeout(done, 10); }); while (!server.quiet);
    clock.jump(3_600_000);
    assert.ok(clock.step());
  }
  assert.equal(server.requests.length, 1);
  assert.ok(joined(await play(work)).equals(BYTES));
  assert.equal(server.requests.length, 2);
});

test('N16 pieces of every size', async () => {
  for (const chunk of [1, 7, 999, 1000, 1001, 5000, 1 << 20]) {
    const clock = new VirtualClock();
    const bytes = BYTES.subarray(0, Math.max(4321, Math.min(chunk * 200, BYTES.length)));
    const fetch = lyingFetch({ bytes }, () => ({ chunk }), clock);
    const all = await clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: CHUNK }).then((remote) => collect(remote)));
    assert.ok(joined(all).equals(bytes), String(chunk));
  }
});

test('N16 a slow consumer holds the server back', async () => {
  const clock = new VirtualClock();
  const fetch = lyingFetch(FILE, () => ({ chunk: 100 }), clock);
  const remote = await clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: CHUNK }));
  for await (const { index } of remote.chunks()) {
    for (let i = 0; i < 50; i++) await new Promise((done) => { setImmediate(done); });
    assert.ok(fetch.sent <= (index + 4) * CHUNK + 100, `${fetch.sent} bytes at chunk ${index}`);
  }
  assert.equal(fetch.open, 0);
});

// N17 (another file of the same length) is found by the hash that N18 learns, or the store's hashes: store's tests.
test('N17 N18 the hash of the contents, where a hub tells it', async () => {
  const hash = 'ab'.repeat(32);
  const pointer = (size) => ({ status: 200, ...{ headers: {} }, text: `version https://git-lfs.github.com/spec/v1\noid sha256:${hash}\nsize ${size}\n` });
  const path = '/Qwen/Qwen3/resolve/main/m.gguf';
  const sha256 = async (answer, script = () => ({})) => {
    const clock = new VirtualClock();
    const honest = lyingFetch(FILE, script, clock);
    const asked = [];
    const fetch = (url, request) => {
      if (!url.includes('/raw/')) return honest(url, request);
      asked.push(url);
      return answer(url, request);
    };
    const remote = await clock.run(openRemote(`https://hub.example${path}?download=true`, { clock, fetch, chunkSize: CHUNK }));
    assert.ok(joined(await clock.run(collect(remote))).equals(BYTES));
    assert.equal(clock.pending, 0);
    return [remote.sha256, ...asked];
  };
  const raw = `https://hub.example/Qwen/Qwen3/raw/main/m.gguf?download=true`;
  assert.deepEqual(await sha256(async () => new Response(pointer(20_300).text)), [hash, raw]);
  const failures = [
    async () => new Response(pointer(20_301).text), async () => new Response('<html>'), async () => new Response('', { status: 404 }), async () => { throw new TypeError('down', { cause: new Error('refused') }); },
    (_, { signal }) => new Promise((__, reject) => { signal.addEventListener('abort', () => reject(signal.reason)); }), async () => new Response(null),
  ];
  for (const failure of failures) assert.deepEqual(await sha256(failure), [null, raw]);
  assert.deepEqual(await sha256(failures[0], () => ({ headers: { 'X-Linked-Etag': `"${hash}"` } })), [hash, raw]);
  assert.deepEqual(await sha256(failures[0], () => ({ etag: `"${hash}"` })), [null, raw]);   // an ETag may hash something else
});

// N19: file:, paths, directories and pipes are sources, not downloads: source.test.mjs and load.test.mjs.
test('N19 what Node\'s fetch throws in mid-stream is one of ours', async () => {
  const error = await fails((_, n) => ({ dropAt: n ? 0 : 10 }), 'net/truncated');
  assert.ok(error.cause instanceof Error);
});

test('names of files', async () => {
  for (const [path, disposition, name] of [
    ['/a/b%20c.gguf?x=1', undefined, 'b c.gguf'], ['/%E0%A4%A.gguf', undefined, '%E0%A4%A.gguf'], ['/x', 'attachment; filename="m 1.gguf"', 'm 1.gguf'],
    ['/x', 'inline; filename*=UTF-8\'\'m%C3%A9.gguf; filename="m.gguf"', 'mé.gguf'], ['/x', 'inline; filename="../../etc"', '.. .. etc'],
  ]) {
    const { open, play } = await serve(() => ({ headers: { 'Content-Disposition': disposition ?? null } }), { path });
    const remote = await play(open());
    assert.equal(remote.name, name);
    remote.close();
  }
});

/** A server that gives each connection, or all together, so many bytes in a millisecond. */
async function lanes({ perByteMs, shared = false, script = () => ({}), size = 30 << 20 }) {
  const clock = new VirtualClock();
  const file = { bytes: new Uint8Array(size) };
  new Uint32Array(file.bytes.buffer).forEach((_, i, all) => { all[i] = i * 2654435761; });
  const fetch = lyingFetch(file, (request, n) => {
    const step = script(request, n);
    return { chunk: 1 << 17, ...step, get perByteMs() { return perByteMs * (shared ? fetch.open : 1); } };
  }, clock);
  const start = clock.now();
  const remote = await clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: 1 << 16 }));
  let at = 0;
  let most = 0;
  await clock.run((async () => {
    for await (const { bytes } of remote.chunks()) {
      assert.ok(Buffer.compare(bytes, file.bytes.subarray(at, at + bytes.length)) === 0);
      at += bytes.length;
      most = Math.max(most, fetch.open);
    }
  })());
  assert.deepEqual([at, fetch.open, clock.pending], [size, 0, 0]);
  return { seconds: (clock.now() - start) / 1000, requests: fetch.requests.length, again: fetch.sent - size, most };
}

test('parallel ranges are used where each connection is limited, and dropped where they gain nothing or are refused', async () => {
  const each = await lanes({ perByteMs: 1 / 1000 });   // 1 MB/s each: 31.5 s by one connection
  assert.ok(each.seconds < 18 && each.most === 3, JSON.stringify(each));
  assert.ok(each.again <= 3 << 18, JSON.stringify(each));
  const all = await lanes({ perByteMs: 1 / 1000, shared: true });
  assert.ok(all.seconds < 33 && all.requests < 12, JSON.stringify(all));
  for (const refusal of [{ status: 429 }, { status: 503 }, { ignoreRange: true }, { dropAt: -1 }]) {
    const refused = await lanes({ perByteMs: 1 / 1000, script: (_, n) => (n === 1 ? refusal : {}) });
    assert.ok(refused.most <= (refusal.ignoreRange ? 2 : 1) && refused.seconds < 33 && refused.requests <= 4, JSON.stringify({ refusal, ...refused }));
  }
});

test('N14 giving up ends every lane', async () => {
  for (const give of ['break', 'abort', 'fail']) {
    const clock = new VirtualClock();
    const abort = new AbortController();
    let final = false;
    const fetch = lyingFetch(FILE, () => (final ? { status: 404 } : { chunk: 100, perByteMs: 5 }), clock);
    const remote = await clock.run(openRemote('http://a.example/', { clock, fetch, chunkSize: CHUNK / 4, signal: abort.signal }));
    let most = 0;
    const work = (async () => {
      for await (const { index } of remote.chunks()) {
        most = Math.max(most, fetch.open);
        if (index < 36) continue;
        if (give === 'break') break;
        if (give === 'abort') abort.abort();
        final = true;
      }
    })();
    if (give === 'break') await clock.run(work);
    else if (give === 'abort') await rejectsWithAbort(clock.run(work));
    else await rejectsWith(clock.run(work), 'net/http', /404/);
    assert.ok(most > 1, `${most} lanes`);
    assert.deepEqual([fetch.open, clock.pending], [0, 0], give);
  }
});
