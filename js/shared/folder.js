// SPDX-License-Identifier: MIT
// Which files of a folder make up a model, and the order in which the engine takes them: what describes it, then its
// weights. Here names decide, since nobody wants to read a folder's every file; in the engine a file's bytes do. Names
// are paths, since files in folders below count too, and what a folder below calls its own config.json is not the
// model's.

import { badParam } from './errors.js';

export const INDEX = 'model.safetensors.index.json';
/** What only models with vision have beside it, and their template, which older exports keep apart. */
export const SEEING = [
  'processor_config.json',
  'preprocessor_config.json',
  'video_preprocessor_config.json',
  'chat_template.json',
];

/** A chat template in a file of its own; it comes before all others that say one, and counts. */
export const TEMPLATE = 'chat_template.jinja';
/** Named templates beside it. Of a folder that nobody lists only this one is asked for. */
export const TOOLS_TEMPLATE = 'additional_chat_templates/tool_use.jinja';
/** What sentence-transformers does with a model's states. */
export const MODULES = 'modules.json';
export const POOLING = '1_Pooling/config.json';
/** What it does to a text before. */
export const SENTENCES = 'sentence_bert_config.json';

/** Folders below that have files of the model. */
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

/** What counts beside a GGUF file, which describes its weights itself. */
const BESIDE_GGUF = [
  'generation_config.json',
  TEMPLATE,
  TOOLS_TEMPLATE,
  'chat_template.json',
  'tokenizer_config.json',
  'tokenizer.json',
];

/** The vocabulary of a qwen3.c checkpoint stands beside it. */
export const VOCABULARY = '.tokenizer';

const NAMED = /^additional_chat_templates\/([\w.-]+)\.jinja$/;

/** A file's path without the folders above those that count here. */
const lastOf = (path) => /(?:(?:additional_chat_templates|1_Pooling)\/)?[^/]*$/.exec(path)[0];

/** @param {string} url of a file of a folder @returns {string} its path there */
export const pathIn = (url) => lastOf(new URL(url).pathname);

/** The name of the chat template that a file is by its path; undefined for any other file. @param {string} path */
export function templateName(path) {
  const last = lastOf(path);
  return last === TEMPLATE ? 'default' : NAMED.exec(last)?.[1];
}

/** Where a picked file lies, as far as it is known. */
export const pathOf = ({ webkitRelativePath, name }) => webkitRelativePath || name;

const folderOf = (path) => path.slice(0, path.lastIndexOf('/') + 1);

/** Whether these are one GGUF file, or all parts of one. */
function isOne(names) {
  const models = new Set(names.map((name) => name.replace(PART, '$1')));
  return models.size === 1 && names.length === Number(PART.exec(names[0])?.[1] ?? 1);
}

const several = (what) =>
  badParam('source', `has ${what}; give the files of one model, with their folders' names where they have some`);

/** The files that were given, by their paths. */
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

  /** Those of a kind in the folder nearest to the top, sorted: the others are of other things. */
  nearest(kind) {
    const depth = (path) => path.split('/').length;
    const paths = [...this.#at.keys()].filter((path) => kind.test(path));
    const least = paths.reduce((most, path) => Math.min(most, depth(path)), Infinity);
    return paths.filter((path) => depth(path) === least).sort();
  }

  /** A description's path, beside the weights or else in a folder above them. */
  #find(name, folder) {
    for (let above = folder; ; above = folderOf(above.slice(0, -1))) {
      if (this.#at.has(above + name)) return above + name;
      if (!above) return undefined;
    }
  }

  /** These descriptions, as far as they are there; where the template for tools has its place, all named ones. */
  #described(names, folder) {
    const below = [...this.#at.keys()]
      .filter((path) => path.startsWith(folder) && NAMED.test(path.slice(folder.length)))
      .sort();
    return names.flatMap((name) => (name === TOOLS_TEMPLATE ? below : (this.#find(name, folder) ?? [])));
  }

  /** A model's files by their places in the list. */
  model(descriptions, weights) {
    const folder = folderOf(weights[0]);
    if (weights.some((path) => folderOf(path) !== folder)) throw several('weights in several folders');
    const paths = [...this.#described(descriptions, folder), ...weights];
    const twice = paths.find((path) => this.#twice.has(path));
    if (twice !== undefined) throw several(`several files called ${twice.slice(-64)}`);
    return paths.map((path) => this.#at.get(path));
  }

  /** A checkpoint behind its vocabulary, by their places; null where there is none. */
  checkpoint() {
    const path = [...this.#at.keys()].find((name) => this.#at.has(name + VOCABULARY));
    return path === undefined ? null : [this.#at.get(path + VOCABULARY), this.#at.get(path)];
  }

  /** Whether a file in the same place, or above, describes a model. */
  isDescribed(folder) { return DESCRIPTIONS.some((name) => this.#find(name, folder) !== undefined); }
}

/**
 * @param {string[]} names with or without folders
 * @returns {number[] | null} the model's files by their places in the list; null where these are no such model
 */
export function modelOf(names) {
  const files = new Files(names);
  const weights = files.nearest(WEIGHTS);
  if (weights.length) return files.model(DESCRIPTIONS, weights);
  const ggufs = files.nearest(GGUF);
  if (isOne(ggufs) && files.isDescribed(folderOf(ggufs[0]))) return files.model(BESIDE_GGUF, ggufs);
  return ggufs.length ? null : files.checkpoint();
}
