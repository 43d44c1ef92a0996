// SPDX-License-Identifier: MIT
// The page's end of the connection to one worker: requests with their promises, and events of running requests. It
// guarantees that nothing waits for ever: when the worker ends for any reason, everything pending is rejected. It knows
// nothing of models; platform-*.js supplies the port (post, onMessage, onError, keepAlive, terminate).

import { QuernError, fromWire } from '../shared/errors.js';
import { inNode } from '../shared/host.js';
import { DONE, ERROR, EVENTS, FATAL, NOTICE, PING, READY, STOP } from '../shared/protocol.js';
import { Watchdog } from './watchdog.js';

const withResolvers = () => {
  const deferred = {};
  deferred.promise = new Promise((resolve, reject) => Object.assign(deferred, { resolve, reject }));
  return deferred;
};

const report = (error) => console.error('quern: a callback has failed:', error);

export class Rpc {
  #port;
  #pending = new Map();   // id -> {resolve, reject, onEvent, release}
  #lastId = 0;
  #dead = null;           // the error of all further calls
  #closing = null;        // promise of the worker's end
  #ready = withResolvers();
  #gone = withResolvers();
  #watchdog;

  /** @param {{limits?: object, clock?: object}} [watch] options of the watchdog; for tests */
  constructor(port, watch) {
    this.#port = port;
    this.#watchdog = new Watchdog({
      ...watch,
      ask: () => port.post({ type: PING }),
      fail: (error) => this.close(error),
    });
    this.#watchdog.watch();
    port.onMessage((message) => this.#receive(message));
    port.onError((error) => this.close(error));
    this.#ready.promise.catch(() => {});
  }

  /** Resolves when the worker's script runs. */
  ready() {
    return this.#ready.promise;
  }

  /** Resolves when the worker is gone, however it ended. */
  get ended() {
    return this.#gone.promise;
  }

  /**
   * Sends a request. When `signal` aborts, the promise rejects at once; `stop` asks the worker to end the request early
   * and answer with what it has.
   * @returns {{promise: Promise<any>, stop: () => void}}
   */
  call(type, payload, { signal, onEvent, transfer } = {}) {
    const id = ++this.#lastId;
    const { promise, resolve, reject } = withResolvers();
    if (signal?.aborted || this.#dead) {
      reject(signal?.aborted ? signal.reason : this.#dead);
      return { promise, stop() {} };
    }
    const onAbort = () => this.#giveUp(id, signal.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#pending.set(id, { resolve, reject, onEvent, release: () => signal?.removeEventListener('abort', onAbort) });
    this.#port.keepAlive(true);
    this.#watchdog.watch();
    try {
      this.#port.post({ ...payload, type, id }, transfer);
    } catch (error) {
      this.#settle(
        id,
        'reject',
        new QuernError('use/param', `The arguments cannot be sent to the worker (${error.message}).`),
      );
    }
    return { promise, stop: () => this.#stop(id) };
  }

  /** Ends the worker and rejects everything pending. @returns {Promise<void>} resolves when the worker is gone */
  close(reason) {
    this.#closing ??= this.#end(reason);
    return this.#closing;
  }

  async #end(reason) {
    this.#dead = reason;
    this.#watchdog.rest();
    this.#ready.reject(reason);
    for (const id of [...this.#pending.keys()]) this.#settle(id, 'reject', reason);
    await this.#port.terminate();
    this.#gone.resolve();
  }

  #receive(message) {
    this.#watchdog.sign();
    switch (message?.type) {
      case READY: return this.#begin();
      case DONE: return this.#settle(message.id, 'resolve', message.value);
      case ERROR: return this.#settle(message.id, 'reject', fromWire(message.error));
      case EVENTS: return message.events?.forEach(([id, event]) => this.#event(id, event));
      case FATAL: return this.close(fromWire(message.error));
      case NOTICE: return Rpc.#tell(message.text);
      default: return undefined;
    }
  }

  /** The worker's script runs. */
  #begin() {
    this.#ready.resolve();
    if (this.#pending.size === 0) this.#watchdog.rest();
  }

  /**
   * A notice is printed once, however many models are loaded. In Node it goes to standard error, since standard output
   * belongs to the program.
   */
  static #told = new Set();
  static #tell(text) {
    if (!Rpc.#told.has(text)) console[inNode ? 'warn' : 'info'](text);
    Rpc.#told.add(text);
  }

  /** A listener that throws ends its own request only; a rejection is only reported. */
  #event(id, event) {
    try {
      Promise.resolve(this.#pending.get(id)?.onEvent?.(event)).catch(report);
    } catch (error) {
      this.#giveUp(id, error);
    }
  }

  #settle(id, how, value) {
    const call = this.#pending.get(id);
    if (!call) return;
    this.#pending.delete(id);
    if (this.#pending.size === 0) {
      this.#port.keepAlive(false);
      this.#watchdog.rest();
    }
    call.release();
    call[how](value);
  }

  #giveUp(id, reason) {
    this.#stop(id);
    this.#settle(id, 'reject', reason);
  }

  #stop(id) {
    if (this.#pending.has(id)) this.#port.post({ type: STOP, target: id });
  }
}
