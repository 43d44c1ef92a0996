// SPDX-License-Identifier: MIT
// Memory in the wasm engine (group Q): what does not fit is refused with numbers and early, what the browser does not give is an
// error that leaves nothing behind, and addresses above 2 GiB are addresses like others. Elsewhere or nowhere:
// Q04, every allocation failing: tests/c/test_memory.c and test_split.c, since only the native build can make one fail.
// Q05, pages running out: tests/c/test_sequence.c; the library has one conversation, which holds its whole context from the start.
// Q09, a tab that the browser ends: tests/web/life.test.mjs; only the demo model loads by itself, so nothing crashes again and again. Q12, fragmentation: every load has a memory of its own, see Q08.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { load, support } from '../../../dist/node.js';
import { GOLDEN, PROJECT, nativeLogits, tokens } from '../../fixtures/golden.mjs';
import { writeHeader } from '../../fixtures/gguf-writer.mjs';
import { readGguf } from '../../fixtures/gguf-reader.mjs';
import { length } from '../../fixtures/lengths.mjs';
import { modelBytes, modelSpec } from '../../fixtures/make-model.mjs';
import { evenly, splitGguf } from '../../fixtures/split.mjs';
import { patchSpec, tinyModel, tinySpec } from '../../fixtures/tiny.mjs';
import { engineOver, logitsOf, opened, partOf, startOver, testHost } from '../support/engine-host.mjs';
import { CLI, DEMO, NANO, rejectsWith, until } from '../support/helper.mjs';

const GB = 1e9;
const MB = 1e6;
const nothing = () => {};

/** Collects garbage, so that what is left is held. */
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** 55 MB of weights, and as much for a context of 4,096 positions. */
const SMALL = { layers: 8, hidden: 256, ffn: 1024, heads: 8, kvHeads: 4, context: 40960 };

let nano;
let expected;
const { Memory } = WebAssembly;

before(async () => {
  nano = await readFile(NANO);
  expected = await readFile(`${PROJECT}/${nativeLogits('nano.Q8_0', 'f16')}`);
});
after(() => { WebAssembly.Memory = Memory; });

/** Memories are made by `make` while `work` runs. */
async function withMemory(make, work) {
  WebAssembly.Memory = make;
  try {
    return await work();
  } finally {
    WebAssembly.Memory = Memory;
  }
}

/** A header without its weights, as large as the model's real one. */
const headerOf = (options) => writeHeader(modelSpec(options)).header;

test('R9 the plan is what is taken, within 3 %, and info tells it', async () => {
  for (const options of [{}, { threads: 3, kv: 'f32', contextSize: 700 }]) {
    const model = await load(DEMO, options);
    await model.complete('What', { maxTokens: 3, repeatPenalty: 1.2, presencePenalty: 1 }).result;
    const { plan } = model.info;
    const { planned, peak, wasm } = model.info.memory;
    assert.equal(planned, plan.total);
    assert.equal(plan.total, plan.weights + plan.cache + plan.scratch);
    assert.ok(Math.abs(planned / peak - 1) < 0.03, `planned ${planned}, peak ${peak}`);
    assert.ok(wasm < planned + 40 * MB);
    await model.dispose();
  }
});

test('Q01 over the limit: refused by the header, with what is needed, what is allowed, and a context that fits', async () => {
  const bytes = Buffer.concat([headerOf(SMALL), Buffer.alloc(50 * MB)]);
  const part = partOf(bytes, { size: 0 });
  const error = await rejectsWith(startOver(testHost(), opened(part), { variant: 'simd', contextSize: 40_000, memoryLimit: 200 * MB }), 'mem/plan', /contextSize of \d+ would fit/);
  const { needed, allowed, contextSize } = error.detail;
  assert.ok(part.read <= 8 * MB, `${part.read} bytes were read`);
  assert.ok(needed > allowed && allowed < 200 * MB && allowed > 185 * MB);
  assert.ok(contextSize > 2000 && contextSize < 40_000);
  const engine = await engineOver(bytes.subarray(0, part.read), { contextSize, memoryLimit: 200 * MB });
  assert.equal(engine.plan().contextSize, contextSize);
  const tight = await rejectsWith(engineOver(bytes.subarray(0, part.read), { contextSize: contextSize + 32, memoryLimit: 200 * MB }), 'mem/plan');
  assert.equal(tight.detail.contextSize, contextSize);
});

test('Q01 weights alone over 4 GiB: refused with the file that would fit, or taken by 64-bit addresses', async () => {
  const header = headerOf({ preset: 'qwen3-8b', type: 'q8_0' });
  const host = testHost({ deviceMemory: 6 * GB });
  const part = partOf(header, { size: 0 });
  const error = await rejectsWith(startOver(host, opened(part), {}), 'mem/plan', /a file of \d\.\d+ GB would fit, with \d\.\d instead of 8\.5 bits/);
  assert.ok(part.read <= 8 * MB && error.detail.needed > 8.5 * GB);
  assert.deepEqual(host.started, support().maxMemory > 2 ** 32 ? ['relaxed-text', 'relaxed64-text'] : ['relaxed-text']);
  assert.ok(error.detail.allowed < (support().maxMemory > 2 ** 32 ? 6 * GB : 2 ** 32));
});

test('64-bit addresses are taken where the plan needs them, and only there', { skip: support().maxMemory < 2 ** 33 && `Node ${process.version} has no memories over 4 GiB` }, async () => {
  const options = { preset: 'qwen3-4b', type: 'q6_k', contextSize: 8192 };    // 3.3 GB, and 1.2 GB for the context
  const header = headerOf(options);
  for (const [wanted, total, started] of [
    [{}, 0, ['relaxed-text']], [{ contextSize: 8192 }, 0, ['relaxed-text', 'relaxed64-text']], [{ contextSize: 8192 }, 3.5 * GB, ['relaxed-text', 'relaxed64-text']],
    [{}, 5 * GB, ['relaxed-text', 'relaxed64-text']], [{ address: 32 }, 5 * GB, ['relaxed-text']], [{ address: 64 }, 0, ['relaxed64-text']],
    [{ memoryLimit: 4 * GB }, 5 * GB, ['relaxed-text']], [{ variant: 'simd' }, 5 * GB, ['simd-text', 'simd64-text']],
  ]) {
    const host = testHost({ hardwareThreads: 2 });
    await rejectsWith(startOver(host, { phase: 'load', total, parts: [partOf(header, { size: total })] }, wanted), 'model/format', /ends at byte/);
    assert.deepEqual(host.started, started, JSON.stringify(wanted));
  }
});

test('Q02 the browser refuses large maxima: smaller ones are tried, the plan knows, and none at all is an error', async () => {
  const refusing = (most) => function Refusing(descriptor) {
    if (descriptor.maximum > most) throw new RangeError('WebAssembly.Memory(): could not allocate memory');
    return new Memory(descriptor);
  };
  const engine = await withMemory(refusing(16384), () => engineOver(nano));
  const { limit } = engine.plan();
  assert.ok(limit < 2 ** 30 && limit > 2 ** 30 - 16 * MB);
  const header = headerOf({ layers: 28 });
  const error = await withMemory(refusing(8192), () => rejectsWith(engineOver(header), 'mem/plan'));
  assert.ok(error.detail.allowed < 2 ** 29);
  await withMemory(refusing(0), () => rejectsWith(engineOver(nano), 'mem/load', /no memory/));
});

test('Q03 memory that cannot grow, at every point of a load: mem/load, mem/plan or a loaded model, and then a good one', async () => {
  const bytes = Buffer.concat([...modelBytes(SMALL)]);
  const outcomes = new Set();
  let grown = Infinity;
  for (let allowed = 0; allowed < grown; allowed++) {
    grown = 0;
    const limited = function Limited(descriptor) {
      const memory = new Memory(descriptor);
      memory.grow = (pages) => {
        if (++grown > allowed) throw new RangeError('WebAssembly.Memory.grow(): Unable to grow instance memory');
        return Memory.prototype.grow.call(memory, pages);
      };
      return memory;
    };
    const outcome = await withMemory(limited, async () => {
      try {
        const engine = await engineOver(bytes, { contextSize: allowed % 2 ? 0 : 128 });
        engine.finish();
        return `loaded ${logitsOf(engine, [1, 2, 3]).length}`;
      } catch (error) {
        return error.code;
      }
    });
    outcomes.add(outcome);
    assert.match(outcome, /^(mem\/load|mem\/plan|loaded \d+)$/);
  }
  assert.ok(outcomes.has('mem/load') && [...outcomes].some((text) => text.startsWith('loaded')), [...outcomes].join());
  const engine = await engineOver(nano);
  engine.finish();
  assert.ok(expected.equals(logitsOf(engine, tokens)));
});

test('Q06 contexts beyond all sizes', async () => {
  for (const contextSize of [0, -1, 1.5, 2 ** 24 + 1, 2 ** 31, 2 ** 32 + 1, NaN]) await rejectsWith(load(NANO, { contextSize }), 'use/param', /contextSize/);
  const endless = tinyModel({}, { kv: { 'qwen3.context_length': ['u64', 2 ** 53] } });
  const error = await rejectsWith(load(new Blob([endless]), { contextSize: 2 ** 24, kv: 'f32', memoryLimit: GB }), 'mem/plan', /contextSize of/);
  const model = await load(new Blob([endless]), { contextSize: error.detail.contextSize, kv: 'f32', memoryLimit: GB });
  assert.equal(model.info.contextSize, error.detail.contextSize);
  await model.dispose();
});

test('Q07 everything above 2 GiB: the native bits', async () => {
  const reserve = 2.1 * 2 ** 30;
  let address;
  let alloc;
  const engine = await engineOver(nano, {
    use({ wasm }) {
      alloc = wasm._wasm_alloc;
      address = alloc(reserve);
    },
  });
  engine.finish();
  assert.ok(address > 0 && engine.memory().wasm > reserve && alloc(1 << 20) > 2 ** 31);
  assert.ok(expected.equals(logitsOf(engine, tokens)));
  assert.equal(engine.detokenize(engine.tokenize('the quern')), 'the quern');
});

test('Q08 loads and failures again and again: the process does not grow', async () => {
  const round = async () => {
    await (await load(NANO, { threads: 2 })).dispose();
    await load(new Blob([nano.subarray(0, 9000)])).catch(nothing);
    await load(DEMO, { memoryLimit: 9 * MB }).catch(nothing);
  };
  const sizes = [];
  const rounds = length(3, 5);
  for (let i = 1; i <= 3 * rounds; i++) {
    await round();
    if (i % rounds === 0) {
      collect();
      sizes.push(process.memoryUsage().rss);
    }
  }
  assert.ok(sizes[2] < sizes[0] + 48 * MB, sizes.join());
});

test('Q08 replies again and again: the engine does not grow', async () => {
  const engine = await engineOver(nano);
  engine.finish();
  const reply = (seed) => {
    const sequence = engine.sequence();
    sequence.set([1, 2, 3 + (seed % 40)], 'held');
    sequence.begin({
      temperature: 1, topK: 0, topP: 1, minP: 0, repeatPenalty: 1.2, presencePenalty: 1, frequencyPenalty: 0, seed, bias: [[5, 1]], silent: [], maxTokens: 3,
    });
    const types = [];
    while (types.at(-1) !== 'end') {
      engine.step(0);
      for (const { type } of engine.events()) types.push(type);
    }
    sequence.rest();
    sequence.free();
  };
  for (let seed = 0; seed < 10; seed++) reply(seed);
  const { cache: { used, pages }, ...first } = engine.memory();
  for (let seed = 0; seed < 1000; seed++) reply(seed);
  const { cache, ...last } = engine.memory();
  assert.deepEqual([last, used, cache], [first, 0, { pages, used: 0, remembered: pages }]);
});

test('Q10 a process with little heap of its own, and a machine with little memory', async () => {
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--max-old-space-size=48', CLI, 'run', DEMO, 'Once upon a time', '--max-tokens', '2', '--temperature', '0', '--json']);
  assert.equal(JSON.parse(stdout).usage.completionTokens, 2);
  const { stderr } = await run(process.execPath, [CLI, 'run', DEMO, 'Once upon a time', '--memory', '13000000']).then(() => assert.fail('was loaded'), (error) => error);
  assert.match(stderr, /^quern: mem\/plan: The model needs [\d.]+ MB/);
  const error = await rejectsWith(startOver(testHost({ deviceMemory: 13 * MB }), opened(partOf(await readFile(DEMO))), {}), 'mem/plan');
  assert.ok(error.detail.allowed < 13 * MB);
});

test('Q11 a bomb of metadata: at most ten times its bytes', async () => {
  const n = 2 ** 20;
  const tiny = tinySpec();
  const [,, known] = tiny.kv.find(([key]) => key === 'tokenizer.ggml.tokens');
  const spec = patchSpec(tiny, { kv: {
    'tokenizer.ggml.tokens': ['string[]', Array.from({ length: n }, (_, i) => known[i] ?? i.toString(36))],
    'tokenizer.ggml.token_type': ['i32[]', new Int32Array(n).fill(1)],
  } });
  const vocabulary = spec.tensors.find(({ name }) => name === 'token_embd.weight');
  Object.assign(vocabulary, { dims: [32, n], data: undefined });
  const { header } = writeHeader(spec);
  const engine = await engineOver(header, { contextSize: 16 });
  const { weights, cache } = engine.plan();
  const { peak } = engine.memory();
  assert.ok(header.length > 12 * MB && peak - weights - cache < 10 * header.length, `${peak} bytes for ${header.length}`);
});

test('a split model: the same bits, progress over all parts, and parts that do not belong together', async () => {
  const n = readGguf(nano).tensors.size;
  for (const counts of [evenly(n, 3), [0, n], [n - 1, 1]]) {
    const parts = splitGguf(nano, counts).map((bytes) => partOf(bytes, { chunk: 5000 }));
    const events = [];
    const engine = await startOver(testHost(), opened(...parts), { variant: 'simd' }, (event) => events.push(event));
    assert.equal(engine.facts.files, counts.length);
    assert.ok(expected.equals(logitsOf(engine, tokens)));
    const { loaded, total } = events.at(-1);
    assert.deepEqual([loaded, total], [opened(...parts).total, opened(...parts).total]);
  }
  const [first, second, third] = splitGguf(nano, evenly(n, 3));
  const start = (...parts) => startOver(testHost(), opened(...parts.map((bytes) => partOf(bytes))), {});
  await rejectsWith(start(first), 'model/unsupported', /first of the 3 files/);
  await rejectsWith(start(first, second), 'model/inconsistent', /2 files were given/);
  await rejectsWith(start(first, third, second), 'model/inconsistent', /File 2 of 3 was expected/);
  await rejectsWith(load(new Blob([second])), 'model/unsupported', /begin with the first/);
});
