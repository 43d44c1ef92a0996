#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The command line: finds the command, reads its options, prints a failure as one line. What the commands do is in
// cli-commands.js.

import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { commands } from './cli-commands.js';
import { QuernError, badParam } from './errors.js';

const USAGE = `usage: quern COMMAND MODEL [options]

MODEL: the path or the address of a GGUF file (of a split one the first part), or the path of a folder with safetensors and
JSON files, or of a qwen3.c checkpoint beside its .tokenizer file.

  quern chat MODEL
  quern run MODEL PROMPT [--max-tokens N] [--temperature T] [--seed S] [--json]
  quern tokenize MODEL [--ids] [--nul] < text
  quern logits MODEL --tokens "1 2 3" --out FILE.f32
  quern bench MODEL [--prompt N] [--generate N] [--profile] [--json]
  quern info MODEL [--json]
  quern quantize MODEL OUT.gguf --type q8_0|q4_0|q4_k|q6_k     MODEL: a path of a GGUF file or a folder with safetensors files

chat talks, a line a turn; run continues PROMPT; tokenize and logits show what the model sees and says; bench measures speed; info
says what a model is and what memory it takes, and reads no weights.

All take --threads N --variant scalar|simd|relaxed --kv f16|q8|f32 --quantize q8|q4 --context N --chunk N --memory BYTES --no-cache.
Models from URLs are kept in this user's folder for caches, so that they are downloaded once; not with --no-cache.
`;

const INTERRUPTED = 130; // as shells have it: 128 + SIGINT

const { version } = createRequire(import.meta.url)('../package.json');

const text = { type: 'string' };
const flag = { type: 'boolean' };
const COMMON = { threads: text, variant: text, kv: text, quantize: text, context: text, chunk: text, memory: text, 'no-cache': flag };
const SAMPLING = { 'max-tokens': text, temperature: text, seed: text };

/** Options of each command, and the names of what it takes besides MODEL. */
const SYNTAX = {
  chat: { options: SAMPLING },
  run: { options: { ...SAMPLING, json: flag }, also: ['PROMPT'] },
  tokenize: { options: { ids: flag, nul: flag } },
  logits: { options: { tokens: text, out: text } },
  bench: { options: { prompt: text, generate: text, profile: flag, json: flag } },
  info: { options: { json: flag } },
  quantize: { options: { type: text }, also: ['OUT'] },
};

function number(values, name) {
  const value = values[name];
  if (value === undefined) return undefined;
  if (value.trim() === '' || Number.isNaN(Number(value))) throw badParam(`--${name}`, `must be a number, not '${value.slice(0, 64)}'`);
  return Number(value);
}

function parse(command, args) {
  const { options, also = [] } = SYNTAX[command];
  let parsed;
  try {
    parsed = parseArgs({ args, options: { ...COMMON, ...options }, allowPositionals: true });
  } catch (error) {
    throw new QuernError('use/param', error.message.split('. ')[0].replace(/\.?$/, '.'), { cause: error });
  }
  const wanted = ['MODEL', ...also];
  const { values, positionals } = parsed;
  if (positionals.length !== wanted.length) throw badParam(`'quern ${command}'`, `takes ${wanted.join(' and ')}, but ${positionals.length} ${positionals.length === 1 ? 'word was' : 'words were'} given${positionals.length > wanted.length ? '; put what has spaces into quotes' : ''} (quern help)`);
  const load = {
    threads: number(values, 'threads'), variant: values.variant, kv: values.kv, quantize: values.quantize,
    contextSize: number(values, 'context'), chunk: number(values, 'chunk'), memoryLimit: number(values, 'memory'), profile: values.profile,
    cache: !values['no-cache'],
  };
  const reply = { maxTokens: number(values, 'max-tokens'), temperature: number(values, 'temperature'), seed: number(values, 'seed') };
  const counts = { prompt: number(values, 'prompt'), generate: number(values, 'generate') };
  return { model: positionals[0], text: positionals[1], values, load, reply, counts };
}

async function main([command, ...args]) {
  if (command === undefined || command === 'help' || [command, ...args].some((word) => ['--help', '-h'].includes(word))) return process.stdout.write(USAGE);
  if (command === '--version') return process.stdout.write(`${version}\n`);
  if (!Object.hasOwn(SYNTAX, command)) throw badParam(`'${command.slice(0, 64)}'`, `is not a command; these are: ${Object.keys(SYNTAX).join(', ')}`);
  return commands[command](parse(command, args));
}

// `quern … | head` ends the reader first; that is no failure of ours.
process.stdout.on('error', (error) => process.exit(error.code === 'EPIPE' ? 0 : 1));

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`quern: ${error.code ?? 'engine/trap'}: ${String(error.message).replaceAll('\n', ' ')}\n`);
  process.exitCode = error.code === 'use/aborted' ? INTERRUPTED : 1;
});
