// SPDX-License-Identifier: MIT
// The store of Node: an ordinary folder, by default in the platform's folder for caches. Only the owner can access
// files created here. Locks (lock-node.js) do not work between machines that share a folder: two downloads may then
// write the same chunks twice, and the hashes of the chunks keep the result correct.

import { constants } from 'node:fs';
import { open, readFile, readdir, rm, stat, statfs } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { makeFolder, tighten } from './folder-node.js';
import { lock } from './lock-node.js';
import { sum } from '../shared/sum.js';

/** Opening a pipe or the like does not wait. A link in a folder that others may write to does not redirect writing. */
const { O_RDONLY, O_RDWR, O_CREAT, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants;

export function defaultFolder({ platform, env } = process) {
  if (platform === 'win32') return join(env.LOCALAPPDATA ?? join(homedir(), 'AppData', 'Local'), 'quern', 'Cache');
  if (platform === 'darwin') return join(homedir(), 'Library', 'Caches', 'quern');
  const { XDG_CACHE_HOME: wanted } = env;
  return join(wanted && isAbsolute(wanted) ? wanted : join(homedir(), '.cache'), 'quern');
}

const orNull = (error) => {
  if (error.code !== 'ENOENT') throw error;
  return null;
};

class FolderFile {
  #handle;
  #room = new Uint8Array(0);

  constructor(handle) {
    this.#handle = handle;
  }

  /** Does not read directly into the target, where late bytes would overwrite others. */
  async read(at, { length }) {
    if (this.#room.length < length) this.#room = new Uint8Array(length);
    const { bytesRead } = await this.#handle.read(this.#room, 0, length, at);
    return this.#room.subarray(0, bytesRead);
  }

  async size() { return (await this.#handle.stat()).size; }
  async write(at, bytes) { return (await this.#handle.write(bytes, 0, bytes.length, at)).bytesWritten; }
  truncate(size) { return this.#handle.truncate(size); }
  flush() { return this.#handle.datasync(); }
  close() { return this.#handle.close(); }
}

export class FolderStore {
  #named;
  #ready = null;     // promise of the folder's path

  /** @param {string} [folder] by default the user's own */
  constructor(folder) {
    this.#named = folder;
  }

  /** The folder, which may not exist. The access rights of a folder that the caller named are left alone. */
  #folder() {
    this.#ready ??= this.#find();
    return this.#ready;
  }

  async #find() {
    const folder = resolve(this.#named ?? defaultFolder());
    if (this.#named === undefined) await tighten(folder).catch(() => {});
    return folder;
  }

  /** The folder, created if necessary. */
  async #made() {
    const folder = await this.#folder();
    await makeFolder(folder);
    return folder;
  }

  async #path(name) {
    return join(await this.#folder(), name);
  }

  async list() {
    return await readdir(await this.#folder()).catch(orNull) ?? [];
  }

  async read(name) {
    return readFile(await this.#path(name), { flag: O_RDONLY | O_NONBLOCK }).catch(orNull);
  }

  async open(name, { write }) {
    const path = join(write ? await this.#made() : await this.#folder(), name);
    const handle = await open(path, (write ? O_RDWR | O_CREAT | O_NOFOLLOW : O_RDONLY) | O_NONBLOCK, 0o600).catch(
      orNull,
    );
    if (write) await handle?.chmod(0o600).catch(() => {}); // a file of an older version may be open to others
    return handle && new FolderFile(handle);
  }

  async remove(name) {
    await rm(await this.#path(name), { force: true });
  }

  async lock(name, options) {
    return lock(await this.#made(), name, options);
  }

  async usage() {
    const paths = await Promise.all((await this.list()).map((name) => this.#path(name)));
    const sizes = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => null))?.size ?? 0));
    const used = sum(sizes);
    const { bavail, bsize } = await statfs(await this.#made());
    return { used, quota: used + bavail * bsize, persisted: true };
  }

  persist() {
    return true;
  }
}
