// SPDX-License-Identifier: MIT
// Bundlers: a stranger's page is built, or served by a development server, as the bundler's own guide says and with nothing
// configured for quern but what docs/recipes/bundlers.md says, and opened in Chromium: isolated, not isolated, and with Trusted Types.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';
import { serve } from '../../tools/serve.mjs';
import { ISOLATION, TRUSTED, chromiumVersion, front, given, judge, visit } from './visit.mjs';
import { freePort, install, run, start, versionOf } from './workshop.mjs';

export const title = 'Bundlers';

export const about = `Vite before 8 has the recipe's lines in its configuration; the configurations of the others do not mention quern. Rollup, esbuild and Bun copy no files: one row has the package's files
beside the bundle, and one passes their address as \`workerUrl\`. Under Trusted Types every response has the header
\`Content-Security-Policy: require-trusted-types-for 'script'\`; the outcome names what the policy forbids to a bundler's own code.`;

const packageIn = (folder) => join(folder, 'node_modules/quern');

/** For bundlers that copy nothing: the package's files beside their output, by its own command. */
const copyBeside = (folder) => { execFileSync(join(folder, 'node_modules/.bin/quern'), ['copy', 'dist'], { cwd: folder }); };

/** The same in a folder of their own, and the worker's address. */
function copyApart(folder) {
  cpSync(join(packageIn(folder), 'dist'), join(folder, 'dist/quern'), { recursive: true });
  return { workerUrl: '/quern/worker.js' };
}

const vite = (environment, projects) => [
  { environment, way: 'build', projects, build: ['vite', 'build'] },
  { environment, way: 'dev', projects, server: (port) => ['vite', '--port', port, '--strictPort'] },
];

/** By Turbopack, or by what an option says. */
const next = (option, untrusted = []) => ['build', 'dev'].map((command, i) => ({
  environment: 'Next.js', way: [command, ...option].join(' '), projects: ['next'], untrusted: untrusted[i],
  ...(command === 'build' && { build: ['next', 'build', ...option] }),
  server: (port) => (command === 'build' ? ['next', 'start', '-p', port] : ['next', 'dev', ...option, '-p', port]),
}));

const addPage = (folder) => copyFileSync(join(folder, 'index.html'), join(folder, 'dist/index.html'));

const webpack = (option, untrusted = []) => [
  { way: 'production', build: ['webpack', '--mode', 'production', ...option], finish: addPage },
  { way: 'development', server: (port) => ['webpack', 'serve', '--mode', 'development', ...option, '--port', port] },
].map(({ way, ...rest }, i) => ({ environment: 'webpack', way: [way, ...option].join(' '), projects: ['page', 'webpack'], untrusted: untrusted[i], ...rest }));

/** Each copies nothing: once with the files beside it, once with `workerUrl`. */
const bare = (environment, projects, build) => [['files beside', copyBeside], ['workerUrl', copyApart]]
  .map(([way, copy]) => ({ environment, way, projects, build, finish: (folder) => { addPage(folder); return copy(folder); } }));

/**
 * `build` writes the site into dist, to which `finish` adds what the bundler leaves to others (it returns options for the
 * page); `server` starts one instead, after `build` if there is one. `untrusted` is what of the bundler's own Trusted Types refuse.
 */
const WAYS = [
  ...vite('Vite', ['page']),
  ...vite('Vite 7', ['page', 'vite-older']),
  ...vite('Vite 6', ['page', 'vite-older']),
  ...vite('Vite 5', ['page', 'vite-older']),
  ...webpack([], ['webpack\'s own importScripts', 'webpack\'s own eval']),
  ...webpack(['--output-trusted-types']),
  ...next([], ['Turbopack\'s own importScripts', 'Turbopack\'s own importScripts']),
  ...next(['--webpack']),
  ...bare('Rollup', ['page', 'rollup'], ['rollup', '--config']),
  { environment: 'Parcel', way: 'build', build: ['parcel', 'build', 'index.html', '--dist-dir', 'dist', '--no-autoinstall'], untrusted: 'Parcel\'s own importScripts' },
  ...bare('esbuild', ['page'], ['esbuild', 'main.js', '--bundle', '--format=esm', '--outdir=dist']),
  ...bare('Bun', ['page'], ['../@oven/bun-linux-x64/bin/bun', 'build', 'main.js', '--outdir', 'dist']),
];

/** What the page's server sends, and the threads that come of it. */
const CONDITIONS = {
  isolated: { headers: ISOLATION, threads: 2 },
  'an image': { headers: ISOLATION, threads: 2, sees: true },
  'not isolated': { headers: {}, threads: 1 },
  'Trusted Types': { headers: { ...ISOLATION, ...TRUSTED }, threads: 2 },
};

/** @returns {Promise<{url: string, options: object}>} where the site is served */
async function open({ environment, projects = ['page'], build, finish, server }, t) {
  const folder = install(environment, projects);
  const program = ([name, ...args]) => [join(folder, 'node_modules/.bin', name), ...args];
  if (build) await run(program(build), { cwd: folder });
  if (server) {
    const port = String(await freePort());
    const url = `http://localhost:${port}/`;
    t.after(await start(program(server(port)), url, { cwd: folder }));
    return { url, options: {} };
  }
  const options = finish?.(folder) ?? {};
  const { url, close } = await serve({ root: join(folder, 'dist'), csp: false, isolate: false });
  t.after(close);
  return { url, options };
}

const look = ({ headers, threads, sees }) => async ({ url, options }, t) => {
  const address = new URLSearchParams({ ...await given(t, sees), ...options });
  return judge(await visit(`${await front(t, url, headers)}#${address}`), { threads, sees });
};

/** Once the bundler has learnt it, this fails. */
const refused = (work, what) => async (...given) => {
  await assert.rejects(work(...given), /'TrustedScript/);
  return { note: `refused: ${what}` };
};

function casesOf({ untrusted }) {
  const cases = Object.fromEntries(Object.entries(CONDITIONS).map(([name, condition]) => [name, look(condition)]));
  return untrusted ? { ...cases, 'Trusted Types': refused(cases['Trusted Types'], untrusted) } : cases;
}

export const places = WAYS.map((way) => ({
  name: `${way.environment}, ${way.way}`, version: versionOf(way.environment), by: chromiumVersion,
  open: (t) => open(way, t),
  cases: casesOf(way),
}));
