// SPDX-License-Identifier: MIT
// What each command of the command line does. They use the package as everybody else does.

import { createInterface } from 'node:readline';
import { badParam } from './errors.js';
import { infoText } from './cli-info.js';
import { profileTables } from './cli-profile.js';
import { inspect } from './inspect.js';
import { load } from './node.js';
import { quantizeFile } from './quantize.js';
import { stoppable } from './stoppable.js';
import { writeWhole } from './whole-file.js';

const out = (line) => process.stdout.write(line);

/** Runs with a loaded model, which is disposed of in any case. */
const withModel = (use) => async (args) => {
  const model = await load(args.model, args.load);
  try {
    return await use(model, args);
  } finally {
    await model.dispose();
  }
};

async function readStdin() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function run(model, { text, values, reply: options }) {
  const reply = model.complete(text, options);
  const onInterrupt = () => reply.stop();
  process.once('SIGINT', onInterrupt);
  if (!values.json) {
    for await (const piece of reply) out(piece);
    out('\n');
  }
  const result = await reply.result;
  process.off('SIGINT', onInterrupt);
  if (values.json) out(`${JSON.stringify(result)}\n`);
}

/** Prints a reply as it comes, its thinking dimmed. @returns {Promise<object>} the result */
async function show(reply) {
  const dim = (on) => (process.stdout.isTTY ? `\x1b[${on ? 2 : 22}m` : '');
  let thinking = false;
  for await (const { type, text } of reply.events) {
    if ((type === 'thinking') !== thinking) {
      thinking = !thinking;
      out(thinking ? dim(true) : `${dim(false)}\n\n`);
    }
    out(text);
  }
  out(`${thinking ? dim(false) : ''}\n`);
  return reply.result;
}

/** Lines in, replies out, until the end of the input. Ctrl-C stops a reply, and without one ends the program. */
async function chat(model, { reply: options }) {
  const messages = [];
  let reply = null;
  const lines = createInterface({ input: process.stdin, output: process.stdout.isTTY ? process.stdout : undefined, prompt: '> ' });
  const onInterrupt = () => (reply ? reply.stop() : lines.close());
  lines.on('SIGINT', onInterrupt);
  process.on('SIGINT', onInterrupt);
  if (process.stdout.isTTY) lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== '') {
      messages.push({ role: 'user', content: line });
      reply = model.chat(messages, options);
      const { text, thinking } = await show(reply);
      messages.push({ role: 'assistant', content: text, thinking });
      reply = null;
    }
    if (process.stdout.isTTY) lines.prompt();
  }
  process.off('SIGINT', onInterrupt);
}

/** The parts of a buffer between NUL bytes. */
function splitAtNul(bytes) {
  const parts = [];
  let start = 0;
  for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, start)) {
    parts.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return [...parts, bytes.subarray(start)];
}

async function tokenize(model, { values }) {
  const input = await readStdin();
  const texts = values.nul ? splitAtNul(input) : [input];
  for (const text of texts) {
    const ids = await model.tokenize(new Uint8Array(text));
    if (values.ids || values.nul) out(`${ids.join(' ')}\n`);
    else for (const id of ids) out(`${id}\t${JSON.stringify(await model.detokenize([id]))}\n`);
  }
}

async function logits(model, { values }) {
  if (values.tokens === undefined) throw badParam('--tokens', 'is missing');
  if (values.out === undefined) throw badParam('--out', 'is missing');
  const ids = values.tokens.trim().split(/[\s,]+/).map(Number);
  const rows = await model.logits(ids);
  await writeWhole('--out', values.out, new Uint8Array(rows.buffer));
}

/** Token ids that look like nothing in particular; the same on every run. */
const someTokens = (n, nTokens) => Array.from({ length: n }, (_, i) => (i * 7919 + 13) % Math.min(nTokens, 50_000));

async function bench({ model: source, load: options, counts: { prompt = 128, generate = 32 }, values }) {
  const start = performance.now();
  const model = await load(source, options);
  const loadMs = performance.now() - start;
  try {
    const reply = model.complete(someTokens(prompt, model.info.tokens), { maxTokens: generate, temperature: 0 });
    const { timings } = await reply.result;
    const { variant, threads, memory } = model.info;
    const figures = {
      prefill_tps: (1000 * prompt) / timings.prefillMs, decode_tps: timings.tokensPerSecond,
      load_ms: loadMs, peak_bytes: memory.peak, variant, threads,
    };
    const profile = await model.profile();
    out(values.json ? `${JSON.stringify({ ...figures, ...(profile && { profile }) })}\n` : table(figures));
    if (profile && !values.json) out(profileTables(profile, timings));
  } finally {
    await model.dispose();
  }
}

/** Names and values in two columns. */
function table(record) {
  const width = Math.max(...Object.keys(record).map((name) => name.length));
  const show = (value) => (typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value));
  return Object.entries(record).map(([name, value]) => `${name.padEnd(width)}  ${show(value)}\n`).join('');
}

/** Reads no weights. */
async function info({ model: source, load: options, values }) {
  const facts = await inspect(source, options);
  out(values.json ? `${JSON.stringify(facts)}\n` : infoText(facts));
}

/** On a terminal, over itself. */
function showProgress(part) {
  if (!process.stderr.isTTY) return;
  const width = 40;
  process.stderr.write(`\r[${'#'.repeat(part * width).padEnd(width)}] ${String(Math.round(100 * part)).padStart(3)} %${part === 1 ? '\n' : ''}`);
}

async function quantize({ model, text: out, values: { type }, load: { threads } }) {
  if (type === undefined) throw badParam('--type', 'is missing');
  process.stderr.on('error', () => {}); // a terminal that has closed; the signal of that follows
  try {
    await stoppable('The conversion was stopped; nothing was kept of it.', (signal) => quantizeFile(model, out, { type, threads, signal, onProgress: showProgress }));
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K'); // an unfinished bar
  }
}

export const commands = {
  bench,
  chat: withModel(chat),
  info,
  logits: withModel(logits),
  quantize,
  run: withModel(run),
  tokenize: withModel(tokenize),
};
