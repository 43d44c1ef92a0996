// SPDX-License-Identifier: MIT
// A store of the page's own, used by the worker: its calls go over a port, bytes are handed over and not copied more than
// once. `serveStore` is the page's end, `PortStore` the worker's.

/** Errors as plain objects: what store.js reads of them. */
const plain = (error) => ({ name: String(error?.name ?? 'Error'), code: typeof error?.code === 'string' ? error.code : undefined, message: String(error?.message ?? error) });

class Server {
  #store;
  #things = new Map();    // id -> open file, or {release} of a lock
  #waiting = new Map();   // id of a call for a lock -> controller
  #lastThing = 0;

  constructor(store) {
    this.#store = store;
  }

  #keep(thing) {
    this.#things.set(++this.#lastThing, thing);
    return this.#lastThing;
  }

  calls = {
    list: () => this.#store.list(),
    read: (_, name) => this.#store.read(name),
    remove: (_, name) => this.#store.remove(name),
    usage: () => this.#store.usage(),
    open: async (_, name, options) => {
      const file = await this.#store.open(name, options);
      return file && this.#keep(file);
    },
    lock: async (id, name, wait) => {
      const controller = new AbortController();
      this.#waiting.set(id, controller);
      try {
        const release = await this.#store.lock(name, { wait, signal: controller.signal });
        return release && this.#keep({ release });
      } finally {
        this.#waiting.delete(id);
      }
    },
    cancel: (_, id) => this.#waiting.get(id)?.abort(),
    release: (_, thing) => this.#take(thing).release(),
    close: (_, thing) => this.#take(thing).close(),
    size: (_, thing) => this.#things.get(thing).size(),
    write: (_, thing, at, bytes) => this.#things.get(thing).write(at, bytes),
    truncate: (_, thing, size) => this.#things.get(thing).truncate(size),
    flush: (_, thing) => this.#things.get(thing).flush(),
    fetch: async (_, thing, at, length) => {
      const target = new Uint8Array(length);
      return target.subarray(0, await this.#things.get(thing).read(at, target));
    },
  };

  #take(thing) {
    const found = this.#things.get(thing);
    this.#things.delete(thing);
    return found;
  }

  async answer(port, { id, call, args }) {
    try {
      const value = await this.calls[call](id, ...args);
      port.postMessage({ id, value }, value instanceof Uint8Array ? [value.buffer] : []);
    } catch (error) {
      port.postMessage({ id, error: plain(error) });
    }
  }
}

/** @param {object} store @returns {MessagePort} to be transferred to the worker */
export function serveStore(store) {
  const { port1, port2 } = new MessageChannel();
  const server = new Server(store);
  port1.onmessage = ({ data }) => server.answer(port1, data);
  port1.unref?.();
  return port2;
}

/** An open file on the other side. */
class PortFile {
  #call;

  constructor(call) {
    this.#call = call;
  }

  async read(at, target) {
    const bytes = await this.#call('fetch', at, target.length);
    target.set(bytes);
    return bytes.length;
  }

  size() { return this.#call('size'); }
  write(at, bytes) { return this.#call('write', at, bytes.slice()); }   // a copy: shared memory cannot be sent
  truncate(size) { return this.#call('truncate', size); }
  flush() { return this.#call('flush'); }
  close() { return this.#call('close'); }
}

export class PortStore {
  #port;
  #pending = new Map();
  #lastId = 0;

  /** @param {MessagePort} port of serveStore */
  constructor(port) {
    this.#port = port;
    port.onmessage = ({ data: { id, value, error } }) => {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      if (error) reject(error);
      else resolve(value);
    };
  }

  #call(call, ...args) {
    const id = ++this.#lastId;
    const transfer = args.filter((value) => value instanceof Uint8Array).map((bytes) => bytes.buffer);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#port.postMessage({ id, call, args }, transfer);
    });
  }

  list() { return this.#call('list'); }
  read(name) { return this.#call('read', name); }
  remove(name) { return this.#call('remove', name); }
  usage() { return this.#call('usage'); }

  async open(name, { write }) {
    const thing = await this.#call('open', name, { write });
    return thing && new PortFile((call, ...args) => this.#call(call, thing, ...args));
  }

  async lock(name, { wait, signal }) {
    const asked = this.#call('lock', name, wait);
    const id = this.#lastId;
    const cancel = () => { this.#call('cancel', id); };
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const thing = await asked;
      return thing && (() => { this.#call('release', thing); });
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }
}
