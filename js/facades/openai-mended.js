// SPDX-License-Identifier: MIT
// Completes truncated arguments: a call that max_tokens has cut off comes back in the next request, and templates need
// an object.

import { isRecord } from '../shared/kinds.js';
import { parsed } from '../shared/raw-json.js';

/** Most letters at the end that may have to be removed: of an escape in a string, of a number, of a word. */
const TAIL = 6;

/**
 * @returns {{ends: string, safe: number}} the closing marks for everything that is open at the end, and the length of
 *   the text without its last member
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
 * Completes the JSON of a truncated object; an end that nothing can complete (half a name, a colon) is removed.
 * @param {string} text
 * @returns {string | undefined} undefined: it is not the beginning of an object
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
