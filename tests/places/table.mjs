// SPDX-License-Identifier: MIT
// The table of places: docs/places.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../fixtures/golden.mjs';
import { describeMachine } from '../bench/machine.mjs';

/** An outcome in a cell. */
const LONGEST = 160;

const oneLine = (text) => text.split('\n')[0].replaceAll('|', '/').trim().slice(0, LONGEST);

/** What a case was and what came of it. */
export const rowOf = ({ kind, name, version, by, threads, first, error, note = 'works' }) => ({
  kind,
  cells: [name, version, by, threads ?? '', error ? `**fails**: ${oneLine(error.message)}` : note, first ? `${(first / 1000).toFixed(2)} s` : ''],
});

const line = (cells) => `| ${cells.join(' | ')} |\n`;

const HEAD = line(['environment', 'version', 'runs in', 'threads', 'outcome', 'first token']) + line(['---', '---', '---', '--:', '---', '--:']);

/** The tables of all kinds of which there are rows. */
export function show(rows, kinds) {
  const table = ([kind, { title, about }]) => {
    const lines = rows.filter((row) => row.kind === kind).map(({ cells }) => line(cells));
    const text = about ? `${about}\n\n` : '';
    return lines.length ? [`## ${title}\n\n${text}${HEAD}${lines.join('')}`] : [];
  };
  return Object.entries(kinds).flatMap(table).join('\n');
}

export function writeReport(tables) {
  const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json')));
  const { cpu, cores, commit, date } = describeMachine('');
  writeFileSync(join(PROJECT, 'docs/places.md'), `# Where it runs

Made by \`npm run test:places\` on ${date} with the packed package, version ${version} (${commit}), on ${cpu}, ${cores} cores of a shared machine. Every place loads the
demo model, asks it a question and compares the reply with that of the reference kernels, where no other outcome is named; the first token is counted from
the opening of the page or the start of the program. Versions are pinned in \`tests/places/versions.json\`, but for what comes with Debian.

${tables}`);
}
