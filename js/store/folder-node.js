// SPDX-License-Identifier: MIT
// Folders in Node. By default only their owner can open them.

import { chmod, lstat, mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Makes a folder, unless it exists. */
export async function makeOne(folder, mode = 0o700) {
  await mkdir(folder, mode).catch((error) => { if (error.code !== 'EEXIST') throw error; });
}

/**
 * Makes a folder and its missing parents. (Node's own recursion does not end if an existing folder refuses new ones, as
 * /proc does.)
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

/** Removes other users' access to a folder and its files, which older versions gave. Only for folders of this user. */
export async function tighten(folder) {
  const { uid, mode } = await stat(folder);
  if (uid !== process.geteuid?.()) return;
  if (mode & 0o077) await chmod(folder, 0o700);
  for (const path of (await readdir(folder)).map((name) => join(folder, name))) {
    const file = await lstat(path);
    if (file.isFile() && file.mode & 0o077) await chmod(path, 0o600);
  }
}
