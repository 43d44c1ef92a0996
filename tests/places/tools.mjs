// SPDX-License-Identifier: MIT
// What tools say of the package and its types: publint, attw (are the types wrong?) and the TypeScript compiler,
// strict, with the library of ES2022 and every .d.ts checked; and what a page downloads of it.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { PAGE_LIMITS, sizes } from '../../tools/sizes.mjs';
import { install, run, tarball, versionOf } from './workshop.mjs';

export const title = 'Tools';

const STRICT = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--target', 'es2022', '--typeRoots', './none'];

const tsc = (lib, module, resolution) => ['tsc', ...STRICT, '--lib', lib, '--module', module, '--moduleResolution', resolution, 'main.ts'];

/** Node's globals are not declared: AbortController and console come with the DOM. */
const TYPES = {
  'ES2022, bundler': tsc('es2022,dom', 'esnext', 'bundler'),
  'ES2022, nodenext': tsc('es2022,dom', 'nodenext', 'nodenext'),
  'ESNext, bundler': tsc('esnext,dom', 'esnext', 'bundler'),
};

const TOOLS = {
  publint: { strict: ['publint', 'run', tarball, '--strict'] },
  // The package is ESM only, and its other files are for addresses, not for programs.
  attw: { 'esm-only': ['attw', tarball, '--entrypoints', '.', 'remote', 'run', 'openai', 'ai-sdk', 'prompt-api', 'testing', '--profile', 'esm-only', '--no-color', '--no-emoji', '--format', 'ascii'] },
  'tsc 7': TYPES,
  'tsc 5': TYPES,
};

const check = ([program, ...args]) => async (folder) => {
  await run([join(folder, 'node_modules/.bin', program), ...args.map((part) => (part === tarball ? tarball() : part))], { cwd: folder });
  return { note: 'clean' };
};

/** Against the limits, compressed as servers do; of all pages the one that downloads most. */
async function weigh(folder) {
  const { pages } = await sizes(join(folder, 'node_modules/quern/dist'));
  const most = Object.entries(PAGE_LIMITS).map(([form, limit]) => {
    const bytes = Math.max(...pages.map((page) => page[form]));
    assert.ok(bytes <= limit, `${form}: ${bytes} bytes of ${limit}`);
    return `${Math.round(bytes / 1000)} of ${limit / 1000} KB with ${form}`;
  });
  return { note: most.join(', ') };
}

const place = (name, version, cases) => ({ name, version, by: () => '', open: () => install(name, ['types']), cases });

export const places = [
  ...Object.entries(TOOLS).map(([name, commands]) => (
    place(name, versionOf(name), Object.fromEntries(Object.entries(commands).map(([title, command]) => [title, check(command)])))
  )),
  place('Sizes', '', { 'what a page downloads': weigh }),
];
