// SPDX-License-Identifier: MIT
// The specification of a store (Store in index.d.ts), whatever holds its bytes. It runs over Node's folder, memory, a
// port and OPFS, and uses nothing of Node or of a page.

function equal(found, expected, what) {
  const [a, b] = [found, expected].map((value) => JSON.stringify(value instanceof Uint8Array ? [...value] : value));
  if (a !== b) throw new Error(`${what}: ${a} instead of ${b}`);
}

const bytes = (...values) => Uint8Array.from(values);

async function put(store, name, content) {
  const file = await store.open(name, { write: true });
  await file.truncate(0);
  equal(await file.write(0, content), content.length, 'bytes that were written');
  await file.flush();
  await file.close();
}

async function contentOf(store, name) {
  const found = await store.read(name);
  return found && new Uint8Array(found);
}

/** Name -> a check of two connections to one store, which is empty at first and may keep what the check leaves. */
export const STORE_SPEC = {
  async 'what is not there'(store) {
    equal(await store.read('none'), null, 'read');
    equal(await store.open('none', { write: false }), null, 'open for reading');
    await store.remove('none');
    equal((await store.list()).includes('none'), false, 'list');
  },

  async 'a file is made, listed, read by everybody, and removed'(store, other) {
    await put(store, 'a1.0', bytes(1, 2, 3, 4, 5));
    equal(await contentOf(other, 'a1.0'), bytes(1, 2, 3, 4, 5), 'read by another');
    equal((await other.list()).includes('a1.0'), true, 'list');
    await other.remove('a1.0');
    equal((await store.list()).includes('a1.0'), false, 'list after remove');
    equal(await store.read('a1.0'), null, 'read after remove');
  },

  async 'a file is read and written in the middle, and cut'(store) {
    await put(store, 'b', bytes(0, 1, 2, 3, 4, 5, 6, 7));
    const file = await store.open('b', { write: true });
    equal(await file.size(), 8, 'size');
    const target = new Uint8Array(4);
    equal(await file.read(2, target), 4, 'bytes that were read');
    equal(target, bytes(2, 3, 4, 5), 'from the middle');
    equal(await file.read(6, target), 2, 'bytes up to the end');
    equal([...target.subarray(0, 2)], [6, 7], 'the last ones');
    equal(await file.read(8, target), 0, 'bytes after the end');
    await file.write(3, bytes(30, 40));
    await file.truncate(6);
    equal(await file.size(), 6, 'size after the cut');
    await file.close();
    equal(await contentOf(store, 'b'), bytes(0, 1, 2, 30, 40, 5), 'contents');
    await store.remove('b');
  },

  async 'a gap is zeros'(store) {
    const file = await store.open('c', { write: true });
    await file.write(5, bytes(9));
    await file.close();
    equal(await contentOf(store, 'c'), bytes(0, 0, 0, 0, 0, 9), 'contents');
    await store.remove('c');
  },

  async 'opening for writing keeps what is there'(store) {
    await put(store, 'd', bytes(1, 2));
    const file = await store.open('d', { write: true });
    await file.write(2, bytes(3));
    await file.close();
    equal(await contentOf(store, 'd'), bytes(1, 2, 3), 'contents');
    await store.remove('d');
  },

  async 'what is being written can be read by others'(store, other) {
    const writer = await store.open('e', { write: true });
    await writer.write(0, bytes(1, 2, 3));
    await writer.flush();
    const reader = await other.open('e', { write: false });
    const target = new Uint8Array(3);
    equal(await reader.read(0, target), 3, 'bytes that were read');
    equal(target, bytes(1, 2, 3), 'contents');
    await reader.close();
    await writer.close();
    await store.remove('e');
  },

  async 'what it gave belongs to the caller'(store) {
    await put(store, 'f', bytes(1, 2, 3));
    const first = await store.read('f');
    first.fill(0);
    equal(await contentOf(store, 'f'), bytes(1, 2, 3), 'read again');
    await store.remove('f');
  },

  async 'a lock has one holder'(store, other) {
    const release = await store.lock('k', { wait: false });
    equal(typeof release, 'function', 'the first');
    equal(await other.lock('k', { wait: false }), null, 'another one meanwhile');
    equal(typeof await other.lock('k2', { wait: false }), 'function', 'another name');
    release();
    const next = await other.lock('k', { wait: true, signal: new AbortController().signal });
    equal(typeof next, 'function', 'after it');
    next();
  },

  async 'who waits for a lock gets it, or gives up'(store, other) {
    const release = await store.lock('w', { wait: false });
    const controller = new AbortController();
    const leaving = other.lock('w', { wait: true, signal: controller.signal }).then(() => 'got', () => 'left');
    const waiting = other.lock('w', { wait: true, signal: new AbortController().signal });
    await new Promise((done) => { setTimeout(done, 50); });
    controller.abort();
    equal(await leaving, 'left', 'who gave up');
    release();
    const next = await waiting;
    equal(typeof next, 'function', 'who stayed');
    next();
  },

  async 'usage'(store) {
    const { used, quota } = await store.usage();
    equal([used >= 0, quota >= used], [true, true], 'amounts');
  },
};
