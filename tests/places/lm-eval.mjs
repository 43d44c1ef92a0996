// SPDX-License-Identifier: MIT
// lm-eval over `quern serve`: one loglikelihood task, of which every number must be the sum that the engine's logits give, and no tokenizer beside the
// server's. Its version: projects/lm-eval is written for 0.4.13 (`pip install 'lm-eval[api]==0.4.13'`).
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { exp, log } from '../../js/reply/logprobs.js';

const FOLDER = fileURLToPath(new URL('projects/lm-eval/', import.meta.url));

/** A log-softmax, as the engine's arithmetic has it. */
function logSoftmax(row) {
  const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
  const rest = log(row.reduce((sum, value) => sum + exp(value - most), 0));
  return Float64Array.from(row, (value) => value - most - rest);
}

/** What the model's logits say of a text behind another: the sum, and whether each token is the likeliest. */
async function loglikelihood(model, before, all) {
  const { vocabSize, tokens } = model.info;
  const logits = await model.logits(all);
  let [sum, isGreedy] = [0, true];
  for (let at = before.length; at < all.length; at++) {
    const row = logSoftmax(logits.subarray((at - 1) * vocabSize, (at - 1) * vocabSize + tokens));
    sum += row[all[at]];
    isGreedy &&= row[all[at]] === row.reduce((a, b) => Math.max(a, b));
  }
  return [sum, isGreedy];
}

/** As lm-eval cuts a text in two: the space between both belongs to what follows, and before nothing stands the token that texts begin with. */
async function pairOf(model, question, answer) {
  if (question) return { before: await model.tokenize(question), all: await model.tokenize(`${question} ${answer}`) };
  const { endTokens, specialTokens: { bos_token: begin, eos_token: end } } = model.info;
  const texts = await Promise.all(endTokens.map((id) => model.detokenize([id])));
  const before = [endTokens[texts.indexOf(begin ?? end)]];
  return { before, all: [...before, ...await model.tokenize(` ${answer}`)] };
}

/**
 * Runs the task, and compares.
 * @param {string} python with lm-eval
 * @param {string} base the server's address, without a path
 * @param {import('../../js/index.js').Model} model what the server answers with
 * @returns {Promise<number>} how many numbers were the same
 */
export async function checkLmEval(python, base, model) {
  const env = { ...process.env, HF_DATASETS_OFFLINE: '1', HF_HUB_OFFLINE: '1', TOKENIZERS_PARALLELISM: 'false' };
  const { stdout } = await promisify(execFile)(python, ['check.py', `${base}/v1/completions`, '4'], { cwd: FOLDER, env });
  const given = JSON.parse(stdout.trim().split('\n').at(-1));
  const lines = (await readFile(`${FOLDER}toy.jsonl`, 'utf8')).trim().split('\n').map((line) => JSON.parse(line));
  let same = 0;
  for (const [i, { question, answers }] of lines.entries()) {
    for (const [k, answer] of answers.entries()) {
      const { before, all } = await pairOf(model, question, answer);
      assert.deepEqual(given[i][k], await loglikelihood(model, before, all), `${question} … ${answer}`);
      same++;
    }
  }
  return same;
}
