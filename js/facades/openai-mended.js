// SPDX-License-Identifier: MIT
// Arguments whose end is missing: a call that max_tokens has cut off comes back in the next request, and templates want an object.

import { isRecord, parsed } from '../shared/raw-json.js';

/** Letters that are looked at, again for each that has to go. */
const MOST_WORK = 2 ** 24;

/** What is open at a text's end, closed. */
function ends(text) {
  const open = [];
  let isText = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isText && letter === '\\') at++;
    else if (letter === '"') isText = !isText;
    else if (!isText && (letter === '{' || letter === '[')) open.push(letter === '{' ? '}' : ']');
    else if (!isText && (letter === '}' || letter === ']')) open.pop();
  }
  return (isText ? '"' : '') + open.reverse().join('');
}

/**
 * The JSON of an object that ends too early, with an end; what nothing can follow (half a name, a colon) is left out.
 * @param {string} text @returns {string | undefined} undefined: it begins no object
 */
export function mended(text) {
  if (text.trim() === '') return '{}';
  if (!text.trimStart().startsWith('{')) return undefined;
  let work = MOST_WORK;
  for (let cut = text.length; cut > 0 && work > 0; cut--, work -= cut) {
    const whole = text.slice(0, cut);
    const json = whole + ends(whole);
    if (isRecord(parsed(json))) return json;
  }
  return undefined;
}
