// SPDX-License-Identifier: MIT
// Models of real size for measurements and heavy proofs: random weights in the published models' exact dimensions with the real
// vocabulary. They are made once, into build/fixtures/, under another name until complete.
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeModel } from '../fixtures/make-model.mjs';
import { makeProjector } from '../fixtures/make-projector.mjs';
import { baseVocab } from '../fixtures/qwen-vocab.mjs';

export const PROJECT = fileURLToPath(new URL('../../', import.meta.url));

/** Makes a file unless it is there. @returns {string} its path inside the project */
function made(name, options, make = makeModel) {
  const path = `build/fixtures/${name}.gguf`;
  const file = join(PROJECT, path);
  if (!existsSync(file)) {
    console.error(`making ${path}`);
    mkdirSync(join(PROJECT, 'build/fixtures'), { recursive: true });
    make({ ...options, seed: 1, out: `${file}.part` });
    renameSync(`${file}.part`, file);
  }
  return path;
}

/** @param {string} kind 'q8_0', 'q4_0', 'q4_k_m', 'q6_k' ... of Qwen3-0.6B, or of another preset of make-model.mjs: 'qwen3.5-0.8b:q8_0' */
export function bigModel(kind) {
  const [type, preset = 'qwen3-0.6b'] = kind.split(':').reverse();
  return made(`${preset}-${type}`, { preset, type });
}

/** Some of its layers, in Q4_0. */
export const fewLayers = (layers) => made(`qwen3-0.6b-${layers}-layers-q4_0`, { preset: 'qwen3-0.6b', type: 'q4_0', layers });

/** The same as a model for vectors. */
export const vectorModel = (type) => made(`qwen3-0.6b-vectors-${type}`, { preset: 'qwen3-0.6b', type, pooling: 3 });

/** Some layers of Qwen3-30B-A3B in Q4_K_M: 0.4 GB each, and 0.4 GB of embedding and output head. */
export const expertModel = (layers) => made(`qwen3-30b-a3b-${layers}-layers`, { preset: 'qwen3-30b-a3b', type: 'q4_k_m', layers });

/** The language model of Qwen3-VL-2B in Q8_0, or some layers of it, and its projector. */
export const seeingModel = (layers = 28) => made(`qwen3-vl-2b-${layers}-layers-q8_0`, { preset: 'qwen3-vl-2b', type: 'q8_0', layers });
export const bigProjector = (type) => made(`mmproj-2b-${type}`, { preset: 'qwen3-vl-2b', type }, makeProjector);

/** Common English words with the space before them, each one token: what an ordinary prompt is made of, in an exact length. */
function words() {
  return baseVocab().tokens.slice(0, 20_000).filter((token) => /^Ġ[a-z]{4,7}$/.test(token)).map((token) => token.replace('Ġ', ' '));
}

/** A seeded generator of whole numbers below 2^31 - 1 (Lehmer's). */
function lehmer(seed) {
  let state = 48271 * (seed + 1);
  return () => { state = (state * 48271) % 0x7fffffff; return state; };
}

/** Ids of common words, each once, in the order in which `followingModel` writes them, over and over. */
export function chain() {
  const { tokens } = baseVocab();
  const ids = [...tokens.keys()].filter((id) => id < 20_000 && /^Ġ[a-z]{4,7}$/.test(tokens[id]));
  const next = lehmer(7);
  for (let i = ids.length - 1; i > 0; i--) {
    const j = next() % (i + 1);
    [ids[i], ids[j]] = [ids[j], ids[i]];
  }
  return ids;
}

/**
 * A model that writes `chain()`: at temperature 0 its next token depends on the last one alone, with the speed of any model of its dimensions.
 * @param {number} [differs] share of the words after which it writes another one @param {object} [dims] of make-model.mjs
 */
export function followingModel(type, differs = 0, dims = {}) {
  const ids = chain();
  const next = lehmer(11);
  const before = Int32Array.from({ length: 151_936 }, (_, id) => id);
  ids.forEach((id, i) => { before[ids[(i + 1) % ids.length]] = id; });
  const others = ids.filter(() => next() % 1000 < 1000 * differs);
  const moved = others.map((id) => before[id]);
  others.forEach((id, i) => { before[id] = moved[(i + 1) % moved.length]; });
  const name = ['qwen3-0.6b', 'follows', differs, ...Object.values(dims), type].filter(Boolean).join('-');
  return made(name, { preset: 'qwen3-0.6b', type, before, ...dims });
}

let vocabulary;

/** A text of `n` tokens that differs with the seed from its first word on, so that no engine has it in a cache. */
export function randomPrompt(n, seed) {
  vocabulary ??= words();
  const next = lehmer(seed);
  return Array.from({ length: n }, () => vocabulary[next() % vocabulary.length]).join('');
}

/**
 * " the": the token that a bias makes the only likely one. Random weights write noise, whose pieces of characters wllama
 * fails on; and an end token would end the reply. Which token is taken costs no engine anything. llama.cpp natively goes on after
 * an end token, and takes what is likeliest.
 */
export const TOKEN = 279;
