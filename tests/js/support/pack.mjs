// SPDX-License-Identifier: MIT
// The package as a registry would deliver it: packed from dist/ without another build, and installed.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));

/** Runs npm and returns its standard output; its messages become part of the error. */
export function npm(args, cwd) {
  try {
    return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  } catch (error) {
    throw new Error(`npm ${args.join(' ')} failed: ${String(error.stderr ?? error).trim().slice(-2000)}`, { cause: error });
  }
}

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), 'quern-test-'));
export const removeFolder = (folder) => rmSync(folder, { recursive: true, force: true });

/** The files that would be published, as npm lists them: `files[] {path, size}`. */
export const packList = () => JSON.parse(npm(['pack', '--ignore-scripts', '--dry-run', '--json'], PROJECT))[0];

/** Writes the package into a folder. @returns {string} the tarball's path */
export function pack(folder) {
  const [{ filename }] = JSON.parse(npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], PROJECT));
  return join(folder, filename);
}

/** Makes a project in this folder with only this package installed. */
export function installInto(folder) {
  const tarball = pack(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  npm(['install', '--offline', '--no-audit', '--no-fund', tarball], folder);
  return join(folder, 'node_modules/quern');
}
