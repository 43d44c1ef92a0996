// SPDX-License-Identifier: MIT
// Locks in Node: sockets that listen. A lock ends with the worker or process that has it, however that ends, and
// whoever waits for it is connected to it.
//
// A folder's sockets are in the folder itself; where that takes none (its path is too long for a socket, it is
// read-only, its file system knows no sockets) in a private one below the temporary folder. Somebody else's socket
// there is not believed: he could let everybody wait. On Windows they are pipes, which have names of their own.

import { createHash } from 'node:crypto';
import { lstatSync, unlinkSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeOne } from './folder-node.js';

/** Bytes of a socket's path on every system. A longer one would be cut off. */
const LONGEST_PATH = 100;

/** What the system says where nobody listens (any more); the last one, where he ended before he took us. */
const NOBODY = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ECONNRESET'];

const others = () => new Error('a lock there belongs to somebody else');

/** @returns {Promise<(() => void) | null>} null: somebody else listens there, or did */
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

/** Whether anybody listens; where that is to be waited for, once he no longer does. */
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

/** What is at a path, which must be ours; null: nothing (any more), or a pipe. */
async function look(path) {
  const found = process.geteuid
    ? await lstat(path, { bigint: true }).catch((error) => {
        if (error.code !== 'ENOENT') throw error;
      })
    : null;
  if (found && Number(found.uid) !== process.geteuid()) throw others();
  return found;
}

/**
 * Removes what a process that was killed has left. Of two that found it one is first, and has another socket there by
 * now.
 */
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

/** Where nobody else can make anything. */
async function privateFolder() {
  const folder = join(tmpdir(), `quern-${process.geteuid()}`);
  await makeOne(folder);
  const found = await lstat(folder);
  if (!found.isDirectory() || found.uid !== process.geteuid() || found.mode & 0o022) throw others();
  return folder;
}

/**
 * The only holder of a name in a folder, which is there.
 * @returns {Promise<(() => void) | null>} gives it back; null: another has it, and `wait` is false
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
