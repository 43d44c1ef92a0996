// SPDX-License-Identifier: MIT
// What the command line says about itself, made from its syntax (cli-syntax.js).

import { COMMANDS, OPTIONS } from './cli-syntax.js';

const MODEL = `\
MODEL is the path of a GGUF file (of a split one the first part), of a folder with safetensors and JSON files, or of a qwen3.c
checkpoint beside its .tokenizer file; the address of such a file or folder; or hf:OWNER/REPO[/FILE][@REVISION] for one on Hugging Face,
hf:OWNER/REPO:Q8_0 for the GGUF file of this type there.
`;

const KEPT = `\
Models from servers are kept in this user's folder for caches, so that they are downloaded once (list, remove, --store, --no-store).
HF_TOKEN or QUERN_TOKEN in the environment is sent to Hugging Face, for private and gated repositories, and to nobody else.

Failures are one line on stderr, and the exit code 1; after Ctrl-C it is 130.
`;

/** Names in one column, what they mean in the next. */
function table(rows) {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join('');
}

function usage(name) {
  const { words, optional = 0, rest } = COMMANDS[name];
  const shown = words.map((word, i) => (i < words.length - optional ? word : `[${word}]`));
  return ['quern', name, ...shown, rest].filter(Boolean).join(' ');
}

const option = (name) => [`--${name}${OPTIONS[name].value && ` ${OPTIONS[name].value}`}`, OPTIONS[name].text];

function general() {
  const commands = table(Object.keys(COMMANDS).map((name) => [usage(name), COMMANDS[name].text]));
  return `usage: quern COMMAND [options]\n\n${commands}\nquern help COMMAND tells a command's options.\n\n${MODEL}\n${KEPT}`;
}

function ofCommand(name) {
  const { text, more = '', words, options } = COMMANDS[name];
  return [`usage: ${usage(name)}${options.length ? ' [options]' : ''}\n\n${text[0].toUpperCase()}${text.slice(1)}.${more}\n`,
    ...(options.length ? [table(options.map(option))] : []), ...(words.includes('MODEL') ? [MODEL] : [])].join('\n');
}

/** The help that these arguments ask for; null where they do not. Behind '--' nothing is an option. */
export function help(args) {
  const end = args.indexOf('--');
  const asked = args.slice(0, end < 0 ? undefined : end).some((word) => ['--help', '-h'].includes(word));
  const [name, of] = args[0] === 'help' ? [args[1], true] : [args[0], asked];
  if (name === undefined || ['--help', '-h'].includes(name)) return general();
  return of && Object.hasOwn(COMMANDS, name) ? ofCommand(name) : null;
}
