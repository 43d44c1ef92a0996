// SPDX-License-Identifier: MIT
// Part of the engine's glue (--post-js). A thread of the pool never ends while its engine lives: when it does, it has
// crashed. The engine's worker may be waiting for this very thread and hear nothing, so the thread itself leaves word for
// the page in shared memory: see js/watchdog.js.

if (ENVIRONMENT_IS_PTHREAD) {
  const enter = invokeEntryPoint;
  invokeEntryPoint = (...args) => {
    try {
      enter(...args);
    } finally {
      Atomics.store(new Int32Array(wasmMemory.buffer), _wasm_lost() / 4, 1);
    }
  };
}
