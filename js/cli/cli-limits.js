// SPDX-License-Identifier: MIT
// What a reply is limited to, as the command line says it: schemas and grammars are files.

import { readFile } from 'node:fs/promises';
import { badParam } from '../shared/errors.js';

async function fileOf(path, flag) {
  return readFile(path, 'utf8').catch((error) => { throw badParam(flag, `cannot be read (${error.code})`); });
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
  const [first, second] = Object.entries({ schema, grammar, regex, 'json-reply': json }).filter(([, value]) => value !== undefined);
  if (second) throw badParam(`--${first[0]}`, `and --${second[0]} exclude each other`);
  if (schema !== undefined) return { schema: jsonOf(await fileOf(schema, '--schema'), '--schema') };
  if (grammar !== undefined) return { grammar: await fileOf(grammar, '--grammar') };
  return regex !== undefined ? { regex } : json ? { json } : {};
}
