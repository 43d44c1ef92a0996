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

const REPORT = join(PROJECT, 'docs/places.md');

const HEADER = `# Where it runs

Made by \`npm run test:places\` with the packed package; each section has its date. Every place loads the demo model, asks it a question and compares the reply
with the reference kernels' reply, unless another outcome is named. The time of the first token starts when the page opens or the program starts.
\`tests/places/versions.json\` pins the versions, except of programs that come with Debian.
`;

const line = (cells) => `| ${cells.join(' | ')} |\n`;

const HEAD = line(['environment', 'version', 'runs in', 'threads', 'outcome', 'first token']) + line(['---', '---', '---', '--:', '---', '--:']);

/** The section of each kind of which there are rows. @returns {Map<string, string>} by its title */
export function sectionsOf(rows, kinds) {
  const section = ([kind, { title, about }]) => {
    const lines = rows.filter((row) => row.kind === kind).map(({ cells }) => line(cells));
    const text = about ? `${about}\n\n` : '';
    return lines.length ? [[title, `${text}${HEAD}${lines.join('')}`]] : [];
  };
  return new Map(Object.entries(kinds).flatMap(section));
}

const asText = ([title, text]) => `## ${title}\n\n${text}`;

/** For people who have asked for some of the cases. */
export const show = (sections) => [...sections].map(asText).join('\n');

/** The sections that a report has, by their titles. */
function readReport() {
  const [, ...parts] = readFileSync(REPORT, 'utf8').split(/^## /m);
  return new Map(parts.map((part) => [part.slice(0, part.indexOf('\n')), part.slice(part.indexOf('\n') + 1).trim() + '\n']));
}

/** Writes what ran into the report, in which the other kinds stay as they are. */
export function writeReport(sections, kinds) {
  const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json')));
  const { cpu, cores, commit, date } = describeMachine('');
  const made = `Of ${date}, version ${version} (${commit}), ${cpu}, ${cores} cores of a shared machine.\n\n`;
  const old = readReport();
  const found = Object.values(kinds).map(({ title }) => [title, sections.has(title) ? made + sections.get(title) : old.get(title)]);
  writeFileSync(REPORT, `${HEADER}\n${show(found.filter(([, text]) => text))}`);
}
