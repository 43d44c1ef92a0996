// SPDX-License-Identifier: MIT
// `npm run test:places`: every place where people build and run the package, one after the other. Each case of a place is a
// test and a row of docs/places.md, which is written when all ran; with words (npm run test:places -- vite node) only the cases
// whose kind or name has one of them run, and their rows are only shown.
//
// A kind of place is a module that exports `places`: {name, version, by, open(t), cases}. `open` sets the place up, once;
// each case is a function of what that gave and returns {threads, first}, or throws. To add one is to add it to a kind's list.
import { after, test } from 'node:test';
import * as bundlers from './bundlers.mjs';
import * as runtimes from './runtimes.mjs';
import * as webkit from './webkit.mjs';
import * as arm from './arm.mjs';
import * as extension from './extension.mjs';
import * as homes from './homes.mjs';
import { rowOf, show, writeTable } from './table.mjs';
import { closeBrowser } from './visit.mjs';
import { say } from './workshop.mjs';

const KINDS = { bundlers, runtimes, webkit, arm, homes, extension };

/** What all cases of a place may take together, in ms, where it does not say otherwise (`patience`). */
const PATIENCE_MS = 600_000;

const wanted = process.argv.slice(2).map((word) => word.toLowerCase());

/** The cases of a place that were asked for. */
function chosen(kind, { name, cases }) {
  const isWanted = ([title]) => `${kind} ${name} ${title}`.toLowerCase().split(/[^\w.-]+/).some((word) => wanted.includes(word));
  return Object.entries(cases).filter((entry) => !wanted.length || isWanted(entry));
}

const rows = [];

/** Runs one case of a place that was set up, or was not (`failure`). Either is a row. */
async function record(kind, place, name, work) {
  const about = { kind, name: `${place.name}${name && `, ${name}`}`, version: place.version, by: place.by() };
  say(`${about.name} …`);
  try {
    rows.push(rowOf({ ...about, ...await work() }));
  } catch (error) {
    rows.push(rowOf({ ...about, error }));
    throw error;
  }
}

for (const [kind, { places }] of Object.entries(KINDS)) {
  for (const place of places) {
    const cases = chosen(kind, place);
    if (!cases.length) continue;
    test(place.name, { timeout: place.patience ?? PATIENCE_MS }, async (t) => {
      const opening = Promise.resolve().then(() => place.open?.(t));
      await opening.catch(() => {});
      for (const [name, run] of cases) {
        await t.test(name, (own) => record(kind, place, name, async () => run(await opening, own)));
      }
    });
  }
}

after(async () => {
  await closeBrowser();
  if (wanted.length) console.log(show(rows));
  else writeTable(rows);
});
