// SPDX-License-Identifier: MIT
// `quern embed` and `quern rank` read texts as lines of a file or of the standard input. They print a line per text, in
// order or the best first.

import { readFile } from 'node:fs/promises';
import { withModel } from './cli-model.js';
import { interrupted } from './cli-signals.js';
import { input, out } from './cli-terminal.js';
import { wholeOf } from './cli-values.js';
import { badParam } from '../shared/errors.js';

/** Most bytes of the input. */
const MOST_BYTES = 2 ** 28;

/** Most numbers of a vector. */
const MOST_NUMBERS = 2 ** 20;

/** Texts computed side by side: several short ones fill a step. */
const PARALLEL = 16;

async function bytesOf(path) {
  if (path !== undefined && path !== '-')
    return readFile(path).catch((error) => {
      throw badParam('FILE', `cannot be read (${error.code})`);
    });
  const chunks = [];
  let size = 0;
  for await (const chunk of input()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MOST_BYTES) break;
  }
  return Buffer.concat(chunks);
}

/** Splits the input into lines. A newline at the end begins no further line. */
async function linesOf(path) {
  const bytes = await bytesOf(path);
  if (bytes.length > MOST_BYTES) throw badParam('FILE', `is longer than ${MOST_BYTES} bytes`);
  const text = String(bytes).replace(/\r?\n$/, '');
  return text === '' ? [] : text.split(/\r?\n/);
}

export async function embed({ model: source, text: path, values, load }) {
  const { instruction, dimensions: number, json } = values;
  const dimensions = number === undefined ? undefined : wholeOf(number, '--dimensions', [1, MOST_NUMBERS]);
  const texts = await linesOf(path);
  await withModel(source, { ...load, parallel: PARALLEL }, async (model) => {
    const { vectors, tokens, truncated } = await model.embed(texts, { instruction, dimensions, signal: interrupted });
    if (json)
      await out(`${JSON.stringify({ vectors: vectors.map((vector) => Array.from(vector)), tokens, truncated })}\n`);
    else for (const vector of vectors) await out(`${vector.join(' ')}\n`);
  });
}

export async function rank({ model: source, text: query, more: path, values: { instruction, json }, load }) {
  const texts = await linesOf(path);
  await withModel(source, { ...load, parallel: PARALLEL }, async (model) => {
    const ranks = await model.rank(query, texts, { instruction, signal: interrupted });
    if (json) await out(`${JSON.stringify(ranks)}\n`);
    else for (const { index, score } of ranks) await out(`${score.toFixed(6)}\t${texts[index]}\n`);
  });
}
