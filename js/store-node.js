// SPDX-License-Identifier: MIT
// The store of Node: a plain folder, by default in the platform's folder for caches.
// A lock is a socket that listens: it ends with the worker or process that has it, however that ends, and whoever waits for
// it is connected to it. Without locks (no permission, another machine over one folder) two downloads may write the same
// chunks twice; the hashes of the chunks see to the rest.

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readFile, readdir, rm, stat, statfs } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';

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

  constructor(handle) {
    this.#handle = handle;
  }

  async size() { return (await this.#handle.stat()).size; }
  async read(at, target) { return (await this.#handle.read(target, 0, target.length, at)).bytesRead; }
  async write(at, bytes) { return (await this.#handle.write(bytes, 0, bytes.length, at)).bytesWritten; }
  truncate(size) { return this.#handle.truncate(size); }
  flush() { return this.#handle.datasync(); }
  close() { return this.#handle.close(); }
}

/** Sockets have short names: 100 bytes on some systems. */
function socketPath(folder, name) {
  const id = `quern-${createHash('sha256').update(join(folder, name)).digest('hex').slice(0, 24)}`;
  return process.platform === 'win32' ? `\\\\.\\pipe\\${id}` : join(tmpdir(), `${id}.sock`);
}

/** @returns {Promise<(() => void) | null>} null: somebody else listens there */
function listen(path) {
  return new Promise((done, failed) => {
    const server = createServer((socket) => socket.on('error', () => {}));
    const sockets = new Set();
    server.on('connection', (socket) => {
      sockets.add(socket.unref());
      socket.on('close', () => sockets.delete(socket));
    });
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? done(null) : failed(error)));
    server.listen(path, () => {
      server.unref();
      done(() => {
        server.close();
        for (const socket of sockets) socket.destroy();
      });
    });
  });
}

/** Waits for the end of whoever listens. @returns {Promise<boolean>} whether anybody did */
function untilGone(path, signal) {
  return new Promise((done, failed) => {
    const socket = connect(path);
    const onAbort = () => {
      socket.destroy();
      failed(signal.reason);
    };
    let met = false;
    socket.once('connect', () => { met = true; });
    socket.on('error', () => {});
    socket.once('close', () => {
      signal?.removeEventListener('abort', onAbort);
      done(met);
    });
    socket.resume();
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Whether somebody listens. */
function answers(path) {
  return new Promise((done) => {
    const socket = connect(path, () => { socket.destroy(); done(true); });
    socket.once('error', () => done(false));
  });
}

export class FolderStore {
  #folder;

  constructor(folder = defaultFolder()) {
    this.#folder = resolve(folder);
  }

  #path(name) {
    return join(this.#folder, name);
  }

  async list() {
    return await readdir(this.#folder).catch(orNull) ?? [];
  }

  read(name) {
    return readFile(this.#path(name)).catch(orNull);
  }

  async open(name, { write }) {
    if (write) await mkdir(this.#folder, { recursive: true });
    const handle = await open(this.#path(name), write ? constants.O_RDWR | constants.O_CREAT : 'r').catch(orNull);
    return handle && new FolderFile(handle);
  }

  remove(name) {
    return rm(this.#path(name), { force: true });
  }

  async lock(name, { wait, signal }) {
    const path = socketPath(this.#folder, name);
    for (;;) {
      signal?.throwIfAborted();
      const release = await listen(path);
      if (release) return release;
      if (!wait && await answers(path)) return null;
      if (wait && await untilGone(path, signal)) continue;
      await rm(path, { force: true });   // left by a process that was killed
    }
  }

  async usage() {
    const sizes = await Promise.all((await this.list()).map(async (name) => (await stat(this.#path(name)).catch(orNull))?.size ?? 0));
    const used = sizes.reduce((sum, size) => sum + size, 0);
    await mkdir(this.#folder, { recursive: true });
    const { bavail, bsize } = await statfs(this.#folder);
    return { used, quota: used + bavail * bsize, persisted: true };
  }

  persist() {
    return true;
  }
}
