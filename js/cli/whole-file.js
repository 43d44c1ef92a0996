// SPDX-License-Identifier: MIT
// Writes a new file in Node, which is either complete or absent. It is written under another name beside its place and
// renamed when it is complete. A link of that name is replaced, not followed. An existing device or pipe is written
// directly. The file of a conversion, which takes longer, follows the same rules in src/cli/cli_output.c, with a lock.

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { QuernError, badParam } from '../shared/errors.js';

const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** Paths to files that are open elsewhere; they are written directly. */
const OPEN_ELSEWHERE = /^\/(dev\/(std|fd\/)|proc\/)/;

const isStream = async (path) =>
  OPEN_ELSEWHERE.test(path) ||
  (await stat(path).then(
    (found) => !found.isFile(),
    () => false,
  ));

async function writeBeside(path, bytes, signal) {
  const part = join(dirname(path), `${basename(path).slice(0, 60)}.${randomBytes(8).toString('hex')}.part`);
  try {
    await writeFile(part, bytes, { flag: 'wx', signal });
    await rename(part, path);
  } catch (error) {
    if (error.code !== 'EEXIST') await rm(part, { force: true });
    signal.throwIfAborted();
    throw error;
  }
}

/**
 * @param {string} option that gave the path, for the error
 * @param {AbortSignal} signal ends the writing of a regular file, and nothing of it is left
 */
export async function writeWhole(option, path, bytes, signal) {
  try {
    if (await isStream(path)) await writeFile(path, bytes, { flag: constants.O_WRONLY | constants.O_APPEND });
    else await writeBeside(path, bytes, signal);
  } catch (error) {
    if (error instanceof QuernError) throw error;
    if (NO_ROOM.includes(error.code)) {
      throw new QuernError(
        'storage/quota',
        'There is not enough room on the disk for the new file; nothing was kept of it.',
        { cause: error },
      );
    }
    throw badParam(option, `cannot be written (${error.code})`);
  }
}
