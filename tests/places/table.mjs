// SPDX-License-Identifier: MIT
// The table of places: docs/places.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../fixtures/golden.mjs';
import { describeMachine } from '../bench/machine.mjs';

const TITLES = {
  bundlers: 'Bundlers', runtimes: 'Runtimes', webkit: 'WebKit', arm: 'ARM', homes: 'Other homes', extension: 'Browser extension', types: 'Package and types',
};

/** An outcome in a cell. */
const LONGEST = 160;

const oneLine = (text) => text.split('\n')[0].replaceAll('|', '/').trim().slice(0, LONGEST);

/** What a case was and what came of it. */
export const rowOf = ({ kind, name, version, by, threads, first, error, note = 'works' }) => ({
  kind,
  cells: [name, version, by, threads ?? '', error ? `**fails**: ${oneLine(error.message)}` : note, first ? `${(first / 1000).toFixed(2)} s` : ''],
});

const line = (cells) => `| ${cells.join(' | ')} |\n`;

export function show(rows) {
  const head = line(['environment', 'version', 'runs', 'threads', 'outcome', 'first token']) + line(['---', '---', '---', '--:', '---', '--:']);
  const kinds = [...new Set(rows.map(({ kind }) => kind))];
  return kinds.map((kind) => `## ${TITLES[kind]}\n\n${head}${rows.filter((row) => row.kind === kind).map(({ cells }) => line(cells)).join('')}`).join('\n');
}

/** @param {object[]} rows of all places */
export function writeTable(rows) {
  const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json')));
  const { cpu, cores, commit, date } = describeMachine('');
  writeFileSync(join(PROJECT, 'docs/places.md'), `# Where it runs

Made by \`npm run test:places\` with the packed package, version ${version} (${commit}), on ${date}: ${cpu}, ${cores} cores of a shared machine. Each row loads the demo
model, asks it a question, compares the reply with the native build's and lets go of it; the first token is counted from the opening of
the page or the start of the program.

${show(rows)}`);
}
