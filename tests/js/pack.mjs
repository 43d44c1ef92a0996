// SPDX-License-Identifier: MIT
// The package as a registry would hand it out: packed from dist/ as it is (nothing is built again), and installed.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** npm's standard output; what it had to say is part of the error. */
export function npm(args, cwd) {
  try {
    return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  } catch (error) {
    throw new Error(`npm ${args.join(' ')} failed: ${String(error.stderr ?? error).trim().slice(-2000)}`, { cause: error });
  }
}

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), 'quern-test-'));
export const removeFolder = (folder) => rmSync(folder, { recursive: true, force: true });

/** What would be published: npm's own account, `files[] {path, size}`. */
export const packList = () => JSON.parse(npm(['pack', '--ignore-scripts', '--dry-run', '--json'], PROJECT))[0];

/** Writes the package into a folder. @returns {string} the tarball's path */
export function pack(folder) {
  const [{ filename }] = JSON.parse(npm(['pack', '--ignore-scripts', '--json', '--pack-destination', folder], PROJECT));
  return join(folder, filename);
}

/** A project in this folder that has the package installed, and nothing from anywhere else. */
export function installInto(folder) {
  const tarball = pack(folder);
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }));
  npm(['install', '--offline', '--no-audit', '--no-fund', tarball], folder);
  return join(folder, 'node_modules/quern');
}
