// SPDX-License-Identifier: MIT
// Templates: every snippet and every model's template is rendered as jinja2 renders it in transformers' environment (tests/fixtures/jinja/README.md).

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { TemplateError } from '../../../js/template/meter.js';
import { begin } from '../../../js/template/render.js';
import { add } from '../../../js/template/template-rare.js';

add();

const folder = new URL('../../fixtures/jinja/', import.meta.url);
const rows = (name) => readFileSync(new URL(name, folder), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
/** Templates that other fixtures have, by the names of templates.py. */
const ELSEWHERE = { qwen3: '../vocab/qwen3.chat_template.jinja', 'qwen3-vl': '../vision/models/dense/hf/chat_template.json' };
/** What `strftime_now` says in templates.jsonl. */
const NOW = new Date(2026, 0, 2, 3, 4, 5);
/** What we answer otherwise, by what stands in the snippet, and why. */
const OTHERWISE = [
  [/autoescape/, 'texts of chats are no HTML: only `autoescape false` is understood'],
  [/\b(?:urlize|pprint|wordwrap|lipsum)\b/, 'filters and a function that no chat template has use for'],
  [/striptags|escape\(/, 'entities of HTML are not read'],
  [/safe\)/, 'a text that is safe for HTML cannot be a format'],
  [/\bself\b/, 'a template is no parent of another one'],
  [/import _a/, 'a chat template cannot use other templates, whatever it calls their parts'],
  [/encode\(|to_bytes|hex\(|bit_count|as_integer_ratio|translate|maketrans/, 'there are no bytes; methods of numbers and texts that nobody calls'],
  [/\*\*/, 'powers of floats come from JavaScript, and differ in the last digit'],
  [/1e[34]00/, 'jinja2 writes infinities into its program as a name that is not there'],
  [/nosuch/, 'jinja2 folds constants before it looks filters up'],
  [/\['a':\]|\[1\.0:\]|1e16\[/, 'jinja2 hides errors where all is constant'],
  [/for y in loop/, 'nobody walks through the loop itself'],
];

/** How many of the snippets. */
const DIFFER = 353;

/** (template, variables as JSON text, options) -> text; throws an error whose message has what the template raised. */
function render(template, variables, { now }) {
  const machine = begin(template, variables, now);
  while (!machine.run(1000));
  return machine.out;
}

/** What we make of a template, in the form of a row: { o } or { e, m }. */
function ours(template, variables = '{}') {
  try {
    return { o: render(template, variables, { now: NOW }) };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
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
  const found = all.map((row) => ({ row, got: ours(row.t, row.v) })).filter(({ row, got }) => !isSame(row, got));
  const isKnown = ({ row }) => OTHERWISE.some(([pattern]) => pattern.test(row.t));
  compare(found.filter((one) => !isKnown(one)), all.length);
  assert.equal(found.length, DIFFER);
  for (const [pattern, why] of OTHERWISE) assert.ok(found.some(({ row }) => pattern.test(row.t)), `nothing differs any more: ${why}`);
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
