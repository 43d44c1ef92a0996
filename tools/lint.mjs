// SPDX-License-Identifier: MIT
// What the design promises about the sources, checked: layers, sizes, and words that must not occur.
// `--stats` prints the sizes of every file; without it only what is broken is said.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

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

// --- layers of the C sources: includes go downward only, siblings never meet ---

/** Each module's layer and, within a layer, its family; modules of one family may include each other. */
const MODULES = {
  base: [0, 'base'], arena: [0, 'base'], pool: [0, 'base'], crew: [0, 'base'], json: [0, 'base'], json_reader: [0, 'base'], reader: [0, 'base'], num: [0, 'base'], hash: [0, 'base'],
  dtype: [1, 'pack'], pack: [1, 'pack'], quantize: [1, 'pack'],
  checkpoint: [2, 'checkpoint'], metadata: [2, 'checkpoint'], format: [2, 'checkpoint'], sniff: [2, 'checkpoint'], formats: [2, 'checkpoint'],
  backend: [2, 'backend'], cpu: [2, 'backend'],
  tokenizer: [2, 'tokenizer'], bpe: [2, 'tokenizer'], scores: [2, 'tokenizer'], split: [2, 'tokenizer'], vocab: [2, 'tokenizer'], table: [2, 'tokenizer'],
  unicode: [2, 'tokenizer'], unicode_data: [2, 'tokenizer'],
  sampler: [2, 'sampler'],
  batch: [3, 'batch'], profile: [3, 'profile'], kvcache: [3, 'kvcache'],
  model: [4, 'model'], models: [4, 'model'],
  quern: [5, 'engine'], engine: [5, 'engine'], plan: [5, 'engine'], files: [5, 'engine'], info: [5, 'engine'], sequence: [5, 'engine'],
  gguf_writer: [2, 'checkpoint'], convert: [5, 'engine'], convert_keys: [5, 'engine'],
  wasm: [6, 'wasm'], cli: [6, 'cli'], cli_claim: [6, 'cli'], cli_files: [6, 'cli'], cli_output: [6, 'cli'], cli_process: [6, 'cli'], cli_quantize: [6, 'cli'], tool: [6, 'cli'],
};

function moduleOf(file) {
  const path = file.replace(/^src\//, '');
  const name = path.includes('/') ? path.split('/')[0] : basename(path).replace(/\.[ch]$/, '');
  if (!MODULES[name]) problem(file, `belongs to no layer; add it to MODULES in tools/lint.mjs`);
  return MODULES[name] ?? [99, name];
}

function checkIncludes(file) {
  const [layer, family] = moduleOf(file);
  for (const [, include] of read(file).matchAll(/^#include "([^"]+)"/gm)) {
    const target = normalize(join(dirname(file), include));
    const [below, other] = moduleOf(target);
    if (below > layer || (below === layer && other !== family)) problem(file, `may not include ${include} (layer ${below} from layer ${layer})`);
  }
}

// --- layers of the JavaScript: the page's half and the worker's half meet in protocol and errors only ---

/** The rooms of the page, and into which others each may look. Files outside of rooms put them together. */
const WEB_ROOMS = { shell: [], message: ['shell'], model: ['shell'], conversation: ['shell', 'message', 'model'] };

function checkWebRoom(file, path) {
  const [room, ...rest] = file.split('/').slice(1);
  const target = normalize(join(dirname(file), path)).split('/').slice(1);
  if (!rest.length || target.length === 1 || target[0] === room || WEB_ROOMS[room]?.includes(target[0])) return;
  problem(file, `imports ${path}; ${room} may only look into ${WEB_ROOMS[room]?.join(', ') || 'itself'}`);
}

function checkImports(file) {
  const text = read(file);
  for (const [, path] of text.matchAll(/(?:from|import\() ?'([^']+)'/g)) {
    const outside = !path.startsWith('.');
    if (file.startsWith('web/') && !outside) checkWebRoom(file, path);
    if (file.startsWith('web/') && outside && !['quern', 'marked', 'idb'].includes(path)) problem(file, `imports ${path}; the page uses the package, marked and idb only`);
    if (file.startsWith('js/') && path.startsWith('../')) problem(file, `imports ${path} from outside js/`);
  }
  if (/\b(HEAP|memory\.buffer)/.test(text) && /^js\//.test(file) && !/(engine|heap|instance)\.js$/.test(file)) problem(file, 'touches the wasm heap; only engine.js and heap.js may');
}

// --- sizes ---

/** Functions of a C or JavaScript file with their lengths in lines: from the line that opens a brace at depth 0 (or of a method) to its end. */
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
    if (!/\{.*\}\s*$/.test(lines[i])) while (end < lines.length && !(end > i && lines[end].startsWith(`${indent}}`))) end++;
    lengths.push({ line: i + 1, length: end - i + 1 });
    if (isC) i = end;
  }
  return lengths;
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;

function checkFile(file, maxLines, maxFunction) {
  const count = read(file).split('\n').length - 1;
  if (count > maxLines) problem(file, `${count} lines; at most ${maxLines}`);
  const lengths = functionLengths(file);
  for (const { line, length } of lengths) if (length > maxFunction) problem(`${file}:${line}`, `a function of ${length} lines; at most ${maxFunction}`);
  return { file, count, lengths: lengths.map(({ length }) => length).sort((a, b) => a - b) };
}

function checkHead(file) {
  const head = read(file).match(/^(?:#!.*\n)?(?:\/\*[\s\S]*?\*\/|(?:\/\/.*\n)+)/)?.[0] ?? '';
  if (!head.includes('SPDX-License-Identifier: MIT')) problem(file, 'has no head comment with the SPDX line');
  if (head.trim().split('\n').length > 18) problem(file, 'has a head comment longer than 15 lines');
}

// --- words ---

const FORBIDDEN = [
  [/^src\/(?!cli\.c).*\.c$/, /\b(?:exit|abort|assert|printf|puts|getenv)\s*\(/, 'prints, exits or asserts below the command line'],
  [/^src\/(?!cpu\/vec\.h|cpu\/vec_native\.h|base\.h|pool\.c).*$/, /^#\s*if(?!ndef (?:QUERN_(?:\w+_)?H|ADDR_MAX)\b)/m, 'has a conditional; only vec.h, base.h and pool.c may'],
  [/^web\/.*\.js$/, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc/, 'makes markup from a string'],
];

function checkWords(file) {
  const text = read(file).replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  for (const [where, word, why] of FORBIDDEN) if (where.test(file) && word.test(text)) problem(file, `${why}: ${text.match(word)[0].trim()}`);
}

// --- the run ---

const c = files('src', ['.c', '.h']);
const js = [...files('js', ['.js']), ...files('web', ['.js']).filter((file) => !file.includes('models/'))];
for (const file of c) checkIncludes(file);
for (const file of js) checkImports(file);
for (const file of [...c, ...js]) {
  checkHead(file);
  checkWords(file);
}
const generated = (file) => file.endsWith('unicode_data.h');
const cStats = c.filter((file) => !generated(file)).map((file) => checkFile(file, file.endsWith('.h') ? 150 : 600, 120));
const jsStats = js.map((file) => checkFile(file, 250, 50));
const all = cStats.flatMap(({ lengths }) => lengths).sort((a, b) => a - b);
if (quantile(all, 0.5) > 18) problem('src', `median function length ${quantile(all, 0.5)}; at most 18`);
if (quantile(all, 0.95) > 60) problem('src', `95 % of functions have up to ${quantile(all, 0.95)} lines; at most 60`);

if (process.argv.includes('--stats')) {
  for (const { file, count, lengths } of [...cStats, ...jsStats]) {
    console.log(`${file.padEnd(28)} ${String(count).padStart(4)} lines  ${String(lengths.length).padStart(3)} functions, median ${quantile(lengths, 0.5)}, longest ${lengths.at(-1) ?? 0}`);
  }
  const total = (stats) => stats.reduce((sum, { count }) => sum + count, 0);
  console.log(`C: ${total(cStats)} lines, ${all.length} functions, median ${quantile(all, 0.5)}, 95 % <= ${quantile(all, 0.95)}, longest ${all.at(-1)} (limits 18, 60, 120)`);
  console.log(`JavaScript: ${total(jsStats)} lines in ${jsStats.length} files (limits: file 250, function 50)`);
}
for (const text of problems) console.error(`lint: ${text}`);
console.log(problems.length ? `lint: ${problems.length} problems` : `lint: ${c.length} C files and ${js.length} JavaScript files keep the rules`);
process.exitCode = problems.length ? 1 : 0;
