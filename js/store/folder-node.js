// SPDX-License-Identifier: MIT
// Folders in Node, which are open to nobody but their owner where nothing else is said.

import { chmod, lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Makes a folder, unless it is there. */
export async function makeOne(folder, mode = 0o700) {
  await mkdir(folder, mode).catch((error) => { if (error.code !== 'EEXIST') throw error; });
}

/**
 * Makes a folder, and those above it that are missing. (Where that is refused in a folder that is there, as in /proc,
 * Node's own recursion does not end.)
 */
export async function makeFolder(folder, mode = 0o700) {
  try {
    await makeOne(folder, mode);
  } catch (error) {
    if (error.code !== 'ENOENT' || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder), mode);
    await makeOne(folder, mode);
  }
}

/** Closes a folder and its files to others, as older versions did not. Nobody's folder but one's own. */
export async function tighten(folder) {
  const { uid, mode } = await stat(folder);
  if (uid !== process.geteuid?.()) return;
  if (mode & 0o077) await chmod(folder, 0o700);
  for (const path of (await readdir(folder)).map((name) => join(folder, name))) {
    const file = await lstat(path);
    if (file.isFile() && file.mode & 0o077) await chmod(path, 0o600);
  }
}
