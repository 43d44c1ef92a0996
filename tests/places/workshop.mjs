// SPDX-License-Identifier: MIT
// Where places are set up: a folder for each below build/places, with the pinned versions of what it needs and the packed
// package installed as a stranger's project has them, and programs that run there and end in time. What is installed stays
// between runs; everything else of a folder is made anew. No package's install script is run.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { PROJECT } from '../fixtures/golden.mjs';
import { npm, pack } from '../js/support/pack.mjs';

const HERE = join(PROJECT, 'tests/places');
/** Where all that is installed lies. */
export const WORKSHOP = join(PROJECT, 'build/places');

/** What is installed for each environment: npm packages, of which the first one names its version. */
const VERSIONS = JSON.parse(readFileSync(join(HERE, 'versions.json')));

/** What a build may take, in ms. Some never end. */
const PATIENCE_MS = 240_000;

/** What a server may take until it says where it is. */
const START_MS = 60_000;

const ENVIRONMENT = { NO_COLOR: '1', CI: '1', NEXT_TELEMETRY_DISABLED: '1' };

export const say = (text) => console.log(`places: ${text}`);

export const versionsOf = (name) => VERSIONS[name];

export const versionOf = (name, of = Object.keys(VERSIONS[name])[0]) => VERSIONS[name][of];

/** The same value each time, made when it is first asked for. */
export function once(make) {
  let made;
  return () => { made ??= { value: make() }; return made.value; };
}

/** The package, under a name that says what is in it: PACKAGE, or this working tree's dist/ packed as it is. */
export const tarball = once(() => {
  mkdirSync(WORKSHOP, { recursive: true });
  const packed = process.env.PACKAGE ? resolve(process.env.PACKAGE) : pack(WORKSHOP);
  const name = join(WORKSHOP, `quern-${createHash('sha256').update(readFileSync(packed)).digest('hex').slice(0, 12)}.tgz`);
  if (process.env.PACKAGE) cpSync(packed, name);
  else renameSync(packed, name);
  return name;
});

/** What of a folder stays. */
const KEPT = ['node_modules', 'package-lock.json', '.installed'];

/** Takes away what an earlier run has left, caches of what was installed included. */
function clean(folder) {
  for (const name of readdirSync(folder)) if (!KEPT.includes(name)) rmSync(join(folder, name), { recursive: true });
  for (const cache of ['.vite', '.cache']) rmSync(join(folder, 'node_modules', cache), { recursive: true, force: true });
}

/**
 * A folder with an environment's packages, and quern.
 * @param {string} name in versions.json, if it needs more than quern
 * @param {string[]} [projects] folders below projects/ whose files it gets, beside common's
 * @param {string[]} [flags] of npm's
 * @returns {string} its path
 */
export function install(name, projects = [], flags = []) {
  const folder = join(WORKSHOP, name.toLowerCase().replaceAll(/[^a-z\d]+/g, '-'));
  const others = VERSIONS[name] ?? {};
  const list = JSON.stringify({ name: 'user', private: true, type: 'module', dependencies: { ...others, quern: `file:${tarball()}` } }, null, 2);
  const stamp = join(folder, '.installed');
  mkdirSync(folder, { recursive: true });
  clean(folder);
  writeFileSync(join(folder, 'package.json'), list);
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== list) {
    say(`${name}: installing ${[...Object.entries(others).map((entry) => entry.join(' ')), 'quern'].join(', ')}`);
    rmSync(stamp, { force: true });
    npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', ...flags], folder);
    writeFileSync(stamp, list);
  }
  for (const project of ['common', ...projects]) cpSync(join(HERE, 'projects', project), folder, { recursive: true });
  return folder;
}

/** The same for pages without a bundler, which find the package in the folder `quern`. */
export function installUnbundled(name, projects) {
  const folder = install(name, projects);
  cpSync(join(folder, 'node_modules/quern/dist'), join(folder, 'quern'), { recursive: true });
  return folder;
}

/** The line of a program's output that says what is wrong, first. */
function complaint(text) {
  const lines = stripVTControlCharacters(text).split('\n').map((line) => line.trim()).filter(Boolean);
  const at = Math.max(0, lines.findIndex((line) => /error|cannot|failed|not found/i.test(line) && !/build failed/i.test(line)));
  return lines.slice(at, at + 12).join('\n');
}

/** A program in a process group of its own, so that all that it starts ends with it. */
function launch([program, ...args], { cwd, env }) {
  const child = spawn(program, args, { cwd, env: { ...process.env, ...ENVIRONMENT, ...env }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const begin = performance.now();
  const output = { out: '', all: '', first: undefined };
  child.stdout.on('data', (data) => {
    output.first ??= performance.now() - begin;
    output.out += data;
    output.all += data;
  });
  child.stderr.on('data', (data) => { output.all += data; });
  const ended = new Promise((done) => {
    child.once('error', (error) => { output.all += `error: ${error.message}`; done(-1); });
    child.once('close', done);
  });
  const kill = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch { /* it has ended */ }
    return ended;
  };
  return { output, ended, kill };
}

/** Runs a program to its end. @returns {Promise<{out: string, first: number}>} its standard output, and the ms until that began */
export async function run(command, { limit = PATIENCE_MS, ...options }) {
  const { output, ended, kill } = launch(command, options);
  const name = command[0].split('/').at(-1);
  try {
    const status = await within(limit, ended);
    if (status !== 0) throw new Error(complaint(output.all) || `exit code ${status}`);
    return output;
  } catch (error) {
    error.message = `${name}: ${error.message}`;
    throw error;
  } finally {
    await kill();
  }
}

/** Starts a server, and waits until it answers. @returns {Promise<() => Promise<void>>} ends it */
export async function start(command, url, options) {
  const { output, ended, kill } = launch(command, options);
  let over = false;
  ended.then(() => { over = true; });
  const end = Date.now() + START_MS;
  while (!await fetch(url).then(() => true, () => false)) {
    if (!over && Date.now() < end) {
      await sleep(100);
      continue;
    }
    await kill();
    throw new Error(`${command[0].split('/').at(-1)} does not serve: ${complaint(output.all)}`);
  }
  return kill;
}

/** A port that nobody listens on. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const { port } = server.address();
  await new Promise((done) => { server.close(done); });
  return port;
}

/** What a piece of work gives, or an error when it takes too long. */
export async function within(ms, work) {
  const over = new AbortController();
  const late = async () => {
    await sleep(ms, undefined, { signal: over.signal });
    throw new Error(`has not ended after ${ms / 1000} s`);
  };
  try {
    return await Promise.race([work, late()]);
  } finally {
    over.abort();
  }
}

/** Standard output of a short command, or ''. */
export function outputOf(program, args) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}
