#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Builds dist/, the package as it is published: js/ bundled by esbuild, the engine's glue and wasm files under their
// own names, the types, and the service worker for headers. `make dist` runs it after `make wasm`. Minified code has
// source maps; the types need none, because they are written by hand.
//
// All builds of one address size share one glue, because their glues differ only in the name of the wasm file, which
// js/engine/instance.js fetches itself. This script checks that, and that no file imports a bare specifier or node:,
// which bundlers could not resolve.

import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import * as options from '../js/shared/options.js';
import { withoutNames } from './wasm-names.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wasmDir = join(root, 'build/wasm');
const dist = join(root, 'dist');

/** The package's main entry, for pages. */
const PAGE = { index: 'index.js' };
/** Further entries of the package, each imported separately and with types of its own. */
const FACES = Object.fromEntries(
  ['remote', 'run', 'openai', 'ai-sdk', 'prompt-api', 'testing'].map((name) => [name, `${name}.js`]),
);
const WORKER = { worker: 'worker/worker.js' };
const SMALL_WORKERS = {
  aside: 'worker/aside.js',
  thread: 'worker/thread.js',
  thread64: 'worker/thread64.js',
  sha256: 'store/sha256.js',
  picked: 'store/picked.js',
  foreign: 'shared/foreign.js',
};
/** Files that are loaded later and borrow modules from the file that loads them. */
const LATER = {
  page: ['images', 'videos', 'vectors', 'start-late'],
  worker: ['vision', 'extras', 'pooling', 'template', 'drafter', 'gpu'],
  template: ['template-rare'],
};
const NODE = { node: 'node.js', cli: 'cli/cli.js', 'cli-main': 'cli/cli-main.js' };
const NODE_WORKERS = { 'worker.node': 'worker/worker-node.js' };

/**
 * The glue that the worker and its threads load. Node starts its threads itself, so its glue is another file, in a
 * folder of its own.
 */
const GLUE = ['quern-simd.mjs', 'quern-simd64.mjs', 'quern-gpu.mjs'];
const BUILDS = ['simd', 'relaxed', 'simd64', 'relaxed64'].flatMap((name) => [name, `${name}-text`]);
const ENGINE = [...[...BUILDS, 'gpu'].map((name) => `quern-${name}.wasm`), ...GLUE.map((name) => `node/${name}`)];
/** The grammar module: one for all engines, without glue. */
const GRAMMAR = 'grammar.wasm';
/** Files that only the command line loads. */
const TOOL = ['node/quern-tool.mjs', 'node/quern-tool.wasm'];

function fail(message) {
  process.stderr.write(`build: ${message}\n`);
  process.exit(1);
}

async function readEngine(name) {
  return readFile(join(wasmDir, name)).catch(() => fail(`build/wasm/${name} is missing: run \`make wasm\` first`));
}

/**
 * Checks that the glue of the SIMD build fits all builds. The Makefile checks that one wasm file serves both kinds of
 * glue.
 */
async function checkEngine() {
  const pairs = BUILDS.map((name) => [name, name.includes('64') ? 'simd64' : 'simd']);
  const ofNode = ['relaxed', 'relaxed64'].map((name) => [`node/${name}`, `node/${name.replace('relaxed', 'simd')}`]);
  for (const [name, served] of [...pairs, ...ofNode]) {
    const fileOf = (build) => build.replace(/[^/]+$/, 'quern-$&.mjs');
    const [one, other] = (await Promise.all([name, served].map((build) => readEngine(fileOf(build))))).map((text) =>
      String(text).replaceAll(/quern-(simd|relaxed)(64)?(-text)?/g, ''),
    );
    if (one !== other) fail(`the glue of ${name} differs from that of ${served}`);
  }
}

/** Constants for browsers' bundles, which never run in Node. */
const IN_BROWSERS = { 'globalThis.process': 'undefined' };

/** Leaves the sentences of js/shared/hints.js out of workers: errors get their hints where they arrive. */
const withoutHints = {
  name: 'hints',
  setup: ({ onLoad }) => onLoad({ filter: /[\\/]hints\.js$/ }, () => ({ contents: 'export const hintOf = () => "";' })),
};

/** Columns of the list of options that only the command lines and tools/options.mjs use. */
const OF_FLAGS = ['flag', 'value', 'text', 'many', 'native', 'engine'];

/** Puts the list of options into browsers' bundles as data, without these columns. */
const withoutFlags = {
  name: 'options',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]shared[\\/]options\.js$/ }, () => ({
      contents: Object.entries(options)
        .map(([name, rows]) => {
          return `export const ${name} = ${JSON.stringify(rows, (key, value) => (OF_FLAGS.includes(key) ? undefined : value))};`;
        })
        .join('\n'),
    })),
};

/**
 * Replaces the modules that `lent` consists of: each name that is imported from them is taken from the parameter
 * `lent`. Each name is a module of its own, so that only imported names are used.
 */
const borrowing = ({ names, lenders }) => ({
  name: 'borrowing',
  setup({ onResolve, onLoad }) {
    const virtual = (path) => ({ path, namespace: 'lent', sideEffects: false });
    onResolve({ filter: /^lent:/ }, ({ path }) => virtual(path.slice(5)));
    onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) =>
      lenders.includes(join(resolveDir, path)) ? virtual('*') : undefined,
    );
    onLoad({ filter: /^\*$/, namespace: 'lent' }, () => ({
      contents: names.map((name) => `export { ${name} } from 'lent:${name}';`).join(''),
    }));
    onLoad({ filter: /./, namespace: 'lent' }, ({ path }) => ({ contents: `export const ${path} = lent.${path};` }));
  },
});

const optionsOf = (
  entries,
  platform,
  { sourcemap = false, plugins = [], ending = '.js', define = platform === 'browser' ? IN_BROWSERS : {} } = {},
) => ({
  entryPoints: Object.entries(entries).map(([out, file]) => ({ out, in: join(root, 'js', file) })),
  outdir: dist,
  bundle: true,
  minify: platform === 'browser',
  sourcemap,
  format: 'esm',
  platform,
  metafile: true,
  charset: platform === 'browser' ? 'utf8' : 'ascii', // modules are always read as UTF-8
  legalComments: 'none',
  target: platform === 'node' ? 'node20' : 'es2022',
  mainFields: ['module', 'main'],
  define,
  external: [
    ...GLUE.flatMap((name) => [`./${name}`, `./node/${name}`]),
    './node/quern-tool.mjs',
    ...(platform === 'browser'
      ? [...Object.keys(SMALL_WORKERS), ...Object.values(LATER).flat()].map((name) => `./${name}.js`)
      : ['./cli-main.js', 'webgpu']),
  ],
  logLevel: 'warning',
  plugins: platform === 'browser' ? [withoutFlags, ...plugins] : plugins,
  outExtension: { '.js': ending },
});

async function bundle(...how) {
  const { metafile } = await build(optionsOf(...how));
  return metafile;
}

async function lentBy(home) {
  const file = join(root, `js/${home}/lent.js`);
  const { LENT } = await import(file);
  return {
    names: Object.keys(LENT),
    lenders: [...String(await readFile(file)).matchAll(/ from '(.*)'/g)].map(([, path]) => join(dirname(file), path)),
  };
}

/**
 * Bundles a module as a function that takes `lent` and returns the module's exports: the same object each time, because
 * the module may have state.
 */
async function bundleLater(name, home) {
  const file = join(root, `js/${home}/${name}.js`);
  const exported = Object.keys(await import(file)).join(', ');
  const { metafile } = await build({
    ...optionsOf({}, 'browser', { sourcemap: 'linked', plugins: [borrowing(await lentBy(home))] }),
    outdir: undefined,
    outfile: join(dist, `${name}.js`),
    format: 'iife',
    stdin: {
      contents: `import { ${exported} } from ${JSON.stringify(file)}; made = { ${exported} };`,
      resolveDir: root,
      sourcefile: `js/${name}.js`,
    },
    banner: { js: 'let made;export const open=(lent)=>{if(made)return made;' },
    footer: { js: 'return made};' },
  });
  return metafile;
}

/** Not minified, so that site owners can read it, and a plain script. */
async function writeServiceWorker() {
  const banner = {
    js: '/* quern/sw, MIT licence: adds the headers for threads to what the pages of its scope ask of their own origin. */',
  };
  await build({
    entryPoints: [{ out: 'sw', in: join(root, 'web/sw-headers.js') }],
    outdir: dist,
    bundle: true,
    format: 'iife',
    target: 'es2022',
    banner,
    logLevel: 'warning',
  });
}

async function writeGlue(name) {
  const { code } = await transform(String(await readEngine(name)), { minify: true, format: 'esm', target: 'es2022' });
  if (/new Worker/.test(code)) fail(`the glue starts a worker of itself (${name})`);
  await writeFile(join(dist, name), code);
}

/** Checks what the files import at run time. */
function checkImports(metafile, allowed) {
  for (const [file, { imports }] of Object.entries(metafile.outputs)) {
    const foreign = imports.map(({ path }) => path).filter((path) => !allowed.test(path));
    if (foreign.length) fail(`${file} imports ${foreign.join(', ')}`);
  }
}

await checkEngine();
await rm(dist, { recursive: true, force: true });
await mkdir(join(dist, 'node'), { recursive: true });
const BESIDE =
  /^\.\/(quern-(simd(64)?|gpu)\.mjs|sha256\.js|picked\.js|foreign\.js|images\.js|videos\.js|vision\.js|extras\.js|vectors\.js|start-late\.js|drafter\.js|pooling\.js|template\.js|template-rare\.js|gpu\.js)$/;
const BESIDE_NODE = /^node:|^\.\/cli-main\.js$|^\.\/node\/quern-(simd|simd64|gpu|tool)\.mjs$|^webgpu$/;
checkImports(await bundle(PAGE, 'browser', { sourcemap: 'linked' }), BESIDE);
checkImports(await bundle(FACES, 'browser', { sourcemap: 'linked', define: {} }), BESIDE);    // Node loads these too
checkImports(await bundle(WORKER, 'browser', { sourcemap: 'linked', plugins: [withoutHints] }), BESIDE);
for (const [home, names] of Object.entries(LATER))
  for (const name of names) checkImports(await bundleLater(name, home), BESIDE);
checkImports(await bundle(SMALL_WORKERS, 'browser', { sourcemap: 'linked', plugins: [withoutHints] }), BESIDE);
checkImports(await bundle(NODE, 'node'), BESIDE_NODE);
checkImports(await bundle(NODE_WORKERS, 'node', { plugins: [withoutHints], ending: '.mjs' }), BESIDE_NODE);
await writeServiceWorker();
for (const name of GLUE) await writeGlue(name);
for (const name of [...ENGINE, GRAMMAR, ...TOOL])
  await writeFile(
    join(dist, name),
    name.endsWith('.wasm') ? withoutNames(await readEngine(name)) : await readEngine(name),
  );
for (const name of ['index', 'sw', ...Object.keys(FACES)])
  await copyFile(join(root, `js/${name}.d.ts`), join(dist, `${name}.d.ts`));
