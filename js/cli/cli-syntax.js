// SPDX-License-Identifier: MIT
// The commands, the words and options that each takes, and what they are for: cli-main.js reads arguments by this, cli-help.js tells it.
// The native program has a table of its own (src/cli/cli_args.c) with the same texts.

/** `value`: what an option takes, '' where it takes nothing. */
export const OPTIONS = {
  'max-tokens': { value: 'N', text: 'longest reply; 0 only reads the prompt' },
  system: { value: 'TEXT', text: 'what the model is told before the talk' },
  think: { value: '', text: 'thinks before it answers, where the model knows how' },
  'no-think': { value: '', text: 'does not think; the same as without either' },
  temperature: { value: 'T', text: 'randomness; 0 always takes the likeliest token (0.7, thinking 0.6)' },
  'top-p': { value: 'P', text: 'of the likeliest tokens those that have this probability together; 1: all (0.8, thinking 0.95)' },
  'top-k': { value: 'N', text: 'so many of the likeliest tokens; 0: all (20)' },
  'min-p': { value: 'P', text: 'no token less likely than this share of the likeliest (0)' },
  'repeat-penalty': { value: 'R', text: 'divides the scores of tokens that were there lately (1)' },
  keep: { value: 'NAME', text: 'keeps what was read and written under this name, so that the next talk that begins like this one goes on at once' },
  stop: { value: 'TEXT', text: 'ends the reply where this text would come; may be given several times', many: true },
  seed: { value: 'S', text: 'the same seed gives the same reply' },
  schema: { value: 'FILE', text: 'the reply is JSON that is valid by this JSON Schema' },
  grammar: { value: 'FILE', text: 'the reply is what this GBNF grammar describes' },
  regex: { value: 'PATTERN', text: 'the reply is what this regular expression matches, as a whole' },
  'json-reply': { value: '', text: 'the reply is JSON' },
  json: { value: '', text: 'prints JSON' },
  ids: { value: '', text: 'prints the ids alone, in one line' },
  nul: { value: '', text: 'takes the input as texts with NUL bytes between them, and prints a line of ids for each' },
  tokens: { value: 'IDS', text: 'decimal ids with a space or a comma between them' },
  instruction: { value: 'TEXT', text: 'what texts are searched for, in a sentence; of vectors: makes queries of the texts' },
  dimensions: { value: 'N', text: 'numbers of a vector, the first ones (all)' },
  out: { value: 'FILE', text: 'where the scores go: 32-bit floats, little-endian, a row for each token' },
  messages: { value: 'FILE.json', text: 'a conversation: {"messages": […], "numberImages": true}, images being paths' },
  vision: { value: 'MMPROJ', text: 'the projector of a GGUF model, with which it reads images; a folder has its own' },
  image: { value: 'FILE', text: 'an image that is asked about; may be given several times', many: true },
  video: { value: 'FOLDER', text: 'a video that is asked about, an image for each frame; may be given several times', many: true },
  fps: { value: 'F', text: 'frames a second of the video as it was recorded (24)' },
  'min-pixels': { value: 'N', text: "of an image, which is enlarged to so many (the model's own, 65536)" },
  'max-pixels': { value: 'N', text: 'of an image, which is reduced to so many (262144)' },
  'min-video-pixels': { value: 'N', text: "of all frames of a video together (the model's own, 4096)" },
  'max-video-pixels': { value: 'N', text: 'of all frames of a video together (524288)' },
  'max-frames': { value: 'N', text: 'frames that are taken of a video (16)' },
  'max-image-pixels': { value: 'N', text: 'of an image as it comes, before it is reduced (16777216)' },
  'max-images': { value: 'N', text: 'images of a request (32)' },
  'image-memory': { value: 'BYTES', text: 'memory for images that are decoded, together (640MiB)' },
  prompt: { value: 'N', text: 'tokens that are read (128)' },
  generate: { value: 'N', text: 'tokens that are written (32)' },
  profile: { value: '', text: 'shows what each operation costs' },
  type: { value: 'TYPE', text: 'q8_0, q4_0, q4_k or q6_k' },
  context: { value: 'N', text: 'positions (tokens) there is room for, replies included' },
  memory: { value: 'BYTES', text: 'memory that may be used: 4GB, 4GiB, 512MB or plain bytes' },
  threads: { value: 'N', text: 'threads that compute' },
  variant: { value: 'NAME', text: 'kernels: scalar, simd or relaxed' },
  kv: { value: 'TYPE', text: 'of the numbers kept per position: f16, q8 or f32' },
  quantize: { value: 'TYPE', text: 'what weights become while they are loaded: none, q8, q4 or auto; WEIGHTS/EMBEDDINGS: one for each' },
  chunk: { value: 'N', text: 'tokens computed at once while a prompt is read' },
  store: { value: 'FOLDER', text: 'where models from servers are kept' },
  'no-store': { value: '', text: 'keeps nothing' },
  header: { value: "'NAME: VALUE'", text: 'is sent with every request; may be given several times', many: true },
  host: { value: 'ADDRESS', text: 'where requests are taken (127.0.0.1); another one needs a key' },
  port: { value: 'N', text: 'of that address (8080); 0: any that is free' },
  'api-key': { value: 'KEY', text: 'who sends it may ask (QUERN_API_KEY, where others do not see it); may be given several times', many: true },
  'allow-host': { value: 'NAME', text: 'another name that this machine is asked by; may be given several times', many: true },
  'cors-origin': { value: 'ORIGIN', text: 'of pages that may ask, such as https://example.org; may be given several times', many: true },
  'model-name': { value: 'NAME', text: 'what the model is called; requests for another one are refused then' },
  parallel: { value: 'N', text: 'replies that are made side by side, 1 to 16 (8)' },
  queue: { value: 'N', text: 'requests that may wait for them (512); who comes then is told when to come again' },
  'kv-positions': { value: 'N', text: 'positions that all replies together have room for (those of one context)' },
  'share-caches': { value: '', text: 'what one key\'s requests have left behind (prompts that were read, images) also serves those of others' },
  slots: { value: '', text: 'shows at /slots what is being made, in numbers' },
  grace: { value: 'SECONDS', text: 'that replies have to end by themselves when the server is to end (30)' },
};

const SAMPLING = ['max-tokens', 'temperature', 'top-p', 'top-k', 'min-p', 'repeat-penalty', 'seed', 'stop'];
const LIMITS = ['schema', 'grammar', 'regex', 'json-reply'];
const VISION = ['vision', 'min-pixels', 'max-pixels', 'min-video-pixels', 'max-video-pixels', 'max-frames'];
const SERVED_VISION = ['max-image-pixels', 'max-images', 'image-memory'];
const FETCH = ['store', 'no-store', 'header'];
const LOAD = ['context', 'memory', 'threads', 'variant', 'kv', 'quantize', 'chunk', ...FETCH];

/** `words`: what comes without a name; `optional`: how many of the last ones may be left out; `rest`: what usage shows besides. */
export const COMMANDS = {
  chat: {
    words: ['MODEL', 'PROMPT'], optional: 1,
    options: ['system', 'think', 'no-think', 'keep', ...VISION, 'image', 'video', 'fps', ...SAMPLING, ...LIMITS, ...LOAD],
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
      'host', 'port', 'api-key', 'allow-host', 'cors-origin', 'model-name', 'parallel', 'queue', 'kv-positions', 'share-caches',
      'slots', 'grace', ...VISION, ...SERVED_VISION, ...LOAD,
    ],
    text: 'answers requests of the OpenAI API, Anthropic\'s and Ollama\'s over HTTP',
    more: ' Any program that takes a base URL can ask: http://127.0.0.1:8080/v1.\n'
      + 'Nobody else on the network can unless --host says so, and no web page unless --cors-origin names it.',
  },
  embed: {
    words: ['MODEL', 'FILE'], optional: 1, options: ['instruction', 'dimensions', 'json', ...LOAD], text: 'makes a vector of each line of FILE',
    more: " Without FILE, or where it is '-', the lines come from the standard input.",
  },
  rank: {
    words: ['MODEL', 'QUERY', 'FILE'], optional: 1, options: ['instruction', 'json', ...LOAD],
    text: 'says how well each line of FILE answers QUERY, the best first',
    more: " Without FILE, or where it is '-', the lines come from the standard input.",
  },
  info: { words: ['MODEL'], options: ['json', 'vision', ...LOAD], text: 'says what a model is and what memory it takes; reads no weights' },
  download: { words: ['MODEL'], options: ['vision', 'store', 'header'], text: 'gets a model, or the rest of it, and keeps it' },
  list: { words: [], options: ['json', 'store'], text: 'says which models are kept' },
  remove: { words: ['MODEL|all'], options: ['store'], text: 'removes a model, or all of them, from those that are kept' },
  kept: { words: [], options: ['json', 'store'], text: 'says which talks are kept (chat --keep)' },
  forget: { words: ['NAME|all'], options: ['store'], text: 'forgets a talk that is kept, or all of them' },
  quantize: { words: ['MODEL', 'OUT.gguf'], rest: '--type TYPE', options: ['type', 'threads'], text: 'writes a model with another weight type' },
  copy: {
    words: ['DIR'], options: [], text: 'puts the files that a page loads into DIR',
    more: ' For bundlers that copy none (Rollup, esbuild, bun build): DIR is where\n'
      + 'the bundle lies, or a folder of its own whose worker.js is given to load() as workerUrl.',
  },
  bench: { words: ['MODEL'], options: ['prompt', 'generate', 'profile', 'json', ...LOAD], text: 'measures speed' },
  tokenize: { words: ['MODEL'], rest: '< text', options: ['ids', 'nul', ...LOAD], text: 'shows the tokens of a text; reads no weights' },
  logits: { words: ['MODEL'], rest: '--tokens IDS --out FILE', options: ['tokens', 'messages', 'out', ...VISION, ...LOAD],
    text: 'writes the scores of what could follow each token' },
  vision: { words: ['MODEL'], rest: '--image FILE --out FILE', options: ['image', 'out', ...VISION, ...LOAD],
    text: 'writes what a model makes of an image' },
};
