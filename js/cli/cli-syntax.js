// SPDX-License-Identifier: MIT
// The commands, the words and options that each takes, and what they are for: cli-main.js reads arguments by this,
// cli-help.js tells it. The native program has its commands in src/cli/cli_args.c, and the same options
// (tools/options.mjs).

import * as rows from '../shared/options.js';

/** Rows by their flags. @param {Record<string, import('../shared/options.js').Row>} table */
const flagsOf = (table) =>
  Object.fromEntries(
    Object.values(table)
      .filter(({ flag }) => flag)
      .map(({ flag, ...row }) => [flag, row]),
  );

const { vision, store, header, parallel, 'kv-positions': kvPositions, ...load } = flagsOf(rows.LOAD);

const TOKENS = { kind: 'count', most: 2 ** 24 };

/**
 * The flags of both command lines, as rows of the list of options. `kind` is only said where the value is checked by
 * it; `native`: the native program has it too, `alone`: this one has not. The native help has them in this order.
 */
export const FLAGS = {
  ...flagsOf(rows.REPLY),
  system: { value: 'TEXT', text: 'what the model is told before the talk' },
  think: { value: '', text: 'thinks before it answers, where the model knows how' },
  'no-think': { value: '', text: 'does not think; the same as without either' },
  keep: {
    value: 'NAME',
    text: 'keeps what was read and written under this name, so that the next talk that begins like this one goes on at once',
  },
  json: { value: '', text: 'prints JSON', native: true },
  ids: { value: '', text: 'prints the ids alone, in one line', native: true },
  nul: {
    value: '',
    text: 'takes the input as texts with NUL bytes between them, and prints a line of ids for each',
    native: true,
  },
  tokens: { value: 'IDS', text: 'decimal ids with a space or a comma between them', native: true },
  instruction: {
    value: 'TEXT',
    text: 'what texts are searched for, in a sentence; of vectors: makes queries of the texts',
  },
  dimensions: { value: 'N', text: 'numbers of a vector, the first ones (all)' },
  out: { value: 'FILE', text: 'where the scores go: 32-bit floats, little-endian, a row for each token', native: true },
  messages: { value: 'FILE.json', text: 'a conversation: {"messages": […], "numberImages": true}, images being paths' },
  prompt: { ...TOKENS, least: 1, value: 'N', text: 'tokens that are read (128)', native: true },
  generate: { ...TOKENS, least: 0, value: 'N', text: 'tokens that are written (32)', native: true },
  type: { value: 'TYPE', text: 'q8_0, q4_0, q4_k or q6_k', native: true },
  ...load,
  feed: {
    kind: 'whole',
    least: 1,
    most: 2 ** 30,
    value: 'BYTES',
    text: 'of the file that the engine is given at once',
    native: true,
    alone: true,
  },
  store,
  'no-store': { value: '', text: 'keeps nothing' },
  header,
  vision,
  image: {
    value: 'FILE', text: 'an image that is asked about; may be given several times', many: true,
    native: { text: 'an image: binary PPM with 8 bits' },
  },
  video: {
    value: 'FOLDER',
    text: 'a video that is asked about, an image for each frame; may be given several times',
    many: true,
  },
  fps: { value: 'F', text: 'frames a second of the video as it was recorded (24)' },
  ...flagsOf(rows.VISION),
  host: { value: 'ADDRESS', text: 'where requests are taken (127.0.0.1); another one needs a key' },
  port: { value: 'N', text: 'of that address (8080); 0: any that is free' },
  'api-key': {
    value: 'KEY',
    text: 'who sends it may ask (QUERN_API_KEY, where others do not see it); may be given several times',
    many: true,
  },
  'allow-host': {
    value: 'NAME',
    text: 'another name that this machine is asked by; may be given several times',
    many: true,
  },
  'cors-origin': {
    value: 'ORIGIN',
    text: 'of pages that may ask, such as https://example.org; may be given several times',
    many: true,
  },
  'model-name': { value: 'NAME', text: 'what the model is called; requests for another one are refused then' },
  parallel,
  queue: { value: 'N', text: 'requests that may wait for them (512); who comes then is told when to come again' },
  'kv-positions': kvPositions,
  'share-caches': {
    value: '',
    text: "what one key's requests have left behind (prompts that were read, images) also serves those of others",
  },
  slots: { value: '', text: 'shows at /slots what is being made, in numbers' },
  grace: { value: 'SECONDS', text: 'that replies have to end by themselves when the server is to end (30)' },
};

/** Those of this program. */
export const OPTIONS = Object.fromEntries(Object.entries(FLAGS).filter(([, { alone }]) => !alone));

const SAMPLING = ['max-tokens', 'temperature', 'top-p', 'top-k', 'min-p', 'repeat-penalty', 'seed', 'stop'];
const LIMITS = ['schema', 'grammar', 'regex', 'json-reply'];
const VISION = ['vision', 'min-pixels', 'max-pixels', 'min-video-pixels', 'max-video-pixels', 'max-frames'];
const SERVED_VISION = ['max-image-pixels', 'max-images', 'image-memory'];
const FETCH = ['store', 'no-store', 'header'];
const LOAD = ['context', 'memory', 'threads', 'variant', 'kv', 'quantize', 'chunk', ...FETCH];

/**
 * `words`: what comes without a name; `optional`: how many of the last ones may be left out; `rest`: what usage shows
 * besides.
 */
export const COMMANDS = {
  chat: {
    words: ['MODEL', 'PROMPT'],
    optional: 1,
    options: [
      'system',
      'think',
      'no-think',
      'keep',
      ...VISION,
      'image',
      'video',
      'fps',
      ...SAMPLING,
      ...LIMITS,
      ...LOAD,
    ],
    text: 'answers PROMPT, or talks, a line a turn',
    more: " A PROMPT of '-' is read from the standard input, without\nthe line end at its end. Ctrl-C stops a reply.",
  },
  run: {
    words: ['MODEL', 'PROMPT'], options: [...SAMPLING, ...LIMITS, 'json', ...LOAD], text: 'continues PROMPT',
    more: " Where it is '-' it is read from the standard input, without\nthe line end at its end. One that begins with a dash comes behind '--'.",
  },
  serve: {
    words: ['MODEL'],
    options: [
      'host',
      'port',
      'api-key',
      'allow-host',
      'cors-origin',
      'model-name',
      'parallel',
      'queue',
      'kv-positions',
      'share-caches',
      'slots',
      'grace',
      ...VISION,
      ...SERVED_VISION,
      ...LOAD,
    ],
    text: 'answers requests of the OpenAI API, Anthropic\'s and Ollama\'s over HTTP',
    more: ' Any program that takes a base URL can ask: http://127.0.0.1:8080/v1.\n'
      + 'Nobody else on the network can unless --host says so, and no web page unless --cors-origin names it.',
  },
  embed: {
    words: ['MODEL', 'FILE'],
    optional: 1,
    options: ['instruction', 'dimensions', 'json', ...LOAD],
    text: 'makes a vector of each line of FILE',
    more: " Without FILE, or where it is '-', the lines come from the standard input.",
  },
  rank: {
    words: ['MODEL', 'QUERY', 'FILE'], optional: 1, options: ['instruction', 'json', ...LOAD],
    text: 'says how well each line of FILE answers QUERY, the best first',
    more: " Without FILE, or where it is '-', the lines come from the standard input.",
  },
  info: {
    words: ['MODEL'],
    options: ['json', 'vision', ...LOAD],
    text: 'says what a model is and what memory it takes; reads no weights',
  },
  download: {
    words: ['MODEL'],
    options: ['vision', 'store', 'header'],
    text: 'gets a model, or the rest of it, and keeps it',
  },
  list: { words: [], options: ['json', 'store'], text: 'says which models are kept' },
  remove: {
    words: ['MODEL|all'],
    options: ['store'],
    text: 'removes a model, or all of them, from those that are kept',
  },
  kept: { words: [], options: ['json', 'store'], text: 'says which talks are kept (chat --keep)' },
  forget: { words: ['NAME|all'], options: ['store'], text: 'forgets a talk that is kept, or all of them' },
  quantize: {
    words: ['MODEL', 'OUT.gguf'],
    rest: '--type TYPE',
    options: ['type', 'threads'],
    text: 'writes a model with another weight type',
  },
  copy: {
    words: ['DIR'], options: [], text: 'puts the files that a page loads into DIR',
    more: ' For bundlers that copy none (Rollup, esbuild, bun build): DIR is where\n'
      + 'the bundle lies, or a folder of its own whose worker.js is given to load() as workerUrl.',
  },
  bench: { words: ['MODEL'], options: ['prompt', 'generate', 'profile', 'json', ...LOAD], text: 'measures speed' },
  tokenize: {
    words: ['MODEL'],
    rest: '< text',
    options: ['ids', 'nul', ...LOAD],
    text: 'shows the tokens of a text; reads no weights',
  },
  logits: {
    words: ['MODEL'],
    rest: '--tokens IDS --out FILE',
    options: ['tokens', 'messages', 'out', ...VISION, ...LOAD],
    text: 'writes the scores of what could follow each token',
  },
  vision: {
    words: ['MODEL'],
    rest: '--image FILE --out FILE',
    options: ['image', 'out', ...VISION, ...LOAD],
    text: 'writes what a model makes of an image',
  },
};
