// SPDX-License-Identifier: MIT
// Puts the library's failures into the words of the command line: an option of a function becomes a flag.

import { asQuernError } from '../shared/errors.js';
import { LOAD, REPLY, VISION } from '../shared/options.js';

const ROWS = { ...REPLY, ...LOAD, ...VISION };

const flag = (name) =>
  `--${(Object.hasOwn(ROWS, name) && ROWS[name].flag) || name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** Names of arguments: the model is the first word, and ids come by an option. */
const ARGUMENTS = [[/^source(?:\.\w+)?/, 'MODEL'], [/^tokens(?=\[)/, '--tokens']];

const WORDS = [
  [
    /(?:options\.)?headers: \{ Authorization[^}]*\}/g,
    "--header 'Authorization: Bearer …' (for Hugging Face HF_TOKEN will do)",
  ],
  [/\boptions\.(?:visionOptions\.)?(\w+)/g, (_, name) => flag(name)],
  [/\(`vision`\)/g, '(--vision)'],
  [/\ba maxPixels of\b/g, '--max-pixels'],
  [/\ba contextSize of\b/g, flag('contextSize')],
  [/\bcontextSize\b/g, flag('contextSize')],
];

const replaced = (text, pairs) => pairs.reduce((all, [from, to]) => all.replace(from, to), text);

/** @param {unknown} failure @returns {string} its code and its sentence */
export function worded(failure) {
  const { code, message, detail } = asQuernError(failure, 'call');
  return `${code}: ${replaced(detail.param ? replaced(message, ARGUMENTS) : message, WORDS)}`;
}
