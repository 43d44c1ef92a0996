// SPDX-License-Identifier: MIT
// The engine of batch.js in a worker, which may wait for its threads as a page may not. Messages as the page sends them, answers in turn.
import { Batches } from './batch-driver.js';

const DIST = new URL('../../../dist/', import.meta.url);

let batches;

async function* received(response) {
  for (const reader = response.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

const startThread = () => new Worker(new URL('thread.js', DIST), { type: 'module' });

async function load({ url, variant, ...options }) {
  const [{ default: create }, module, response] = await Promise.all([
    import(new URL('quern-simd.mjs', DIST)), WebAssembly.compileStreaming(fetch(new URL(`quern-${variant}.wasm`, DIST))), fetch(url),
  ]);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const glue = (wanted) => create({ ...wanted, startThread });
  batches = await Batches.open({ glue, module, size: Number(response.headers.get('content-length')), chunks: received(response), ...options });
  return batches.facts;
}

onmessage = async ({ data: { name, options } }) => {
  try {
    postMessage({ value: name === 'load' ? await load(options) : batches.run(options) });
  } catch (error) {
    postMessage({ error: error.stack });
  }
};
