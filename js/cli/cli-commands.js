// SPDX-License-Identifier: MIT
// The commands of the command line. They use the package as any other program does.

import { createInterface } from 'node:readline';
import { logits, vision } from './cli-arrays.js';
import { copy } from './cli-copy.js';
import { infoText } from './cli-info.js';
import { checkWhole, limitsOf } from './cli-limits.js';
import { withModel } from './cli-model.js';
import { download, forget, saved, list, remove } from './cli-models.js';
import { contentOf, mediaParts } from './cli-images.js';
import { profileTables } from './cli-profile.js';
import { interrupted, onCtrlC, stopWith } from './cli-signals.js';
import { OPTIONS } from './cli-syntax.js';
import { dim, input, out, say } from './cli-terminal.js';
import { tokenize } from './cli-tokenize.js';
import { wholeOf } from './cli-values.js';
import { embed, rank } from './cli-vectors.js';
import { worded } from './cli-wording.js';
import { QuernError, badParam, isOf } from '../shared/errors.js';
import { inspect } from './inspect.js';
import { quantizeFile } from './quantize.js';
import { serve } from './serve.js';
import { checkOptions } from '../page/options.js';

/** Most bytes of a prompt from the standard input: more than any context holds. */
const MOST_PROMPT = 2 ** 27;

/** Reads the prompt from the standard input, without the newline at its end. */
async function readPrompt() {
  const chunks = [];
  let size = 0;
  for await (const chunk of input()) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MOST_PROMPT) throw badParam('PROMPT', `is longer than ${MOST_PROMPT} bytes`);
  }
  return String(Buffer.concat(chunks)).replace(/\r?\n$/, '');
}

/** Continues a prompt. A stopped reply still counts as a result. */
async function run({ model: source, text, values, load: options, reply: sampling }) {
  const prompt = text === '-' ? await readPrompt() : text;
  const limits = await limitsOf(values);
  await withModel(source, options, async (model) => {
    const reply = model.complete(prompt, { ...sampling, ...limits });
    interrupted.addEventListener('abort', () => reply.stop());
    if (!values.json) {
      for await (const piece of reply) await out(piece);
      await out('\n');
    }
    const result = await reply.result;
    if (values.json) await out(`${JSON.stringify(result)}\n`);
    checkWhole(limits, result);
  });
}

/** Prints a reply as it is written, with its thinking dimmed. */
async function show(reply) {
  let last = null;
  try {
    for await (const { type, text } of reply.events) {
      if (type !== last) dim(type === 'thinking');
      await out(last === 'thinking' && type === 'text' ? `\n\n${text}` : text);
      last = type;
    }
  } finally {
    dim(false);
    if (last) await out('\n');
  }
}

/** A conversation with a model. */
class Talk {
  #model;
  #options;
  #messages;
  #parts;         // media for the next question
  #reply = null;

  constructor(model, { messages, parts }, options) {
    this.#model = model;
    this.#messages = messages;
    this.#parts = parts;
    this.#options = options;
  }

  /** Asks one question. If it fails, its turn is left out and the conversation goes on, unless the engine has ended. */
  async turn(line) {
    const messages = [...this.#messages, { role: 'user', content: contentOf(this.#parts, line) }];
    try {
      this.#reply = this.#model.chat(messages, this.#options);
      await show(this.#reply);
      const result = await this.#reply.result;
      checkWhole(this.#options, result);
      const { text, thinking } = result;
      this.#messages = [...messages, { role: 'assistant', content: text, thinking }];
      this.#parts = [];
    } catch (error) {
      if (!(error instanceof QuernError) || isOf('engine', error)) throw error;
      say(`${worded(error)} This turn is left out.`);
    } finally {
      this.#reply = null;
    }
  }

  /** @returns {boolean} whether there was a reply to stop */
  stop() {
    this.#reply?.stop();
    return this.#reply !== null;
  }
}

/** The options of a conversation, from the flags. */
function talkOf({ system, think, 'no-think': noThink }) {
  if (think && noThink) throw badParam('--think', 'and --no-think exclude each other');
  return {
    messages: system === undefined ? [] : [{ role: 'system', content: system }],
    thinking: think || (noThink ? false : undefined),
  };
}

/** Answers one question. A stopped reply still counts as a result. */
async function answer(model, text, { messages, parts }, options) {
  const reply = model.chat([...messages, { role: 'user', content: contentOf(parts, text) }], options);
  interrupted.addEventListener('abort', () => reply.stop());
  await show(reply);
  checkWhole(options, await reply.result);
}

/**
 * Holds a conversation: reads lines and prints replies until the input ends. Ctrl-C stops a reply; without one it ends
 * the program.
 */
async function converse(model, begun, options) {
  const talk = new Talk(model, begun, { ...options, signal: interrupted });
  const { isTTY } = process.stdout;
  const lines = createInterface({
    input: process.stdin,
    output: isTTY ? process.stdout : undefined,
    prompt: '> ',
    signal: interrupted,
  });
  let open = true;
  const ask = () => isTTY && open && lines.prompt();     // prompt() would open a closed input again
  lines.once('close', () => { open = false; });
  onCtrlC(() => talk.stop());
  lines.on('SIGINT', () => process.emit('SIGINT'));   // on a terminal Ctrl-C arrives as a key
  ask();
  for await (const line of lines) {
    if (line.trim() !== '') await talk.turn(line);
    ask();
  }
  if (isTTY) await out('\n');
}

async function chat({ model: source, text, values, load: options, reply: sampling }) {
  const { messages, thinking } = talkOf(values);
  const prompt = text === '-' ? await readPrompt() : text;
  if (values.save !== undefined && options.store === false)
    throw badParam('--save', 'and --no-store exclude each other');
  const all = { ...checkOptions('chat', { ...sampling, thinking, save: values.save }), ...(await limitsOf(values)) };
  const begun = { messages, parts: await mediaParts(values) };
  await withModel(source, options, (model) =>
    prompt === undefined ? converse(model, begun, all) : answer(model, prompt, begun, all),
  );
}

/** Token ids without a pattern, the same on every run. */
const someTokens = (n, nTokens) => Array.from({ length: n }, (_, i) => (i * 7919 + 13) % Math.min(nTokens, 50_000));

/** Reads and writes the given numbers of tokens; end tokens are forbidden. */
async function measure(model, prompt, generate) {
  const { tokens, endTokens, contextSize } = model.info;
  if (prompt + generate > contextSize) {
    throw badParam(
      '--prompt',
      `and --generate are ${prompt + generate} tokens together, but the context holds ${contextSize}; give a larger --context`,
    );
  }
  const logitBias = Object.fromEntries(endTokens.map((id) => [id, -Infinity]));
  const options = { maxTokens: generate, temperature: 0, logitBias, signal: interrupted };
  const { timings } = await model.complete(someTokens(prompt, tokens), options).result;
  return timings;
}

/** Reads a number of tokens from a flag. */
const countOf = (flag, text) => wholeOf(text, `--${flag}`, [OPTIONS[flag].least, OPTIONS[flag].most]);

async function bench({ model: source, load: options, values }) {
  const prompt = countOf('prompt', values.prompt ?? '128');
  const generate = countOf('generate', values.generate ?? '32');
  const start = performance.now();
  // What is written has no meaning and may repeat itself, so drafts would tell nothing about other replies.
  await withModel(source, { ...options, drafts: false }, async (model) => {
    const loadMs = performance.now() - start;
    const timings = await measure(model, prompt, generate);
    const { variant, threads, memory } = model.info;
    const figures = {
      prefill_tps: (1000 * prompt) / timings.prefillMs, decode_tps: timings.tokensPerSecond,
      load_ms: loadMs, peak_bytes: memory.peak, variant, threads,
    };
    const profile = await model.profile();
    await out(values.json ? `${JSON.stringify({ ...figures, ...(profile && { profile }) })}\n` : table(figures));
    if (profile && !values.json) await out(profileTables(profile, timings));
  });
}

/** Formats names and values in two columns. */
function table(record) {
  const width = Math.max(...Object.keys(record).map((name) => name.length));
  const show = (value) => (typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value));
  return Object.entries(record).map(([name, value]) => `${name.padEnd(width)}  ${show(value)}\n`).join('');
}

/** Reads the headers of a model, no weights. */
async function info({ model: source, load: options, values }) {
  const facts = await inspect(source, options);
  await out(values.json ? `${JSON.stringify(facts)}\n` : infoText(facts));
}

/** Shows a progress bar on a terminal, in place of the last one. */
function showProgress(part) {
  if (!process.stderr.isTTY) return;
  const width = 40;
  process.stderr.write(
    `\r[${'#'.repeat(part * width).padEnd(width)}] ${String(Math.round(100 * part)).padStart(3)} %${part === 1 ? '\n' : ''}`,
  );
}

async function quantize({ model, text: out, values: { type, imatrix }, load: { threads } }) {
  if (type === undefined) throw badParam('--type', 'is missing');
  try {
    const signal = stopWith('The conversion was stopped; nothing was kept of it.');
    await quantizeFile(model, out, { type, imatrix, threads, signal, onProgress: showProgress });
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K'); // removes an unfinished bar
  }
}

export const commands = {
  bench,
  chat,
  copy,
  download,
  embed,
  forget,
  info,
  saved,
  list,
  logits,
  quantize,
  rank,
  remove,
  run,
  serve,
  tokenize,
  vision,
};
