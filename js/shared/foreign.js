// SPDX-License-Identifier: MIT
// Models of other programs, recognized by the names of their files, and advice what to use instead. The engine
// recognizes those that only bytes or a description show (src/load/sniff.c, src/load/formats/hf_quantization.c). A
// separate file of the package, which is fetched after a load has failed (named.js) or a name was refused (called.js,
// ours.js).

export { oursFor } from './ours.js';

const SAME = 'use the same model\'s GGUF file, or its folder with safetensors files';
const ANEW = 'save the tokenizer again with transformers (AutoTokenizer, save_pretrained), which writes it';

const LORA = {
  rule: 'lora', what: 'an adapter (LoRA), which is not a whole model',
  instead: 'merge it into its model (PEFT: merge_and_unload) and save the result',
};

/**
 * Kinds of files: their names, the rule of the error, what they are and what to do. `where`: only beside safetensors
 * files ('beside'), only without any (absent), or both; `unless`: not if there is such a file too; `alone`: even if it
 * is the only file; `ask`: files to look for on a server that lacks this file of a model.
 * @type {{names: RegExp, rule: string, what: string, instead?: string, where?: 'beside' | 'either', unless?: RegExp,
 *   alone?: boolean, ask?: Record<string, string[]>}[]}
 */
const KINDS = [
  { names: /^adapters?(?:_model)?\.(?:safetensors|bin)$/i, ...LORA, where: 'either' },
  { names: /^adapter_config\.json$/i, ...LORA, ask: { 'config.json': ['adapter_config.json'] } },
  { names: /\.uqff$/i, rule: 'uqff', where: 'either', alone: true, what: "a model in mistral.rs's own format (UQFF)" },
  {
    names: /^(?:quanto_qmap|quantization_map)\.json$/i,
    rule: 'quantisation',
    where: 'either',
    what: 'a model quantised with quanto',
  },
  {
    names: /^rank\d+\.(?:engine|safetensors)$|\.engine$/i,
    rule: 'tensorrt-llm',
    where: 'either',
    what: 'a model built for TensorRT-LLM',
  },
  {
    names: /^pytorch_model(?:-\d+-of-\d+)?\.bin(?:\.index\.json)?$/i,
    rule: 'pickle',
    ask: { 'model.safetensors': ['pytorch_model.bin', 'pytorch_model.bin.index.json'] },
    what: 'a model with pickled weights (pytorch_model.bin): reading them would run whatever code they hold',
    instead: 'use a version of it with safetensors files, or a GGUF file' },
  { names: /^weights(?:\.\d+)?\.npz$/i, rule: 'quantisation', what: 'an MLX model of an older form (weights.npz)' },
  {
    names: /^mlc-chat-config\.json$|^params_shard_\d+\.bin$/i,
    rule: 'mlc',
    ask: { 'config.json': ['mlc-chat-config.json'] },
    what: 'a model compiled for MLC (WebLLM)',
  },
  {
    names: /^openvino_\w+\.(?:xml|bin)$/i,
    rule: 'openvino',
    ask: { 'model.safetensors': ['openvino_model.xml'] },
    what: 'an OpenVINO model',
  },
  {
    names: /^onnx$|\.onnx(?:[._]data)?$/i,
    rule: 'onnx',
    ask: { 'model.safetensors': ['onnx/model.onnx', 'model.onnx'] },
    what: 'an ONNX model',
  },
  {
    names: /\.nemo$/i,
    rule: 'nemo',
    alone: true,
    what: 'a NeMo archive (.nemo)',
    instead: 'export it from NeMo as a Hugging Face folder',
  },
  { names: /\.task$/i, rule: 'task', alone: true, what: 'a MediaPipe bundle (.task)' },
  { names: /\.litertlm$/i, rule: 'litertlm', alone: true, what: 'a LiteRT-LM model (.litertlm)' },
  {
    names: /^(?:shared_)?vocabulary\.(?:json|txt)$/i,
    rule: 'ctranslate2',
    ask: { 'model.safetensors': ['model.bin'] },
    what: 'a CTranslate2 model',
  },
  {
    names: /^(?:vocab\.json|merges\.txt)$/i,
    rule: 'vocabulary',
    where: 'beside',
    unless: /^tokenizer\.json$/i,
    ask: { 'tokenizer.json': ['vocab.json'] },
    what: 'a model whose vocabulary is in vocab.json and merges.txt, without the tokenizer.json that is needed here',
    instead: ANEW,
  },
  {
    names: /\.tiktoken$/i,
    rule: 'vocabulary',
    where: 'beside',
    unless: /^tokenizer\.json$/i,
    ask: { 'tokenizer.json': ['qwen.tiktoken'] },
    what: 'a model with a tiktoken vocabulary, as the first Qwen had, without the tokenizer.json that is needed here',
    instead: 'use a Qwen3 model',
  },
];

/** `OWNER/REPO`, followed by a file or a type; not the path of a file that is merely missing. */
const REPOSITORY =
  /^(?![^/]*\/[^/]*\.(?:gguf|safetensors|json|bin|tokenizer)$)[\w-][\w.-]*\/[\w.-]+(?:\/.+|:[\w.-]+)?$/i;

/** Advice for a source that may be the name of a repository. @param {any} source */
export const repositoryOf = (source) => (typeof source === 'string' && REPOSITORY.test(source)
  ? `If this is a repository on Hugging Face, write 'hf:${source.slice(0, 200)}'.` : '');

const sentence = ({ rule, what, instead = SAME }) => ({ rule, message: `This is ${what}; ${instead}.` });

/**
 * A piece of a file that was split by a program that knows nothing of models: it has one more ending after the file's
 * own.
 */
const PIECE =
  /^(.*\.(?:gguf|safetensors))[.-](?:part\d+of\d+|part[-_.]?(?:\d+|[a-z]{1,3})|split[-_.]?(?:\d+|[a-z]{1,3})|\d{2,4}|a[a-z])$/i;

function pieceOf(names) {
  const name = names.find((one) => PIECE.test(one));
  if (name === undefined) return null;
  const message = `This is one piece of a split file ('${name.slice(-64)}'); join all of them in order `
    + `(cat FIRST SECOND ... > ${name.replace(PIECE, '$1').slice(-64)}) and load that file.`;
  return { rule: 'pieces', message };
}

/**
 * Recognises files that are not a model for this package.
 * @param {string[]} paths
 * @returns {{rule: string, message: string} | null} null: unknown, or there is a GGUF file among them
 */
export function foreignOf(paths) {
  const names = paths.map((path) => path.split(/[\\/]/).at(-1));
  if (names.some((name) => /\.gguf$/i.test(name))) return null;
  const place = names.some((name) => /\.safetensors$/i.test(name)) ? 'beside' : 'instead';
  const kind = KINDS.find(
    ({ names: known, where = 'instead', unless, alone }) =>
      [place, 'either'].includes(where) &&
      (alone || names.length > 1) &&
      names.some((name) => known.test(name)) &&
      !names.some((name) => unless?.test(name)),
  );
  return kind ? sentence(kind) : pieceOf(names);
}

/**
 * Files that a server may have instead of a file that a model needs.
 * @param {string} missing config.json, tokenizer.json or model.safetensors
 * @returns {{name: string, rule: string, message: string}[]}
 */
export const foreignTo = (missing) =>
  KINDS.flatMap((kind) => (kind.ask?.[missing] ?? []).map((name) => ({ name, ...sentence(kind) })));
