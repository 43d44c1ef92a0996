// SPDX-License-Identifier: MIT
// The hashes of the golden files' logits in this browser; the address after the # says which files and how many threads.
import { load } from '../../dist/index.js';

const GOLDEN = '../fixtures/golden/';
const asked = new URLSearchParams(location.hash.slice(1));

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

async function run() {
  const tokens = await (await fetch(`${GOLDEN}tokens.json`)).json();
  const outcome = { hashes: {} };
  for (const name of asked.get('names').split(',')) {
    const model = await load(`${GOLDEN}${name}.gguf`, { threads: Number(asked.get('threads')), chunk: 64, cache: false });
    const logits = await model.logits(tokens);
    outcome.hashes[name] = hex(await crypto.subtle.digest('SHA-256', logits.slice().buffer));
    outcome.threads = model.info.threads;
    await model.dispose();
  }
  return outcome;
}

globalThis.outcome = undefined;
run().catch((error) => ({ error: `${error.code ?? error.name}: ${error.message}` })).then((outcome) => { globalThis.outcome = outcome; });
