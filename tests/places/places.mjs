// SPDX-License-Identifier: MIT
// `npm run test:places`: every place where people build and run the package, one after the other. Each case of a place is a
// test and a row of docs/places.md, where a kind's section is written when all of it ran: always, or when kinds are named whole
// (npm run test:places -- clients tools). With other words (vite "node 20") only the cases whose kind or name has them run, and their rows are only shown.
//
// A kind of place is a module that exports its `title`, `places`, and `about` if there is something to say: {name, version, by, open(t),
// cases}. `open` sets the place up, once; each case is a function of what that gave and of its test, and returns {threads, first, note},
// or throws. To add a place is to add it to a kind's list.
import { after, test } from 'node:test';
import * as arm from './arm.mjs';
import * as bundlers from './bundlers.mjs';
import * as clients from './clients.mjs';
import * as extension from './extension.mjs';
import * as firefox from './firefox.mjs';
import * as homes from './homes.mjs';
import * as runtimes from './runtimes.mjs';
import * as schemas from './schemas.mjs';
import * as tools from './tools.mjs';
import * as webkit from './webkit.mjs';
import { rowOf, sectionsOf, show, writeReport } from './table.mjs';
import { closeBrowser } from './visit.mjs';
import { say, within } from './workshop.mjs';

const KINDS = { bundlers, runtimes, firefox, webkit, arm, homes, extension, clients, schemas, tools };

/** What a place may take to be set up, and then each case of it, in ms, where it does not say otherwise (`patience`). */
const PATIENCE_MS = 300_000;

const wordsOf = (text) => ` ${text.toLowerCase().split(/[^\w.-]+/).join(' ').trim()} `;

const wanted = process.argv.slice(2).map(wordsOf);

/** The cases of a place that were asked for. */
function chosen(kind, { name, cases }) {
  const isWanted = ([title]) => wanted.some((words) => wordsOf(`${kind} ${name} ${title}`).includes(words));
  return Object.entries(cases).filter((entry) => !wanted.length || isWanted(entry));
}

const rows = [];

/** Runs one case of a place. Whatever comes of it is a row. */
async function record(kind, place, name, work) {
  const about = { kind, name: `${place.name}, ${name}`, version: place.version, by: place.by() };
  say(`${about.name} …`);
  try {
    rows.push(rowOf({ ...about, ...await within(place.patience ?? PATIENCE_MS, work()) }));
  } catch (error) {
    rows.push(rowOf({ ...about, error }));
    throw error;
  }
}

for (const [kind, { places }] of Object.entries(KINDS)) {
  for (const place of places) {
    const cases = chosen(kind, place);
    if (!cases.length) continue;
    test(place.name, async (t) => {
      const opening = within(PATIENCE_MS, Promise.resolve(t).then(place.open));
      await opening.catch(() => {});    // it is each case's failure
      for (const [name, run] of cases) {
        await t.test(name, (own) => record(kind, place, name, async () => run(await opening, own)));
      }
    });
  }
}

const areKinds = process.argv.slice(2).every((word) => Object.hasOwn(KINDS, word));

after(async () => {
  await closeBrowser();
  const sections = sectionsOf(rows, KINDS);
  if (!sections.size) throw new Error(`no place is called ${process.argv.slice(2).join(' or ')}`);
  if (!areKinds || process.env.PACKAGE) console.log(show(sections));
  else writeReport(sections, KINDS);
});
