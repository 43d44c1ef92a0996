// SPDX-License-Identifier: MIT
// Checks the rules of the sources: rooms, calls, sizes, forbidden words, and the page's tables of words.
// Prints what breaks a rule; with `--stats` also the sizes of all files.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check as checkLanguages } from './languages.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const problems = [];
const problem = (file, text) => problems.push(`${file}: ${text}`);

/** Files below a folder with one of these endings, as paths from the root. */
function files(folder, endings) {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && endings.some((ending) => entry.name.endsWith(ending)))
    .map((entry) => normalize(join(entry.parentPath ?? entry.path, entry.name)).slice(normalize(root).length + 1))
    .sort();
}

const read = (file) => readFileSync(join(root, file), 'utf8');

// --- rooms: a folder includes files only of the rooms below it ---

/** The rooms that each room may include. '' are the public interfaces, which lie in no room and may include all. */
const C_ROOMS = {
  base: [],
  grammar: ['base'],
  weights: ['base'],
  load: ['base', 'weights'],
  text: ['base', 'weights'],
  compute: ['base', 'weights'],
  image: ['base'],
  models: ['base', 'weights', 'load', 'image', 'compute'],
  engine: ['base', 'weights', 'load', 'text', 'image', 'compute', 'models', ''],
  cli: ['base', 'grammar', 'weights', 'load', 'text', 'image', 'compute', 'models', 'engine', ''],
};

const JS_ROOMS = {
  shared: [],
  template: ['shared'],
  net: ['shared'],
  store: ['shared', 'net'],
  engine: ['shared'],
  gpu: ['shared'],
  reply: ['shared', 'engine'],
  media: ['shared'],
  page: ['shared', 'net', 'store', 'media'],
  worker: ['shared', 'net', 'store', 'template', 'engine', 'gpu', 'reply', 'media'],
  facades: ['shared', 'page', 'reply'],
  cli: ['shared', 'net', 'store', 'engine', 'page', 'worker', 'facades', ''],
};

const WEB_ROOMS = { shell: [], tools: ['shell'], message: ['shell', 'tools'], model: ['shell'], conversation: ['shell', 'message', 'model'], document: [] };

/** The room of a file; '' for a public interface. */
const roomOf = (file) => (file.split('/').length > 2 ? file.split('/')[1] : '');

const graph = new Map();    // file -> the files that it names

/** Checks that a file may include or import another. @param {object} rooms the allowed edges */
function checkEdge(rooms, file, target) {
  const [room, other] = [roomOf(file), roomOf(target)];
  if (room && !rooms[room]) problem(file, `${room} is not a known room; add it to tools/lint.mjs`);
  if (room && other !== room && !rooms[room]?.includes(other))
    problem(file, `must not include ${target}; ${room} may include ${rooms[room]?.join(', ') || 'itself'}`);
  graph.set(file, [...(graph.get(file) ?? []), target]);
}

/** A header and the source file of the same name count as one node. */
const nodeOf = (file) => file.replace(/\.[ch]$/, '');

/** Finds files that include each other in a circle. */
function checkCircles() {
  const edges = new Map();
  for (const [file, targets] of graph)
    edges.set(nodeOf(file), new Set([...(edges.get(nodeOf(file)) ?? []), ...targets.map(nodeOf)]));
  reportCircles(edges, 'a circle');
}

/** @param {Map<string, Set<string>>} edges @param {string} what such a circle is */
function reportCircles(edges, what) {
  const state = new Map();
  const visit = (node, path) => {
    if (state.get(node) === 'done') return;
    if (state.get(node) === 'open')
      return problem(node, `${what}: ${[...path.slice(path.indexOf(node)), node].join(' -> ')}`);
    state.set(node, 'open');
    for (const next of edges.get(node) ?? []) if (next !== node) visit(next, [...path, node]);
    state.set(node, 'done');
  };
  for (const node of edges.keys()) visit(node, []);
}

// --- calls: only into rooms below, and not in circles ---

/**
 * Files that define the same functions as other files and replace them in another build. Calls of these functions count
 * for the other files.
 */
const STAND_INS = ['src/engine/text_build.c', 'src/grammar/face_format.c'];

/**
 * Calls that may be recursive, because grammars and schemas contain each other: the calling files, the called
 * functions, the reason. A function that is not called any more is a problem too.
 */
const RECURSION = [
  [
    /grammar\/(nodes|class|ready)\.c$/,
    'grammar_fail',
    'the first failure ends the work on a grammar, which all of its nodes share',
  ],
  [/grammar\/build\.c$/, 'masks_free', 'masks are remembered with their grammar and end with it'],
  [
    /grammar\/mask_head\.c$/,
    'masks_clear masks_keep masks_keep_list masks_add masks_walk',
    'what follows the head of a string is walked as any mask is',
  ],
  [/grammar\/properties\.c$/, 'regex_add', 'a property is a set of letters, to which other cases of them are added'],
  [
    /grammar\/regex_class\.c$/,
    'regex_takes regex_wrong regex_peek',
    'a class is read from the same text as what is around it',
  ],
  [
    /grammar\/schema.(arrays|logic|objects|unevaluated)\.c$/,
    'schema_set_of pass_add pass_expects pass_member pass_refuse',
    'keywords have schemas in them',
  ],
  [
    /grammar\/schema.terms\.c$/,
    'schema_set_of set_and set_is_empty value_set_of',
    'a term has the schemas of its members and elements in it',
  ],
  [/grammar\/schema.emit_(arrays|objects)\.c$/, 'emit_term', 'arrays and objects have terms in them'],
];

/** C code without comments and strings. */
const codeOf = (file) =>
  read(file)
    .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    .replace(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, '0');

const DEFINITION = /^(?!typedef\b)((?:(?:static|inline|EXPORT)\s+)*)[A-Za-z_][\w \t*]*?[ *](\w+)\([^;{}]*\)\s*\{/gm;

/** A file's functions: all, and those that other files can call. */
function definitionsOf(code) {
  const found = [...code.matchAll(DEFINITION)];
  return {
    own: new Set(found.map(([, , name]) => name)),
    open: found.filter(([, before]) => !/\bstatic\b/.test(before)).map(([, , name]) => name),
  };
}

/** Checks a call from one file into another. @returns {boolean} whether the call counts for circles */
function checkCall(file, target, name, unused) {
  const [room, other] = [roomOf(file), roomOf(target)];
  if (room && other !== room && !C_ROOMS[room]?.includes(other))
    problem(file, `calls ${name}() of ${target}; ${room} may call ${C_ROOMS[room]?.join(', ')}`);
  const allowed = RECURSION.filter(([who, names]) => who.test(file) && names.split(' ').includes(name));
  if (allowed.length) unused.delete(name);
  return allowed.length === 0;
}

/**
 * Checks all sources for calls into rooms that are not below, and for circles of calls. Calls through tables of
 * functions are not seen.
 */
function checkCalls(sources) {
  const code = new Map(sources.map((file) => [file, codeOf(file)]));
  const functions = new Map([...code].map(([file, text]) => [file, definitionsOf(text)]));
  const homes = new Map(
    sources
      .filter((file) => !STAND_INS.includes(file))
      .flatMap((file) => functions.get(file).open.map((name) => [name, file])),
  );
  const unused = new Set(RECURSION.flatMap(([, names]) => names.split(' ')));
  const edges = new Map();
  for (const [file, text] of code) {
    const names = new Set([...text.matchAll(/\b(\w+)\s*\(/g)].map(([, name]) => name));
    const calls = [...names].filter((name) => homes.has(name) && !functions.get(file).own.has(name));
    edges.set(
      file,
      new Set(calls.filter((name) => checkCall(file, homes.get(name), name, unused)).map((name) => homes.get(name))),
    );
  }
  reportCircles(edges, 'a circle of calls');
  for (const name of unused) problem('tools/lint.mjs', `RECURSION lists ${name}(), but it is not called`);
}

function checkIncludes(file) {
  for (const [, include] of read(file).matchAll(/^#include "([^"]+)"/gm)) checkEdge(C_ROOMS, file, `src/${include}`);
}

/** The packages that the page may import. */
const PAGE_IMPORTS = [
  'quern', 'quern/run', 'marked', 'idb', 'temml', 'sugar-high/core', 'sugar-high/lang', 'pdfjs-dist/legacy/build/pdf.min.mjs',
  'quickjs-emscripten-core', '@jitl/quickjs-ng-wasmfile-release-sync',
];

function checkImports(file) {
  const text = read(file);
  for (const [, path] of text.matchAll(/(?:from|import\() ?'([^']+)'/g)) {
    const target = normalize(join(dirname(file), path));
    if (!path.startsWith('.')) {
      if (file.startsWith('web/') && !PAGE_IMPORTS.includes(path))
        problem(file, `imports ${path}; the page uses ${PAGE_IMPORTS.join(', ')} only`);
    } else if (target.split('/')[0] !== file.split('/')[0])
      problem(file, `imports ${path} from outside ${file.split('/')[0]}/`);
    else if (!/\.mjs$|\.ts$/.test(target)) checkEdge(file.startsWith('js/') ? JS_ROOMS : WEB_ROOMS, file, target);
  }
  if (
    /\b(HEAP|memory\.buffer)/.test(text) &&
    /^js\//.test(file) &&
    !/^js\/(engine\/(engine|heap|instance|grammar|grammar-compiler)|gpu\/device)\.js$/.test(file)
  )
    problem(file, 'touches the wasm heap; only engine.js, heap.js and device.js may (and the grammar files their own)');
}

// --- sizes ---

/**
 * The length in lines of each function of a C or JavaScript file: from the line that opens a brace at depth 0 (or a
 * method's) to its end.
 */
function functionLengths(file) {
  const lines = read(file).split('\n');
  const isC = /\.[ch]$/.test(file);
  const open = isC
    ? /^(?!(?:struct|enum|union|typedef|extern|static const|const struct)\b[^()]*(?:=|\{|;)\s*$)[A-Za-z_].*\)\s*(\{.*)?$/
    : /^\s*(?:export )?(?:default )?(?:static )?(?:async )?(?:function\*? ?\w*|(?:get |set |\*)?#?[\w$]+)\s*\([^;]*\{$|^(?:export )?const \w+ = (?:async )?\([^)]*\) => \{$/;
  const lengths = [];
  for (let i = 0; i < lines.length; i++) {
    if (!open.test(lines[i]) || /^\s*(?:if|for|while|switch|return|else|catch)\b/.test(lines[i])) continue;
    if (isC && !/\{\s*$|\}\s*$/.test(lines[i]) && !/^\{/.test(lines[i + 1] ?? '')) continue;
    const indent = lines[i].match(/^\s*/)[0];
    let end = i;
    if (!/\{.*\}\s*$/.test(lines[i]))
      while (end < lines.length && !(end > i && lines[end].startsWith(`${indent}}`))) end++;
    lengths.push({ line: i + 1, length: end - i + 1 });
    if (isC) i = end;
  }
  return lengths;
}

/** Lines with a string or pattern of 40 characters or more may be longer, because those read best in one piece. */
const COLUMNS = 120;
const COLUMNS_OF_TEXT = 150;
const TEXT = /(['"`/])(?:\\.|(?!\1).){40,}\1/;

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;

function checkFile(file, maxLines, maxFunction) {
  const lines = read(file).split('\n');
  const count = lines.length - 1;
  for (const [i, line] of lines.entries()) {
    const most = TEXT.test(line) ? COLUMNS_OF_TEXT : COLUMNS;
    if (line.length > most) problem(`${file}:${i + 1}`, `${line.length} columns; at most ${most}`);
  }
  if (count > maxLines) problem(file, `${count} lines; at most ${maxLines}`);
  const lengths = functionLengths(file);
  for (const { line, length } of lengths)
    if (length > maxFunction) problem(`${file}:${line}`, `a function of ${length} lines; at most ${maxFunction}`);
  return { file, count, lengths: lengths.map(({ length }) => length).sort((a, b) => a - b) };
}

function checkHead(file) {
  const head = read(file).match(/^(?:#!.*\n)?(?:\/\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/)?.[0] ?? '';
  if (!head.includes('SPDX-License-Identifier: MIT')) problem(file, 'has no head comment with the SPDX line');
  if (head.trim().split('\n').length > 18) problem(file, 'has a head comment longer than 15 lines');
}

// --- words ---

const FORBIDDEN = [
  [
    /^src\/(?!cli\/cli\.c).*\.c$/,
    /\b(?:exit|abort|assert|printf|puts|getenv)\s*\(/,
    'prints, exits or asserts below the command line',
  ],
  [
    /^src\/(?!compute\/cpu\/vec\.h|compute\/cpu\/vec_native\.h|base\/base\.h|base\/pool\.c).*$/,
    /^#\s*if(?!ndef (?:QUERN_(?:\w+_)?H|ADDR_MAX)\b)/m,
    'has a conditional; only vec.h, base.h and pool.c may',
  ],
  [
    /^web\/.*\.js$/,
    /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc/,
    'makes markup from a string',
  ],
  [
    /^(?:js|web)\/.*\.js$/,
    /\barchitecture(?: [!=]==|\??\.\w+\()|\.test\([\w.?]*\barchitecture\)/,
    "compares an architecture's name; info says what depends on it",
  ],
];

function checkWords(file) {
  const text = read(file).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  for (const [where, word, why] of FORBIDDEN)
    if (where.test(file) && word.test(text)) problem(file, `${why}: ${text.match(word)[0].trim()}`);
}

// --- the run ---

const c = files('src', ['.c', '.h']);
const js = [...files('js', ['.js']), ...files('web', ['.js']).filter((file) => !file.includes('models/'))];
for (const file of c) checkIncludes(file);
for (const file of js) checkImports(file);
checkCircles();
checkCalls(c.filter((file) => file.endsWith('.c')));
for (const file of [...c, ...js]) {
  checkHead(file);
  checkWords(file);
}
const generated = (file) => /(unicode|property|option|grid)_data\.h$/.test(file);
const cStats = c
  .filter((file) => !generated(file))
  .map((file) => checkFile(file, file.endsWith('.h') ? 300 : 650, 120));
const jsStats = js.map((file) => checkFile(file, 350, 55));
const all = cStats.flatMap(({ lengths }) => lengths).sort((a, b) => a - b);
if (quantile(all, 0.5) > 18) problem('src', `median function length ${quantile(all, 0.5)}; at most 18`);
if (quantile(all, 0.95) > 60) problem('src', `95 % of functions have up to ${quantile(all, 0.95)} lines; at most 60`);

problems.push(...await checkLanguages());

if (process.argv.includes('--stats')) {
  for (const { file, count, lengths } of [...cStats, ...jsStats]) {
    console.log(
      `${file.padEnd(36)} ${String(count).padStart(4)} lines  ${String(lengths.length).padStart(3)} functions, median ${quantile(lengths, 0.5)}, longest ${lengths.at(-1) ?? 0}`,
    );
  }
  const total = (stats) => stats.reduce((sum, { count }) => sum + count, 0);
  console.log(
    `C: ${total(cStats)} lines, ${all.length} functions, median ${quantile(all, 0.5)}, 95 % <= ${quantile(all, 0.95)}, longest ${all.at(-1)} (limits 18, 60, 120)`,
  );
  console.log(`JavaScript: ${total(jsStats)} lines in ${jsStats.length} files (limits: file 350, function 55)`);
}
for (const text of problems) console.error(`lint: ${text}`);
console.log(
  problems.length
    ? `lint: ${problems.length} problems`
    : `lint: ${c.length} C files and ${js.length} JavaScript files follow the rules`,
);
process.exitCode = problems.length ? 1 : 0;
