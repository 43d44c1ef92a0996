// SPDX-License-Identifier: MIT
// The schemas of the tests (tests/fixtures/schemas/cases.txt), each with the texts that it accepts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';

/** @returns {{schema: string, texts: string[]}[]} */
export function schemaCases() {
  const cases = [];
  for (const line of readFileSync(join(PROJECT, 'tests/fixtures/schemas/cases.txt'), 'utf8').split('\n')) {
    const [, kind, rest] = /^(\S+) (.*)$/.exec(line) ?? [];
    if (kind === 'S') cases.push({ schema: rest, texts: [] });
    else if (kind === '+') cases.at(-1)?.texts.push(rest);
    else if (kind !== '-') cases.push({ schema: '', texts: [] });      // of another kind: its texts are not measured
  }
  return cases.filter(({ schema, texts }) => schema && texts.length);
}
