#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// Makes dist/, the package as it is published: js/ bundled by esbuild, the engine's glue and wasm files beside it under
// their own names, the types, and the service worker for headers. Run by `make dist` after `make wasm`. Our own code
// has source maps where it is minified; the types need none, since they are written by hand: what an editor opens is
// the source.
//
// The builds of one address size share one glue: theirs differ in the name of the wasm file only, which
// js/engine/instance.js fetches itself. That is checked here, as are the promises about what a bundler meets: no bare
// specifier, no node: import.

import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import * as options from '../js/shared/options.js';
import { withoutNames } from './wasm-names.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wasmDir = join(root, 'build/wasm');
const dist = join(root, 'dist');

/** What the page loads (and who goes on with a server, what is the same everywhere), and what Node does. */
const PAGE = { index: 'index.js' };
/** Beside a loaded model, each loaded by who imports it: with types of their own. */
const FACES = Object.fromEntries(
  ['remote', 'run', 'openai', 'ai-sdk', 'prompt-api', 'testing'].map((name) => [name, `${name}.js`]),
);
const WORKER = { worker: 'worker/worker.js' };
const SMALL_WORKERS = {
  aside: 'worker/aside.js',
  thread: 'worker/thread.js',
  thread64: 'worker/thread64.js',
  sha256: 'store/sha256.js',
  foreign: 'shared/foreign.js',
};
/** What comes later, and shares with who loads it what that lends. */
const LATER = {
  page: ['images', 'videos', 'vectors'],
  worker: ['vision', 'extras', 'pooling', 'template'],
  template: ['template-rare'],
};
const NODE = { node: 'node.js', cli: 'cli/cli.js', 'cli-main': 'cli/cli-main.js' };
const NODE_WORKERS = { 'worker.node': 'worker/worker-node.js' };

/**
 * The worker and its threads load one file; that for Node, which starts its threads itself, is in a folder of its own.
 */
const GLUE = ['quern-simd.mjs', 'quern-simd64.mjs'];
const BUILDS = ['simd', 'relaxed', 'simd64', 'relaxed64'].flatMap((name) => [name, `${name}-text`]);
const ENGINE = [...BUILDS.map((name) => `quern-${name}.wasm`), ...GLUE.map((name) => `node/${name}`)];
/** What replies must look like: one for all engines, without glue. */
const GRAMMAR = 'grammar.wasm';
/** What of it only the command line loads. */
const TOOL = ['node/quern-tool.mjs', 'node/quern-tool.wasm'];

function fail(message) {
  process.stderr.write(`build: ${message}\n`);
  process.exit(1);
}

async function readEngine(name) {
  return readFile(join(wasmDir, name)).catch(() => fail(`build/wasm/${name} is missing: run \`make wasm\` first`));
}

/**
 * The glue of the SIMD build must do for all. That one wasm file serves both kinds of glue is checked where they are
 * linked.
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

/** Browsers' bundles need not ask whether they run in Node. */
const IN_BROWSERS = { 'globalThis.process': 'undefined' };

/** A worker has no use for the sentences of js/shared/hints.js: its errors get their hints where they arrive. */
const withoutHints = {
  name: 'hints',
  setup: ({ onLoad }) => onLoad({ filter: /[\\/]hints\.js$/ }, () => ({ contents: 'export const hintOf = () => "";' })),
};

/** Columns of the list of options that only the command lines and tools/options.mjs read. */
const OF_FLAGS = ['flag', 'value', 'text', 'many', 'native', 'engine'];

/** Browsers' bundles have the list of options without these, as data. */
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
 * In place of the modules that `lent` is made of: each name that is imported of them is the parameter's. A module for
 * each, so that only what is imported is asked for.
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
  legalComments: 'none',
  target: platform === 'node' ? 'node20' : 'es2022',
  mainFields: ['module', 'main'],
  define,
  external: [
    ...GLUE.flatMap((name) => [`./${name}`, `./node/${name}`]),
    './node/quern-tool.mjs',
    ...(platform === 'browser'
      ? [...Object.keys(SMALL_WORKERS), ...Object.values(LATER).flat()].map((name) => `./${name}.js`)
      : ['./cli-main.js']),
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
 * A function of what is lent, which gives what the file's source exports: the same each time, since it may have a
 * state.
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

/** As it is to be read by those who put it on their site: not minified, and a plain script. */
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

/** What a file imports at run time. */
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
  /^\.\/(quern-simd(64)?\.mjs|sha256\.js|foreign\.js|images\.js|videos\.js|vision\.js|extras\.js|vectors\.js|pooling\.js|template\.js|template-rare\.js)$/;
const BESIDE_NODE = /^node:|^\.\/cli-main\.js$|^\.\/node\/quern-(simd|simd64|tool)\.mjs$/;
checkImports(await bundle(PAGE, 'browser', { sourcemap: 'linked' }), BESIDE);
checkImports(await bundle(FACES, 'browser', { sourcemap: 'linked', define: {} }), BESIDE);    // which Node loads too
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
