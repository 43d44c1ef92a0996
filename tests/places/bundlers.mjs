// SPDX-License-Identifier: MIT
// Bundlers: a stranger's page is built, or served by a development server, as the bundler's own guide says and with nothing
// configured for quern but what README says, and opened in Chromium, isolated and not.
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { ISOLATION, MODEL, chromiumVersion, front, judge, openHost, visit } from './visit.mjs';
import { freePort, install, run, start, versionOf } from './workshop.mjs';

const BESIDE = ['worker.js', 'template.js', 'sha256.js', ...['simd', 'simd64'].map((name) => `quern-${name}.mjs`),
  ...['simd', 'simd64', 'relaxed', 'relaxed64'].map((name) => `quern-${name}.wasm`)];

const package_ = (folder) => join(folder, 'node_modules/quern/dist');

/** For bundlers that copy nothing: the package's files beside their output. */
function copyBeside(folder) {
  for (const name of BESIDE) copyFileSync(join(package_(folder), name), join(folder, 'dist', name));
}

/** The same in a folder of their own, and the worker's address. */
function copyApart(folder) {
  cpSync(package_(folder), join(folder, 'dist/quern'), { recursive: true });
  return { workerUrl: '/quern/worker.js' };
}

const addPage = (folder) => copyFileSync(join(folder, 'index.html'), join(folder, 'dist/index.html'));

/** Each copies nothing: once with the files beside it, once with `workerUrl`. */
const bare = (environment, projects, build) => [['files beside', copyBeside], ['workerUrl', copyApart]]
  .map(([way, copy]) => ({ environment, way, projects, build, finish: (folder) => { addPage(folder); return copy(folder); } }));

/**
 * `build` writes the site into dist, to which `finish` adds what the bundler leaves to others (it returns options for the
 * page); `server` starts one instead, after `build` if there is one.
 */
const WAYS = [
  { environment: 'Vite', way: 'build', build: ['vite', 'build'] },
  { environment: 'Vite', way: 'dev', server: (port) => ['vite', '--port', port, '--strictPort'] },
  { environment: 'webpack', way: 'production', projects: ['page', 'webpack'], build: ['webpack', '--mode', 'production'], finish: addPage },
  { environment: 'webpack', way: 'development', projects: ['page', 'webpack'], server: (port) => ['webpack', 'serve', '--mode', 'development', '--port', port] },
  { environment: 'Next.js', way: 'build', projects: ['page', 'next'], build: ['next', 'build'], server: (port) => ['next', 'start', '-p', port] },
  { environment: 'Next.js', way: 'build --webpack', projects: ['page', 'next'], build: ['next', 'build', '--webpack'], server: (port) => ['next', 'start', '-p', port] },
  { environment: 'Next.js', way: 'dev', projects: ['page', 'next'], server: (port) => ['next', 'dev', '-p', port] },
  ...bare('Rollup', ['page', 'rollup'], ['rollup', '--config']),
  { environment: 'Parcel', way: 'build', build: ['parcel', 'build', 'index.html', '--dist-dir', 'dist', '--no-autoinstall'] },
  ...bare('esbuild', ['page'], ['esbuild', 'main.js', '--bundle', '--format=esm', '--outdir=dist']),
  ...bare('Bun', ['page'], ['../@oven/bun-linux-x64/bin/bun', 'build', 'main.js', '--outdir', 'dist']),
];

/** @returns {Promise<{urls: {isolated: string, plain: string}, options: object}>} where the site is served */
async function open({ environment, projects = ['page'], build, finish, server }, t) {
  const folder = install(environment, projects);
  const program = ([name, ...args]) => [join(folder, 'node_modules/.bin', name), ...args];
  if (build) await run(program(build), { cwd: folder });
  if (server) {
    const port = String(await freePort());
    const url = `http://localhost:${port}/`;
    t.after(await start(program(server(port)), url, { cwd: folder }));
    return { urls: { isolated: await front(t, url, ISOLATION), plain: url }, options: {} };
  }
  const options = finish?.(folder) ?? {};
  const urls = {};
  for (const isolate of [true, false]) {
    const { url, close } = await serve({ root: join(folder, 'dist'), csp: false, isolate });
    t.after(close);
    urls[isolate ? 'isolated' : 'plain'] = url;
  }
  return { urls, options };
}

const look = async ({ urls, options }, where, threads, t) => {
  const address = new URLSearchParams({ model: await openHost(t) + MODEL, ...options });
  return judge(await visit(`${urls[where]}#${address}`), { threads });
};

export const places = WAYS.map((way) => ({
  name: `${way.environment}, ${way.way}`, version: versionOf(way.environment), by: chromiumVersion,
  open: (t) => open(way, t),
  cases: {
    isolated: (site, t) => look(site, 'isolated', 2, t),
    'not isolated': (site, t) => look(site, 'plain', 1, t),
  },
}));
