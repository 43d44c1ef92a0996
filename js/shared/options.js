// SPDX-License-Identifier: MIT
// The one list of options for loading a model, and of a reply's options that are numbers or have a flag. It is the
// source for checks of options (page/options.js), for the table that starts an engine (engine/engine.js, src/wasm.c),
// and for the flags of both command lines with their limits and help texts (cli/cli-syntax.js, src/cli/cli_args.c).
// tools/options.mjs writes the list for C.
//
// It is plain data. In pages it has no flags and no help texts: tools/build.mjs removes them.

/**
 * @typedef {object} Row
 * @property {string} kind how a value is checked (page/options.js), and how a flag's value is read (cli/cli-main.js)
 * @property {number} [least] smallest number @property {number} [most] largest number, or most texts in a list
 * @property {any[]} [names] allowed names
 * @property {true | string[]} [engine] true: the engine's table has it; a list: its names there
 * @property {number} [letters] most letters of a text
 * @property {string} [flag] name on the command lines
 * @property {string} [value] the flag's value in the help; '' if it takes none
 * @property {string} [text] help text
 * @property {boolean} [many] whether it may be given several times
 * @property {true | object} [native] the native command line has it too; an object: what differs there
 */

const MOST = Number.MAX_SAFE_INTEGER;
const TOKENS = 2 ** 24;       // more than any context

/** A limit of pixels, to which images are reduced or enlarged. */
const pixels = (flag, text, more) => ({ kind: 'whole', least: 1024, most: 2 ** 26, flag, value: 'N', text, ...more });

/** Types that weights may become, in the order of enum quern_quantize; 'auto' covers weights and embeddings. */
export const QUANTIZED = ['none', 'q8', 'q4', 'auto'];

/** Options for downloading a model. */
export const FETCH = {
  signal: { kind: 'signal' },
  headers: {
    kind: 'headers',
    flag: 'header',
    value: "'NAME: VALUE'",
    text: 'header for every request; may be given several times',
    many: true,
  },
  forwardHeaders: { kind: 'boolean' },
  store: { kind: 'store', flag: 'store', value: 'FOLDER', text: 'folder that stores downloaded models' },
  sha256: { kind: 'sha256' },
  workerUrl: { kind: 'url' },
  wasmUrl: { kind: 'url' },
  onProgress: { kind: 'function' },
  vision: {
    kind: 'vision', flag: 'vision', value: 'MMPROJ', native: true,
    text: 'projector that lets a GGUF model read images; a folder has its own',
  },
};

/** Options of models.download(). */
export const DOWNLOADS = { ...FETCH, files: { kind: 'files' } };

/** Options of load(). */
export const LOAD = {
  ...FETCH,
  profile: {
    kind: 'boolean',
    engine: true,
    flag: 'profile',
    value: '',
    text: 'shows the cost of each operation',
    native: true,
  },
  contextSize: {
    kind: 'whole', least: 1, most: TOKENS, engine: true, flag: 'context', value: 'N', native: true,
    text: 'size of the context in tokens, replies included',
  },
  memoryLimit: {
    kind: 'bytes', least: 1, most: MOST, engine: true, flag: 'memory', value: 'BYTES', native: true,
    text: 'memory limit: 4GB, 4GiB, 512MB or plain bytes',
  },
  threads: {
    kind: 'whole',
    least: 1,
    most: 64,
    engine: true,
    flag: 'threads',
    value: 'N',
    text: 'number of threads',
    native: true,
  },
  variant: {
    kind: 'names', names: ['scalar', 'simd', 'relaxed'], engine: ['scalar'], flag: 'variant', value: 'NAME',
    text: 'kernels: scalar, simd or relaxed',
    native: { names: ['scalar', 'simd'], text: 'kernels: scalar or simd' },
  },
  backend: {
    kind: 'names', names: ['cpu', 'webgpu', 'auto'], flag: 'backend', value: 'NAME',
    text: 'what computes: cpu, webgpu, or auto (webgpu if it can)',
  },
  gpu: {
    kind: 'names', names: ['exact', 'fast'], flag: 'gpu', value: 'NAME',
    text: 'kernels of webgpu: exact, or fast, which may lead to another text',
  },
  kv: {
    kind: 'names', names: ['f16', 'q8', 'f32'], engine: true, flag: 'kv', value: 'TYPE', native: true,
    text: 'type of the KV cache: f16, q8 or f32',
  },
  quantize: {
    kind: 'quantize',
    names: QUANTIZED,
    engine: ['quantize', 'embeddings'],
    flag: 'quantize',
    value: 'TYPE',
    native: true,
    text: 'quantizes weights while loading: none, q8, q4 or auto; WEIGHTS/EMBEDDINGS: one for each',
  },
  chunk: {
    kind: 'whole', least: 1, most: 1024, engine: true, flag: 'chunk', value: 'N', native: true,
    text: 'tokens computed at once while a prompt is read',
  },
  parallel: {
    kind: 'whole',
    least: 1,
    most: 16,
    engine: true,
    flag: 'parallel',
    value: 'N',
    text: 'replies computed side by side, 1 to 16 (8)',
  },
  kvPositions: {
    kind: 'whole', least: 1, most: TOKENS, engine: true, flag: 'kv-positions', value: 'N',
    text: 'KV cache for all replies together, in tokens (one context)',
  },
  snapshots: {
    kind: 'whole', least: 0, most: 64, engine: true, flag: 'snapshots', value: 'N',
    text: 'number of states that a model with states remembers (3)',
  },
  drafts: { kind: 'boolean', engine: ['noDrafts'] },
  draft: {
    kind: 'source', flag: 'draft', value: 'MODEL', text: 'a smaller model of the same vocabulary, which drafts tokens',
  },
  saveMaxBytes: { kind: 'bytes', least: 0, most: MOST },
  address: { kind: 'names', names: [32, 64] },
  visionOptions: { kind: 'limits' },
};

/** Options of `visionOptions`. A limit of pixels is for one image, or for all frames of a video together. */
export const VISION = {
  minPixels: pixels('min-pixels', "smaller images are enlarged to N pixels (the model's own, 65536)"),
  maxPixels: pixels('max-pixels', 'larger images are reduced to N pixels (262144)', { engine: true, native: true }),
  minVideoPixels: pixels('min-video-pixels', "fewest pixels of all frames of a video (the model's own, 4096)"),
  maxVideoPixels: pixels('max-video-pixels', 'most pixels of all frames of a video (524288)', { engine: true }),
  maxFrames: {
    kind: 'whole',
    least: 2,
    most: 768,
    flag: 'max-frames',
    value: 'N',
    text: 'most frames taken from a video (16)',
  },
  mediaCacheBytes: { kind: 'bytes', least: 0, most: MOST, engine: ['mediaCache'] },
  maxImagePixels: {
    kind: 'whole', least: 1, most: 100_000_000, flag: 'max-image-pixels', value: 'N',
    text: 'most pixels of an image before it is reduced (16777216)',
  },
  maxImages: {
    kind: 'whole',
    least: 1,
    most: 65_536,
    flag: 'max-images',
    value: 'N',
    text: 'most images of a request (32)',
  },
  imageMemoryBytes: {
    kind: 'bytes',
    least: 1,
    most: MOST,
    flag: 'image-memory',
    value: 'BYTES',
    text: 'memory for all decoded images together (640MiB)',
  },
};

/** Options of a reply that are numbers or have a flag. */
export const REPLY = {
  maxTokens: {
    kind: 'whole',
    least: 0,
    most: MOST,
    flag: 'max-tokens',
    value: 'N',
    text: 'most tokens of the reply; 0 only reads the prompt',
    native: true,
  },
  temperature: {
    kind: 'between', least: 0, most: 100, flag: 'temperature', value: 'T', native: true,
    text: 'randomness; 0 always takes the likeliest token (Qwen3: 0.7, thinking 0.6)',
  },
  topP: {
    kind: 'above', least: 0, most: 1, flag: 'top-p', value: 'P', native: true,
    text: 'samples among the likeliest tokens that together have probability P; 1: all (Qwen3: 0.8, thinking 0.95)',
  },
  topK: {
    kind: 'whole',
    least: 0,
    most: MOST,
    flag: 'top-k',
    value: 'N',
    text: 'samples among the N likeliest tokens; 0: all (20)',
    native: true,
  },
  minP: {
    kind: 'between',
    least: 0,
    most: 1,
    flag: 'min-p',
    value: 'P',
    text: 'excludes tokens less likely than P times the likeliest (0)',
    native: true,
  },
  repeatPenalty: {
    kind: 'above', least: 0, most: 10, flag: 'repeat-penalty', value: 'R', native: true,
    text: 'divides the scores of recent tokens by R (1)',
  },
  presencePenalty: {
    kind: 'between', least: -2, most: 2, flag: 'presence-penalty', value: 'P', native: true,
    text: "is subtracted from the scores of the reply's tokens (0)",
  },
  frequencyPenalty: { kind: 'between', least: -2, most: 2 },
  seed: {
    kind: 'whole',
    least: 0,
    most: MOST,
    flag: 'seed',
    value: 'S',
    text: 'the same seed gives the same reply',
    native: true,
  },
  stop: {
    kind: 'stops', most: 64, letters: 1000, flag: 'stop', value: 'TEXT', many: true, native: true,
    text: 'ends the reply before this text; may be given several times',
  },
  schema: {
    kind: 'schema',
    flag: 'schema',
    value: 'FILE',
    text: 'the reply is JSON that is valid for this JSON Schema',
    native: true,
  },
  grammar: {
    kind: 'written',
    flag: 'grammar',
    value: 'FILE',
    text: 'the reply follows this GBNF grammar',
    native: true,
  },
  regex: {
    kind: 'written',
    flag: 'regex',
    value: 'PATTERN',
    text: 'the whole reply matches this regular expression',
    native: true,
  },
  json: { kind: 'boolean', flag: 'json-reply', value: '', text: 'the reply is JSON', native: true },
};

/** Further values of the engine's table, which the code that starts the engine sets. */
const STARTED = ['inspect', 'fileSize', 'files', 'restSize', 'noVision', 'visionSize', 'backend', 'waiting'];

/** The engine's table, in the order in which src/wasm.c reads it; C names have underscores (struct quern_options). */
export const ENGINE = [
  ...Object.entries({ ...LOAD, ...VISION }).flatMap(([name, { engine = [] }]) => (engine === true ? [name] : engine)),
  ...STARTED,
];
