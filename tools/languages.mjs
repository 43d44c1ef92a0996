#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Collects the English sentences of the page, which are the keys of its tables of words (web/shell/words.js), and
// checks the tables in web/languages/. Run by itself it writes web/languages/en.json, a list for translators: the keys
// by the files in which they stand, and the sentences for codes of errors (errors.json), whose keys are the codes.
// `make lint` runs the checks: no table lacks a key, has one too many, or puts in other values.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SPOKEN, keyOf } from '../web/translate.js';

const WEB = fileURLToPath(new URL('../web', import.meta.url));

/** The files in web/languages/ that are no tables. */
const LISTS = ['en', 'errors'];

/** @returns {Promise<string[]>} the languages that have a table */
export async function languages(web = WEB) {
  const names = (await readdir(join(web, 'languages'))).map((name) => name.replace(/\.json$/, ''));
  return names.filter((name) => !LISTS.includes(name)).sort();
}

const readJson = (name) => JSON.parse(readFileSync(join(WEB, 'languages', `${name}.json`), 'utf8'));

// --- keys of scripts ---

/** What stands before a key: a tag of a template, or a call whose arguments begin with strings. */
const MARK = /\b(?:(say|sayNodes)`|(key|Refusal)\((?=')|(plural)\()/g;

const STRING = /'((?:[^'\\\n]|\\.)*)'/y;

const unescaped = (text) => text.replaceAll(/\\u([\da-f]{4})|\\(.)/g, (_, code, letter) => (
  code ? String.fromCharCode(parseInt(code, 16)) : ({ n: '\n' })[letter] ?? letter
));

/** The end of a template that begins at a place, behind its mark, and its key. @returns {[key: string, end: number]} */
function templateAt(text, from) {
  let key = '';
  let places = 0;
  let at = from;
  while (text[at] !== '`') {
    if (text.startsWith('${', at)) {
      at = expressionEnd(text, at + 2) + 1;
      key += `{${++places}}`;
    } else if (text[at] === '\\') {
      key += text.slice(at, at + 2);
      at += 2;
    } else key += text[at++];
    if (at >= text.length) throw new Error(`a template without an end: ${text.slice(from, from + 60)}`);
  }
  return [unescaped(key), at + 1];
}

/** The place of the brace that ends an expression. */
function expressionEnd(text, from) {
  let at = from;
  for (let depth = 0; depth > 0 || text[at] !== '}'; at++) {
    if (text[at] === '`') at = templateAt(text, at + 1)[1] - 1;
    else if (text[at] === "'") at = text.indexOf("'", at + 1);
    else if (text[at] === '{') depth++;
    else if (text[at] === '}') depth--;
    if (at >= text.length || at < from) throw new Error(`an expression without an end: ${text.slice(from, from + 60)}`);
  }
  return at;
}

/** The two sentences of a plural, behind its first argument. */
function formsAt(text, from) {
  const first = /^[^']*?,\s*/.exec(text.slice(from))?.[0].length ?? 0;
  STRING.lastIndex = from + first;
  const [, one] = STRING.exec(text) ?? [];
  const between = /^,\s*/.exec(text.slice(STRING.lastIndex))?.[0].length ?? 0;
  STRING.lastIndex += between;
  const [, other] = STRING.exec(text) ?? [];
  if (one === undefined || other === undefined)
    throw new Error(`plural() needs two sentences: ${text.slice(from, from + 60)}`);
  return { key: unescaped(other), one: unescaped(one) };
}

/** @returns {{key: string, one?: string}[]} the keys of a script; `one` if they are plurals */
function keysOfScript(source) {
  const text = source.replaceAll(/^\s*(?:\/\/.*|\/?\*.*)$/gm, '');
  return [...text.matchAll(MARK)].flatMap(({ index, 0: mark, 1: tag, 2: call, 3: isPlural }) => {
    const from = index + mark.length;
    if (/function $/.test(text.slice(0, index)) || text.startsWith('sentence)', from)) return [];
    if (tag) return [{ key: templateAt(text, from)[0] }];
    if (isPlural) return [formsAt(text, from)];
    STRING.lastIndex = from;
    return call ? [{ key: unescaped(STRING.exec(text)[1]) }] : [];
  });
}

// --- keys of the markup ---

const ENTITIES = { nbsp: '\u00a0', amp: '&', lt: '<', gt: '>', quot: '"' };

const decoded = (text) => text.replaceAll(/&(\w+);/g, (_, name) => ENTITIES[name]);

/** Elements whose text no visitor reads as words, or that have no end. */
const SILENT = /^(?:head|svg)$/;
const EMPTY = /^(?:input|path|circle|rect|use|meta|link|br)$/;

/** A part of the markup: a tag or a text. */
const PART = /<(\/?)([a-z][\w-]*)([^>]*?)(\/?)>|<![^>]*>|([^<]+)/g;

/** @returns {{key: string}[]} the texts and the spoken attributes of index.html */
function keysOfMarkup(text) {
  const found = [];
  const open = [];      // for each open element whether its words are translated
  for (const [, end, tag, about, isClosed, words] of text.matchAll(PART)) {
    const speaks = open.at(-1)?.speaks ?? true;
    if (words !== undefined) {
      if (speaks && keyOf(decoded(words))) found.push(keyOf(decoded(words)));
    } else if (end) open.pop();
    else if (tag) {
      const says = speaks && !SILENT.test(tag) && !/ translate="no"/.test(about);
      for (const [, name, value] of says ? about.matchAll(/ ([\w-]+)="([^"]*)"/g) : [])
        if (SPOKEN.includes(name)) found.push(keyOf(decoded(value)));
      if (!isClosed && !EMPTY.test(tag)) open.push({ speaks: says });
    }
  }
  return found.map((key) => ({ key }));
}

// --- the lists ---

/** @returns {Map<string, {key: string, one?: string}[]>} the keys of the page by file, each once */
export function collect() {
  const scripts = readdirSync(WEB, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.js'))
    .map((entry) => relative(WEB, join(entry.parentPath ?? entry.path, entry.name)).replaceAll('\\', '/'))
    .filter((name) => name !== 'shell/words.js')
    .sort();
  const seen = new Map();
  const all = new Map();
  const add = (file, found) => {
    const fresh = found.filter(({ key, one }) => {
      if (seen.has(key) && seen.get(key) !== one) throw new Error(`${file}: "${key}" has two forms`);
      return !seen.has(key) && seen.set(key, one);
    });
    if (fresh.length) all.set(file, fresh);
  };
  add('index.html', keysOfMarkup(readFileSync(join(WEB, 'index.html'), 'utf8')));
  for (const name of scripts) add(name, keysOfScript(readFileSync(join(WEB, name), 'utf8')));
  return all;
}

/** The list for translators, as it is stored. Plurals have both English forms. */
export function englishList() {
  const files = [...collect()].map(([file, keys]) => [file, keys.map(({ key, one }) => (
    one === undefined ? key : { one, other: key }
  ))]);
  return `${JSON.stringify({ ...Object.fromEntries(files), errors: readJson('errors') }, null, 2)}\n`;
}

// --- the checks ---

const placesOf = (text) => (text.match(/\{\d\}/g) ?? []).sort().join(' ');

/** Whether a form of a plural is about a single number, whose sentence need not name it. */
const isSingle = (rules, form) =>
  Array.from({ length: 201 }, (_, n) => rules.select(n)).filter((one) => one === form).length === 1;

/** The problems of one form of a plural. */
function problemOfForm(rules, form, words, { key, one }) {
  if (typeof words !== 'string' || !words) return 'is empty';
  const allowed = isSingle(rules, form) ? [key, one, key.replaceAll('{1}', '')] : [key];
  return allowed.map(placesOf).includes(placesOf(words)) ? '' : `has other values than "${key}"`;
}

/** The problems of what a table says for a key. @returns {string[]} */
function problemsOfKey(rules, words, { key, one }) {
  if (words === undefined) return ['is missing'];
  if (one === undefined) {
    if (typeof words !== 'string' || !words) return ['is no text'];
    return placesOf(words) === placesOf(key) ? [] : [`has other values: "${words}"`];
  }
  if (typeof words !== 'object') return ['needs a sentence for each form of numbers'];
  const { pluralCategories: wanted } = rules.resolvedOptions();
  const forms = Object.keys(words);
  if ([...forms].sort().join() !== [...wanted].sort().join()) return [`has the forms ${forms}; needed are ${wanted}`];
  const problems = forms.map((form) => [form, problemOfForm(rules, form, words[form], { key, one })]);
  return problems.filter(([, problem]) => problem).map((one) => one.join(': '));
}

/** @returns {string[]} what is wrong with the table of a language */
export function problemsOf(language, table, keys, codes) {
  const rules = new Intl.PluralRules(language);
  const of = keys.flatMap((sentence) => (
    problemsOfKey(rules, table[sentence.key], sentence).map((problem) => `"${sentence.key}" ${problem}`)));
  const missing = codes.filter((code) => typeof table[code] !== 'string' || !table[code]);
  const problems = [...of, ...missing.map((code) => `${code} is missing`)];
  const known = new Set([...keys.map(({ key }) => key), ...codes]);
  for (const key of Object.keys(table)) if (!known.has(key)) problems.push(`"${key}" is used nowhere`);
  return problems;
}

/** @returns {Promise<string[]>} the problems of all tables and of the list, each with its file */
export async function check() {
  const keys = [...collect().values()].flat();
  const codes = Object.keys(readJson('errors'));
  const problems = [];
  for (const language of await languages())
    for (const problem of problemsOf(language, readJson(language), keys, codes))
      problems.push(`web/languages/${language}.json: ${problem}`);
  if (readFileSync(join(WEB, 'languages/en.json'), 'utf8') !== englishList())
    problems.push('web/languages/en.json: is not the list of today; run node tools/languages.mjs');
  return problems;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeFileSync(join(WEB, 'languages/en.json'), englishList());
