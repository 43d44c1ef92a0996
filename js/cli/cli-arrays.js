// SPDX-License-Identifier: MIT
// The commands that write arrays: the scores after each token of a prompt, and the encoder's output for an image.

import { readFile } from 'node:fs/promises';
import { withModel } from './cli-model.js';
import { interrupted, stopWith } from './cli-signals.js';
import { tokenIds } from './cli-values.js';
import { writeWhole } from './whole-file.js';
import { badParam } from '../shared/errors.js';

/** Most letters of a file with messages. */
const MOST_LETTERS = 2 ** 26;

async function write(path, values) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  await writeWhole('--out', path, bytes, stopWith('The writing was stopped; nothing was kept of it.'));
}

/** Reads `{"messages": […], "numberImages": true}`, with paths as images. */
async function readMessages(path) {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw badParam('--messages', `cannot be read (${error.code})`);
  });
  if (text.length > MOST_LETTERS) throw badParam('--messages', `has more than ${MOST_LETTERS} letters`);
  let parsed;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw badParam('--messages', `is no JSON (${error.message.slice(0, 100)})`);
  }
  const { messages, numberImages, ...more } = parsed ?? {};
  const [unknown] = Object.keys(more);
  if (unknown !== undefined)
    throw badParam('--messages', `has the unknown field '${unknown.slice(0, 64)}', beside messages and numberImages`);
  if (!Array.isArray(messages)) throw badParam('--messages', 'must have a list of messages');
  return { messages, numberImages };
}

export async function logits({ model: source, load, values }) {
  if (values.tokens !== undefined && values.messages !== undefined)
    throw badParam('--tokens', 'and --messages exclude each other');
  const prompt =
    values.messages === undefined
      ? { messages: tokenIds(values.tokens, '--tokens') }
      : await readMessages(values.messages);
  if (values.out === undefined) throw badParam('--out', 'is missing');
  const { messages, numberImages } = prompt;
  await withModel(source, load, async (model) =>
    write(values.out, await model.logits(messages, { signal: interrupted, numberImages })),
  );
}

export async function vision({ model: source, load, values }) {
  const [image, ...more] = values.image ?? [];
  if (image === undefined || more.length)
    throw badParam('--image', image === undefined ? 'is missing' : 'may be given once here');
  if (values.out === undefined) throw badParam('--out', 'is missing');
  await withModel(source, load, async (model) =>
    write(values.out, (await model.look(image, { signal: interrupted })).values),
  );
}
