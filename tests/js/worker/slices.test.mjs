// SPDX-License-Identifier: MIT
// What guests ask for beside replies (tokens of long texts, large and hostile conversations, lists of texts) is done in slices by turns: the engine's
// worker always answers soon, a reply beside it keeps its pace, and who asks for much waits longer than who asks for little.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readFile } from 'node:fs/promises';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { load } from '../../../dist/node.js';
import { Chat } from '../../../js/reply/chat.js';
import { Asker } from '../../../js/worker/asker.js';
import { render } from '../../../js/worker/template.js';
import { Turns } from '../../../js/worker/turns.js';
import { opened, partOf, startOver, testHost } from '../support/engine-host.mjs';
import { DEMO } from '../support/helper.mjs';
import { soon } from '../support/soon.mjs';

const model = await load(DEMO, { contextSize: 2048, store: false });
after(() => model.dispose());

const MILLION = 2 ** 20;

/** Texts that are made to take long, each in another way. */
const TEXTS = {
  prose: 'The quick brown fox jumps over the lazy dog. '.repeat(4 * MILLION / 45),
  letter: 'a'.repeat(MILLION),
  spaces: ' '.repeat(MILLION),
  digits: '0'.repeat(2 * MILLION),
  emoji: '\u{1f600}'.repeat(MILLION),
  marks: 'a'.repeat(2).concat('\u0301\u0316'.repeat(450)).repeat(MILLION / 900),
  brackets: '<'.repeat(2 * MILLION),
  noncharacters: '\ufdd0'.repeat(MILLION),
  specials: '<|im_start|><|im_end|><think></think>'.repeat(2 * MILLION / 36),
  quotes: '"\\\n'.repeat(MILLION),
};

const user = (content) => ({ role: 'user', content });
const mute = (promise) => promise.catch(() => {});

/** How many small questions of another are answered while something goes on. */
async function answersBeside(work) {
  let over = false;
  const all = work().finally(() => { over = true; });
  let n = 0;
  for (; !over; n++) await model.detokenize([65], { cacheScope: 7, guest: 3 });
  await all;
  return n;
}

for (const [name, text] of Object.entries(TEXTS)) {
  test(`others are answered while the tokens of a text of ${name} are found, alone or in a conversation`, async () => {
    const works = {
      tokens: () => mute(model.tokenize(text, { cacheScope: 1 })),
      conversation: () => mute(model.countTokens([user(text)], { cacheScope: 1 })),
    };
    for (const [kind, work] of Object.entries(works)) {
      const n = await answersBeside(work);
      assert.ok(n >= 5, `${n} answers beside ${kind}`);
    }
  });
}

test('others are answered beside conversations of many messages, and lists of long texts', async () => {
  const messages = Array.from({ length: 8000 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `Hello ${i} <|im_end|>` }));
  const works = [
    () => mute(model.countTokens(messages, { cacheScope: 1 })),
    () => mute(model.embed([TEXTS.prose, TEXTS.marks.slice(0, 2 ** 19), TEXTS.brackets.slice(0, 2 ** 19)], { cacheScope: 1 })),
    () => mute(model.detokenize(Array.from({ length: 300_000 }, (_, i) => i % 256), { cacheScope: 1 })),
  ];
  for (const work of works) assert.ok(await answersBeside(work) >= 5);
});

test('no slice takes long, whatever it is of: in processor time, since this machine may be busy', () => soon(60, async () => {
  const engine = await startOver(testHost(), opened(partOf(await readFile(DEMO))), { contextSize: 2048 });
  let longest = 0;
  class Watched extends Turns {
    run(owner, work) {
      return super.run(owner, (ms) => {
        const before = process.cpuUsage();
        try {
          return work(ms);
        } finally {
          const { user: own, system } = process.cpuUsage(before);
          longest = Math.max(longest, (own + system) / 1000);
        }
      });
    }
  }
  const asker = new Asker(engine, new Watched(turn));
  const chat = new Chat(engine, (...given) => render(...given));
  for (const text of Object.values(TEXTS)) {
    await asker.tokens(text);
    await mute(chat.prompt([user(text)], {}, asker));
    await mute(chat.prompt([user('x'), { role: 'assistant', content: `</think>${text}` }, user('y')], { mustFit: true }, asker));
  }
  return longest;
}));

test('ids of a text are those of its parts, whoever works beside it', async () => {
  const parts = Array.from({ length: 400 }, (_, i) => ` Line ${i} of a text that is <long>, and its “marks” too.`);
  const alone = [];
  for (const part of parts) alone.push(...await model.tokenize(part));
  const both = await Promise.all([model.tokenize(parts.join('')), model.tokenize(TEXTS.prose), model.tokenize(parts.join(''))]);
  assert.deepEqual(both[0], alone);
  assert.deepEqual(both[2], alone);
});

test('long words come one at a time, and all of them come', async () => {
  const words = [TEXTS.letter.slice(0, 300_000), 'ab'.repeat(100_000), '界'.repeat(100_000)];
  const all = await Promise.all(words.flatMap((word, i) => [1, 2].map((guest) => model.tokenize(word, { cacheScope: i, guest }))));
  for (let i = 0; i < words.length; i++) {
    assert.deepEqual(all[2 * i], all[2 * i + 1]);
    assert.equal(await model.detokenize(all[2 * i]), words[i]);
  }
});

test('what is stopped ends soon, and others go on', async () => {
  const leave = new AbortController();
  const never = model.tokenize(TEXTS.letter, { signal: leave.signal });
  await sleep(20);
  leave.abort();
  await assert.rejects(never, { name: 'AbortError' });
  assert.ok((await model.tokenize('on')).length > 0);
});

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

/** Times between tokens of a reply. */
async function gapsOf(options) {
  const gaps = [];
  let last;
  for await (const _ of model.chat([user('Once')], { maxTokens: 100, seed: 1, temperature: 1, logitBias: {}, ...options })) {
    const now = performance.now();
    if (last) gaps.push(now - last);
    last = now;
  }
  return gaps;
}

/** Fifty long jobs of one guest, until they are told to end. */
function besieged(owner) {
  const leave = new AbortController();
  const jobs = Array.from({ length: 50 }, (_, i) => mute(i % 2 ? model.tokenize(TEXTS.prose, { ...owner, signal: leave.signal })
    : model.countTokens([user(TEXTS.marks)], { ...owner, signal: leave.signal })));
  return async () => {
    leave.abort();
    await Promise.all(jobs);
  };
}

test('fifty jobs of one guest hold up no other: his first token and his pace', () => soon(4, async () => {
  const ask = async () => {
    const began = performance.now();
    await model.chat([user('Hi')], { maxTokens: 1, cacheScope: 2 }).result;
    return performance.now() - began;
  };
  const alone = [];
  for (let i = 0; i < 9; i++) alone.push(await ask());
  const end = besieged({ cacheScope: 1 });
  await sleep(50);
  const beside = [];
  for (let i = 0; i < 9; i++) beside.push(await ask());
  await end();
  return median(beside) / Math.max(median(alone), 10);
}));

test('a reply keeps its pace beside fifty jobs of another', () => soon(2.5, async () => {
  const alone = median(await gapsOf({ cacheScope: 2 }));
  const end = besieged({ cacheScope: 1 });
  const beside = median(await gapsOf({ cacheScope: 2 }));
  await end();
  return beside / Math.max(alone, 2);
}));
