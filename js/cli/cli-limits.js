// SPDX-License-Identifier: MIT
// Reads the flags that limit the format of a reply. Schemas and grammars are files.

import { createReadStream } from 'node:fs';
import { QuernError, badParam } from '../shared/errors.js';

/** Most bytes of a description (GRAMMAR_TEXT_MOST in src/grammar/compile.h). */
const MOST = 2 ** 20;

/** Reads a file's text, and never more than one byte beyond the limit. */
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

/** The options of a reply, in the library's form. */
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
 * Throws if a limit of length cut off a reply with a format, since the reply then does not have that format. Stop texts
 * and Ctrl-C end it on purpose.
 */
export function checkWhole(options, { finishReason }) {
  const kind = ['schema', 'grammar', 'regex', 'json'].find((name) => options[name] !== undefined);
  if (!kind || !['length', 'context'].includes(finishReason)) return;
  const [limit, more] =
    finishReason === 'length' ? ['--max-tokens', 'allow more'] : ['--context', 'give it a larger one'];
  throw new QuernError('use/schema', `The reply ended before it was whole, at the limit of ${limit}: ${more}.`);
}
