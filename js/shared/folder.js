// SPDX-License-Identifier: MIT
// Finds the files of a model in a folder, and their order for the engine: descriptions first, then weights. Only names
// decide here, since reading every file of a folder would take too long; the engine decides by the bytes. Names are
// paths, because subfolders matter too: a config.json in a subfolder is not the model's.

import { badParam } from './errors.js';

export const INDEX = 'model.safetensors.index.json';
/** Files of models with vision only, and the chat template file of older exports. */
export const SEEING = [
  'processor_config.json',
  'preprocessor_config.json',
  'video_preprocessor_config.json',
  'chat_template.json',
];

/** A file with only the chat template. It takes precedence over templates in other files. */
export const TEMPLATE = 'chat_template.jinja';
/** Named chat templates beside it. If a folder cannot be listed, only this one is requested. */
export const TOOLS_TEMPLATE = 'additional_chat_templates/tool_use.jinja';
/** Files of sentence-transformers that describe how vectors are made. */
export const MODULES = 'modules.json';
export const POOLING = '1_Pooling/config.json';
/** A file of sentence-transformers that describes how texts are prepared. */
export const SENTENCES = 'sentence_bert_config.json';

/** Subfolders with files of the model. */
export const BELOW = ['additional_chat_templates', '1_Pooling'];

export const DESCRIPTIONS = [
  'config.json',
  'generation_config.json',
  TEMPLATE,
  TOOLS_TEMPLATE,
  ...SEEING,
  'tokenizer_config.json',
  'tokenizer.json',
  MODULES,
  POOLING,
  SENTENCES,
  INDEX,
];
const WEIGHTS = /\.safetensors$/i;

const GGUF = /\.gguf$/i;
const PART = /-\d{5}-of-(\d{5})\.gguf$/i;

/** Files that matter beside a GGUF file, which describes its weights itself. */
const BESIDE_GGUF = [
  'generation_config.json',
  TEMPLATE,
  TOOLS_TEMPLATE,
  'chat_template.json',
  'tokenizer_config.json',
  'tokenizer.json',
];

/** Ending of the vocabulary file beside a qwen3.c checkpoint. */
export const VOCABULARY = '.tokenizer';

const NAMED = /^additional_chat_templates\/([\w.-]+)\.jinja$/;

/** A file's path without the folders above the model's folder. */
const lastOf = (path) => /(?:(?:additional_chat_templates|1_Pooling)\/)?[^/]*$/.exec(path)[0];

/** @param {string} url of a file in a folder @returns {string} its path in the folder */
export const pathIn = (url) => lastOf(new URL(url).pathname);

/** The name of the chat template in a file with this path; undefined for any other file. @param {string} path */
export function templateName(path) {
  const last = lastOf(path);
  return last === TEMPLATE ? 'default' : NAMED.exec(last)?.[1];
}

/** Path of a picked file, as far as it is known. */
export const pathOf = ({ webkitRelativePath, name }) => webkitRelativePath || name;

const folderOf = (path) => path.slice(0, path.lastIndexOf('/') + 1);

/** Whether the names are one GGUF file, or all parts of one. */
function isOne(names) {
  const models = new Set(names.map((name) => name.replace(PART, '$1')));
  return models.size === 1 && names.length === Number(PART.exec(names[0])?.[1] ?? 1);
}

const several = (what) =>
  badParam('source', `has ${what}; give the files of one model, with their folders' names if they have any`);

/** The given files, by their paths. */
class Files {
  #at = new Map();
  #twice = new Set();

  constructor(names) {
    for (const [i, name] of names.entries()) {
      const path = name.replaceAll('\\', '/');
      if (this.#at.has(path)) this.#twice.add(path);
      this.#at.set(path, i);
    }
  }

  /** Files of a kind in the folder nearest to the top, sorted. Files in deeper folders belong to other things. */
  nearest(kind) {
    const depth = (path) => path.split('/').length;
    const paths = [...this.#at.keys()].filter((path) => kind.test(path));
    const least = paths.reduce((most, path) => Math.min(most, depth(path)), Infinity);
    return paths.filter((path) => depth(path) === least).sort();
  }

  /** Path of a description, beside the weights or else in a folder above them. */
  #find(name, folder) {
    for (let above = folder; ; above = folderOf(above.slice(0, -1))) {
      if (this.#at.has(above + name)) return above + name;
      if (!above) return undefined;
    }
  }

  /** Those of the descriptions that exist. The template for tools stands for all named templates. */
  #described(names, folder) {
    const below = [...this.#at.keys()]
      .filter((path) => path.startsWith(folder) && NAMED.test(path.slice(folder.length)))
      .sort();
    return names.flatMap((name) => (name === TOOLS_TEMPLATE ? below : (this.#find(name, folder) ?? [])));
  }

  /** Indices of a model's files. */
  model(descriptions, weights) {
    const folder = folderOf(weights[0]);
    if (weights.some((path) => folderOf(path) !== folder)) throw several('weights in several folders');
    const paths = [...this.#described(descriptions, folder), ...weights];
    const twice = paths.find((path) => this.#twice.has(path));
    if (twice !== undefined) throw several(`several files called ${twice.slice(-64)}`);
    return paths.map((path) => this.#at.get(path));
  }

  /** Indices of a vocabulary and its checkpoint; null if there is none. */
  checkpoint() {
    const path = [...this.#at.keys()].find((name) => this.#at.has(name + VOCABULARY));
    return path === undefined ? null : [this.#at.get(path + VOCABULARY), this.#at.get(path)];
  }

  /** Whether a file in the same folder, or above it, describes a model. */
  isDescribed(folder) { return DESCRIPTIONS.some((name) => this.#find(name, folder) !== undefined); }
}

/**
 * @param {string[]} names with or without folders
 * @returns {number[] | null} indices of the model's files; null if there is no such model
 */
export function modelOf(names) {
  const files = new Files(names);
  const weights = files.nearest(WEIGHTS);
  if (weights.length) return files.model(DESCRIPTIONS, weights);
  const ggufs = files.nearest(GGUF);
  if (isOne(ggufs) && files.isDescribed(folderOf(ggufs[0]))) return files.model(BESIDE_GGUF, ggufs);
  return ggufs.length ? null : files.checkpoint();
}
