// SPDX-License-Identifier: MIT
// The main function of the command line: finds the command, reads its arguments, runs it, and prints a failure in one
// line.

import { parseArgs } from 'node:util';
import { commands } from './cli-commands.js';
import { interrupted, listen } from './cli-signals.js';
import { COMMANDS, OPTIONS } from './cli-syntax.js';
import { say } from './cli-terminal.js';
import { bytesOf, headersFor, numberOf, quantizeOf } from './cli-values.js';
import { worded } from './cli-wording.js';
import { checkOptions } from '../page/options.js';
import { QuernError, badParam } from '../shared/errors.js';
import { LOAD, REPLY, VISION } from '../shared/options.js';

const typeOf = ({ value, many = false }) => ({ type: value ? 'string' : 'boolean', multiple: many });

/** @returns {{values: object, positionals: string[]}} */
function readWords(command, args) {
  const options = Object.fromEntries(COMMANDS[command].options.map((name) => [name, typeOf(OPTIONS[name])]));
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new QuernError(
      'use/param',
      `${error.message.split(/\.?(?:\s*\n|\. |$)/)[0].slice(0, 200)} (quern help ${command}).`,
      { cause: error },
    );
  }
}

function checkWords(command, found) {
  const { words, optional = 0 } = COMMANDS[command];
  if (found.length <= words.length && found.length >= words.length - optional) return;
  const given = `${found.length} ${found.length === 1 ? 'word was' : 'words were'} given`;
  const advice = found.length > words.length && words.length > 0 ? '; put what has spaces into quotes' : '';
  const least = words.length - optional;
  const wanted =
    [words.slice(0, least).join(' and '), ...words.slice(least)].filter(Boolean).join(' and perhaps ') || 'no words';
  throw badParam(`'quern ${command}'`, `takes ${wanted}, but ${given}${advice} (quern help ${command})`);
}

function storeOf({ store, 'no-store': none }) {
  if (store !== undefined && none) throw badParam('--store', 'and --no-store exclude each other');
  if (store === '') throw badParam('--store', 'must name a folder');
  return store ?? !none;
}

/** Functions that read values, by kind; other values stay texts. */
const READERS = { whole: numberOf, between: numberOf, above: numberOf, bytes: bytesOf, quantize: quantizeOf };

/**
 * The library's options from the flags, for one table of options.
 * @param {Record<string, import('../shared/options.js').Row>} table
 */
const givenOf = (table, values) =>
  Object.fromEntries(
    Object.entries(table)
      .filter(([, { flag }]) => flag)
      .map(([name, { kind, flag }]) => [
        name,
        Object.hasOwn(READERS, kind) ? READERS[kind](values[flag], `--${flag}`) : values[flag],
      ]),
  );

/**
 * The arguments in the form that commands take: the model, the words after it, the flags as written, and the library's
 * options.
 */
function parse(command, args) {
  const { values, positionals } = readWords(command, args);
  checkWords(command, positionals);
  const [model, text, more] = positionals;
  const load = {
    ...givenOf(LOAD, values),
    visionOptions: givenOf(VISION, values),
    drafts: !values['no-drafts'],
    store: storeOf(values),
    headers: COMMANDS[command].options.includes('header')
      ? headersFor([model, values.vision], values.header)
      : undefined,
    signal: interrupted,
  };
  const { schema, grammar, regex, json, ...reply } = givenOf(REPLY, values);   // the four are files (cli-limits.js)
  return { model, text, more, values, load, reply: checkOptions('complete', reply) };
}

async function run([command, ...args]) {
  if (!Object.hasOwn(COMMANDS, command)) {
    throw badParam(`'${(command === 'help' ? args[0] : command).slice(0, 64)}'`,
      `is not a command; these are: ${Object.keys(COMMANDS).join(', ')} (quern help)`);
  }
  await commands[command](parse(command, args));
}

/** @param {string[]} args the command first */
export async function main(args) {
  listen();
  console.info = (text) => say(text.replace(/^quern: /, ''));   // messages of the library while it works
  try {
    await run(args);
  } catch (error) {
    if (!interrupted.aborted || error.code === 'use/aborted') say(worded(error));
    process.exitCode ||= 1;
  }
  if (interrupted.aborted) process.exit();   // the output may never be read
}
