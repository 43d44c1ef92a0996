// SPDX-License-Identifier: MIT
// The worker in which a program of a model runs. The program is not the browser's: QuickJS, an engine of JavaScript
// compiled to WebAssembly, interprets it. So it sees the language and console.log, and there is nothing that it could
// reach: no network, storage, page or worker. And its memory, its stack and its time have limits, which no browser
// gives a page for scripts of its own (a worker that fills its memory ends the whole page in Chromium).
import variant from '@jitl/quickjs-ng-wasmfile-release-sync';
import { newQuickJSWASMModuleFromVariant, newVariant } from 'quickjs-emscripten-core';

const MEMORY = 64 * 2 ** 20;

/** Memory in which an error is read when the program's is used up. */
const FOR_ERROR = 2 ** 20;

const STACK = 256 * 2 ** 10;

/** Runs in the engine: console, and values as texts. `write` is the function that takes a printed text. */
const PRELUDE = `(write) => {
  const plain = (_, value) => {
    if (value instanceof Map) return Object.fromEntries(value);
    if (value instanceof Set || ArrayBuffer.isView(value)) return [...value];
    if (value instanceof Error) return String(value);
    return ['bigint', 'function', 'symbol', 'undefined'].includes(typeof value) ? String(value) : value;
  };
  const textOf = (value) => {
    if (typeof value !== 'object' || value === null || value instanceof Error) return String(value);
    try {
      return JSON.stringify(value, plain) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const log = (...values) => write(values.map(textOf).join(' '));
  globalThis.console = { log, info: log, warn: log, error: log, debug: log, table: log, dir: log };
  return textOf;
}`;

/** The forms of a program: an expression, or the body of a function. An expression that is none does not compile. */
const FORMS = [(code) => `(async () => (${code}\n))()`, (code) => `(async () => {${code}\n})()`];

/** Sentences for failures of the engine that a program has brought about. */
const NO_MEMORY = 'The program was ended, because it took more than 64 MB of memory.';
const TOO_DEEP = 'The program was ended, because its calls or values are nested too deeply.';
const NO_TIME = 'The program was ended, because its time or its room for output was used up.';

class Program {
  #vm;
  #most;
  #printed = '';
  #end;

  /** @param {{time: number, most: number}} limits milliseconds, and letters of the output */
  constructor(vm, { time, most }) {
    this.#vm = vm;
    this.#most = most;
    this.#end = performance.now() + time;
    vm.runtime.setMemoryLimit(MEMORY);
    vm.runtime.setMaxStackSize(STACK);
    vm.runtime.setInterruptHandler(() => performance.now() > this.#end || this.#isFull);
  }

  get #isFull() { return this.#printed.length > this.#most; }

  /** @returns {{printed: string, returned?: string, failed?: string}} */
  run(code) {
    const vm = this.#vm;
    // What a program prints when its room is used up is not even read: it may be 60 MB in each turn of a loop.
    const write = vm.newFunction('write', (text) => {
      if (this.#isFull) return { error: vm.newError('') };
      this.#printed += `${vm.getString(text)}\n`;
      return undefined;
    });
    const prelude = vm.unwrapResult(vm.evalCode(PRELUDE));
    const textOf = vm.unwrapResult(vm.callFunction(prelude, vm.undefined, write));
    const texts = { ...this.#outcome(code, textOf), printed: this.#printed };
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, text.slice(0, this.#most + 1)]));
  }

  /** What the program returned, if anything, or how it has failed. */
  #outcome(code, textOf) {
    const vm = this.#vm;
    const begun = this.#begin(code);
    if (begun.error) return { failed: this.#failure(begun.error) };
    const worked = vm.runtime.executePendingJobs();
    if (worked.error) return { failed: this.#failure(worked.error) };
    const state = vm.getPromiseState(begun.value);
    if (state.type === 'pending') return { failed: 'The program waits for something that never comes.' };
    if (state.type === 'rejected') return { failed: this.#failure(state.error) };
    if (vm.typeof(state.value) === 'undefined') return {};
    const text = vm.callFunction(textOf, vm.undefined, state.value);
    return text.error ? { failed: this.#failure(text.error) } : { returned: vm.getString(text.value) };
  }

  #begin(code) {
    const [expression, body] = FORMS.map((form) => form(code));
    const result = this.#vm.evalCode(expression, 'program.js');
    const isNone = result.error && this.#vm.dump(result.error)?.name === 'SyntaxError';
    return isNone ? this.#vm.evalCode(body, 'program.js') : result;
  }

  /** What is said of anything that was thrown. */
  #failure(error) {
    if (this.#isFull) return NO_TIME;
    this.#vm.runtime.setMemoryLimit(MEMORY + FOR_ERROR);      // what is thrown may run code of the program
    const thrown = this.#vm.dump(error);
    if (thrown === null) return 'The program threw null, or it had no memory left for an error.';
    if (thrown?.name !== 'InternalError')
      return thrown?.name ? `${thrown.name}: ${thrown.message}` : `Thrown: ${String(thrown?.message ?? thrown)}`;
    return { 'out of memory': NO_MEMORY, interrupted: NO_TIME }[thrown.message] ?? `InternalError: ${thrown.message}`;
  }
}

const loaded = () => newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmLocation: './quickjs.wasm' }));

addEventListener('message', async ({ data: { code, ...limits } }) => {
  const quickjs = await loaded().catch(() => null);
  postMessage({ began: quickjs !== null });
  if (!quickjs) return;
  try {
    postMessage(new Program(quickjs.newContext(), limits).run(code));
  } catch (error) {
    // The browser's own stack may be smaller than what the engine was given; each browser has other words for that.
    const isDeep = /call stack|recursion/i.test(error.message);
    const failed = isDeep ? TOO_DEEP : `The engine has failed: ${error.message}`;
    postMessage({ printed: '', failed });
  }
});
