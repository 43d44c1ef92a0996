// SPDX-License-Identifier: MIT
// The engine of batch.js in a worker, which may wait for its threads as a page may not. Messages as the page sends them, answers in turn.
import { Batches } from './batch-driver.js';

let batches;

async function* received(response) {
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

async function load({ url, variant, ...options }) {
  const dist = new URL('../../../dist/', import.meta.url);
  const [{ default: glue }, module, response] = await Promise.all([
    import(new URL('quern-simd.mjs', dist)), WebAssembly.compileStreaming(fetch(new URL(`quern-${variant}.wasm`, dist))), fetch(url),
  ]);
  batches = await Batches.open({ glue, module, size: Number(response.headers.get('content-length')), chunks: received(response), ...options });
  return batches.facts;
}

onmessage = async ({ data: { name, options } }) => {
  postMessage(name === 'load' ? await load(options) : batches.run(options));
};
