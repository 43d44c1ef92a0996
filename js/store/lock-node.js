// SPDX-License-Identifier: MIT
// Locks in Node are listening sockets. A lock ends with the worker or process that holds it, however that ends; those
// that wait for it are connected to it.
//
// A folder's sockets are in the folder itself. If that is impossible (its path is too long for a socket, it is
// read-only, its file system has no sockets), they are in a private folder below the temporary folder. A socket of
// another user there is not trusted: it could make everybody wait. On Windows the sockets are pipes, which have names
// of their own.

import { createHash } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeOne } from './folder-node.js';

/** Most bytes of a socket's path that every system supports. A longer path would be cut off. */
const LONGEST_PATH = 100;

/** Errors if nobody listens (any more); the last one, if the holder ended before it accepted the connection. */
const NOBODY = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ECONNRESET'];

const others = () => new Error('a lock there belongs to somebody else');

/** @returns {Promise<(() => void) | null>} null: another process listens there, or did */
function listen(path) {
  return new Promise((done, failed) => {
    if (Buffer.byteLength(path) > LONGEST_PATH)
      throw Object.assign(new Error('its path is too long for a socket'), { syscall: 'listen' });
    const sockets = new Set();
    const server = createServer((socket) => {
      sockets.add(socket.unref());
      socket.on('error', () => {});
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

/** Whether anybody listens. With `wait`, resolves when they no longer do. */
function meet(path, { wait, signal }) {
  return new Promise((done, failed) => {
    const socket = connect(path);
    const onAbort = () => {
      socket.destroy();
      failed(signal.reason);
    };
    let met = false;
    socket.once('connect', () => {
      met = true;
      if (!wait) socket.destroy();
    });
    socket.on('error', (error) => { if (!met && !NOBODY.includes(error.code)) failed(error); });
    socket.once('close', () => {
      signal?.removeEventListener('abort', onAbort);
      done(met);
    });
    socket.resume();
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** The file at a path, which must belong to this user; null: it does not exist (any more), or is a pipe. */
async function look(path) {
  const found = process.geteuid
    ? await lstat(path, { bigint: true }).catch((error) => {
        if (error.code !== 'ENOENT') throw error;
      })
    : null;
  if (found && Number(found.uid) !== process.geteuid()) throw others();
  return found;
}

/** Removes the socket of a killed process. If two processes find it, the first one has another socket there by now. */
function clear(path, found) {
  const now = found && lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (now && now.ino === found.ino && now.ctimeNs === found.ctimeNs) unlinkSync(path);
}

async function take(path, { wait, signal }) {
  for (;;) {
    signal?.throwIfAborted();
    const release = await listen(path);
    if (release) return release;
    const found = await look(path);
    if (!await meet(path, { wait, signal })) clear(path, found);
    else if (!wait) return null;
  }
}

/** A folder in which no other user can create anything. */
async function privateFolder() {
  const folder = join(tmpdir(), `quern-${process.geteuid()}`);
  await makeOne(folder);
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.geteuid() || found.mode & 0o022) throw others();
  return folder;
}

/**
 * Takes the lock of a name in an existing folder.
 * @returns {Promise<(() => void) | null>} releases the lock; null: another process holds it, and `wait` is false
 */
export async function lock(folder, name, options) {
  const path = join(folder, `.lock-${name}`);
  const short = createHash('sha256').update(path).digest('hex').slice(0, 24);
  if (process.platform === 'win32') return take(`\\\\.\\pipe\\quern-${short}`, options);
  try {
    return await take(path, options);
  } catch (error) {
    if (error?.syscall !== 'listen') throw error;
    return take(join(await privateFolder(), short), options);
  }
}
