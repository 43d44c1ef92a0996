// SPDX-License-Identifier: MIT
// A new file in Node: whole under its name, or absent. It is written beside it and gets its name when it is whole; a
// link by that name is replaced, not followed. What is there and is no regular file (a device, a pipe) is written as it
// is. A conversion's file, which takes longer, has the same rules in src/cli/cli_output.c, and a lock.

import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { QuernError, badParam } from '../shared/errors.js';

const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** A regular file behind these is its opener's. */
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
 * @param {string} option what gave the path, for the error
 * @param {AbortSignal} signal for a file: nothing of it stays then
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
