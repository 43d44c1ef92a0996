// SPDX-License-Identifier: MIT
// The package as others get it: exactly the files it should have, clean by publint's rules, importable by its name in
// Node, free of Node's modules where a bundler for browsers looks, and small.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { publint } from 'publint';
import { PAGE_LIMITS, PAGES, SEEING, SEEING_LIMIT, measure, seeing, sizes } from '../../../tools/sizes.mjs';
import { installInto, packList, removeFolder, temporaryFolder } from '../support/pack.mjs';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const DEMO = join(PROJECT, 'web/models/demo-q8_0.gguf');

/** What is published. A file more or less is a decision, and this list is where it is written down. */
const FILES = [
  'CHANGELOG.md', 'LICENSE', 'README.md', 'dist/ai-sdk.d.ts', 'dist/ai-sdk.js', 'dist/ai-sdk.js.map', 'dist/aside.js', 'dist/aside.js.map', 'dist/cli-main.js', 'dist/cli.js', 'dist/drafter.js', 'dist/drafter.js.map', 'dist/extras.js',
  'dist/extras.js.map', 'dist/foreign.js', 'dist/foreign.js.map', 'dist/gpu.js', 'dist/gpu.js.map', 'dist/grammar.wasm', 'dist/images.js', 'dist/images.js.map', 'dist/index.d.ts', 'dist/index.js',
  'dist/index.js.map', 'dist/node.js', 'dist/node/quern-gpu.mjs', 'dist/node/quern-simd.mjs', 'dist/node/quern-simd64.mjs', 'dist/node/quern-tool.mjs', 'dist/node/quern-tool.wasm',
  'dist/openai.d.ts', 'dist/openai.js', 'dist/openai.js.map', 'dist/picked.js', 'dist/picked.js.map', 'dist/pooling.js', 'dist/pooling.js.map', 'dist/prompt-api.d.ts', 'dist/prompt-api.js',
  'dist/prompt-api.js.map', 'dist/quern-gpu.mjs', 'dist/quern-gpu.wasm', 'dist/quern-relaxed-text.wasm', 'dist/quern-relaxed.wasm', 'dist/quern-relaxed64-text.wasm', 'dist/quern-relaxed64.wasm',
  'dist/quern-simd-text.wasm', 'dist/quern-simd.mjs', 'dist/quern-simd.wasm', 'dist/quern-simd64-text.wasm', 'dist/quern-simd64.mjs', 'dist/quern-simd64.wasm',
  'dist/remote.d.ts', 'dist/remote.js', 'dist/remote.js.map', 'dist/run.d.ts', 'dist/run.js', 'dist/run.js.map', 'dist/sha256.js', 'dist/sha256.js.map', 'dist/start-late.js', 'dist/start-late.js.map', 'dist/sw.d.ts',
  'dist/sw.js', 'dist/template-rare.js', 'dist/template-rare.js.map', 'dist/template.js', 'dist/template.js.map', 'dist/testing.d.ts', 'dist/testing.js',
  'dist/testing.js.map', 'dist/thread.js', 'dist/thread.js.map', 'dist/thread64.js', 'dist/thread64.js.map', 'dist/vectors.js', 'dist/vectors.js.map', 'dist/videos.js',
  'dist/videos.js.map', 'dist/vision.js', 'dist/vision.js.map', 'dist/worker.js', 'dist/worker.js.map', 'dist/worker.node.mjs', 'headers/_headers', 'headers/nginx.conf',
  'headers/vercel.json', 'package.json',
];

/** Bytes of the tarball, a quarter of them source maps. */
const TARBALL_LIMIT = 3_550_000;

const folder = temporaryFolder();
let installed;
before(() => { installed = installInto(folder); });
after(() => removeFolder(folder));

/** Runs a module in a project that has the package installed. */
const runInProject = (code) => {
  writeFileSync(join(folder, 'main.js'), code);
  return execFileSync(process.execPath, ['main.js'], { cwd: folder, encoding: 'utf8' }).trim();
};

test('holds these files and no others', (t) => {
  const { files, size, unpackedSize } = packList();
  assert.deepEqual(files.map(({ path }) => path).sort(), FILES);
  t.diagnostic(`tarball: ${size} bytes, unpacked ${unpackedSize}`);
  assert.ok(size < TARBALL_LIMIT);
});

test('our own minified code has maps, with the sources in them', () => {
  const small = FILES.filter((path) => /^dist\/[^/]*\.js$/.test(path) && !/\bsw\.|\bnode\.|\.node\.|\bcli/.test(path));
  assert.deepEqual(small.filter((path) => !FILES.includes(`${path}.map`)), []);
  for (const name of FILES.filter((path) => path.endsWith('.map'))) {
    const { version, sources, sourcesContent, mappings } = JSON.parse(readFileSync(join(installed, name)));
    assert.equal(version, 3);
    assert.ok(mappings.length > 0 && sources.length > 0 && sourcesContent.every((text) => text.length > 0), name);
    assert.deepEqual(sources.filter((path) => !/^\.\.\/(?:js|node_modules)\/|^lent:/.test(path)), [], name);
    assert.match(readFileSync(join(installed, name.slice(0, -'.map'.length)), 'utf8'), new RegExp(`\\n//# sourceMappingURL=${name.slice('dist/'.length)}\\n$`));
  }
});

test('the files for hosts send the headers for threads', () => {
  const headers = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' };
  const text = (name) => readFileSync(join(installed, 'headers', name), 'utf8');
  const found = (name, pattern) => Object.fromEntries([...text(name).matchAll(pattern)].map(([, key, value]) => [key, value]));
  assert.deepEqual(found('_headers', /^ {2}([\w-]+): (\S+)$/gm), headers);
  assert.deepEqual(found('nginx.conf', /^add_header ([\w-]+) (\S+) always;$/gm), headers);
  const [{ source, headers: rows }] = JSON.parse(text('vercel.json')).headers;
  assert.deepEqual([source, Object.fromEntries(rows.map(({ key, value }) => [key, value]))], ['/(.*)', headers]);
});

test('is clean by publint', async () => {
  const { messages } = await publint({ pkgDir: installed, pack: false, strict: true });
  assert.deepEqual(messages, []);
});

test('needs no other package at run time; those for images and graphics devices in Node are welcome', () => {
  const { dependencies, peerDependencies, peerDependenciesMeta, optionalDependencies, scripts } = JSON.parse(readFileSync(join(installed, 'package.json')));
  assert.deepEqual([dependencies, optionalDependencies], [undefined, undefined]);
  assert.deepEqual(Object.keys(peerDependencies), ['jpeg-js', 'sharp', 'webgpu']);
  for (const name of Object.keys(peerDependencies)) {
    assert.deepEqual(peerDependenciesMeta[name], { optional: true });
    assert.ok(!existsSync(join(folder, 'node_modules', name)), 'nobody gets it unasked');
  }
  for (const name of ['preinstall', 'install', 'postinstall']) assert.equal(scripts?.[name], undefined);
});

test('is imported by its name in Node, and chats', () => {
  const text = runInProject(`
    import { load, support, QuernError } from 'quern';
    if (!support().ok || typeof QuernError !== 'function') throw new Error('incomplete');
    const model = await load(${JSON.stringify(DEMO)});
    const { text } = await model.chat('What is the capital of Kenya?', { temperature: 0 }).result;
    await model.dispose();
    console.log(text);
  `);
  assert.match(text, /Nairobi/);
});

test('as a part of a program\'s bundle for Node it finds its worker, and else says what to do', async () => {
  writeFileSync(join(folder, 'asks.mjs'), `
    import { load } from 'quern';
    load(${JSON.stringify(DEMO)}, { threads: 1 }).then(async (model) => {
      const { text } = await model.chat('What is the capital of Kenya?', { temperature: 0 }).result;
      await model.dispose();
      console.log(text);
    }).catch(({ code, hint }) => console.log(code, hint));
  `);
  const elsewhere = temporaryFolder();
  try {
    for (const [format, name] of [['cjs', 'out/asks.cjs'], ['esm', 'out/asks.mjs']]) {
      await build({ entryPoints: [join(folder, 'asks.mjs')], bundle: true, platform: 'node', format, outfile: join(folder, name), logLevel: 'silent' });
      const run = (file) => execFileSync(process.execPath, [file], { cwd: elsewhere, encoding: 'utf8' });
      assert.match(run(join(folder, name)), /Nairobi/, format);
      const moved = join(elsewhere, name.replace('out/', ''));
      cpSync(join(folder, name), moved);
      assert.match(run(moved), /^env\/worker Leave quern out of the bundle.*serverExternalPackages.*--external:quern/);
    }
    // Beside a bundle that is CommonJS, in a folder that says so of all its files.
    for (const name of readdirSync(join(installed, 'dist'))) cpSync(join(installed, 'dist', name), join(elsewhere, name), { recursive: true });
    writeFileSync(join(elsewhere, 'package.json'), '{ "type": "commonjs" }');
    for (const name of ['asks.cjs', 'asks.mjs']) assert.match(execFileSync(process.execPath, [join(elsewhere, name)], { encoding: 'utf8' }), /Nairobi/, name);
  } finally {
    removeFolder(elsewhere);
  }
});

test('brings a command line', () => {
  const program = join(folder, 'node_modules/.bin/quern');
  const info = JSON.parse(execFileSync(program, ['info', DEMO, '--json'], { cwd: folder, encoding: 'utf8' }));
  assert.equal(info.architecture, 'qwen3');
});

test('what a browser loads has no bare specifier and no module of Node\'s', async () => {
  const entryPoints = ['index.js', 'worker.js', 'aside.js', 'thread.js', 'thread64.js', 'template.js', 'template-rare.js', 'sha256.js', 'picked.js', 'foreign.js', 'images.js', 'videos.js', 'vision.js', 'extras.js', 'vectors.js', 'pooling.js', 'start-late.js', 'drafter.js', 'gpu.js', 'remote.js', 'run.js', 'openai.js', 'ai-sdk.js', 'prompt-api.js', 'testing.js', 'quern-simd.mjs', 'quern-simd64.mjs', 'quern-gpu.mjs'].map((name) => join(installed, 'dist', name));
  const options = { entryPoints, bundle: true, write: false, metafile: true, platform: 'browser', format: 'esm', outdir: folder, logLevel: 'silent' };
  const { metafile } = await build({ ...options, external: ['node:*'] });
  const imports = Object.entries(metafile.inputs).flatMap(([file, input]) => input.imports.map(({ path, external }) => ({ file, path, external })));
  assert.deepEqual(imports.filter(({ path, external }) => path !== '<runtime>' && (external || !/\.m?js$/.test(path))), []);
  for (const name of PAGES.relaxed.filter((file) => /js$/.test(file))) {
    const text = readFileSync(join(installed, 'dist', name), 'utf8');
    assert.doesNotMatch(text, /["']node:|\brequire\(|\beval\(|new Function\b/, name);
  }
});

test('no file starts a worker of itself, whose bundling may never end, and none by a name, which webpack takes for a chunk\'s', () => {
  const names = readdirSync(join(installed, 'dist')).filter((name) => /\.m?js$/.test(name) && !/node|cli/.test(name));
  const started = names.flatMap((name) => [...readFileSync(join(installed, 'dist', name), 'utf8').matchAll(/new Worker\(new URL\("([^"]*)",import\.meta\.url\),?(\{[^}]*\})?/g)].map(([, file, options]) => [name, file, options]));
  assert.deepEqual(started.sort(), [['index.js', './worker.js'], ['worker.js', './aside.js'], ['worker.js', './thread.js'], ['worker.js', './thread64.js']].map((pair) => [...pair, '{type:"module"}']));
});

test('a browser\'s entry can be imported where there is no browser', () => {
  assert.equal(runInProject(`
    const { support } = await import(${JSON.stringify(new URL(`file://${installed}/dist/index.js`).href)});
    console.log(typeof support().ok);
  `), 'boolean');
});

test('every address in package.json leads to a file', () => {
  const { exports, bin, types, main, module, jsdelivr, unpkg } = JSON.parse(readFileSync(join(installed, 'package.json')));
  const targets = [bin.quern, types, main, module, jsdelivr, unpkg, ...Object.values(exports).flatMap((target) => (typeof target === 'string' ? target : Object.values(target)))];
  for (const target of targets) assert.ok(readFileSync(join(installed, target)).length > 0, target);
  const engines = FILES.filter((path) => /^dist\/[^/]+\.wasm$/.test(path));
  assert.deepEqual(engines.filter((path) => !targets.includes(`./${path}`)), [], 'who copies files finds every engine by its name');
});

test('who copies files beside a bundle finds all of them in the recipe', () => {
  const { exports } = JSON.parse(readFileSync(join(installed, 'package.json')));
  const files = Object.values(exports).filter((path) => /^\.\/dist\//.test(path)).map((path) => path.slice('./dist/'.length));
  const [, list] = /^By hand: put (.*?) from `node_modules/m.exec(readFileSync(join(PROJECT, 'docs/recipes/bundlers.md'), 'utf8'));
  const named = [...list.matchAll(/`([\w.-]+\.(?:m?js|wasm))`/g)].map(([, name]) => name);
  assert.match(list, /the nine `quern-\*\.wasm`/);
  assert.deepEqual(named.sort(), files.filter((name) => !/^quern-.*\.wasm$/.test(name)).sort());
  assert.equal(files.length - named.length, 9);
});

test('a page downloads less than 200 kB of it by Brotli, whichever engine fits its browser', async (t) => {
  const { files, pages } = await sizes(join(installed, 'dist'));
  assert.deepEqual(Object.values(PAGES).flat().filter((name) => !files.some((file) => file.name === name)), []);
  assert.deepEqual(PAGE_LIMITS, { gzip: 276_000, brotli: 224_000 });
  for (const { name, gzip, brotli } of pages) {
    t.diagnostic(`${name}: ${brotli} bytes by Brotli, ${gzip} by gzip`);
    assert.ok(brotli < PAGE_LIMITS.brotli && gzip < PAGE_LIMITS.gzip, `${name}: ${brotli}, ${gzip} bytes`);
  }
});

test('vision and all else that the text build lacks add less than 236 KB to it, decoders being the browser\'s', async (t) => {
  const names = [...new Set(Object.values(SEEING).flatMap(({ more, less }) => [...more, ...less]))];
  const { files } = await sizes(join(installed, 'dist'), names);
  assert.equal(files.length, names.length);
  assert.equal(SEEING_LIMIT, 236_000);
  for (const { name, raw, brotli } of seeing(files)) {
    t.diagnostic(`${name}: ${raw} bytes, ${brotli} by Brotli`);
    assert.ok(raw < SEEING_LIMIT, `${name}: ${raw} bytes`);
  }
});

test('a folder adds at most 58 KB by Brotli, and a model whose weights the text build lacks less', async () => {
  const added = Object.keys(PAGES).flatMap((variant) => [`quern-${variant}.wasm`, `quern-${variant}-text.wasm`]);
  const { files } = await sizes(join(installed, 'dist'), ['foreign.js', ...added]);
  const of = (wanted) => files.find(({ name }) => name === wanted).brotli;
  for (const variant of Object.keys(PAGES)) {
    const more = of(`quern-${variant}.wasm`) - of(`quern-${variant}-text.wasm`) + of('foreign.js');
    assert.ok(more < 58_000, `${variant}: ${more} bytes`);
  }
});

test('files that come later have what they share from the file that loads them, which opens them once', async () => {
  const homes = { page: ['images', 'videos', 'vectors', 'start-late'], worker: ['vision', 'extras', 'pooling', 'template', 'drafter'] };
  const ours = (name) => readFileSync(join(installed, `dist/${name}.js`), 'utf8').includes('quern.error');
  assert.deepEqual(['index', 'worker'].map(ours), [true, true]);
  for (const [home, names] of Object.entries(homes)) {
    const { LENT } = await import(`../../../js/${home}/lent.js`);
    for (const name of names) {
      assert.equal(ours(name), false, name);
      const { open, ...rest } = await import(join(installed, `dist/${name}.js`));
      const opened = open(LENT);
      assert.deepEqual([Object.keys(rest), Object.keys(opened).sort()], [[], Object.keys(await import(`../../../js/${home}/${name}.js`)).sort()], name);
      assert.equal(open(LENT), opened, `${name} keeps its state`);
    }
  }
});

// Unicode's properties and the patterns of formats are a quarter of it; it comes with the first limited reply.
test('grammars are a module of less than 70 kB that imports one question, whether to go on', async () => {
  const { gzip } = await measure(join(installed, 'dist/grammar.wasm'));
  assert.ok(gzip < 70_000, `${gzip} bytes by gzip`);
  const module = new WebAssembly.Module(readFileSync(join(installed, 'dist/grammar.wasm')));
  assert.deepEqual(WebAssembly.Module.imports(module), [{ module: 'env', name: 'pace', kind: 'function' }]);
});

test('the types say what the module exports', () => {
  const declared = [...readFileSync(join(PROJECT, 'dist/index.d.ts'), 'utf8').matchAll(/^export (?:declare )?(?:function|class|const) (\w+)/gm)].map(([, name]) => name);
  const code = "console.log(JSON.stringify([Object.keys(await import('./dist/index.js')), Object.keys(await import('./dist/node.js'))]))";
  const actual = JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', code], { cwd: PROJECT, encoding: 'utf8' }));
  for (const names of actual) assert.deepEqual(names.sort(), declared.sort());
});

test('what Node loads too asks whether it runs there, for its hints; what browsers alone load does not', () => {
  const asks = (name) => readFileSync(join(PROJECT, `dist/${name}.js`), 'utf8').includes('process?.versions');
  for (const name of ['remote', 'run', 'openai', 'ai-sdk', 'prompt-api', 'testing']) assert.equal(asks(name), true, name);
  for (const name of ['index', 'images', 'videos', 'vectors']) assert.equal(asks(name), false, name);
});
