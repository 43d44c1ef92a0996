// SPDX-License-Identifier: MIT
// Arguments whose end is missing: a call that max_tokens has cut off comes back in the next request, and templates want
// an object.

import { isRecord } from '../shared/kinds.js';
import { parsed } from '../shared/raw-json.js';

/** Letters at an end that may have to go: of an escape in a string, of a number, of a word. */
const TAIL = 6;

/**
 * @returns {{ends: string, safe: number}} what closes all that is open at a text's end; up to where it goes without its
 * last member
 */
function openIn(text) {
  const open = [];
  let isText = false;
  let safe = 0;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isText && letter === '\\') at++;
    else if (letter === '"') isText = !isText;
    else if (isText) continue;
    else if (letter === '{' || letter === '[') {
      open.push(letter === '{' ? '}' : ']');
      safe = at + 1;
    } else if (letter === ',') safe = at;
    else if (letter === '}' || letter === ']') open.pop();
  }
  return { ends: (isText ? '"' : '') + open.reverse().join(''), safe };
}

/**
 * The JSON of an object that ends too early, with an end; what nothing can follow (half a name, a colon) is left out.
 * @param {string} text @returns {string | undefined} undefined: it begins no object
 */
export function mended(text) {
  if (text.trim() === '') return '{}';
  const { safe } = openIn(text);
  for (const cut of [...Array.from({ length: TAIL }, (_, i) => text.length - i), safe]) {
    const whole = text.slice(0, Math.max(0, cut));
    const json = whole + openIn(whole).ends;
    if (isRecord(parsed(json))) return json;
  }
  return undefined;
}
