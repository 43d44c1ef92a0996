// SPDX-License-Identifier: MIT
// The help of the command line, made from its syntax (cli-syntax.js).

import { COMMANDS, OPTIONS } from './cli-syntax.js';

const LOCAL = `\
MODEL is one of these:
- the path of a GGUF file, or of the first part of one that is split;
- the path of a folder with safetensors and JSON files;
- the path of a qwen3.c checkpoint, with its .tokenizer file beside it`;

const MODEL = `\
${LOCAL};
- the web address of such a file or folder;
- hf:OWNER/REPO[/FILE][@REVISION], a file or folder on Hugging Face;
- hf:OWNER/REPO:Q8_0, the GGUF file of this weight type there.
`;

const STORED = `\
A downloaded model is stored in your cache folder, so that it is downloaded only
once. See 'quern list', 'quern remove', --store and --no-store.

For private and gated repositories, set HF_TOKEN or QUERN_TOKEN in the
environment. The token is sent to Hugging Face and to nobody else.

An error is one line on stderr, and the exit code is 1. After Ctrl-C it is 130.
`;

/** Formats names and explanations in two columns. */
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
  return `usage: quern COMMAND [options]\n\n${commands}\nquern help COMMAND tells a command's options.\n\n${MODEL}\n${STORED}`;
}

function ofCommand(name) {
  const { text, more = '', words, options, local } = COMMANDS[name];
  return [
    `usage: ${usage(name)}${options.length ? ' [options]' : ''}\n\n${text[0].toUpperCase()}${text.slice(1)}.${more}\n`,
    ...(options.length ? [table(options.map(option))] : []),
    ...(words.includes('MODEL') ? [local ? `${LOCAL}.\n` : MODEL] : []),
  ].join('\n');
}

/** The help that the arguments ask for; null: they ask for none. After '--' nothing is an option. */
export function help(args) {
  const end = args.indexOf('--');
  const asked = args.slice(0, end < 0 ? undefined : end).some((word) => ['--help', '-h'].includes(word));
  const [name, of] = args[0] === 'help' ? [args[1], true] : [args[0], asked];
  if (name === undefined || ['--help', '-h'].includes(name)) return general();
  return of && Object.hasOwn(COMMANDS, name) ? ofCommand(name) : null;
}
