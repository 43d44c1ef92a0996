// SPDX-License-Identifier: MIT
// Models as other programs keep them, told by the names of their files, and what to take instead. What bytes or a
// description tell, the engine says (src/load/sniff.c, src/load/formats/hf_quantization.c). A file of its own in the
// package, which is fetched when a load has failed (named.js), or a name was refused (called.js, ours.js).

export { oursFor } from './ours.js';

const SAME = 'take the same model\'s GGUF file, or its folder with safetensors files';
const ANEW = 'save the tokenizer anew with transformers (AutoTokenizer, save_pretrained), which writes it';

const LORA = {
  rule: 'lora', what: 'an adapter (LoRA), which changes another model and is none itself',
  instead: 'merge it into that model (PEFT: merge_and_unload) and save the whole',
};

/**
 * Names of files, with the rule of the error, what they are and what to do. `where`: beside safetensors files only, in
 * place of them (if nothing is said), or either; `unless`: not beside such a file; `alone`: even if it is the only
 * file; `ask`: what of it a server is asked for where this file of a model is missing.
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
    instead: 'take a version of it with safetensors files, or a GGUF file' },
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
    what: 'a model whose vocabulary is in vocab.json and merges.txt, without the tokenizer.json that is read here',
    instead: ANEW,
  },
  {
    names: /\.tiktoken$/i,
    rule: 'vocabulary',
    where: 'beside',
    unless: /^tokenizer\.json$/i,
    ask: { 'tokenizer.json': ['qwen.tiktoken'] },
    what: 'a model with a tiktoken vocabulary, as the first Qwen had, without the tokenizer.json that is read here',
    instead: 'take a Qwen3 model',
  },
];

/** `OWNER/REPO`, with a file or a type behind it; no path of a file that is only missing. */
const REPOSITORY =
  /^(?![^/]*\/[^/]*\.(?:gguf|safetensors|json|bin|tokenizer)$)[\w-][\w.-]*\/[\w.-]+(?:\/.+|:[\w.-]+)?$/i;

/** What to write for what may be a repository's name. @param {any} source */
export const repositoryOf = (source) => (typeof source === 'string' && REPOSITORY.test(source)
  ? `If this is a repository of Hugging Face, write 'hf:${source.slice(0, 200)}'.` : '');

const sentence = ({ rule, what, instead = SAME }) => ({ rule, message: `This is ${what}; ${instead}.` });

/**
 * A piece of a file that was cut up by a program that knows nothing of models: behind the file's own ending it has one
 * more.
 */
const PIECE =
  /^(.*\.(?:gguf|safetensors))[.-](?:part\d+of\d+|part[-_.]?(?:\d+|[a-z]{1,3})|split[-_.]?(?:\d+|[a-z]{1,3})|\d{2,4}|a[a-z])$/i;

function pieceOf(names) {
  const name = names.find((one) => PIECE.test(one));
  if (name === undefined) return null;
  const message = `This is one piece of a file that was cut up ('${name.slice(-64)}'); join all of them in order `
    + `(cat FIRST SECOND ... > ${name.replace(PIECE, '$1').slice(-64)}) and load that file.`;
  return { rule: 'pieces', message };
}

/**
 * What files are that are no model here.
 * @param {string[]} paths
 * @returns {{rule: string, message: string} | null} null: nothing that is known, or with a GGUF file among it
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
 * What a server may have instead of a file that a model needs.
 * @param {string} missing config.json, tokenizer.json or model.safetensors
 * @returns {{name: string, rule: string, message: string}[]}
 */
export const foreignTo = (missing) =>
  KINDS.flatMap((kind) => (kind.ask?.[missing] ?? []).map((name) => ({ name, ...sentence(kind) })));
