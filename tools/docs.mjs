#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Builds the documentation into docs/site (not committed): docs/start.md; docs/recipes/ in the order of its README; the
// reference from js/*.d.ts; the errors from js/shared/errors.js and docs/errors.md; and the chat page from build/site
// as playground. All files are static, and all addresses are relative. The search index is made here; docs/theme/ has
// the styles and the script.
import { build } from 'esbuild';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { introductionOf, readDeclarations } from './docs/declarations.mjs';
import { frame } from './docs/frame.mjs';
import { plain, slug } from './docs/html.mjs';
import { renderMarkdown } from './docs/markdown.mjs';
import { Names, addressFrom } from './docs/names.mjs';
import { declareNames, referenceHtml, referencePages } from './docs/reference.mjs';
import { entriesOf } from './docs/search.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));
const read = (path) => readFile(join(project, 'docs', path), 'utf8');

/** A heading of docs/errors.md that is a code or a group of codes. */
const CODE_HEADING = /^#+ `([a-z]+\/(?:[a-z]+|\*))`.*$/gm;

/** The path on the site of a Markdown file of docs/. */
const pathOf = (file) =>
  ({ 'start.md': 'index.html', 'errors.md': 'reference/errors.html' })[file] ??
  file.replace(/README\.md$/, 'index.html').replace(/\.md$/, '.html');

const titleOf = (markdown) => /^# (.*)$/m.exec(markdown)[1];

/** The page's description: its first paragraph. */
const descriptionOf = (html) => plain(/<p>([\s\S]*?)<\/p>/.exec(html)?.[1] ?? '').slice(0, 200);

/** js/shared/errors.js as it is in a page; some of its hints differ in Node. */
export async function pageErrors() {
  const define = { 'globalThis.process': 'undefined' };
  const {
    outputFiles: [{ text }],
  } = await build({
    entryPoints: [join(project, 'js/shared/errors.js')],
    bundle: true,
    write: false,
    format: 'esm',
    define,
  });
  return import(`data:text/javascript,${encodeURIComponent(text)}`);
}

/** Adds the hint and `retryable` of each error to docs/errors.md. */
function withHints(markdown, { QuernError }) {
  return markdown.replace(/^(### `([a-z]+\/[a-z]+)`\n\n)([\s\S]*?)(?=\n#|$(?![\s\S]))/gm, (_, head, code, text) => {
    const { hint, retryable } = new QuernError(code, '');
    const lines = [
      hint && `> \`error.hint\`: ${hint}`,
      retryable && '> `error.retryable`: the same call may succeed later.',
    ].filter(Boolean);
    return `${head}${text.trimEnd()}\n${lines.length ? `\n${lines.join('\n>\n')}\n` : ''}`;
  });
}

async function readPage(file, kind) {
  const markdown = await read(file);
  return { file, path: pathOf(file), kind, markdown, title: titleOf(markdown) };
}

/** The recipes and their groups, as docs/recipes/README.md lists them. */
async function readRecipes() {
  const overview = await readPage('recipes/README.md', 'overview');
  const groups = [];
  for (const [, title, name] of overview.markdown.matchAll(/^## (.*)$|^- \[.*?\]\((.*?\.md)\)/gm)) {
    if (title) groups.push({ title, pages: [] });
    else groups.at(-1).pages.push(await readPage(`recipes/${name}`, 'recipe'));
  }
  return { overview, groups };
}

/** Makes a page for each other entry of the package that has types. */
async function readEntries() {
  const { exports } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  const names = Object.entries(exports)
    .filter(([, { types }]) => types)
    .map(([name]) => name.slice(2))
    .filter(Boolean);
  return names
    .map((name) => [name, join(project, `js/${name}.d.ts`)])
    .filter(([, file]) => existsSync(file))
    .map(([name, file]) => {
      const title = `quern/${name}`;
      const markdown = `# ${title}\n\n${introductionOf(file)}\n`;
      return {
        file: `${name}.d.ts`,
        path: `reference/${name}.html`,
        kind: 'entry',
        title,
        markdown,
        declarations: readDeclarations(file),
      };
    });
}

/** All pages with their sources, in the groups of the page list. */
async function readPages() {
  const start = { ...await readPage('start.md', 'start'), title: 'Start here' };
  const { overview, groups } = await readRecipes();
  const errors = await readPage('errors.md', 'reference');
  const own = await pageErrors();
  const declared = referencePages(readDeclarations(join(project, 'js/index.d.ts')));
  const reference = declared.map((page) =>
    page.path === errors.path
      ? { ...errors, ...page, markdown: withHints(errors.markdown, own) }
      : { ...page, kind: 'reference' },
  );
  return [
    { title: 'quern', pages: [start, overview] },
    ...groups,
    { title: 'Reference', pages: [...reference, ...(await readEntries())] },
  ];
}

function collectNames(pages) {
  const names = new Names();
  for (const page of pages) {
    if (page.declarations) declareNames(names, page);
    if (page.kind !== 'reference' || !page.markdown) continue;
    for (const [line, code] of page.markdown.matchAll(CODE_HEADING))
      names.add(code, page.path, slug(line.replace(/^#+ /, '')));
  }
  return names;
}

/** Turns a link in the sources, to a Markdown file or elsewhere, into a link on the site. */
const pageLink = ({ file, path }) => (href) => {
  if (/^[a-z]+:|^#/.test(href)) return href;
  const [target, fragment] = href.split('#');
  return addressFrom(path, pathOf(posix.join(posix.dirname(file), target))) + (fragment ? `#${fragment}` : '');
};

/** Makes a page's HTML, headings and description. */
function render(page, names) {
  const { path, markdown, declarations } = page;
  const text = markdown && renderMarkdown(markdown, { code: names.linker(path), page: pageLink(page) });
  const html = (text?.html ?? `<h1>${page.title}</h1>\n`) + (declarations ? referenceHtml(names, page) : '');
  const headings = [
    ...(text?.headings ?? []).filter(({ level }) => level === 2),
    ...(declarations ?? []).map(({ name }) => ({ id: name, text: name, isCode: true })),
  ];
  return { ...page, html, headings, description: descriptionOf(html) || page.title };
}

async function writeTheme(out) {
  const theme = join(project, 'docs/theme');
  const options = {
    bundle: true,
    minify: true,
    target: 'es2022',
    outdir: out,
    logLevel: 'warning',
    legalComments: 'none',
  };
  await build({ ...options, entryPoints: [join(theme, 'docs.js')], format: 'esm' });
  await build({ ...options, entryPoints: [join(theme, 'boot.js')], format: 'iife' });
  await build({ ...options, entryPoints: [join(theme, 'docs.css')] });
  await cp(join(project, 'web/icons/icon.svg'), join(out, 'icon.svg'));
}

/** @returns {Promise<{out: string, pages: string[], entries: number, names: string[]}>} */
export async function buildDocs({ out = join(project, 'docs/site'), playground = join(project, 'build/site') } = {}) {
  const groups = await readPages();
  const sources = groups.flatMap(({ pages }) => pages);
  const names = collectNames(sources);
  const pages = sources.map((page) => render(page, names));
  await rm(out, { recursive: true, force: true });
  for (const page of pages) {
    await mkdir(dirname(join(out, page.path)), { recursive: true });
    await writeFile(join(out, page.path), frame(page, groups));
  }
  const entries = pages.flatMap(entriesOf);
  await writeFile(join(out, 'search.json'), JSON.stringify(entries));
  await writeTheme(out);
  await cp(playground, join(out, 'playground'), { recursive: true });
  await writeFile(join(out, '.nojekyll'), '');      // GitHub Pages would run Jekyll over the folder
  return { out, pages: pages.map(({ path }) => path), entries: entries.length, names: names.all };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { out, pages, entries } = await buildDocs();
  console.log(`docs: ${relative(process.cwd(), out) || '.'}  ${pages.length} pages, ${entries} entries to find`);
}
