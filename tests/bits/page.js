// SPDX-License-Identifier: MIT
// The hashes of the golden files' logits in this browser, and of what is seen in an image; the address after the # says which files and how many threads.
import { load } from '../../dist/index.js';

const GOLDEN = '../fixtures/golden/';
const VISION = '../fixtures/vision/';
const SEEING = { 'vision.F16': 'f16', 'vision.Q8_0': 'q8_0' };
const asked = new URLSearchParams(location.hash.slice(1));

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, '0')).join('');

async function run() {
  const tokens = await (await fetch(`${GOLDEN}tokens.json`)).json();
  const outcome = { hashes: {} };
  const hash = async (name, source, vision, work) => {
    const model = await load(source, { threads: Number(asked.get('threads')), chunk: 64, store: false, ...vision });
    const floats = await work(model);
    outcome.hashes[name] = hex(await crypto.subtle.digest('SHA-256', floats.slice().buffer));
    outcome.threads = model.info.threads;
    await model.dispose();
  };
  for (const name of asked.get('names').split(',')) await hash(name, `${GOLDEN}${name}.gguf`, {}, (model) => model.logits(tokens));
  for (const [name, kind] of Object.entries(SEEING)) {
    const at = (file) => `${VISION}models/dense/${kind}/${file}.gguf`;
    await hash(name, at('model'), { vision: at('mmproj'), visionOptions: { maxPixels: 20480 } }, async (model) => (await model.look(`${VISION}images/exact.png`)).values);
  }
  return outcome;
}

globalThis.outcome = undefined;
run().catch((error) => ({ error: `${error.code ?? error.name}: ${error.message}` })).then((outcome) => { globalThis.outcome = outcome; });
