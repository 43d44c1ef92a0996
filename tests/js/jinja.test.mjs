// SPDX-License-Identifier: MIT
// Templates: every snippet and every model's template is rendered as jinja2 renders it in transformers' environment (tests/fixtures/jinja/README.md).

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { before, test } from 'node:test';

const folder = new URL('../fixtures/jinja/', import.meta.url);
const rows = (name) => readFileSync(new URL(name, folder), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
/** Templates that other fixtures have, by the names of templates.py. */
const ELSEWHERE = { qwen3: '../vocab/qwen3.chat_template.jinja', 'qwen3-vl': '../vision/models/dense/hf/chat_template.json' };
/** What `strftime_now` says in templates.jsonl. */
const NOW = new Date(2026, 0, 2, 3, 4, 5);
/** Snippets that we answer otherwise, each with its reason. */
const OTHERWISE = new Map([]);

/** (template, variables as JSON text, options) -> text; throws an error whose message has what the template raised. */
let render;
before(async () => { ({ render } = await import('../../js/reply/render.js')); });

/** What we make of a template, in the form of a row: { o } or { e, m }. */
function ours(template, variables = '{}') {
  try {
    return { o: render(template, variables, { now: NOW }) };
  } catch (error) {
    return { e: 1, m: error.message };
  }
}

const digest = (text) => ({ n: [...text].length, h: createHash('sha256').update(text).digest('hex') });

/** Whether our answer is a row's; what a template raised is somewhere in our message. */
function isSame(row, got) {
  if (row.e) return Boolean(got.e) && (row.m === undefined || got.m.includes(row.m));
  if (row.h) return got.o !== undefined && digest(got.o).h === row.h;
  return got.o === row.o;
}

/** Both texts from a little before their first difference on. */
function around(expected, actual) {
  let same = 0;
  while (same < expected.length && expected[same] === actual[same]) same++;
  return [expected, actual].map((text) => JSON.stringify(text.slice(Math.max(0, same - 60), same + 100))).join(' is here ');
}

/** A difference in a line or two. */
function shown({ row, got }) {
  const name = row.t === undefined ? `${row.f}, ${row.c}` : `${JSON.stringify(row.t)} ${row.v ?? ''}`;
  if (row.o !== undefined && got.o !== undefined) return `${name}\n    ${around(row.o, got.o)}`;
  const [wanted, given] = [row, got].map(({ o, e, m }) => (e ? `error ${m ?? ''}` : JSON.stringify(o ?? 'a long text').slice(0, 160)));
  return `${name}\n    ${wanted} is here ${given}`;
}

/** Fails with the first differences. */
function compare(found, count) {
  assert.equal(found.length, 0, `${found.length} of ${count} differ:\n${found.slice(0, 20).map(shown).join('\n')}`);
}

test('snippets', () => {
  const all = rows('snippets.jsonl');
  assert.ok(all.length >= 2000);
  compare(all.filter((row) => !OTHERWISE.has(row.t)).map((row) => ({ row, got: ours(row.t, row.v) })).filter(({ row, got }) => !isSame(row, got)), all.length);
});

test('what is answered otherwise is in the file, and is answered otherwise', () => {
  const all = new Map(rows('snippets.jsonl').map((row) => [row.t, row]));
  for (const template of OTHERWISE.keys()) assert.ok(all.has(template) && !isSame(all.get(template), ours(template, all.get(template).v)), template);
});

/** A template's text by its name. */
function textOf(name) {
  const text = readFileSync(new URL(ELSEWHERE[name] ?? `templates/${name}.jinja`, folder), 'utf8');
  return ELSEWHERE[name]?.endsWith('.json') ? JSON.parse(text).chat_template : text;
}

const all = rows('templates.jsonl');
const variables = new Map(all.filter((row) => row.v !== undefined).map(({ c, v }) => [c, v]));
const names = [...new Set(all.map(({ f }) => f).filter(Boolean))];

test('every template of the folder is in templates.jsonl', () => {
  const files = readdirSync(new URL('templates/', folder)).map((file) => file.replace('.jinja', ''));
  assert.deepEqual(names.toSorted(), [...files, ...Object.keys(ELSEWHERE)].sort());
});

for (const name of names) {
  test(`${name}: the prompts of transformers`, () => {
    const text = textOf(name);
    const mine = all.filter(({ f }) => f === name);
    compare(mine.map((row) => ({ row, got: ours(text, variables.get(row.c)) })).filter(({ row, got }) => !isSame(row, got)), mine.length);
  });
}
