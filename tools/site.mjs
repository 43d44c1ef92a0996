#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Builds the chat page into build/site: one bundle of web/app.js, the package's workers and engine beside it (the
// library starts them by URLs relative to its own module), styles, icons and the demo model. All URLs are relative, so
// any static host can serve the folder under any path. The service worker gets the list of files and one hash of all
// their contents. A change of any byte makes a new version of all files, so page and engine of different builds never
// meet.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { languages } from './languages.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));

/** Files and folders of `web/` that are copied unchanged. */
const STATIC = ['index.html', 'manifest.webmanifest', 'icons', 'screens', 'models'];

/** Files that the browser fetches itself when the page is installed; the service worker does not keep them. */
const AT_INSTALL = /^(?:screens\/|icons\/maskable)/;

/** Files of the package that a page's thread imports when they are needed. */
const LATER = ['foreign.js', 'images.js', 'videos.js', 'vectors.js', 'start-late.js'];

/** Parts of the page that are imported when they are needed. */
const LATE = [
  'tools/page-tools.js', 'conversation/documents.js', 'conversation/find.js', 'document/reader.js', 'model/hub.js',
  'shell/keys.js', 'shell/presets.js', 'tools/tool-switches.js', 'translate.js',
];

/** The library that reads PDF files. The page fetches it with the first one. */
const PDFJS = join(project, 'node_modules/pdfjs-dist');

/** The comment that names a script's source map, which the page does not ship. */
const SOURCE_MAP = /^\/\/# sourceMappingURL=.*\n?/m;

const shared = {
  bundle: true,
  minify: true,
  target: 'es2022',
  sourcemap: false,
  legalComments: 'eof',
  logLevel: 'warning',
};

/**
 * What is imported when it is needed, of the page or of the package, is a file beside app.js or in late/. Other packages
 * are bundled whole.
 * @param {string} root the way from the importing file to app.js's folder
 */
const beside = (root) => ({
  name: 'beside',
  setup({ onResolve }) {
    onResolve({ filter: /./ }, ({ path, kind, importer }) => {
      if (kind !== 'dynamic-import' || importer.includes('node_modules')) return undefined;
      return { path: `${root}${/\blate\//.exec(path)?.[0] ?? ''}${basename(path)}`, external: true };
    });
  },
});

/**
 * Of marked the page needs the lexer, which comes first in marked's only file. Behind it are renderers that make HTML,
 * and statements that keep esbuild from leaving them out.
 */
const lexerOnly = {
  name: 'lexer-only',
  setup({ onLoad }) {
    onLoad({ filter: /marked\.esm\.js$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const end = text.search(/;var \w+=class\{options;parser;/);
      const [lexer, tokenizer] = ['Lexer', 'Tokenizer'].map((name) => new RegExp(`[{,]([\\w$]+) as ${name}\\b`).exec(text)?.[1]);
      if (end < 0 || !lexer || !tokenizer) throw new Error('marked has another form now: see lexerOnly');
      return { contents: `${text.slice(0, end)};export{${lexer} as Lexer,${tokenizer} as Tokenizer};` };
    });
  },
};

/** What only some visits need, in folders `late/`: a folder of its own, which the service worker knows (sw.js). */
const RARE = [
  'message/late/mathematics.js', 'message/late/mathematics.css', 'message/late/code-tools.js',
  'message/late/code-tools.css', 'message/late/rich-copy.js', 'message/late/read-aloud.js',
  'conversation/late/imports.js', 'conversation/late/titles.js', 'conversation/late/as-text.js', 'conversation/late/meaning.js',
  'document/late/exports.js',
  'conversation/late/compare.js', 'conversation/late/compare.css',
  'model/late/keeping.js', 'model/late/rows.js', 'model/late/speeds.js',
  'tools/late/interpreter.js', 'tools/late/mcp.js',
];

/** The engine that interprets programs of models. */
const QUICKJS = join(project, 'node_modules/@jitl/quickjs-ng-wasmfile-release-sync');

/** Makes that folder. */
async function bundleRare(web, out) {
  const entryPoints = RARE.map((name) => ({ in: join(web, name), out: basename(name).replace(/\.\w+$/, '') }));
  const fonts = { loader: { '.woff2': 'copy' }, assetNames: '[name]' };
  await build({ ...shared, ...fonts, outdir: join(out, 'late'), format: 'esm', plugins: [beside('../')], entryPoints });
  await cp(join(web, 'message/late/preview.html'), join(out, 'late/preview.html'));
  await cp(join(QUICKJS, 'dist/emscripten-module.wasm'), join(out, 'late/quickjs.wasm'));
  await cp(join(QUICKJS, 'LICENSE'), join(out, 'quickjs.LICENSE'));
  await cp(join(web, 'message/late/sugar-high.LICENSE'), join(out, 'sugar-high.LICENSE'));
}

/** Copies the tables of words to late/, so that the service worker keeps only the one that is in use. */
async function copyWords(web, out) {
  for (const name of await languages(web)) {
    const table = JSON.parse(await readFile(join(web, 'languages', `${name}.json`), 'utf8'));
    await writeFile(join(out, 'late', `${name}.json`), JSON.stringify(table));
  }
}

/** Bundles the page. Late parts have copies of the few helpers that they use. */
async function bundle(web, dist, out) {
  const page = { ...shared, outdir: out, format: 'esm', splitting: false, plugins: [beside('./'), lexerOnly] };
  await build({ ...page, entryPoints: [join(web, 'app.js')], alias: { quern: join(dist, 'index.js') } });
  await build({
    ...page,
    entryPoints: LATE.map((name) => ({ in: join(web, name), out: basename(name, '.js') })),
    alias: { 'quern/run': join(dist, 'run.js') },
  });
  await bundleRare(web, out);
  // esbuild's own form of such a script has helpers for its import(), which this one does not need.
  const plain = { bundle: false, format: 'esm', banner: { js: '(()=>{' }, footer: { js: '})();' } };
  await build({ ...shared, ...plain, entryPoints: [join(web, 'boot.js')], outdir: out });
  await build({ ...shared, entryPoints: [join(web, 'style.css')], outdir: out, legalComments: 'none' });
}

/** Copies the files of the package that a page needs at run time: its workers, the engine and its glue. */
async function copyEngine(dist, out) {
  const needed = (await readdir(dist)).filter(
    (name) =>
      [
        'worker.js',
        'aside.js',
        'thread.js',
        'thread64.js',
        'template.js',
        'template-rare.js',
        'sha256.js',
        'picked.js',
        'vision.js',
        'extras.js',
        'pooling.js',
        'drafter.js',
        'gpu.js',
        ...LATER,
      ].includes(name) || /^quern-.*\.mjs$|\.(?:wasm|LICENSE)$/.test(name),
  );
  if (!needed.includes('worker.js') || !needed.some((name) => name.endsWith('.wasm'))) {
    throw new Error(`no engine in ${dist}: build the package first`);
  }
  await Promise.all(needed.map(async (name) => {
    if (!name.endsWith('.js')) return cp(join(dist, name), join(out, name));
    return writeFile(join(out, name), (await readFile(join(dist, name), 'utf8')).replace(SOURCE_MAP, ''));
  }));
}

/** Copies pdf.js, and packs its 169 tables of letters into one file, which document/pdf.js reads. */
async function copyPdf(out) {
  for (const name of ['pdf.min.mjs', 'pdf.worker.min.mjs']) {
    const script = await readFile(join(PDFJS, 'legacy/build', name), 'utf8');
    await writeFile(join(out, name), script.replace(SOURCE_MAP, ''));
  }
  await cp(join(PDFJS, 'LICENSE'), join(out, 'pdf.LICENSE'));
  const names = (await readdir(join(PDFJS, 'cmaps'))).filter((name) => name.endsWith('.bcmap')).sort();
  const tables = await Promise.all(names.map((name) => readFile(join(PDFJS, 'cmaps', name))));
  const places = {};
  let at = 0;
  for (const [i, { length }] of tables.entries()) {
    places[names[i]] = [at, length];
    at += length;
  }
  await writeFile(join(out, 'pdf.cmaps'), Buffer.concat([Buffer.from(`${JSON.stringify(places)}\n`), ...tables]));
}

async function listFiles(folder) {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

/** @returns {Promise<{version: string, files: string[]}>} what the service worker caches */
async function fingerprint(out) {
  const names = (await listFiles(out)).map((name) => name.replaceAll('\\', '/'));
  const hash = createHash('sha256');
  for (const name of names) {
    const bytes = await readFile(join(out, name));
    hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  }
  // The page's address is the folder itself; index.html would be a second copy.
  return {
    version: hash.digest('hex').slice(0, 16),
    files: names.filter((name) => !AT_INSTALL.test(name)).map((name) => (name === 'index.html' ? './' : `./${name}`)),
  };
}

/** Builds the page. @returns {Promise<{out: string, version: string, files: string[], bytes: number}>} */
export async function buildSite({
  web = join(project, 'web'), dist = join(project, 'dist'), out = join(project, 'build/site'),
} = {}) {
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  await bundle(web, dist, out);
  await copyWords(web, out);
  for (const name of STATIC) await cp(join(web, name), join(out, name), { recursive: true });
  await copyEngine(dist, out);
  await copyPdf(out);
  // The licences of these packages must accompany every copy; the bundle contains one.
  for (const name of ['marked', 'idb', 'temml'])
    await cp(join(project, 'node_modules', name, 'LICENSE'), join(out, `${name}.LICENSE`));
  const { version, files } = await fingerprint(out);
  const define = { SHELL_VERSION: JSON.stringify(version), SHELL_FILES: JSON.stringify(files) };
  await build({ ...shared, entryPoints: [join(web, 'sw.js')], outdir: out, format: 'iife', define });
  const sizes = await Promise.all((await listFiles(out)).map(async (name) => (await stat(join(out, name))).size));
  // GitHub Pages runs Jekyll over the folder unless this file exists.
  await writeFile(join(out, '.nojekyll'), '');
  return { out, version, files, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

async function main() {
  const { values } = parseArgs({ options: { dist: { type: 'string' }, out: { type: 'string' } } });
  const options = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, resolve(value)]));
  const { out, version, files, bytes } = await buildSite(options);
  console.log(
    `site: ${relative(process.cwd(), out) || '.'}  ${files.length} files, ${(bytes / 1e6).toFixed(1)} MB, version ${version}`,
  );
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().catch((error) => {
    console.error(`site: ${error.message}`);
    process.exitCode = 1;
  });
}
