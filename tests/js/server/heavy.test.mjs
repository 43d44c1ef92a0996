// SPDX-License-Identifier: MIT
// `quern serve` against requests that are as much work as they can be: none of them holds the thread that answers all for long, and an answer is no
// more than a little of it at a time.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { JsonWeight, MOST_WEIGHT, weightOf } from '../../../js/facades/json-weight.js';
import { jsonPieces } from '../../../js/cli/serve-pieces.js';
import { HEAVY } from '../../fixtures/heavy-bodies.mjs';
import { random as seeded } from '../../fixtures/random.mjs';
import { ask, loadDemo, startServer } from '../support/serve-host.mjs';

/** The bound, and how often a stretch that seems longer is looked at. */
const MOST_MS = 250;
const LOOKS = 5;

/** How much slower this machine is now than a quiet one: other processes have it too. */
const RULER_MS = 20;
const NUMBERS = `[${Array(500_000).fill(7)}]`;
function slowness() {
  const began = performance.now();
  JSON.parse(NUMBERS);
  return Math.max(1, (performance.now() - began) / RULER_MS);
}

let server;
before(async () => { server = await startServer({ model: await loadDemo({ contextSize: 512 }) }); });
after(() => server?.end());

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** The longest time in which this thread did nothing else. */
async function longestDuring(work) {
  const delay = monitorEventLoopDelay({ resolution: 2 });
  await pause(20);
  delay.enable();
  const answer = await work();
  await pause(5);
  delay.disable();
  return { ms: delay.max / 1e6 / slowness(), answer };
}

for (const [path, bodies] of Object.entries(HEAVY)) {
  test(`no body holds the server for long: ${path}`, { timeout: 600_000 }, async (t) => {
    const rows = [];
    for (const [name, texts] of Object.entries(bodies)) {
      for (const body of texts) {
        let found = { ms: Infinity };
        for (let look = 0; look < LOOKS && found.ms > MOST_MS; look++) {
          const { ms, answer } = await longestDuring(() => ask(server.port, 'POST', path, { body }));
          if (ms < found.ms) found = { ms, answer };
        }
        assert.ok(found.answer.status < 500, `${name}: ${found.answer.status} ${found.answer.body.slice(0, 300)}`);
        rows.push([Math.round(found.ms), `${name} (${weightOf(body) > MOST_WEIGHT ? 'too heavy' : 'taken'})`, found.answer.status]);
      }
    }
    const slowest = rows.toSorted(([a], [b]) => b - a);
    t.diagnostic(slowest.slice(0, 5).map(([ms, name, status]) => `${ms} ms: ${name} ${status}`).join(', '));
    assert.ok(slowest[0][0] <= MOST_MS, `${slowest[0]}`);
  });
}

test('what JSON weighs is told by its bytes, in pieces of any size', () => {
  for (const [text, weight] of [
    ['1', 0], ['[1,2]', 5], ['"a,b:[{\\"c"', 2], ['{"a":1}', 20], ['["\\\\",{}]', 11], ['[[],[]]', 13], ['{"a":"b","c":[]}', 43],
  ]) {
    assert.equal(weightOf(text), weight, text);
    const bytes = new TextEncoder().encode(text);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const sum = new JsonWeight();
      sum.add(bytes.subarray(0, cut));
      assert.equal(sum.add(bytes.subarray(cut)), weight, `${text} at ${cut}`);
    }
  }
});

test('an answer in pieces is the JSON that it would be at once', () => {
  const random = seeded(38);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const make = (depth) => pick([
    () => random(), () => null, () => true, () => 'x"\u{1f600}\\n'.repeat(pick([0, 1, 30, 20_000])),
    ...depth < 5 ? [() => Array.from({ length: pick([0, 1, 3, 40]) }, () => make(depth + 1)), () => ({ a: make(depth + 1), ä: undefined, b: make(depth + 1) })] : [],
    () => Array.from({ length: 9000 }, (_, i) => i), () => ({}),
  ])();
  for (let i = 0; i < 60; i++) {
    const value = [make(0), make(0), make(0)];
    const pieces = [...jsonPieces(value)];
    assert.equal(pieces.join(''), JSON.stringify(value));
    assert.ok(pieces.every((piece) => piece.length < 2 ** 18), 'none is long');
  }
  const made = { [Symbol.iterator]: function* each() { for (let i = 0; i < 3; i++) yield { i }; } };
  assert.equal([...jsonPieces({ ids: Int32Array.of(1, 2), made, none: new Float32Array(0) })].join(''), '{"ids":[1,2],"made":[{"i":0},{"i":1},{"i":2}],"none":[]}');
});
