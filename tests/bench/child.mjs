// SPDX-License-Identifier: MIT
// One engine in a Node process of its own; what tab.mjs is for a browser. The module in it (node/*.mjs) exports what it can be asked for.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PROJECT } from './fixtures.mjs';
import { processMemory } from './machine.mjs';

const MAIN = join(PROJECT, 'tests/bench/node/main.mjs');

export class Child {
  #process;
  #empty;            // its memory before anything was loaded, in bytes
  #calls = 0;
  #waiting = new Map();

  /** @param {string} module that drives the engine, as a path of the project */
  static async open(module) {
    const child = new Child();
    child.#process = fork(MAIN, [join(PROJECT, module)], { cwd: PROJECT, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    child.#process.on('exit', (code, signal) => child.#end(new Error(`${module} ended with ${signal ?? code}`)));
    const [first] = await Promise.race([once(child.#process, 'message'), once(child.#process, 'exit')]);
    if (first?.ready !== true) throw new Error(`${module} did not start`);
    child.#process.on('message', ({ id, value, error }) => {
      const { resolve, reject } = child.#waiting.get(id);
      child.#waiting.delete(id);
      if (error) reject(new Error(error));
      else resolve(value);
    });
    child.#empty = processMemory(child.#process.pid).now;
    return child;
  }

  #end(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  get version() {
    return `Node ${process.version}`;
  }

  call(name, options = {}) {
    return new Promise((resolve, reject) => {
      const id = this.#calls++;
      this.#waiting.set(id, { resolve, reject });
      this.#process.send({ id, name, options });
    });
  }

  /** Bytes by which the process grew at its peak. */
  async peak() {
    return processMemory(this.#process.pid).peak - this.#empty;
  }

  async close() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
  }
}
