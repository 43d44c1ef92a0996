// SPDX-License-Identifier: MIT
// No time tells one key what another one has sent to `quern serve`: one key asks something, then the other asks the same, and something else of the
// same size, in random order. Over many such pairs neither is the faster one (sign test). That the test would see it is shown within one key.
//
//   QUERN_LONG=1              200 pairs of each kind; else a few
//   QUERN_TIMING=schemas      this kind alone

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, test } from 'node:test';
import { length } from '../../fixtures/lengths.mjs';
import { writePng } from '../../fixtures/png.mjs';
import { random as seeded } from '../../fixtures/random.mjs';
import { SMALL, folderOf, makeSeeing, send, serving } from './guests-host.mjs';

const PAIRS = length(24, 200);

/** Below this there is a difference. */
const P = 0.01;

/** What is seen must be seen well: of so many pairs so many. */
const CLEAR = 1e-4;

const CHAT = '/v1/chat/completions';
const WORDS = 'river mill owl stone bread winter lamp garden needle wheel'.split(' ');

const chat = (content, more) => [CHAT, { messages: [{ role: 'user', content }], max_tokens: 1, temperature: 0, ...more }];

/** Words that nobody has said before, always as many letters. */
function words(random, n) {
  return Array.from({ length: n }, () => `${WORDS[Math.floor(random() * WORDS.length)].padEnd(7, 'x')}${Math.floor(1e6 + random() * 9e6).toString(36).slice(0, 4)}`);
}

const properties = (random, n) => Object.fromEntries(words(random, n).map((word, i) => [`${word}${i}`, { type: 'string', pattern: `^[a-z]{2,9}-${word}[0-9]{1,5}$` }]));

/** A picture of random squares. */
function picture(random) {
  const noise = randomBytes(64);
  const own = Math.floor(random() * 256);
  return writePng({ width: 192, height: 128, color: 2, samples: (x, y) => [noise[(x >> 4) & 63], own, noise[(y >> 4) & 63]] }).toString('base64');
}

/** By kind, a request that nobody has made before; all of a kind have the same size. @type {Record<string, (random: () => number) => [string, object]>} */
const ASKED = {
  text: (random) => chat(words(random, 24).join(' ')),
  pictures: (random) => chat([{ type: 'text', text: 'Look: ' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${picture(random)}` } }]),
  schemas: (random) => chat('Hi', { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object', properties: properties(random, 200) } } } }),
  tools: (random) => chat('Hi', { tool_choice: 'required', tools: Array.from({ length: 3 }, (_, i) => ({ type: 'function', function: { name: `tool${i}`, parameters: { type: 'object', properties: properties(random, 3) } } })) }),
  templates: (random) => ['/apply-template', { messages: Array.from({ length: 300 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: words(random, 10).join(' ') })) }],
};

/** What a key knows of itself: nothing of templates, so there what is twice as long is the slower one. */
const LONGER = { templates: (random) => ['/apply-template', { messages: Array.from({ length: 600 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: words(random, 10).join(' ') })) }] };

/** The probability of as uneven a result, or a more uneven one, if both are as likely (two-sided). */
function signTest(wins, n) {
  let sum = 0;
  let term = 0.5 ** n;
  for (let k = 0; k <= Math.min(wins, n - wins); k++) {
    sum += term;
    term *= (n - k) / (k + 1);
  }
  return Math.min(1, 2 * sum);
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const bytesOf = ([path, body]) => ({ method: 'POST', path, body: Buffer.from(JSON.stringify(body)) });

/** ms */
async function timed(port, asked, key) {
  const { status, ms, text } = await send(port, asked, { key });
  assert.equal(status, 200, text);
  return ms;
}

/** Of pairs, how often what had been asked by `first` was faster for `second` than what had not. */
async function compared(port, kind, { first, second, seed, other = ASKED[kind] }) {
  const random = seeded(seed);
  const gains = [];
  for (let i = 0; i < PAIRS; i++) {
    const [known, unknown] = [ASKED[kind], other].map((make) => bytesOf(make(random)));
    await timed(port, known, first);
    const took = new Map();
    for (const asked of random() < 0.5 ? [known, unknown] : [unknown, known]) took.set(asked, await timed(port, asked, second));
    gains.push([took.get(known), took.get(unknown)]);
  }
  const wins = gains.filter(([known, unknown]) => known < unknown).length;
  const [known, unknown] = [0, 1].map((i) => median(gains.map((gain) => gain[i])).toFixed(1));
  return { p: signTest(wins, PAIRS), said: `${wins} of ${PAIRS} faster; ${known} and ${unknown} ms` };
}

let files;
before(() => { files = makeSeeing(folderOf('timing'), SMALL); });

for (const kind of Object.keys(ASKED).filter((name) => name.includes(process.env.QUERN_TIMING ?? ''))) {
  test(`what another key has sent is as slow as anything: ${kind}`, { timeout: length(300_000, 3_600_000) }, async (t) => {
    const { port } = await serving(t, files, { keys: ['a', 'b'], flags: ['--context', '4096', '--kv-positions', '32768', '--parallel', '2'] });
    const within = await compared(port, kind, { first: 'a', second: 'a', seed: 1, other: LONGER[kind] });
    t.diagnostic(`within a key: ${within.said}, p = ${within.p.toExponential(1)}`);
    assert.ok(within.p < CLEAR, `the test sees nothing: ${within.said}`);
    const said = [];
    for (let p = 0, seed = 2; p <= P && seed < 4; seed++) {      // chance says so of one in a hundred; of both it does not
      const between = await compared(port, kind, { first: 'a', second: 'b', seed });
      p = between.p;
      said.push(`${between.said}, p = ${p.toExponential(1)}`);
      t.diagnostic(`between two keys: ${said.at(-1)}`);
      if (p > P) return;
    }
    assert.fail(`one key tells what another has sent: ${said.join('; ')}`);
  });
}
