// SPDX-License-Identifier: MIT
// One arithmetic, in a real browser: for every golden file the logits are the very bits of the native build's scalar
// kernels, with every build of the engine, with 1, 2 and 4 threads, read whole and in chunks, and without shared memory.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { PROJECT, station } from './browser.mjs';

const LIBRARY = 'tests/web/library.html';
const GOLDEN = 'tests/fixtures/golden';
const EXPECTED = 'build/tests-web';

const isolated = station({ root: PROJECT });
const plain = station({ root: PROJECT, isolate: false });

const tokens = JSON.parse(readFileSync(join(PROJECT, GOLDEN, 'tokens.json')));
const names = readdirSync(join(PROJECT, GOLDEN)).filter((name) => name.endsWith('.gguf')).map((name) => name.replace('.gguf', ''));

/** Every build with every number of threads, and every size of chunk. */
const CONFIGURATIONS = [
  ...['scalar', 'simd', 'relaxed'].flatMap((variant) => [1, 2, 4].map((threads) => ({ variant, threads, chunk: 64, kv: 'f16' }))),
  ...[1, 7, 192].map((chunk) => ({ variant: 'relaxed', threads: 2, chunk, kv: 'f16' })),
];

function run(program, args) {
  const { status, stderr, error } = spawnSync(program, args, { cwd: PROJECT, encoding: 'utf8' });
  assert.equal(status, 0, `${program} ${args.slice(0, 2).join(' ')}: ${error ?? stderr}`);
}

/** The native build's logits in a file, by its address from the root. */
function nativeLogits(name, kv) {
  const out = `${EXPECTED}/${name}.${kv}.f32`;
  run('build/release/quern', ['logits', `${GOLDEN}/${name}.gguf`, '--tokens', tokens.join(' '), '--variant', 'scalar', '--threads', '1', '--kv', kv, '--out', out]);
  return `/${out}`;
}

async function check(station, name, kv, configurations, ran = configurations) {
  const visit = await station.open(LIBRARY);
  await visit.page.waitForFunction(() => globalThis.quern);
  const request = { source: `/${GOLDEN}/${name}.gguf`, expected: nativeLogits(name, kv), tokens, configurations };
  const results = await visit.page.evaluate((argument) => globalThis.quern.compare(argument), request);
  assert.deepEqual(results, ran.map((configuration) => ({ ran: configuration, length: true, first: -1 })));
  await visit.close();
}

before(() => {
  run('make', ['--no-print-directory', '-s', 'native']);
  mkdirSync(join(PROJECT, EXPECTED), { recursive: true });
});

test('there are golden files of both models', () => {
  assert.ok(names.some((name) => name.startsWith('nano.')) && names.some((name) => name.startsWith('duo.')), names.join(' '));
});

for (const name of names) {
  test(`${name}: the native bits in ${CONFIGURATIONS.length} configurations`, () => check(isolated, name, 'f16', CONFIGURATIONS));
}

test('with float keys and values: the native bits', () => {
  const configurations = [{ variant: 'scalar', threads: 1, chunk: 64, kv: 'f32' }, { variant: 'relaxed', threads: 4, chunk: 7, kv: 'f32' }];
  return check(isolated, 'nano.Q4_K_M', 'f32', configurations);
});

test('without shared memory: one thread whatever is asked for, and the native bits', () => {
  const asked = ['scalar', 'simd', 'relaxed'].map((variant) => ({ variant, threads: 4, chunk: 64, kv: 'f16' }));
  return check(plain, 'nano.Q8_0', 'f16', asked, asked.map((configuration) => ({ ...configuration, threads: 1 })));
});
