// SPDX-License-Identifier: MIT
// Saved conversations: files are read again, by other builds too, with the same tokens and the same keys and values as
// without saving. Damage to a file or a failing store costs time, never a token. Most tests use the engine in this
// thread and a store in memory; those at the end use the package and a folder. Refused records: tests/c/test_saved.c;
// in pages: tests/web/saving.test.mjs.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { load, models } from '../../../dist/node.js';
import { Generation } from '../../../js/reply/generation.js';
import { Saving } from '../../../js/worker/saving.js';
import { Runner } from '../../../js/worker/runner.js';
import { Disk, MemoryStore } from '../../fixtures/memory-store.mjs';
import { random } from '../../fixtures/random.mjs';
import { tinyModel } from '../../fixtures/tiny.mjs';
import { engineOver } from '../support/engine-host.mjs';
import { DEMO, collect, rejectsWith, until } from '../support/helper.mjs';

const FAULTS = fileURLToPath(new URL('../../../build/faults/worker.node.mjs', import.meta.url));

const [MODEL, OTHER] = [1, 2].map((seed) => tinyModel({ seed, hidden: 64, layers: 2, context: 256 }));

const [HEADER, DATE] = [4096, 8];
const PAGE = 32;

/** A prompt of four pages and a bit, and what follows it in the next turn. */
const PROMPT = Array.from({ length: 4 * PAGE + 9 }, (_, i) => 5 + (i * 7) % 190);
const more = (ids) => [...ids, ...Array.from({ length: 40 }, (_, i) => 9 + (i * 11) % 180)];

const NEUTRAL = {
  temperature: 1, topP: 1, topK: 0, minP: 0, stops: [], seed: 3, maxTokens: 12, bias: [],
};

const lone = () => ({ stopped: false, onStop() {} });

/** Throws when a sequence is used after it was freed. */
function watched(sequence) {
  let gone = false;
  for (const name of ['set', 'begin', 'save', 'give', 'take', 'free']) {
    const real = sequence[name].bind(sequence);
    sequence[name] = (...args) => {
      assert.ok(!gone, `${name}() of a sequence that is gone`);
      gone = name === 'free';
      return real(...args);
    };
  }
  return sequence;
}

/** An engine and the object that saves its conversations, as in a worker. */
async function machine(store, { model = MODEL, saveMaxBytes, fail = (error) => { throw error; }, ...options } = {}) {
  const engine = await engineOver(model, { contextSize: 256, parallel: 4, ...options });
  engine.finish();
  const begin = engine.sequence.bind(engine);
  engine.sequence = (place) => watched(begin(place));
  const runner = new Runner(engine, turn);
  const told = [];
  const saving = new Saving(engine, runner, { store, saveMaxBytes, tell: (text) => told.push(text), fail });
  const ask = async (name, ids, { job = lone(), ...more } = {}) => {
    const prompt = { ids: Int32Array.from(ids), channels: [], inside: null, defaults: NEUTRAL };
    const generation = new Generation(engine, prompt, { ...NEUTRAL, ...more }, () => {});
    const { usage, finishReason } = await (name ? saving.run(name, generation, job) : runner.add(generation, job));
    return { ids: generation.ids, cached: usage.cachedTokens, finishReason };
  };
  return { engine, runner, saving, told, ask };
}

/** A reply by a machine of its own, and the saved conversations after it. */
async function once(store, name, ids, options) {
  const { ask, saving, told, engine } = await machine(store, options);
  const reply = await ask(name, ids, options?.reply);
  const kept = await saving.saved().catch(() => null);
  assert.equal(engine.memory().cache.used, 0, 'no page is held');
  return { ...reply, kept, told };
}

const fileOf = (disk) => [...disk.files].find(([name]) => name.startsWith('kv-'));
const pagesOf = ([, bytes]) => Buffer.from(bytes.subarray(0, bytes.length - DATE));
const diskWith = ([name, bytes]) => {
  const disk = new Disk();
  disk.files.set(name, bytes);
  return disk;
};

let wanted;     // what follows the prompt, and the next turn's, without any saving
let file;       // [name, bytes] of the conversation after the first turn
let longer;     // and after the second one
let record;     // bytes
before(async () => {
  const first = await once(undefined, null, PROMPT);
  wanted = [first.ids, (await once(undefined, null, more(first.ids))).ids];
  const disk = new Disk();
  assert.deepEqual((await once(new MemoryStore(disk), 'talk', PROMPT)).ids, first.ids);
  file = [...fileOf(disk)];
  record = (file[1].length - HEADER - DATE) / 4;
  await once(new MemoryStore(disk), 'talk', more(first.ids));
  longer = [...fileOf(disk)];
});

test('what is saved is read again, and the pages that follow are those of an engine that has read all', async () => {
  assert.equal(record % 4096, 0);
  const disk = diskWith(file);
  const { ids, cached, kept, told } = await once(new MemoryStore(disk), 'talk', more(wanted[0]));
  assert.deepEqual([ids, cached, told], [wanted[1], 4 * PAGE, []]);
  const [{ date, ...facts }] = kept;
  assert.deepEqual(facts, { name: 'talk', tokens: 6 * PAGE, bytes: HEADER + 6 * record + DATE });
  assert.ok(Date.now() - date < 60_000);
  const whole = new Disk();
  await once(new MemoryStore(whole), 'talk', more(wanted[0]));
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(fileOf(whole))), 0, 'the same keys and values');
  assert.deepEqual((await once(new MemoryStore(disk), 'talk', PROMPT)).ids, wanted[0], 'a shorter one, too');
  assert.equal(fileOf(disk)[1].length, HEADER + 6 * record + DATE, 'and nothing is lost by it');
});

test('the file does not depend on kernels, chunks or the build, and each reads the others\'', async () => {
  for (const options of [{ scalar: true }, { chunk: 3 }, { address: 64, skip: Number(process.versions.node.split('.')[0]) < 24 }]) {
    if (options.skip) continue;
    const disk = new Disk();
    await once(new MemoryStore(disk), 'talk', PROMPT, options);
    assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(file)), 0, JSON.stringify(options));
    const { ids, cached } = await once(new MemoryStore(diskWith(file)), 'talk', PROMPT, options);
    assert.deepEqual([ids, cached], [wanted[0], 4 * PAGE]);
  }
});

test('another version of the last turn takes the place of the first one', async () => {
  const disk = diskWith(longer);
  const other = [...wanted[0].slice(0, 3 * PAGE + 5), ...Array(70).fill(77)];
  const { cached, kept } = await once(new MemoryStore(disk), 'talk', other);
  assert.deepEqual([cached >= 3 * PAGE, kept[0].tokens], [true, 5 * PAGE]);
  const whole = new Disk();
  await once(new MemoryStore(whole), 'talk', other);
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(fileOf(whole))), 0);
});

/** A reply with a damaged file: it is the same, uses at most so many of its tokens, and the file is whole again. */
async function heals(bytes, most, why) {
  const disk = diskWith([file[0], bytes]);
  const { ids, cached, told } = await once(new MemoryStore(disk), 'talk', PROMPT);
  assert.deepEqual(ids, wanted[0], why);
  assert.ok(cached <= most && cached % PAGE === 0, `${why}: ${cached} of ${most}`);
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(file)), 0, `${why}: whole again`);
  return { cached, told };
}

test('a file that is cut anywhere counts as far as it goes', async () => {
  const ends = [0, 1, 7, 8, HEADER - 1];
  for (let i = 0; i < 4; i++) ends.push(...[0, 8, 9, 300, 511, 512, record / 2, record - 1].map((at) => HEADER + i * record + Math.floor(at)));
  for (const end of ends) {
    const whole = Math.max(0, Math.floor((end - HEADER) / record));
    const { cached } = await heals(file[1].slice(0, end), whole * PAGE, `cut at ${end}`);
    assert.equal(cached, whole * PAGE, `cut at ${end}`);
  }
});

test('a bit that is flipped ends what counts, and says so', async () => {
  const draw = random(5);
  for (let round = 0; round < 60; round++) {
    const at = round < 12 ? Math.floor(draw() * 80) : HEADER + Math.floor(draw() * 4 * record);
    const bytes = file[1].slice();
    bytes[at] ^= 1 << Math.floor(8 * draw());
    const { cached, told } = await heals(bytes, at < HEADER ? 0 : Math.floor((at - HEADER) / record) * PAGE, `bit at ${at}`);
    const isId = at >= HEADER && (at - HEADER) % record < 8 * PAGE;     // then it is another conversation, as far as anybody knows
    assert.deepEqual(told.map((text) => text.slice(0, 22)), isId ? [] : ['quern: storage/corrupt'], `bit at ${at}: ${told}`);
    if (at >= HEADER) assert.equal(cached, Math.floor((at - HEADER) / record) * PAGE);
  }
});

test('records in another order, twice, of another conversation, zeros, and an end that says nothing', async () => {
  const part = (i) => file[1].slice(HEADER + i * record, HEADER + (i + 1) * record);
  const of = (...parts) => Uint8Array.from(Buffer.concat([file[1].slice(0, HEADER), ...parts]));
  await heals(of(part(1), part(0), part(2), part(3)), 0, 'the second first');
  await heals(of(part(0), part(0), part(1), part(2)), PAGE, 'the first twice');
  await heals(of(part(0), new Uint8Array(record), part(2)), PAGE, 'zeros');
  await heals(of(part(0), part(1), new Uint8Array(record - 7)), 2 * PAGE, 'zeros at the end');
  assert.equal((await heals(of(part(0), part(1), part(2), part(3), Uint8Array.of(1, 2, 3)), 4 * PAGE, 'more than all')).cached, 4 * PAGE);
  const disk = new Disk();
  await once(new MemoryStore(disk), 'other', PROMPT);
  await heals(fileOf(disk)[1], 0, 'another name\'s');
});

test('another model\'s file, or another cache\'s, is removed, with a notice', async () => {
  const disk = new Disk();
  await once(new MemoryStore(disk), 'talk', PROMPT, { model: OTHER });
  assert.equal(fileOf(disk)[0], file[0]);
  const { cached, told } = await heals(fileOf(disk)[1], 0, 'another model\'s');
  assert.match(told.join(), /^quern: storage\/corrupt: .*another model/);
  assert.equal(cached, 0);
  const typed = await once(new MemoryStore(diskWith(file)), 'talk', PROMPT, { kv: 'f32' });
  assert.deepEqual([typed.cached, typed.kept[0].tokens, typed.told.length], [0, 4 * PAGE, 1]);
});

test('in a space of its own, or in the background, a conversation is saved and read again as any other', async () => {
  for (const place of [{ cacheScope: 5 }, { priority: 'background' }, { cacheScope: 7, priority: 'background' }]) {
    const disk = new Disk();
    const first = await once(new MemoryStore(disk), 'talk', PROMPT, { reply: place });
    assert.deepEqual([first.ids, first.kept[0]?.tokens, first.told], [wanted[0], 4 * PAGE, []], JSON.stringify(place));
    const again = await once(new MemoryStore(disk), 'talk', more(wanted[0]), { reply: place });
    assert.deepEqual([again.ids, again.cached, again.kept[0].tokens], [wanted[1], 4 * PAGE, 6 * PAGE], JSON.stringify(place));
    assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(longer)), 0);
  }
});

test('more that are read again than may run at once: each says what it says, and no event of them is lost', async () => {
  const disk = diskWith(file);
  const { ask, saving } = await machine(new MemoryStore(disk), { parallel: 1, kvPositions: 4096 });
  const busy = ask(null, PROMPT.slice(7), { maxTokens: 100 });
  const replies = await Promise.all([busy, ...Array.from({ length: 12 }, () => ask('talk', PROMPT))]);
  for (const { ids, cached } of replies.slice(1)) assert.deepEqual([ids, cached >= 4 * PAGE], [wanted[0], true]);
  await saving.saved();
});

// --- a store that fails ---

const calls = async () => {
  const store = new MemoryStore(diskWith(file));
  await once(store, 'talk', more(wanted[0]));
  return store.calls.length;
};

/** The first turn's file, a second turn that meets a fault, and a third that goes on from what there is. */
async function survives(faults, why) {
  const disk = diskWith(file);
  const { ids } = await once(new MemoryStore(disk, faults), 'talk', more(wanted[0]));
  assert.deepEqual(ids, wanted[1], why);
  const again = await once(new MemoryStore(disk), 'talk', more(wanted[0]));
  assert.deepEqual(again.ids, wanted[1], `${why}: again`);
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(longer)), 0, `${why}: whole again`);
  return again.cached;
}

test('a crash at any call, and in the middle of any write, loses no more than what was being written', async () => {
  const n = await calls();
  assert.ok(n > 20, `${n} calls`);
  for (let at = 0; at < n; at++) {
    for (const torn of [0, 5, record - 1]) {
      const cached = await survives({ at: (i) => (i === at ? { crash: true, torn } : undefined) }, `crash at call ${at}, ${torn} bytes`);
      assert.ok(cached >= 4 * PAGE, `crash at call ${at}`);
    }
  }
});

test('a call that fails costs the saving, and short writes nothing', async () => {
  const n = await calls();
  for (let at = 0; at < n; at++) await survives({ at: (i) => (i === at ? { error: new Error('played') } : undefined) }, `error at call ${at}`);
  const disk = diskWith(file);
  const { told } = await once(new MemoryStore(disk, { at: (_, name) => (name === 'write' ? { short: 700 } : undefined) }), 'talk', more(wanted[0]));
  assert.deepEqual(told, []);
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(longer)), 0);
});

test('a store that fails is told of once, and is left alone', async () => {
  const store = new MemoryStore(new Disk(), { at: () => ({ error: new Error('played') }) });
  const { ask, saving, told } = await machine(store);
  for (let i = 0; i < 3; i++) assert.deepEqual((await ask('talk', PROMPT)).ids, wanted[0]);
  assert.deepEqual(await saving.saved(), []);
  assert.equal(told.length, 1);
  assert.match(told[0], /^quern: storage\/unavailable: Conversations cannot be saved here; they go on unsaved\. \(.*played.*\)$/);
  assert.equal(store.calls.length, 1);
});

test('without space: a notice, that name is given up, what fits stays and others go on', async () => {
  const disk = new Disk();
  const store = new MemoryStore(disk, { quota: HEADER + 2.5 * record });
  const { ask, saving, told } = await machine(store);
  assert.deepEqual((await ask('talk', PROMPT)).ids, wanted[0]);
  assert.equal((await saving.saved())[0].tokens, 2 * PAGE);
  assert.match(told.join(), /^quern: storage\/quota: There is not enough space to save the conversation/);
  await ask('talk', more(wanted[0]));
  assert.equal(told.length, 1);
  await saving.forget('talk');
  await ask('short', PROMPT.slice(5, 50));
  assert.equal((await saving.saved())[0].name, 'short');
  const { ids, cached } = await once(new MemoryStore(diskWith([file[0], pagesOf(file).subarray(0, HEADER + 2 * record)])), 'talk', PROMPT);
  assert.deepEqual([ids, cached], [wanted[0], 2 * PAGE]);
});

test('saveMaxBytes: the oldest go, a conversation that is larger is saved as far as it fits, and 0 saves nothing', async () => {
  const { ask, saving, told } = await machine(new MemoryStore(), { saveMaxBytes: 3 * (HEADER + 4 * record + DATE) });
  for (const [i, name] of ['a', 'b', 'c', 'a', 'd'].entries()) {
    await ask(name, [i % 3, ...PROMPT.slice(0, 4 * PAGE)]);
    await saving.saved();
    await new Promise((done) => { setTimeout(done, 3); });    // dates are in milliseconds
  }
  assert.deepEqual((await saving.saved()).map(({ name }) => name), ['d', 'a', 'c']);
  assert.deepEqual(told, []);
  const small = await machine(new MemoryStore(), { saveMaxBytes: HEADER + 3 * record - 1 });
  await small.ask('talk', PROMPT);
  assert.equal((await small.saving.saved())[0].tokens, 2 * PAGE);
  const none = new MemoryStore();
  assert.deepEqual((await once(none, 'talk', PROMPT, { saveMaxBytes: 0 })).kept, []);
  assert.deepEqual(none.calls, []);
});

test('what model it is the engine finds out ahead where something is saved, and tells nobody of a store that fails', async () => {
  for (const [store, isAsked] of [[new MemoryStore(diskWith(file)), true], [new MemoryStore(), false], [new MemoryStore(diskWith(file), { at: () => ({ error: new Error('played') }) }), false]]) {
    const { engine, saving, told } = await machine(store);
    const identify = engine.identify.bind(engine);
    const known = [];
    engine.identify = (ms) => { known.push(identify(ms)); return known.at(-1); };
    await saving.expect();
    assert.deepEqual([known.at(-1), told], [isAsked || undefined, []]);
    assert.deepEqual(store.calls, ['list']);
  }
});

// --- several at once ---

test('two writers of one name: each says what it says, and the file is one of theirs', async () => {
  const disk = new Disk();
  const others = [more(wanted[0]), [...wanted[0].slice(0, 2 * PAGE), ...Array(90).fill(50)]];
  const alone = await Promise.all(others.map((ids) => once(undefined, null, ids)));
  const machines = await Promise.all(others.map(() => machine(new MemoryStore(disk))));
  for (let round = 0; round < 3; round++) {
    const replies = await Promise.all(machines.map(({ ask }, i) => ask('talk', others[i])));
    assert.deepEqual(replies.map(({ ids }) => ids), alone.map(({ ids }) => ids));
    await Promise.all(machines.map(({ saving }) => saving.saved()));
  }
  const found = await Promise.all(others.map((ids) => once(new MemoryStore(diskWith(fileOf(disk))), 'talk', ids)));
  assert.deepEqual(found.map(({ ids }) => ids), alone.map(({ ids }) => ids));
  assert.ok(found.some(({ cached }) => cached >= 5 * PAGE), found.map(({ cached }) => cached).join());
  assert.deepEqual(machines.flatMap(({ told }) => told), []);
});

test('a file that has become another model\'s since it was read is begun anew', async () => {
  const disk = new Disk();
  const { ask, saving } = await machine(new MemoryStore(disk));
  await ask('talk', PROMPT);
  await saving.saved();
  await once(new MemoryStore(disk), 'talk', PROMPT, { model: OTHER });
  assert.notEqual(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(file)), 0);
  await ask('talk', PROMPT);
  await saving.saved();
  assert.equal(Buffer.compare(pagesOf(fileOf(disk)), pagesOf(file)), 0);
});

test('stopped while it is read: it ends at once, whatever the store does, and nothing stays behind', async () => {
  for (let at = 0; at < 9; at++) {
    const store = new MemoryStore(diskWith(file));
    const { ask, engine, saving } = await machine(store);
    let reached;
    let go;
    const here = new Promise((resolve) => { reached = resolve; });
    const gate = new Promise((resolve) => { go = resolve; });
    const slow = (thing) => new Proxy(thing, {
      get: (_, name) => (typeof thing[name] !== 'function' ? thing[name] : async (...args) => {
        if (store.calls.length === at) {
          reached();
          await gate;
        }
        const value = await thing[name](...args);
        return name === 'open' && value ? slow(value) : value;
      }),
    });
    const stuck = new Saving(engine, new Runner(engine, turn), { store: slow(store), tell: assert.fail, fail: assert.fail });
    const job = lone();
    const prompt = { ids: Int32Array.from(PROMPT), channels: [], inside: null, defaults: NEUTRAL };
    const reply = stuck.run('talk', new Generation(engine, prompt, NEUTRAL, () => {}), job);
    await Promise.race([here, reply]);
    job.stopped = true;
    job.onStop();
    const { finishReason } = await reply;
    go();
    await stuck.saved();
    assert.ok(['aborted', 'length', 'stop'].includes(finishReason));
    assert.equal(engine.memory().cache.used, 0);
    assert.deepEqual((await ask('talk', PROMPT)).ids, wanted[0], `stopped at call ${at}`);
    await saving.saved();
    assert.equal(store.opened, 0, 'all files are closed');
  }
});

test('while others write: read and written beside them', async () => {
  const writes = [];
  const store = new MemoryStore(diskWith(file), { at: (_, name) => { if (name === 'write') writes.push(engine.work().steps); } });
  const { ask, engine, saving } = await machine(store, { kvPositions: 1024 });
  let over = false;
  const talk = { maxTokens: 240, bias: engine.facts.endTokens.map((id) => [id, -Infinity]) };
  const others = Promise.all([240, 170].map(async (maxTokens) => {    // one of them writes at any time
    const all = [];
    while (!over) all.push((await ask(null, [1, 2, 3], { ...talk, maxTokens })).ids);
    return all;
  }));
  const reply = await ask('talk', more(wanted[0]));
  assert.deepEqual([reply.ids, reply.cached], [wanted[1], 4 * PAGE]);
  await saving.saved();
  over = true;
  const { ids } = await once(undefined, null, [1, 2, 3], { reply: talk });
  for (const other of (await others).flat()) assert.deepEqual(other, ids.slice(0, other.length));
  assert.equal(writes.length, 3, writes.join());
  assert.equal((await saving.saved())[0].tokens, 6 * PAGE);
});

test('many at once, some of one name, in a pool that is too small', async () => {
  const disk = new Disk();
  const { ask, saving, engine } = await machine(new MemoryStore(disk), { kvPositions: 256 });
  const single = await machine(undefined);
  const prompts = Array.from({ length: 8 }, (_, i) => [...PROMPT.slice(0, 20 + 9 * i), i]);
  const alone = [];
  for (const ids of prompts) alone.push((await single.ask(null, ids)).ids);
  for (let round = 0; round < 4; round++) {
    const replies = await Promise.all(prompts.map((ids, i) => ask(`talk ${i % 5}`, ids)));
    assert.deepEqual(replies.map(({ ids }) => ids), alone, `round ${round}`);
  }
  assert.equal((await saving.saved()).length, 5);
  assert.equal(engine.memory().cache.used, 0);
});

test('what the engine knows is not read, nor what it has written', async () => {
  const store = new MemoryStore(diskWith(file));
  const { ask, saving } = await machine(store);
  let known = 0;
  for (const [ids, first] of [[PROMPT, 'open'], [PROMPT, 'lock'], [more(wanted[0]), 'lock'], [more(wanted[0]), 'lock']]) {
    const at = store.calls.length;
    const { cached } = await ask('talk', ids);
    await saving.saved();
    assert.equal(store.calls[at], first, 'a lock is taken for writing');
    assert.ok(cached >= known);
    known = cached;
  }
});

test('forget: what is there, what is being made, and all', async () => {
  const disk = new Disk();
  const { ask, saving } = await machine(new MemoryStore(disk));
  await ask('a', PROMPT);
  await saving.forget('a');
  assert.equal(disk.files.size, 0, 'nor is it written behind that');
  const making = ask('a', PROMPT);
  await turn();
  await saving.forget('a');
  await making;
  assert.deepEqual(await saving.saved(), []);
  await ask('a', PROMPT);
  await ask('b', PROMPT.slice(1));
  await ask('a', PROMPT);
  assert.deepEqual((await saving.saved()).map(({ name, tokens }) => [name, tokens]), [['a', 4 * PAGE], ['b', 4 * PAGE]]);
  await saving.forget('c');
  await saving.forget();
  assert.equal(disk.files.size, 0);
});

// --- the package's face ---

const folder = mkdtempSync(join(tmpdir(), 'quern-save-'));
after(() => rmSync(folder, { recursive: true }));
const kvFiles = (cache) => readdirSync(cache).filter((name) => name.startsWith('kv-'));

const QUESTION = 'Tell me about the mill. '.repeat(60);
const SAID = { temperature: 0, maxTokens: 8 };

async function withModel(options, use) {
  const model = await load(DEMO, options);
  try {
    return await use(model);
  } finally {
    await model.dispose();
  }
}

test('a conversation goes on in another process\'s model, in the folder or in a store of one\'s own', async () => {
  const cache = join(folder, 'talk');
  const plain = await withModel({ store: false }, (model) => model.chat(QUESTION, SAID).result);
  for (const own of [{ store: cache }, { store: new MemoryStore() }]) {
    const first = await withModel({ ...own, threads: 2 }, async (model) => {
      const reply = model.chat(QUESTION, { ...SAID, save: 'Gespräch 17 🦉' });
      assert.equal((await collect(reply)).join(''), plain.text);
      return (await reply.result).usage.cachedTokens;      // dispose() ends the writing
    });
    await withModel({ ...own, threads: 1, variant: 'scalar' }, async (model) => {
      const [{ name, tokens, bytes, date }] = await model.saved();
      assert.deepEqual([name, tokens, bytes > 100_000, Date.now() - date < 60_000], ['Gespräch 17 🦉', Math.floor(plain.usage.promptTokens / PAGE) * PAGE, true, true]);
      const read = [];
      const { text, usage } = await model.chat(QUESTION, { ...SAID, save: name, onPrefill: ({ cached }) => read.push(cached) }).result;
      assert.deepEqual([first, text, usage.cachedTokens, read[0]], [0, plain.text, tokens, tokens]);
      const all = await model.saved();     // waits for what is being written
      assert.deepEqual(await models.saved(own), all);
      await model.forget(name);
      assert.deepEqual(await model.saved(), []);
    });
  }
  assert.deepEqual(kvFiles(cache), []);
});

test('models.saved() and models.forget() need no model', async () => {
  const cache = join(folder, 'static');
  assert.deepEqual(await models.saved({ store: cache }), []);
  await withModel({ store: cache }, (model) => Promise.all(['a', 'b', 'c'].map((save) => model.chat(QUESTION, { ...SAID, save }).result)));
  assert.deepEqual((await models.saved({ store: cache })).map(({ name }) => name).sort(), ['a', 'b', 'c']);
  await models.forget('b', { store: cache });
  assert.deepEqual((await models.saved({ store: cache })).map(({ name }) => name).sort(), ['a', 'c']);
  await models.forget(null, { store: cache });
  assert.deepEqual(kvFiles(cache), []);
  assert.deepEqual(await models.list({ store: cache }), [], 'they are no models');
});

test('what is saved in damaged files goes with all others, and is not listed', async () => {
  const disk = diskWith([file[0], new Uint8Array(HEADER + 10)]);
  const cache = new MemoryStore(disk);
  assert.deepEqual(await models.saved({ store: cache }), []);
  await models.forget(undefined, { store: cache });
  assert.equal(disk.files.size, 0);
});

test('while it is being saved a name is busy for others', { timeout: 20_000 }, async () => {
  const disk = diskWith(file);
  const release = await new MemoryStore(disk).lock(file[0], { wait: false });
  await rejectsWith(models.forget('talk', { store: new MemoryStore(disk) }), 'storage/busy', /being saved/);
  release();
  await models.forget('talk', { store: new MemoryStore(disk) });
  assert.equal(disk.files.size, 0);
});

test('names and places that are none', async () => {
  await withModel({ store: join(folder, 'names') }, async (model) => {
    for (const [save, words] of [['', /a name/], [5, /a name/], [{}, /a name/], ['é'.repeat(129), /258 bytes .*256/], ['a\ud800', /lone surrogates/]]) {
      const error = await rejectsWith(model.chat('Hi', { save }).result, 'use/param', words);
      assert.equal(error.detail.param, 'options.save');
      assert.equal((await rejectsWith(model.forget(save), 'use/param', words)).detail.param, 'name');
      await rejectsWith(models.forget(save), 'use/param', words);
    }
    await rejectsWith(model.complete('Hi', { save: 'x' }).result, 'use/param', /not an option here/);
    await model.chat('Hi', { save: 'é'.repeat(128), maxTokens: 1 }).result;
    await model.chat('Hi', { save: null, maxTokens: 1 }).result;
    assert.deepEqual(await model.saved(), [], 'shorter than a page');
  });
  await withModel({ store: false }, async (model) => {
    await rejectsWith(model.chat('Hi', { save: 'x' }).result, 'use/param', /options\.save needs a store, .*store: false/);
    assert.deepEqual(await model.saved(), []);
    await model.forget();
  });
  for (const saveMaxBytes of [-1, 1.5, '1', Infinity]) await rejectsWith(load(DEMO, { saveMaxBytes }), 'use/param', /options\.saveMaxBytes/);
  await rejectsWith(models.saved({ store: false }), 'use/param');
});

/** An engine of which a call crashes: a trap, as far as anybody can tell. */
function crashing(engine, name, at) {
  const begin = engine.sequence;
  engine.sequence = (...args) => {
    const sequence = begin(...args);
    const real = sequence[name];
    sequence[name] = (...more) => {
      if (at-- > 0) return real(...more);
      for (const method of ['set', 'begin', 'save', 'give', 'take', 'free']) sequence[method] = () => assert.fail(`${method}() after a crash`);
      engine.step = () => assert.fail('step() after a crash');
      throw new WebAssembly.RuntimeError('unreachable');
    };
    return sequence;
  };
}

test('the engine crashes in a restore or while something is written: what is pending fails, and nothing is called any more', async () => {
  for (const [name, at, ids] of [['save', 0, PROMPT], ['give', 1, PROMPT], ['give', 6, more(wanted[0])], ['take', 1, more(wanted[0])]]) {
    const store = new MemoryStore(diskWith(file));
    const crashes = [];
    const { engine, ask, runner, saving } = await machine(store, { fail: (error) => { crashes.push(error.code); runner.crash(error); } });
    const isLate = name === 'take' || at > 4;       // the reply has ended
    crashing(engine, name, at);
    const replies = [ask('talk', ids), ask(null, [1, 2, 3], { maxTokens: 200 }), ask('other', PROMPT.slice(3))];
    const outcomes = await Promise.allSettled(replies);
    await saving.saved();
    assert.deepEqual(crashes, ['engine/trap'], `${name} ${at}`);
    for (const { reason } of isLate ? [] : outcomes) assert.equal(reason?.code, 'engine/trap', `${name} ${at}`);
    assert.equal((await Promise.allSettled([ask('talk', ids)]))[0].reason?.code, 'engine/trap');
    await until(() => store.opened === 0);
    const again = await once(new MemoryStore(store.disk), 'talk', PROMPT);
    assert.deepEqual([again.ids, again.cached], [wanted[0], 4 * PAGE]);
  }
});

test('the engine crashes in the midst of a restore, and of an append: what is pending fails, and the rest is as ever', async () => {
  const disk = new Disk();
  const kept = () => withModel({ store: new MemoryStore(disk) }, async (model) => {
    const { text, usage } = await model.chat(QUESTION, { ...SAID, save: 'x' }).result;
    return [text, usage.cachedTokens];
  });
  const [text] = await kept();
  for (const [call, question] of [['fetch', QUESTION], ['write', `${QUESTION} And of the river. `.repeat(2)]]) {
    let strike = () => {};
    const cache = new MemoryStore(disk, { at: (_, name) => { if (name === call) strike(); } });
    const model = await load(DEMO, { store: cache, threads: 2, variant: 'simd', workerUrl: FAULTS });
    const struck = new Promise((resolve) => {
      strike = () => {
        strike = () => {};
        resolve(model.tokenize('fault trap 0'));
      };
    });
    const reply = model.chat(question, { ...SAID, save: 'x' }).result.catch(({ code }) => code);
    await rejectsWith(reply.then(() => model.saved()), 'engine/trap');     // which waits for what is being written
    await rejectsWith(struck, 'engine/trap');
    if (call === 'fetch') assert.equal(await reply, 'engine/trap');
    await model.dispose();
    await until(() => cache.opened === 0);
    const [again, cached] = await kept();
    assert.ok(again === text && cached > 0, call);
  }
});

test('the model is disposed of while something is saved: it is saved, and what comes then fails', async () => {
  const cache = new MemoryStore();
  const model = await load(DEMO, { store: cache });
  await model.chat(QUESTION, { ...SAID, save: 'x' }).result;
  await model.dispose();
  await rejectsWith(model.saved(), 'engine/disposed');
  await rejectsWith(model.chat('Hi', { save: 'x' }).result, 'engine/disposed');
  assert.equal((await models.saved({ store: cache })).length, 1);
  await until(() => cache.opened === 0);
});
