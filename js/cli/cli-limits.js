// SPDX-License-Identifier: MIT
// What a reply is limited to, as the command line says it: schemas and grammars are files.

import { createReadStream } from 'node:fs';
import { QuernError, badParam } from '../shared/errors.js';

/** Bytes of a description (GRAMMAR_TEXT_MOST in src/grammar/compile.h). */
const MOST = 2 ** 20;

/** A file's text; whatever it is, no more is read of it than is of use. */
async function fileOf(path, flag) {
  const chunks = [];
  try {
    for await (const chunk of createReadStream(path, { end: MOST })) chunks.push(chunk);
  } catch (error) {
    throw badParam(flag, `cannot be read: ${path} (${error.code})`);
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MOST)
    throw new QuernError('use/schema', 'What a reply must look like is described in more than 1 MB.');
  return String(bytes);
}

function jsonOf(text, flag) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badParam(flag, `is no JSON (${error.message.slice(0, 100)})`);
  }
}

/** Options of a reply, as they are written for the library. */
export async function limitsOf({ schema, grammar, regex, 'json-reply': json }) {
  const [first, second] = Object.entries({ schema, grammar, regex, 'json-reply': json }).filter(
    ([, value]) => value !== undefined,
  );
  if (second) throw badParam(`--${first[0]}`, `and --${second[0]} exclude each other`);
  if (schema !== undefined) return { schema: jsonOf(await fileOf(schema, '--schema'), '--schema') };
  if (grammar !== undefined) return { grammar: await fileOf(grammar, '--grammar') };
  return regex !== undefined ? { regex } : json ? { json } : {};
}

/**
 * Where something other than its end ended a limited reply, which so is not what was asked for. Stop texts and Ctrl-C
 * are meant to end it.
 */
export function checkWhole(options, { finishReason }) {
  const kind = ['schema', 'grammar', 'regex', 'json'].find((name) => options[name] !== undefined);
  if (!kind || !['length', 'context'].includes(finishReason)) return;
  const [limit, more] =
    finishReason === 'length' ? ['--max-tokens', 'allow more'] : ['--context', 'give it a larger one'];
  throw new QuernError('use/schema', `The reply ended before it was whole, at the limit of ${limit}: ${more}.`);
}
