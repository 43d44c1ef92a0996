// SPDX-License-Identifier: MIT
// A page without a bundler. The address after the # has the name of one of these tasks and, in JSON, what it is given.
import * as quern from 'quern';
import { answer } from './answer.js';
import { MemoryStore } from './memory-store.mjs';

/** Ends a long reply in its middle. */
async function stop({ model: source }) {
  const model = await quern.load(source, { threads: 2 });
  const reply = model.complete('the', { temperature: 0 });
  let first;
  for await (const _ of reply) {
    first ??= performance.now();
    reply.stop();
  }
  const { finishReason, usage } = await reply.result;
  await model.dispose();
  return { finishReason, tokens: usage.completionTokens, threads: model.info.threads, first };
}

/** Which models' logits are other bits than those expected, with each number of threads. */
async function golden({ names, at, expected, tokens, threads, variant }) {
  const wrong = [];
  for (const name of names) {
    const bits = new Uint32Array(await (await fetch(`${expected}${name}.f16.f32`)).arrayBuffer());
    for (const count of threads) {
      const model = await quern.load(`${at}${name}.gguf`, { threads: count, variant, cache: false });
      const logits = await model.logits(tokens);
      const found = new Uint32Array(logits.buffer, logits.byteOffset, logits.length);
      if (model.info.threads !== count || found.length !== bits.length || found.some((value, i) => value !== bits[i])) wrong.push(`${name}, ${model.info.threads} threads`);
      await model.dispose();
    }
  }
  return { wrong, threads: threads.at(-1) };
}

/** Loads twice, with a store of the page's own. */
async function store({ model: source }) {
  const cache = new MemoryStore();
  const cached = [];
  let outcome;
  for (let i = 0; i < 2; i++) {
    let last;
    outcome = await answer(quern.load, source, { cache, onProgress: (progress) => { last = progress; } });
    cached.push(last?.cached);
  }
  return { ...outcome, cached };
}

const tasks = { chat: ({ model, ...options }) => answer(quern.load, model, options), stop, golden, store };

const [task, given] = location.hash.slice(1).split(/=(.*)/s);

tasks[task](JSON.parse(decodeURIComponent(given)))
  .catch((error) => ({ error: [error.code ?? error.name, error.message].join(': ') }))
  .then((outcome) => { globalThis.outcome = { ...outcome, isolated: crossOriginIsolated }; });
