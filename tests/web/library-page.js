// SPDX-License-Identifier: MIT
// Gives the tests the library as a page imports it, with helpers that must run inside the page: comparing logits bit by
// bit, measuring how soon an abort takes effect, keeping disposed models, asking under limits.
import * as quern from '../../dist/index.js';
import { limitedBy } from '../fixtures/limited.mjs';

/** Differences between a model's logits and the expected ones, as bit patterns. */
async function compareLogits(model, tokens, expectedBits) {
  const logits = await model.logits(tokens);
  const bits = new Uint32Array(logits.buffer, logits.byteOffset, logits.length);
  const first = expectedBits.findIndex((value, i) => value !== bits[i]);
  return { length: bits.length === expectedBits.length, first };
}

/**
 * Loads a model once per configuration and compares its logits.
 * @returns {Promise<object[]>} per configuration the engine that ran ({variant, threads, chunk, kv, address}) and the
 *   differences
 */
export async function compare({ source, expected, tokens, configurations }) {
  const expectedBits = new Uint32Array(await (await fetch(expected)).arrayBuffer());
  const results = [];
  for (const configuration of configurations) {
    const model = await quern.load(source, configuration);
    const { variant, threads, chunk, kv, address } = model.info;
    results.push({ ran: { variant, threads, chunk, kv, address }, ...await compareLogits(model, tokens, expectedBits) });
    await model.dispose();
  }
  return results;
}

/** How each variant multiplies quantized codes here. @returns {Promise<Record<string, string>>} */
export async function dots(source) {
  const kinds = {};
  for (const variant of ['scalar', 'simd', 'relaxed']) {
    const model = await quern.load(source, { variant });
    kinds[variant] = model.info.dots;
    await model.dispose();
  }
  return kinds;
}

/**
 * Starts a reply, ends it in the way `how` when `when` is reached, and measures the time until the engine is free
 * again.
 */
export async function interrupt(model, prompt, how, when) {
  const controller = new AbortController();
  let reached;
  const moment = new Promise((done) => { reached = () => done(true); });
  const options = {
    signal: controller.signal, temperature: 0.7, seed: 1,
    onPrefill: ({ done, total }) => { if (when === 'prefill' && done > 0 && done < total) reached(); },
  };
  const reply = model.complete(prompt, options);
  const reading = (async () => { for await (const _ of reply) if (when === 'decode') reached(); })();
  const inTime = await Promise.race([moment, reading.then(() => false, () => false)]);
  const start = performance.now();
  if (how === 'signal') controller.abort();
  else reply.stop();
  const end = await reading.then(() => 'ended', (error) => error.name);
  const heard = performance.now() - start;
  await model.logits([1]);   // the engine computes these, so it has really stopped
  return { inTime, end, heard, free: performance.now() - start };
}

/**
 * Loads a model and disposes of it.
 * @returns {Promise<{code?: string, message?: string, hint?: string}>} the error, if it failed
 */
export async function tryLoad(source, options) {
  try {
    await (await quern.load(source, options)).dispose();
    return {};
  } catch ({ code, message, hint }) {
    return { code, message, hint };
  }
}

/**
 * Asks questions one after the other, then all at once.
 * @returns {Promise<{alone: string[], texts: string[], order: number[], threads: number}>} order: question of each
 *   piece
 */
export async function atOnce({ source, questions, chat, options }) {
  const model = await quern.load(source, options);
  const alone = [];
  for (const question of questions) alone.push((await model.chat(question, chat).result).text);
  const order = [];
  const texts = await Promise.all(questions.map(async (question, i) => {
    let all = '';
    for await (const text of model.chat(question, chat)) {
      all += text;
      order.push(i);
    }
    return all;
  }));
  await model.dispose();
  return { alone, texts, order, threads: model.info.threads };
}

/** Makes replies under limits (tests/fixtures/limited.mjs). */
export async function limited({ source, asks }) {
  const model = await quern.load(source, { threads: 2 });
  const said = await limitedBy(model, asks);
  await model.dispose();
  return said;
}

/** Disposed models that the page still holds. */
const kept = [];

/**
 * Loads `count` models one after the other; asks each, disposes of it and keeps the object.
 * @returns {Promise<{wasm: number, threads: number}>} of the last one
 */
export async function loadAndDispose(source, options, count) {
  for (let i = 0; i < count; i++) {
    const model = await quern.load(source, options);
    kept.push(model);
    await model.logits([1, 2, 3]);
    await model.dispose();
  }
  const { memory, threads } = kept.at(-1).info;
  return { wasm: memory.wasm, threads };
}

globalThis.quern = { ...quern, compare, dots, interrupt, atOnce, limited, tryLoad, loadAndDispose };
