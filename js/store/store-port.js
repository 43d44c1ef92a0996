// SPDX-License-Identifier: MIT
// Lets the worker use a store that the page provides: calls go over a port, and bytes are transferred instead of copied
// more than once. `serveStore` is the page's side, which also checks answers; `PortStore` is the worker's side.

import { QuernError } from '../shared/errors.js';
import { guarded, letGo } from './guard.js';

class Server {
  #things = new Map();    // id -> the store (0), an open file, or a lock as {close}
  #waiting = new Map();   // id of a call for a lock -> its AbortController
  #lastThing = 0;
  #ended = false;

  constructor(store) {
    this.#things.set(0, store);
  }

  #keep(thing) {
    if (!thing) return null;
    if (this.#ended) letGo(thing);
    this.#things.set(++this.#lastThing, thing);
    return this.#lastThing;
  }

  /** Calls that need more than calling the method of the thing. */
  #calls = {
    open: async (store, _, name, options) => this.#keep(await store.open(name, options)),
    lock: async (store, id, name, wait) => {
      const controller = new AbortController();
      this.#waiting.set(id, controller);
      const close = await store.lock(name, { wait, signal: controller.signal });
      return this.#keep(close && { close });
    },
    cancel: (_, __, id) => this.#waiting.get(id)?.abort(),
    fetch: async (file, _, at, length) => {
      const target = new Uint8Array(length);
      return target.subarray(0, await file.read(at, target));
    },
  };

  async answer(port, { id, thing, call, args }) {
    try {
      const target = this.#things.get(thing);
      if (call === 'close') this.#things.delete(thing);
      const value = await (this.#calls[call] ? this.#calls[call](target, id, ...args) : target[call](...args));
      port.postMessage({ id, value }, value instanceof Uint8Array ? [value.buffer] : []);
    } catch ({ code, message }) {
      port.postMessage({ id, error: [code, message] });
    }
  }

  /** Called when the worker is done or gone: closes and releases everything that it had open or locked. */
  end() {
    this.#ended = true;
    for (const controller of this.#waiting.values()) controller.abort();
    for (const thing of this.#things.values()) letGo(thing);
  }
}

/** @param {object} store @returns {{port: MessagePort, end: () => void}} the port is to be transferred to the worker */
export function serveStore(store, clock) {
  const { port1, port2 } = new MessageChannel();
  const server = new Server(guarded(store, clock));
  port1.onmessage = ({ data }) => server.answer(port1, data);
  port1.unref?.();
  const end = () => {
    server.end();
    port1.close();
  };
  return { port: port2, end };
}

/** An open file on the page's side. */
class PortFile {
  #call;

  constructor(call) {
    this.#call = call;
  }

  read(at, target) { return this.#call('fetch', at, target.length); }
  size() { return this.#call('size'); }
  write(at, bytes) { return this.#call('write', at, new Uint8Array(bytes)); }   // a copy: shared memory cannot be sent
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
      if (error) reject(new QuernError(...error, { phase: 'load' }));
      else resolve(value);
    };
  }

  #call(thing, call, ...args) {
    const id = ++this.#lastId;
    const transfer = args.filter((value) => value instanceof Uint8Array).map((bytes) => bytes.buffer);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#port.postMessage({ id, thing, call, args }, transfer);
    });
  }

  list() { return this.#call(0, 'list'); }
  read(name) { return this.#call(0, 'read', name); }
  remove(name) { return this.#call(0, 'remove', name); }
  usage() { return this.#call(0, 'usage'); }

  async open(name, { write }) {
    const thing = await this.#call(0, 'open', name, { write });
    return thing && new PortFile((...call) => this.#call(thing, ...call));
  }

  async lock(name, { wait, signal }) {
    const asked = this.#call(0, 'lock', name, wait);
    const id = this.#lastId;
    signal?.addEventListener('abort', () => { this.#call(0, 'cancel', id); }, { once: true });
    const thing = await asked;
    return thing && (() => this.#call(thing, 'close'));
  }
}
