// SPDX-License-Identifier: MIT
// The commands with their words, options and help. cli-main.js reads arguments by these tables, and cli-help.js prints
// them. The native program has its own commands (src/cli/cli_args.c) and the same options (tools/options.mjs).

import * as rows from '../shared/options.js';

/** Rows of options, by flag. @param {Record<string, import('../shared/options.js').Row>} table */
const flagsOf = (table) =>
  Object.fromEntries(
    Object.values(table)
      .filter(({ flag }) => flag)
      .map(({ flag, ...row }) => [flag, row]),
  );

const { vision, store, header, draft, parallel, 'kv-positions': kvPositions, snapshots, ...load } = flagsOf(rows.LOAD);

const TOKENS = { kind: 'count', most: 2 ** 24 };

/**
 * The flags of both command lines, as rows of the list of options. `kind` is set only if it decides how the value is
 * checked. `native`: the native program has the flag too; `alone`: only the native one has it. The native help has the
 * same order.
 */
export const FLAGS = {
  ...flagsOf(rows.REPLY),
  system: { value: 'TEXT', text: 'the system message' },
  think: { value: '', text: 'lets the model think before it answers, if it can' },
  'no-think': { value: '', text: 'no thinking, whatever the chat template would do' },
  save: {
    value: 'NAME',
    text: 'saves the conversation under this name; a later one that begins the same way goes on at once',
  },
  json: { value: '', text: 'prints JSON', native: true },
  ids: { value: '', text: 'prints the ids alone, in one line', native: true },
  nul: {
    value: '',
    text: 'reads texts separated by NUL bytes, and prints a line of ids for each',
    native: true,
  },
  tokens: { value: 'IDS', text: 'decimal ids, separated by spaces or commas', native: true },
  instruction: {
    value: 'TEXT',
    text: 'the task of the search, in a sentence; for vectors: makes the texts queries',
  },
  dimensions: { value: 'N', text: 'only the first N numbers of each vector (all)' },
  out: { value: 'FILE', text: 'file for the scores: 32-bit floats, little-endian, a row for each token', native: true },
  messages: {
    value: 'FILE.json',
    text: 'a conversation: {"messages": […], "numberImages": true}, with paths as images',
  },
  prompt: { ...TOKENS, least: 1, value: 'N', text: 'number of tokens to read (128)', native: true },
  generate: { ...TOKENS, least: 0, value: 'N', text: 'number of tokens to write (32)', native: true },
  type: { value: 'TYPE', text: 'q8_0, q4_0, q4_k (known as Q4_K_M), q5_k (Q5_K_M), q6_k or iq4_xs', native: true },
  imatrix: { value: 'FILE', text: 'how much each column matters, from llama-imatrix', native: true },
  ...load,
  feed: {
    kind: 'whole',
    least: 1,
    most: 2 ** 30,
    value: 'BYTES',
    text: 'bytes of the file that the engine gets at a time',
    native: true,
    alone: true,
  },
  store,
  'no-store': { value: '', text: 'stores nothing' },
  header,
  vision,
  image: {
    value: 'FILE', text: 'an image for the question; may be given several times', many: true,
    native: { text: 'an image: binary PPM with 8 bits' },
  },
  video: {
    value: 'FOLDER',
    text: 'a video for the question, as a folder with an image per frame; may be given several times',
    many: true,
  },
  fps: { value: 'F', text: 'frames per second of the recording (24)' },
  ...flagsOf(rows.VISION),
  host: { value: 'ADDRESS', text: 'address to listen on (127.0.0.1); one that other machines reach needs a key' },
  port: { value: 'N', text: 'port to listen on (8080); 0: any free one' },
  'api-key': {
    value: 'KEY',
    text: 'key that clients must send (in QUERN_API_KEY other users do not see it); may be given several times',
    many: true,
  },
  'allow-host': {
    value: 'NAME',
    text: 'another host name that requests may use for this machine; may be given several times',
    many: true,
  },
  'cors-origin': {
    value: 'ORIGIN',
    text: 'origin whose pages may send requests, such as https://example.org; may be given several times',
    many: true,
  },
  'model-name': { value: 'NAME', text: 'name of the model; requests for another name are then refused' },
  parallel,
  queue: { value: 'N', text: 'requests that may wait (512); clients of further ones are told when to try again' },
  'kv-positions': kvPositions,
  snapshots,
  draft,
  'no-drafts': { value: '', text: 'writes one token in each step, without drafts' },
  'share-caches': {
    value: '',
    text: "requests of all keys share what was computed for prompts and images",
  },
  slots: { value: '', text: 'shows numbers about running replies at /slots' },
  grace: { value: 'SECONDS', text: 'time for running replies to finish when the server ends (30)' },
};

/** The flags of this program. */
export const OPTIONS = Object.fromEntries(Object.entries(FLAGS).filter(([, { alone }]) => !alone));

const SAMPLING = [
  'max-tokens', 'temperature', 'top-p', 'top-k', 'min-p', 'repeat-penalty', 'presence-penalty', 'seed', 'stop',
];
const LIMITS = ['schema', 'grammar', 'regex', 'json-reply'];
const VISION = ['vision', 'min-pixels', 'max-pixels', 'min-video-pixels', 'max-video-pixels', 'max-frames'];
const SERVED_VISION = ['max-image-pixels', 'max-images', 'image-memory'];
const FETCH = ['store', 'no-store', 'header'];
const LOAD = ['context', 'memory', 'threads', 'variant', 'backend', 'gpu', 'kv', 'quantize', 'chunk', ...FETCH];

/**
 * `words`: arguments without a name; `optional`: how many of the last ones may be left out; `rest`: further text for
 * the usage line.
 */
export const COMMANDS = {
  chat: {
    words: ['MODEL', 'PROMPT'],
    optional: 1,
    options: [
      'system',
      'think',
      'no-think',
      'save',
      ...VISION,
      'image',
      'video',
      'fps',
      ...SAMPLING,
      ...LIMITS,
      'draft',
      'no-drafts',
      ...LOAD,
    ],
    text: 'answers PROMPT, or holds a conversation, line by line',
    more: " A PROMPT of '-' is read from the standard input, without\nthe line end at its end. Ctrl-C stops a reply.",
  },
  run: {
    words: ['MODEL', 'PROMPT'],
    options: [...SAMPLING, ...LIMITS, 'json', 'draft', 'no-drafts', ...LOAD],
    text: 'continues PROMPT',
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
      'snapshots',
      'draft',
      'no-drafts',
      'share-caches',
      'slots',
      'grace',
      ...VISION,
      ...SERVED_VISION,
      ...LOAD,
    ],
    text: 'answers requests of the OpenAI, Anthropic and Ollama APIs over HTTP',
    more: ' Any program that takes a base URL can use it: http://127.0.0.1:8080/v1.\n'
      + 'Other machines cannot, unless --host allows them, nor web pages, unless --cors-origin names them.',
  },
  embed: {
    words: ['MODEL', 'FILE'],
    optional: 1,
    options: ['instruction', 'dimensions', 'json', ...LOAD],
    text: 'makes a vector of each line of FILE',
    more: " Without FILE, or if it is '-', the lines come from the standard input.",
  },
  rank: {
    words: ['MODEL', 'QUERY', 'FILE'], optional: 1, options: ['instruction', 'json', ...LOAD],
    text: 'tells how well each line of FILE answers QUERY, best first',
    more: " Without FILE, or if it is '-', the lines come from the standard input.",
  },
  info: {
    words: ['MODEL'],
    options: ['json', 'vision', ...LOAD],
    text: 'says what a model is and what memory it takes; reads no weights',
  },
  download: {
    words: ['MODEL'],
    options: ['vision', 'store', 'header'],
    text: 'downloads a model, or the rest of it, and stores it',
  },
  list: { words: [], options: ['json', 'store'], text: 'lists the stored models' },
  remove: {
    words: ['MODEL|all'],
    options: ['store'],
    text: 'removes a stored model, or all of them',
  },
  saved: { words: [], options: ['json', 'store'], text: 'lists the saved conversations (chat --save)' },
  forget: { words: ['NAME|all'], options: ['store'], text: 'deletes a saved conversation, or all of them' },
  quantize: {
    words: ['MODEL', 'OUT.gguf'],
    rest: '--type TYPE',
    options: ['type', 'imatrix', 'threads'],
    text: 'writes a model with another weight type',
    more: ' MODEL has its weights in F32, F16 or BF16; it may also be\n'
      + 'a projector (mmproj). Download a model from an address first, all files of it.',
    local: true,
  },
  copy: {
    words: ['DIR'], options: [], text: 'copies the files that a page loads into DIR',
    more: ' For bundlers that do not copy them (Rollup, esbuild, bun build): DIR is where\n'
      + 'the bundle is, or another folder, whose worker.js is passed to load() as workerUrl.',
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
