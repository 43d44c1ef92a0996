// SPDX-License-Identifier: MIT
// The store of a browser: the origin private file system. A worker reads and writes through a synchronous access
// handle, directly from and to wasm memory. Measured on one machine (512 MB, 4 MiB at a time, GB/s, Chromium 156 and
// Firefox 153): access handle 13 and 11; a stream of getFile() 0.1 to 1.1 and 0.1 to 1.0; getFile() with slices 0.2 to
// 0.4 and 0.1 to 0.3. A handle is exclusive if the browser does not support `mode`; then a second tab reads by slices.

const FOLDER = 'quern';

/** After a file was written, an older snapshot of it cannot be read; a new snapshot is tried this often. */
const SNAPSHOTS = 50;

/** Pages that are not served securely have no storage, nor do some private windows. */
function storage() {
  if (!navigator.storage?.getDirectory)
    throw new Error('the browser gives this page no storage; it must be served over https');
  return navigator.storage;
}

const folder = async () => (await storage().getDirectory()).getDirectoryHandle(FOLDER, { create: true });

/** Returns null instead of a NotFoundError. */
const orNull = (error) => {
  if (error.name !== 'NotFoundError') throw error;
  return null;
};

async function snapshot(handle, use) {
  for (let left = SNAPSHOTS; ; left--) {
    try {
      return new Uint8Array(await use(await handle.getFile()));
    } catch (error) {
      if (error.name !== 'NotReadableError' || left === 0) throw error;
    }
  }
}

/** Reads a file when another tab holds its only access handle, and in a page, which gets none. */
class SlicedFile {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  async size() { return (await this.#handle.getFile()).size; }
  read(at, target) { return snapshot(this.#handle, (file) => file.slice(at, at + target.length).arrayBuffer()); }

  close() {}
}

/**
 * If the disk or the quota is full, write() in Chromium 156 returns this instead of throwing: its error code as an
 * unsigned number.
 */
const NO_SPACE = 2 ** 32 - 8;

/** An access handle as a file of the store. */
class AccessedFile {
  #access;

  constructor(access) {
    this.#access = access;
  }

  size() { return this.#access.getSize(); }
  read(at, target) { return this.#access.read(target, { at }); }
  write(at, bytes) {
    const n = this.#access.write(bytes, { at });
    if (n === NO_SPACE) throw new DOMException('the browser gives this site no more', 'QuotaExceededError');
    return n;
  }

  truncate(size) { this.#access.truncate(size); }
  flush() { this.#access.flush(); }
  close() { this.#access.close(); }
}

export class OpfsStore {
  async list() {
    const names = [];
    for await (const name of (await folder()).keys()) names.push(name);
    return names;
  }

  async read(name) {
    const handle = await (await folder()).getFileHandle(name).catch(orNull);
    return handle && snapshot(handle, (file) => file.arrayBuffer());
  }

  async open(name, { write }) {
    const handle = await (await folder()).getFileHandle(name, { create: write }).catch(orNull);
    if (!handle) return null;
    if (!handle.createSyncAccessHandle && !write) return new SlicedFile(handle);
    try {
      return new AccessedFile(await handle.createSyncAccessHandle({ mode: 'readwrite-unsafe' }));
    } catch (error) {
      if (write || error.name !== 'NoModificationAllowedError') throw error;
      return new SlicedFile(handle);
    }
  }

  async remove(name) {
    await (await folder()).removeEntry(name).catch(orNull);
  }

  /** The browser releases the locks of a tab that is gone. */
  lock(name, { wait, signal }) {
    return new Promise((resolve, reject) => {
      const hold = (lock) => (lock ? new Promise((release) => { resolve(release); }) : resolve(null));
      const options = wait ? { signal } : { ifAvailable: true };
      navigator.locks.request(`${FOLDER}:${name}`, options, hold).catch(reject);
    });
  }

  async usage() {
    const [{ usage = 0, quota = 0 }, persisted] = await Promise.all([storage().estimate(), storage().persisted()]);
    return { used: usage, quota, persisted };
  }

  persist() {
    return storage().persist();
  }
}
