// SPDX-License-Identifier: MIT
// Libraries of schemas: a reply and a tool's call by what each makes, as it is, and the types of the values.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DEMO } from './visit.mjs';
import { install, once, run, versionOf } from './workshop.mjs';

export const title = 'Schema libraries';

const NAME = 'Schemas';

const PATIENCE_MS = 60_000;

const isTrip = ({ city, nights, ...rest }) => ['Oslo', 'Rome'].includes(city) && Number.isInteger(nights) && nights >= 1 && nights <= 3 && !Object.keys(rest).length;

const reply = (library) => async (folder) => {
  const { out } = await run([process.execPath, 'main.js', DEMO, library], { cwd: folder, limit: PATIENCE_MS });
  const { value, call } = JSON.parse(out);
  assert.ok(isTrip(value) && isTrip(call), out);
  return { note: 'a reply and a call' };
};

async function types(folder) {
  await run([join(folder, 'node_modules/.bin/tsc'), '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--lib', 'esnext,dom', '--module', 'nodenext', 'types.ts'], { cwd: folder });
  return { note: 'inferred' };
}

const open = once(() => install(NAME, ['schemas']));

const place = (name, of, cases) => ({ name, version: versionOf(NAME, of), by: () => 'Node', open, cases });

export const places = [
  ...Object.entries({ Zod: 'zod', Valibot: 'valibot', ArkType: 'arktype', TypeBox: 'typebox', 'TypeBox 0': '@sinclair/typebox' }).map(([name, of]) => (
    place(name, of, { 'schema and parameters': reply(name.toLowerCase().replace(' ', '')) }))),
  place('tsc of all', 'typescript', { types }),
];
