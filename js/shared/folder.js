// SPDX-License-Identifier: MIT
// Which files of a folder make up a model, and the order in which the engine takes them: what describes it, then its weights.
// Here names decide, since nobody wants to read a folder's every file; in the engine a file's bytes do.

import { QuernError } from './errors.js';

export const INDEX = 'model.safetensors.index.json';
/** What only models with eyes have beside it, and their template, which older exports keep apart. */
export const SEEING = ['processor_config.json', 'preprocessor_config.json', 'video_preprocessor_config.json', 'chat_template.json'];
export const DESCRIPTIONS = ['config.json', 'generation_config.json', ...SEEING, 'tokenizer_config.json', 'tokenizer.json', INDEX];
const WEIGHTS = /\.safetensors$/i;

const GGUF = /\.gguf$/i;
const PART = /-\d{5}-of-(\d{5})\.gguf$/i;

/** What counts beside a GGUF file, which describes its weights itself. */
const BESIDE_GGUF = ['generation_config.json', 'tokenizer_config.json', 'tokenizer.json'];

/** Whether these are one GGUF file, or all parts of one. */
function isOne(names) {
  const models = new Set(names.map((name) => name.replace(PART, '$1')));
  return models.size === 1 && names.length === Number(PART.exec(names[0])?.[1] ?? 1);
}

/** What a folder has instead of safetensors files. */
export const PICKLES = ['pytorch_model.bin', 'pytorch_model.bin.index.json'];

/** The vocabulary of a qwen3.c checkpoint stands beside it. */
export const VOCABULARY = '.tokenizer';

export const pickled = () => new QuernError('model/unsupported',
  'The model\'s weights are pickled (pytorch_model.bin): reading them would run whatever code they hold. '
  + 'Take a version of it with safetensors files, or a GGUF file.', { phase: 'load', detail: { rule: 'pickle' } });

/**
 * @param {string[]} names with or without folders
 * @returns {number[] | null} the model's files by their places in the list; null where these are no such model
 */
export function modelOf(names) {
  const at = new Map(names.map((name, i) => [name.split(/[\\/]/).at(-1), i]));
  const known = [...at.keys()];
  const weights = known.filter((name) => WEIGHTS.test(name)).sort();
  if (weights.length) return [...DESCRIPTIONS.filter((name) => at.has(name)), ...weights].map((name) => at.get(name));
  const ggufs = known.filter((name) => GGUF.test(name)).sort();
  if (isOne(ggufs) && DESCRIPTIONS.some((name) => at.has(name))) {
    return [...BESIDE_GGUF.filter((name) => at.has(name)), ...ggufs].map((name) => at.get(name));
  }
  const checkpoint = known.find((name) => at.has(name + VOCABULARY));
  if (checkpoint !== undefined) return [at.get(checkpoint + VOCABULARY), at.get(checkpoint)];
  if (names.length > 1 && PICKLES.some((name) => at.has(name))) throw pickled();
  return null;
}
