// SPDX-License-Identifier: MIT
// Opt-in: real weights say something sensible, and the same thing however they are computed.
//   QUERN_MODEL=path [QUERN_PROMPT='…' QUERN_EXPECT=word] npm run test:smoke
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';
import { load } from '../../dist/node.js';

const { QUERN_MODEL: MODEL, QUERN_PROMPT: QUESTION = 'What is the capital of France?', QUERN_EXPECT: EXPECTED = 'Paris' } = process.env;

/** Enough for a sentence, not for an essay on a slow machine. */
const MAX_TOKENS = 64;

/** Kernels and threads; the first is what the others are compared with. */
const WAYS = [
  { variant: 'relaxed', threads: 1 }, { variant: 'relaxed', threads: 1 }, { variant: 'relaxed', threads: 2 },
  { variant: 'simd', threads: 1 }, { variant: 'simd', threads: 2 },
];

async function ask(options) {
  const model = await load(MODEL, options);
  try {
    assert.equal(model.info.variant, options.variant);
    assert.equal(model.info.threads, options.threads);
    return {
      continued: await model.complete(QUESTION, { maxTokens: MAX_TOKENS, temperature: 0 }).result,
      answered: await model.chat(QUESTION, { maxTokens: MAX_TOKENS, temperature: 0, thinking: false }).result,
    };
  } finally {
    await model.dispose();
  }
}

const facts = ({ text, finishReason, usage }) => ({ text, finishReason, completionTokens: usage.completionTokens });

function checkReply({ text, finishReason }, t) {
  t.diagnostic(`${QUESTION} -> ${text}`);
  assert.match(finishReason, /^(stop|length)$/);
  assert.notEqual(text.trim(), '', 'the reply is empty');
  assert.doesNotMatch(text, /\uFFFD/, 'the reply is no valid UTF-8');
  assert.doesNotMatch(text, /<\|[a-z_]+\|>/, 'the reply has a control token as text');
  assert.ok(text.toLowerCase().includes(EXPECTED.toLowerCase()), `'${EXPECTED}' is not in the reply: ${text}`);
}

const skip = MODEL ? false : 'set QUERN_MODEL to the path of a Qwen3 or Qwen3.5 GGUF file to run this on real weights';

describe('real weights', { skip }, () => {
  if (!MODEL) return;

  test('answer a question', async (t) => {
    assert.ok(/^https?:/.test(MODEL) || existsSync(MODEL), `QUERN_MODEL: there is no file ${MODEL}`);
    checkReply((await ask(WAYS[0])).answered, t);
  });

  test('say the same every time, with every kernel and number of threads', async () => {
    let first;
    for (const way of WAYS) {
      const { continued, answered } = await ask(way);
      const all = { continued: facts(continued), answered: facts(answered) };
      first ??= all;
      assert.deepEqual(all, first, `${way.variant}, ${way.threads} threads`);
    }
  });
});
