// SPDX-License-Identifier: MIT
// Which files of a folder make up a model, and the order in which the engine takes them: what describes it, then its weights.
// Here names decide, since nobody wants to read a folder's every file; in the engine a file's bytes do.

const DESCRIPTIONS = ['config.json', 'generation_config.json', 'tokenizer_config.json', 'tokenizer.json', 'model.safetensors.index.json'];
const WEIGHTS = /\.safetensors$/i;

/** The vocabulary of a qwen3.c checkpoint stands beside it. */
export const VOCABULARY = '.tokenizer';

/**
 * @param {string[]} names with or without folders
 * @returns {number[] | null} the model's files by their places in the list; null where these are no such model
 */
export function modelOf(names) {
  const at = new Map(names.map((name, i) => [name.split(/[\\/]/).at(-1), i]));
  const known = [...at.keys()];
  const weights = known.filter((name) => WEIGHTS.test(name)).sort();
  if (weights.length) return [...DESCRIPTIONS.filter((name) => at.has(name)), ...weights].map((name) => at.get(name));
  const checkpoint = known.find((name) => at.has(name + VOCABULARY));
  return checkpoint === undefined ? null : [at.get(checkpoint + VOCABULARY), at.get(checkpoint)];
}
